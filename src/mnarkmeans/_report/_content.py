"""A table under a fitted model, every part computed once, and the numbers of its page.

The page is a plain dict that JSON can hold. It is stored beside the results as report.json, so that
it can be drawn again without the table it was made from.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import fields
from datetime import UTC, datetime
from typing import Any

import numpy as np

from .._embedding import embed
from .._io import plain
from .._versions import versions
from ..displays._displays import InstabilityDisplay, MissingnessDisplay, most_different
from ..displays._flow import FlowDisplay
from ..displays._style import percent, rounded, sample
from ..metrics import Verdict, verdict
from ..metrics._annotations import Agreement, agreement
from ..metrics._markers import contrasts, ranked
from ..metrics._quality import silhouettes
from ..metrics._verdict import BETWEEN, names_of
from ..missingness import methods_paragraph
from ..missingness._diagnose import cells_of, observed_by_row, why_no_penalty
from ..missingness._paragraph import lam_words
from ..tables import Table

PAGE_VERSION = 6
MARKERS = 8  # of each cluster
SURE = 0.9  # confidence of a row
BINS = 20  # of missing shares
MAX_POINTS, MAX_ROWS, MAX_FEATURES, MAX_LISTED = 50_000, 400, 60, 100


class FittedTable:
    """Rows, a fitted k-means model, and what it says of them.

    X are the values as they were clustered: an array with NaN, or a CSR matrix whose stored entries
    are observed. Annotations are name -> one value per row; `classes` are those known not to be
    batches. `progress` takes (done, total) while the verdict is made, which takes long on large
    tables.
    """

    def __init__(
        self,
        X: Any,
        model: Any,
        labels: Any,
        *,
        ids: Sequence[Any] | None = None,
        features: Sequence[Any] | None = None,
        annotations: Mapping[str, Sequence[Any]] | None = None,
        classes: Collection[str] = (),
        progress: Callable[[int, int], None] | None = None,
    ) -> None:
        (n, p), k = X.shape, len(model.cluster_centers_)
        self.X, self.model, self.labels, self.n_clusters = X, model, np.asarray(labels), k
        self.ids = [str(name) for name in (range(n) if ids is None else ids)]
        self.features = [f"x{j}" for j in range(p)] if features is None else [*map(str, features)]
        known = (annotations or {}).items()
        self.annotations = [agreement(name, values, self.labels) for name, values in known]
        distances = np.asarray(model.transform(X), dtype=float)
        self.own_distance = distances[np.arange(n), self.labels]
        found = silhouettes(distances, self.labels)
        self.silhouettes, self.next_cluster, self.next_distance = found
        self.missing_by_row = 1.0 - observed_by_row(X) / p
        self.cells = cells_of(X, self.labels, k)
        self.sizes = self.cells.sizes
        self.contrasts = contrasts(X, self.labels, k)
        self.verdict = verdict(X, model, progress=progress)
        self.confidence = self.verdict.confidence
        again = self.verdict.agreement  # of each cluster, what refits to other rows find again
        self.stability = None if k == 1 or np.isnan(again).any() else again
        warned = [one for one in self.annotations if one.warns and one.name not in classes]
        self.batch_warnings = [one.sentence for one in sorted(warned, key=lambda one: -one.nested)]


def page_of(fitted: FittedTable, title: str, embedding: str = "pca") -> dict[str, Any]:
    """Everything the page shows about a fitted table.

    The caller may add "command", "left_out", "notes", "preparation", "settings", "comparison", and
    what `search_facts` gives.
    """
    model, cells = fitted.model, fitted.cells
    n, p = fitted.X.shape
    kept = sample(n, MAX_POINTS)
    undecided = int((fitted.confidence < BETWEEN).sum())
    missing = MissingnessDisplay._from_cells(cells, fitted.features)
    found, diagnosis, origin = getattr(model, "missingness_", None), [], "was given."
    if found is not None:
        diagnosis = [found.sentence, *filter(None, [why_no_penalty(found, cells)])]
        if isinstance(model.lam, str):
            origin = f"was chosen from the data. {found.sentence}"
    return plain({
        "page_version": PAGE_VERSION,
        "title": title,
        "created": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "versions": versions(),
        "data": {
            "rows": n,
            "features": p,
            "missing_share": fitted.missing_by_row.mean(),
            "by_feature": np.histogram(cells.pooled().missing_share[0], BINS, (0.0, 1.0))[0],
            "by_row": np.histogram(fitted.missing_by_row, BINS, (0.0, 1.0))[0],
        },
        "fit": {
            "k": fitted.n_clusters,
            "lam": model.lam_,  # a number, or one per feature
            "inertia": model.inertia_,
        },
        "missing": fields_of(missing),
        "sure": _sureness(fitted),
        "clusters": [_cluster(fitted, cluster) for cluster in range(fitted.n_clusters)],
        "embedding": _points(fitted, embedding, kept),
        "far": _listed(fitted, np.argsort(-fitted.own_distance, kind="stable")),
        "between": _listed(fitted, np.argsort(fitted.confidence, kind="stable")[:undecided]),
        "annotations": [_annotation(one, kept) for one in fitted.annotations],
        "markers": _markers(fitted),
        "missing_text": _missing_in_words(missing),
        "diagnosis": diagnosis,
        "lam_text": f"lam = {lam_words(model.lam_)} {origin}",
        "methods": methods_paragraph(model),
        "stability": None if fitted.stability is None else rounded(fitted.stability),
        **_centers(fitted),
    })  # fmt: skip


def search_facts(search: Any, X: Any, verdict: Verdict) -> dict[str, Any]:
    """What the page shows of a search for lam and the number of clusters."""
    found = search.cv_results_
    several = len(np.unique(found["param_n_clusters"])) > 1
    what = f"k = {search.n_clusters_} and " if several else ""
    text = (
        f"{what}lam = {lam_words(search.lam_)} {'were' if several else 'was'} chosen from "
        f'{len(found["param_lam"])} candidates (criterion "{search.criterion}").'
    )
    along = ["lam", "k"] if several else ["lam"]
    flows = [FlowDisplay._from_search(search, X, by) for by in along]
    return plain({
        "choice": fields_of(InstabilityDisplay._from_search(search)),
        "flow": [fields_of(flow) for flow in flows if len(flow.partitions) > 1],
        "several_k": several,
        "lam_text": " ".join(filter(None, [text, _equally_stable(search, verdict)])),
        "methods": methods_paragraph(search),
    })  # fmt: skip


# --- words ----------------------------------------------------------------------------------------


def _equally_stable(search: Any, verdict: Verdict) -> str:
    """Which numbers of clusters are: their mean instabilities differ by no more than the standard
    error of either. Empty where one number was tried."""
    results = search.cv_results_
    chosen = np.asarray(results["chosen_for_k"], bool)
    ks = np.asarray(results["param_n_clusters"])[chosen]
    if len(ks) < 2:
        return ""
    mean = np.asarray(results["mean_instability"], float)[chosen]
    error = np.asarray(results["std_instability"], float)[chosen]
    error = error / np.sqrt(search.n_splits or 10)
    best = int(np.flatnonzero(ks == search.n_clusters_)[0])
    close = np.abs(mean - mean[best]) <= np.maximum(error, error[best])
    close &= ks > 1  # one cluster is always found again
    text = f"No other number of clusters is as stable (instability {mean[best]:.3f})."
    if close.sum() > 1:
        span = " to ".join(dict.fromkeys(f"{end:.3f}" for end in np.sort(mean[close])[[0, -1]]))
        text = (
            f"k = {names_of(ks[close])} are equally stable (instability {span}); k = {ks[best]} "
            "was chosen."
        )
    if verdict.kind == "continuum":
        text += (
            " However stable, these clusters are slices of one continuum: no number of clusters is "
            "better supported than a single group."
        )
    return text


def _sureness(fitted: FittedTable) -> dict[str, Any]:
    """The verdict, its reasons, what to do next."""
    found, k = fitted.verdict, fitted.n_clusters
    known = fitted.confidence[~np.isnan(fitted.confidence)]
    between = int((known < BETWEEN).sum())
    reasons = [*fitted.batch_warnings, found.sentence]
    if known.size:
        reasons.append(
            f"{percent(float((known >= SURE).mean()))} of the rows clearly belong to their cluster "
            f"(confidence at least {SURE}); {between:,} of {known.size:,} "
            f"{'lies' if between == 1 else 'lie'} between clusters (below {BETWEEN})."
        )
    steps = []
    if k > 1 and len(found.groups) != k:
        steps.append(
            f"Try other numbers of clusters: \u201cselect\u201d with -k 2:{k + 2} compares them "
            "and shows how many rows change cluster."
        )
    if found.kind == "continuum":
        steps.append("Describe the rows by where they lie along the continuum, not by cluster.")
    if between:
        steps.append("Treat rows between clusters as undecided; labels.csv has their confidence.")
    return {
        "level": found.kind.replace(" ", "-"),
        "headline": found.headline,
        "reasons": reasons,
        "warnings": len(fitted.batch_warnings),
        "next": steps,
        "between": between,
        "mean_confidence": known.mean() if known.size else None,
        "silhouette": fitted.silhouettes.mean(),
        "verdict": found.to_dict(),
    }


# --- numbers --------------------------------------------------------------------------------------


def _cluster(fitted: FittedTable, cluster: int) -> dict[str, Any]:
    own, size = fitted.labels == cluster, int(fitted.sizes[cluster])
    sure = fitted.confidence[own]
    high, between = int((sure >= SURE).sum()), int((sure < BETWEEN).sum())
    judged = size > 0 and not np.isnan(sure).any()
    means = {
        "distance": fitted.own_distance, "missing": fitted.missing_by_row,
        "confidence": fitted.confidence, "silhouette": fitted.silhouettes,
    }  # fmt: skip
    return {
        "cluster": cluster,
        "rows": size,
        "share": size / own.size,
        **{name: values[own].mean() if size else None for name, values in means.items()},
        "levels": [high, size - high - between, between] if judged else None,
    }


def _points(fitted: FittedTable, method: str, kept: np.ndarray) -> dict[str, Any]:
    """Where the rows lie, from values and gaps alone, and what the picture says of them."""
    found = embed(fitted.X[kept], fitted.model.lam_, fitted.model.reference_, method)
    return {
        "method": method,
        "rows": fitted.X.shape[0],
        "x": rounded(found.points[:, 0], 5),
        "y": rounded(found.points[:, 1], 5),
        "axis_names": found.axis_names,
        "explained": found.explained or None,
        "ids": [fitted.ids[i] for i in kept],
        "cluster": fitted.labels[kept],
        "distance": rounded(fitted.own_distance[kept]),
        "missing": rounded(fitted.missing_by_row[kept], 3),
        "confidence": rounded(fitted.confidence[kept], 3),
    }


def _listed(fitted: FittedTable, order: np.ndarray) -> list[dict[str, Any]]:
    """The first rows of an order."""
    return [
        {
            "id": fitted.ids[i],
            "cluster": fitted.labels[i],
            "distance": fitted.own_distance[i],
            "next_cluster": fitted.next_cluster[i],
            "next_distance": fitted.next_distance[i],
            "confidence": rounded(fitted.confidence[i], 6)[0],
            "missing": fitted.missing_by_row[i],
        }
        for i in order[:MAX_LISTED]
    ]


def _annotation(one: Agreement, kept: np.ndarray) -> dict[str, Any]:
    return {
        **{name: getattr(one, name) for name in ("name", "groups", "counts", "unknown", "ari")},
        "codes": one.codes[kept],
        "values": None if one.numbers is None else rounded(one.numbers[kept]),
    }


def _markers(fitted: FittedTable) -> list[dict[str, Any]]:
    """The strongest features of each cluster, as records."""
    names = np.array(fitted.features, dtype=object)
    found = ranked(fitted.contrasts, range(fitted.n_clusters), names, MARKERS)
    del found["rank"]
    return [dict(zip(found, row, strict=True)) for row in zip(*found.values(), strict=True)]


def _missing_in_words(chart: MissingnessDisplay) -> str:
    """The two ends of the line of the features."""
    shares = chart.feature_missing_share
    if not len(shares) or not np.any(chart.missing_share):
        return "Nothing is missing."
    return (
        f"Among the features with the lowest means, {percent(float(shares[0]))} of the entries are "
        f"missing; among those with the highest, {percent(float(shares[-1]))}."
    )


def fields_of(display: Any) -> dict[str, Any]:
    """What a display draws, as it is stored: numbers with seven digits."""
    return {
        field.name: rounded(value, 7) if np.asarray(value).dtype.kind == "f" else value
        for field in fields(display)
        for value in [getattr(display, field.name)]
    }


def _centers(fitted: FittedTable) -> dict[str, Any]:
    """The centres, and a sample of the table, of the features whose centres differ most."""
    cells, model = fitted.cells, fitted.model
    centers = np.asarray(model.cluster_centers_, dtype=float)
    reference = np.broadcast_to(np.asarray(model.reference_, dtype=float), centers.shape[1])
    mean = cells.sizes @ centers / max(cells.sizes.sum(), 1)
    shown = most_different(centers, MAX_FEATURES)
    names = [fitted.features[j] for j in shown]
    kept = sample(len(fitted.labels), MAX_ROWS)
    kept = kept[np.argsort(fitted.labels[kept], kind="stable")]
    part = Table(fitted.X[kept][:, shown], kept, names).dense()
    return {
        "centers": {
            "n_features": centers.shape[1],
            "features": names,
            "centers": [rounded(row) for row in centers[:, shown]],
            "reference": rounded(reference[shown]),
            "mean": rounded(mean[shown]),
            "missing": [rounded(row, 3) for row in cells.missing_share[:, shown]],
            "sizes": cells.sizes,
        },
        "rows_by_cluster": {
            "ids": [fitted.ids[i] for i in kept],
            "cluster": fitted.labels[kept],
            "features": names,
            "levels": _levels(part - reference[shown]),
            "levels_mean": _levels(part - mean[shown]),
        },
    }


def _levels(distance: np.ndarray) -> np.ndarray:
    """0..200, 100 at no distance, -1 where the value is missing.

    Each feature has its own span, so that one loud feature does not bleach the others.
    """
    seen = ~np.isnan(distance)
    columns = zip(distance.T, seen.T, strict=True)
    top = np.array([np.quantile(np.abs(c[m]), 0.98) if m.any() else 1.0 for c, m in columns])
    level = np.clip(distance / np.where(top > 0, top, 1.0), -1, 1)
    return np.where(seen, np.round((np.nan_to_num(level) + 1) * 100), -1).astype(int).ravel()
