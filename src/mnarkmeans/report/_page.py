"""The numbers of the page, a plain dict that JSON can hold.

It is stored beside the results as report.json, so that the page can be drawn again without the
table it was made from.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._versions import versions
from ..displays._embedding import embed
from ..metrics._confidence import BETWEEN, confidence_of
from ..missingness._cells import cell_counts, missing_against_magnitude

PAGE_VERSION = 1
MAX_POINTS = 50_000
MAX_FEATURES = 60
MAX_ROWS_SHOWN = 400
MAX_FAR = 100


def collect(
    *,
    X: Any,
    ids: Any,
    features: list[str],
    model: Any,
    title: str,
    facts: dict[str, Any] | None = None,
    embedding: str = "pca",
) -> dict[str, Any]:
    """Everything the page shows about rows X under a fitted model.

    Parameters
    ----------
    X : array with NaN, or sparse matrix, in the units the model was fitted on
    ids, features : names of rows and columns
    model : fitted MNARKMeans or MNARKMeansCV
    title : str
        Heading of the page.
    facts : dict, optional
        What the caller knows: "command", "file", "left_out", "notes", "preparation", "choice",
        "comparison", "settings".
    embedding : "pca" or "umap"

    Examples
    --------
    >>> import numpy as np
    >>> from mnarkmeans import MNARKMeans
    >>> X = np.array([[0.0, 1.0], [0.2, np.nan], [5.0, 6.0], [5.1, 6.2]])
    >>> model = MNARKMeans(2, lam=0.5, random_state=0).fit(X)
    >>> page = collect(X=X, ids=list("abcd"), features=["u", "v"], model=model, title="Small")
    >>> page["data"]["rows"], len(page["clusters"])
    (4, 2)
    """
    distances = np.asarray(model.transform(X), dtype=float)
    labels = np.asarray(model.predict(X))
    centers = np.asarray(model.cluster_centers_, dtype=float)
    reference = np.broadcast_to(np.asarray(model.reference_, dtype=float), centers.shape[1])
    counts = cell_counts(X, labels, centers.shape[0])
    n, p = X.shape
    missing_row = 1.0 - _observed_per_row(X) / p
    curve = missing_against_magnitude(centers, reference, counts)
    facts = facts or {}
    page: dict[str, Any] = {
        "page_version": PAGE_VERSION,
        "title": title,
        "created": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "versions": versions(),
        "data": {
            "rows": n,
            "features": p,
            "missing_share": float(missing_row.mean()),
            "by_feature": _histogram(1.0 - counts.observed.sum(axis=0) / n),
            "by_row": _histogram(missing_row),
        },
        "fit": _fit_facts(model),
        "clusters": _clusters(labels, distances, missing_row, counts.sizes),
        "curve": {
            "magnitude": _rounded(curve.magnitude),
            "missing_share": _rounded(curve.missing_share),
            "entries": curve.entries.astype(int).tolist(),
        },
        "centers": _centers(centers, reference, counts, features),
        "embedding": _points(X, ids, labels, distances, missing_row, centers, embedding),
        "rows_by_cluster": _sorted_rows(X, ids, labels, centers, reference, features),
        "far": _far(ids, labels, distances, missing_row),
        "between": _between(ids, labels, distances, missing_row, p),
    }
    return page | facts


def _observed_per_row(X: Any) -> np.ndarray:
    if sp.issparse(X):
        return X.getnnz(axis=1).astype(float)
    return (~np.isnan(X)).sum(axis=1).astype(float)


def _fit_facts(model: Any) -> dict[str, Any]:
    return {
        "k": int(model.cluster_centers_.shape[0]),
        "lam": np.asarray(model.lam_, dtype=float).tolist(),  # a number, or one per feature
        "inertia": float(model.inertia_),
        "n_iter": int(model.n_iter_),
        "loss_path": _rounded(model.loss_path_, 7),
        "start_losses": _rounded(np.sort(np.asarray(model.start_losses_)), 7),
    }


def _clusters(labels, distances, missing_row, sizes) -> list[dict[str, Any]]:
    out = []
    for cluster, size in enumerate(sizes):
        own = labels == cluster
        known = int(size) > 0
        out.append(
            {
                "cluster": cluster,
                "rows": int(size),
                "share": float(size / labels.size),
                "distance": float(distances[own, cluster].mean()) if known else None,
                "missing": float(missing_row[own].mean()) if known else None,
            }
        )
    return out


def most_different(centers: np.ndarray, reference: np.ndarray, count: int) -> np.ndarray:
    """Indices, in their order, of the features whose centres differ most."""
    distance = centers - reference
    spread = distance.max(axis=0) - distance.min(axis=0)
    return np.sort(np.argsort(-spread, kind="stable")[:count])


def _centers(centers, reference, counts, features) -> dict[str, Any]:
    shown = most_different(centers, reference, MAX_FEATURES)
    return {
        "n_features": centers.shape[1],
        "features": [str(features[j]) for j in shown],
        "centers": [_rounded(row) for row in centers[:, shown]],
        "reference": _rounded(reference[shown]),
        "missing": [_rounded(row, 3) for row in counts.missing_share[:, shown]],
        "sizes": counts.sizes.tolist(),
    }


def _points(X, ids, labels, distances, missing_row, centers, method) -> dict[str, Any]:
    n = X.shape[0]
    kept = np.arange(n)
    if n > MAX_POINTS:
        kept = np.sort(np.random.default_rng(0).choice(n, MAX_POINTS, replace=False))
    sample = X[kept]
    found = embed(sample, centers, labels[kept], method)
    nearest = distances[kept, labels[kept]]
    return {
        "method": method,
        "rows": n,
        "ids": [str(ids[i]) for i in kept],
        "x": _rounded(found.points[:, 0], 5),
        "y": _rounded(found.points[:, 1], 5),
        "cluster": labels[kept].tolist(),
        "distance": _rounded(nearest),
        "missing": _rounded(missing_row[kept], 3),
        "axis_names": list(found.axis_names),
        "explained": list(found.explained) if found.explained else None,
    }


def _sorted_rows(X, ids, labels, centers, reference, features) -> dict[str, Any]:
    """A sample of the table, rows by cluster, as levels -1..1 of distance from the reference."""
    rng = np.random.default_rng(0)
    n = X.shape[0]
    kept = np.arange(n) if n <= MAX_ROWS_SHOWN else rng.choice(n, MAX_ROWS_SHOWN, replace=False)
    kept = kept[np.lexsort((kept, labels[kept]))]
    shown = most_different(centers, reference, MAX_FEATURES)
    part = X[kept][:, shown]
    if sp.issparse(part):
        stored = part.tocoo()
        part = np.full(part.shape, np.nan)
        part[stored.row, stored.col] = stored.data
    distance = np.asarray(part, dtype=float) - reference[shown]
    seen = ~np.isnan(distance)
    # Each feature has its own span, so that one loud feature does not bleach the others.
    top = np.array(
        [np.quantile(np.abs(c[m]), 0.98) if m.any() else 1.0 for c, m in zip(
            distance.T, seen.T, strict=True)]
    )  # fmt: skip
    level = np.clip(distance / np.where(top > 0, top, 1.0), -1, 1)
    code = np.where(seen, np.round((np.nan_to_num(level) + 1) * 100), -1).astype(int)
    return {
        "ids": [str(ids[i]) for i in kept],
        "cluster": labels[kept].tolist(),
        "features": [str(features[j]) for j in shown],
        "levels": code.ravel().tolist(),
    }


def _far(ids, labels, distances, missing_row) -> list[dict[str, Any]]:
    n, k = distances.shape
    own = distances[np.arange(n), labels]
    order = np.argsort(-own, kind="stable")[:MAX_FAR]
    out = []
    for i in order:
        others = np.delete(distances[i], labels[i])
        nearest = int(np.argsort(distances[i])[1]) if k > 1 else None
        out.append(
            {
                "id": str(ids[i]),
                "cluster": int(labels[i]),
                "distance": float(own[i]),
                "next_cluster": nearest,
                "next_distance": float(others.min()) if k > 1 else None,
                "missing": float(missing_row[i]),
            }
        )
    return out


def _between(ids, labels, distances, missing_row, p) -> list[dict[str, Any]]:
    """The rows that are least sure of their cluster, and the next one."""
    observed = float((1.0 - missing_row).sum() * p)
    noise = float(np.square(distances.min(axis=1)).sum()) / max(observed, 1.0)
    sure = confidence_of(distances, noise)
    order = np.argsort(sure, kind="stable")[:MAX_FAR]
    return [
        {
            "id": str(ids[i]),
            "cluster": int(labels[i]),
            "next_cluster": int(np.argsort(distances[i], kind="stable")[1]),
            "confidence": float(sure[i]),
            "missing": float(missing_row[i]),
        }
        for i in order
        if sure[i] < BETWEEN and distances.shape[1] > 1
    ]


def _histogram(share: np.ndarray, bins: int = 20) -> dict[str, Any]:
    counts, edges = np.histogram(share, bins=bins, range=(0.0, 1.0))
    return {"edges": _rounded(edges, 3), "counts": counts.tolist()}


def _rounded(values: Any, digits: int = 4) -> list[float | None]:
    """Floats with so many significant digits: a page of 50,000 rows should stay small."""
    array = np.asarray(values, dtype=float)
    return [float(f"{v:.{digits}g}") if np.isfinite(v) else None for v in array.ravel()]
