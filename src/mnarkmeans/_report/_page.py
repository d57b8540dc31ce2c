"""The numbers of the page, a plain dict that JSON can hold.

It is stored beside the results as report.json, so that the page can be drawn again without the
table it was made from.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import numpy as np

from .._versions import versions
from ..displays._centers import most_different
from ..displays._numbers import percent, rounded
from ..metrics import Verdict, describe_choice
from ..metrics._markers import ranked
from ..metrics._verdict import BETWEEN
from ..missingness import methods_paragraph
from ..missingness._cells import CellCounts, missing_against_mean
from . import _rows
from ._annotations import crossed
from ._fitted import FittedTable
from ._flow import flows_of

PAGE_VERSION = 2
MARKERS = 8  # of each cluster
SURE = 0.9  # confidence of a row


def page_of(
    fitted: FittedTable,
    *,
    title: str,
    facts: dict[str, Any] | None = None,
    embedding: str = "pca",
) -> dict[str, Any]:
    """Everything the page shows about a fitted table.

    `facts`: what the caller knows besides: "command", "left_out", "notes", "preparation",
    "settings", "comparison", and what `search_facts` gives.
    """
    facts = facts or {}
    X, model = fitted.X, fitted.model
    counts = fitted.cells
    kept = _rows.kept_rows(len(fitted.labels))
    stability = fitted.stability
    page: dict[str, Any] = {
        "page_version": PAGE_VERSION,
        "title": title,
        "created": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "versions": versions(),
        "data": _data(fitted.missing_by_row, counts),
        "fit": _fit_facts(model),
        "clusters": _clusters(fitted),
        "embedding": _rows.points(X, model, embedding, kept) | _rows.told_at_points(fitted, kept),
        "far": _rows.far_rows(fitted),
        "between": _rows.rows_between(fitted),
        "sure": _sureness(fitted),
        "annotations": crossed(fitted.annotations, fitted.labels, kept),
        "diagnosis": _diagnosis(model),
        "lam_text": lam_text(model),
        "methods": methods_paragraph(model),
    }
    page |= _about_features(fitted)
    return page | facts | {"stability": None if stability is None else rounded(stability)}


def search_facts(search: Any, X: Any, verdict: Verdict) -> dict[str, Any]:
    """What the page shows of a search for lam and the number of clusters."""
    found = search.cv_results_
    columns = {"lam": "param_lam", "k": "param_n_clusters",
               "mean": "mean_instability", "std": "std_instability"}  # fmt: skip
    choice: dict[str, Any] = {name: rounded(found[at], 7) for name, at in columns.items()}
    choice |= {"k": [int(k) for k in choice["k"]], "best_index": int(search.best_index_)}
    several = len(set(choice["k"])) > 1
    what = f"k = {search.n_clusters_} and " if several else ""
    text = (
        f"{what}lam = {lam_words(search.lam_)} {'were' if several else 'was'} chosen from "
        f'{len(choice["lam"])} candidates (criterion "{search.criterion}").'
    )
    return {
        "choice": choice,
        "flow": flows_of(search, X),
        "lam_text": " ".join(filter(None, [text, describe_choice(search, verdict)])),
        "methods": methods_paragraph(search),
    }


def lam_words(lam: Any) -> str:
    """One number, or the range of one per feature.

    Examples
    --------
    >>> lam_words(0.5), lam_words([0.25, 1.0])
    ('0.5', '0.25 to 1, one per feature')
    """
    if np.ndim(lam) == 0:
        return f"{lam:.4g}"
    return f"{np.min(lam):.4g} to {np.max(lam):.4g}, one per feature"


def lam_text(model: Any) -> str:
    """Where lam comes from, in words."""
    if not isinstance(model.lam, str):
        return f"lam = {lam_words(model.lam_)} was given."
    why = getattr(getattr(model, "missingness_", None), "sentence", "")
    return f"lam = {lam_words(model.lam_)} was chosen from the data. {why}".strip()


def _about_features(fitted: FittedTable) -> dict[str, Any]:
    """Centres, markers, a sample of the table, missing rate against magnitude."""
    model, counts, features = fitted.model, fitted.cells, fitted.features
    centers = np.asarray(model.cluster_centers_, dtype=float)
    p = centers.shape[1]
    reference = np.broadcast_to(np.asarray(model.reference_, dtype=float), p)
    mean = counts.sizes @ centers / max(counts.sizes.sum(), 1)
    shown = most_different(centers, _rows.MAX_FEATURES)
    about = {
        "indices": shown,
        "names": [str(features[j]) for j in shown],
        "reference": reference[shown],
        "mean": mean[shown],
    }
    curve = missing_against_mean(centers, counts)
    return {
        "curve": {
            "magnitude": rounded(curve.magnitude),
            "missing_share": rounded(curve.missing_share),
            "entries": curve.entries.astype(int).tolist(),
        },
        "centers": {
            "n_features": p,
            "features": about["names"],
            "centers": [rounded(row) for row in centers[:, shown]],
            "reference": rounded(reference[shown]),
            "mean": rounded(mean[shown]),
            "missing": [rounded(row, 3) for row in counts.missing_share[:, shown]],
            "sizes": counts.sizes.tolist(),
        },
        "markers": _markers(fitted),
        "rows_by_cluster": _rows.sorted_rows(fitted.X, fitted.ids, fitted.labels, about),
    }


def _data(missing: np.ndarray, counts: CellCounts) -> dict[str, Any]:
    n, p = len(missing), counts.observed.shape[1]
    return {
        "rows": n,
        "features": p,
        "missing_share": float(missing.mean()),
        "by_feature": _histogram(1.0 - counts.observed.sum(axis=0) / n),
        "by_row": _histogram(missing),
    }


def _fit_facts(model: Any) -> dict[str, Any]:
    return {
        "k": int(model.cluster_centers_.shape[0]),
        "lam": np.asarray(model.lam_, dtype=float).tolist(),  # a number, or one per feature
        "inertia": float(model.inertia_),
        "n_iter": int(model.n_iter_),
        "loss_path": rounded(model.loss_path_, 7),
        "start_losses": rounded(np.sort(np.asarray(model.start_losses_)), 7),
    }


def _clusters(fitted: FittedTable) -> list[dict[str, Any]]:
    out = []
    distance, missing, silhouette = fitted.own_distance, fitted.missing_by_row, fitted.silhouettes
    for cluster, size in enumerate(fitted.sizes):
        own = fitted.labels == cluster
        known = int(size) > 0
        sure = fitted.confidence[own]
        judged = known and not np.isnan(sure).any()
        high, between = int((sure >= SURE).sum()), int((sure < BETWEEN).sum())
        out.append(
            {
                "cluster": cluster,
                "rows": int(size),
                "share": float(size / own.size),
                "distance": float(distance[own].mean()) if known else None,
                "missing": float(missing[own].mean()) if known else None,
                "confidence": float(sure.mean()) if judged else None,
                "silhouette": float(silhouette[own].mean()) if known else None,
                "levels": [high, int(size) - high - between, between] if judged else None,
            }
        )
    return out


KIND = (
    "Confidence is the probability that a row belongs to its cluster: of rows with confidence 0.8, "
    "about 80 % are in their true group. It comes from fits to other rows, and is given for "
    "separate groups only: where clusters are slices of one continuum there is nothing a row could "
    "belong to."
)


def _sureness(fitted: FittedTable) -> dict[str, Any]:
    """The section "How sure is this?": the verdict, its reasons, what to do next."""
    found, k = fitted.verdict, fitted.n_clusters
    known = fitted.confidence[~np.isnan(fitted.confidence)]
    between = int((known < BETWEEN).sum())
    reasons = [*fitted.batch_warnings, found.sentence]
    if known.size:
        reasons.append(
            f"{percent(float((known >= SURE).mean()))} of the rows are sure of their cluster "
            f"(confidence at least {SURE}); {between:,} of {known.size:,} lie between two "
            f"(below {BETWEEN})."
        )
    steps = []
    if k > 1 and len(found.groups) != k:
        steps.append(
            f"Try other numbers of clusters: \u201cselect\u201d with -k 2:{k + 2} compares them, "
            "and shows which clusters stay."
        )
    if found.kind == "continuum":
        steps.append("Describe the rows by where they lie along the continuum, not by cluster.")
    if between:
        steps.append("Treat rows between clusters as undecided: labels.csv has their confidence.")
    return {
        "kind": KIND,
        "level": found.kind.replace(" ", "-"),
        "headline": found.headline,
        "reasons": reasons,
        "next": steps,
        "between": between,
        "mean_confidence": float(known.mean()) if known.size else None,
        "silhouette": float(fitted.silhouettes.mean()),
        "verdict": found.to_dict(),
    }


def _markers(fitted: FittedTable) -> list[dict[str, Any]]:
    """The strongest features of each cluster, as records."""
    names = np.array(fitted.features, dtype=object)
    found = ranked(fitted.contrasts, range(fitted.n_clusters), names, MARKERS)
    return [
        {
            "cluster": int(found.cluster[i]),
            "feature": str(found.feature[i]),
            "effect": float(found.effect[i]),
            "low": float(found.low[i]),
            "high": float(found.high[i]),
            "direction": found.direction[i],
            "mean_inside": _known(found.mean_inside[i]),
            "mean_outside": _known(found.mean_outside[i]),
            "observed_inside": float(found.observed_inside[i]),
            "observed_outside": float(found.observed_outside[i]),
        }
        for i in range(len(found.rank))
    ]


def _known(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def _diagnosis(model) -> list[str]:
    """Why lam and reference are what they are, where the fit has chosen them."""
    found = getattr(model, "missingness_", None)
    return [] if found is None else [found.sentence]


def _histogram(share: np.ndarray, bins: int = 20) -> dict[str, Any]:
    counts, edges = np.histogram(share, bins=bins, range=(0.0, 1.0))
    return {"edges": rounded(edges, 3), "counts": counts.tolist()}
