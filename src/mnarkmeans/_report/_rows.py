"""Rows on the page: where they lie, a sample of the table, those far from their centres."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from .._embedding import embed
from ..displays._numbers import rounded
from ..metrics._verdict import BETWEEN
from ._fitted import FittedTable

MAX_POINTS = 50_000
MAX_FEATURES = 60
MAX_ROWS_SHOWN = 400
MAX_LISTED = 100


def kept_rows(n: int) -> np.ndarray:
    """The rows of the picture: all, or a random sample."""
    if n <= MAX_POINTS:
        return np.arange(n)
    return np.sort(np.random.default_rng(0).choice(n, MAX_POINTS, replace=False))


def points(X: Any, model: Any, method: str, kept: np.ndarray) -> dict[str, Any]:
    """Coordinates of the rows, from values and gaps alone."""
    found = embed(X[kept], model.lam_, model.reference_, method)
    return {
        "method": method,
        "rows": X.shape[0],
        "x": rounded(found.points[:, 0], 5),
        "y": rounded(found.points[:, 1], 5),
        "axis_names": list(found.axis_names),
        "explained": list(found.explained) if found.explained else None,
    }


def sorted_rows(X: Any, ids: Any, labels: np.ndarray, shown: dict[str, Any]) -> dict[str, Any]:
    """A sample of the table, rows by cluster, as levels -1..1 from the reference and the mean.

    `shown`: indices, names, reference and mean of the features.
    """
    rng = np.random.default_rng(0)
    n = X.shape[0]
    kept = np.arange(n) if n <= MAX_ROWS_SHOWN else rng.choice(n, MAX_ROWS_SHOWN, replace=False)
    kept = kept[np.lexsort((kept, labels[kept]))]
    part = X[kept][:, shown["indices"]]
    if sp.issparse(part):
        stored = part.tocoo()
        part = np.full(part.shape, np.nan)
        part[stored.row, stored.col] = stored.data
    values = np.asarray(part, dtype=float)
    return {
        "ids": [str(ids[i]) for i in kept],
        "cluster": labels[kept].tolist(),
        "features": shown["names"],
        "levels": _levels(values - shown["reference"]),
        "levels_mean": _levels(values - shown["mean"]),
    }


def _levels(distance: np.ndarray) -> list[int]:
    """0..200, 100 at no distance, -1 in the gaps.

    Each feature has its own span, so that one loud feature does not bleach the others.
    """
    seen = ~np.isnan(distance)
    columns = zip(distance.T, seen.T, strict=True)
    top = np.array([np.quantile(np.abs(c[m]), 0.98) if m.any() else 1.0 for c, m in columns])
    level = np.clip(distance / np.where(top > 0, top, 1.0), -1, 1)
    return (
        np.where(seen, np.round((np.nan_to_num(level) + 1) * 100), -1).astype(int).ravel().tolist()
    )


def told_at_points(rows: FittedTable, kept: np.ndarray) -> dict[str, Any]:
    """What the picture tells of its points."""
    return {
        "ids": [str(rows.ids[i]) for i in kept],
        "cluster": rows.labels[kept].tolist(),
        "distance": rounded(rows.own_distance[kept]),
        "missing": rounded(rows.missing_by_row[kept], 3),
        "confidence": rounded(rows.confidence[kept], 3),
    }


def far_rows(rows: FittedTable) -> list[dict[str, Any]]:
    """The rows furthest from their centres."""
    alone = rows.n_clusters == 1
    distance, other, missing = rows.own_distance, rows.next_distance, rows.missing_by_row
    return [
        {
            "id": str(rows.ids[i]),
            "cluster": int(rows.labels[i]),
            "distance": float(distance[i]),
            "next_cluster": None if alone else int(rows.next_cluster[i]),
            "next_distance": None if alone else float(other[i]),
            "missing": float(missing[i]),
        }
        for i in np.argsort(-distance, kind="stable")[:MAX_LISTED]
    ]


def rows_between(rows: FittedTable) -> list[dict[str, Any]]:
    """The rows that are least sure of their cluster, and the next one."""
    missing = rows.missing_by_row
    return [
        {
            "id": str(rows.ids[i]),
            "cluster": int(rows.labels[i]),
            "next_cluster": int(rows.next_cluster[i]),
            "confidence": float(rows.confidence[i]),
            "missing": float(missing[i]),
        }
        for i in np.argsort(rows.confidence, kind="stable")[:MAX_LISTED]
        if rows.confidence[i] < BETWEEN
    ]
