"""A table under a fitted model, every part computed once, and the numbers of its page.

The page is a plain dict that JSON can hold. It is stored beside the results as report.json, so that
it can be drawn again without the table it was made from.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

import numpy as np

from .._embedding import embed
from .._io import plain
from .._versions import versions
from ..displays._chart import Axis, Chart, Series
from ..displays._displays import InstabilityDisplay, MissingnessDisplay, most_different
from ..displays._flow import FlowDisplay
from ..displays._style import percent, rounded, sample
from ..metrics import Verdict, verdict
from ..metrics._annotations import Agreement, agreement
from ..metrics._markers import find_markers, strongest
from ..metrics._quality import silhouettes
from ..metrics._verdict import BETWEEN, names_of
from ..missingness import methods_paragraph
from ..missingness._diagnose import cells_of, observed_by_row, why_no_penalty
from ..missingness._paragraph import lam_words
from ..tables import Table

PAGE_VERSION = 7
MARKERS = 8  # of each cluster
SURE = 0.9  # confidence of a row
BINS = 20  # of missing shares
MAX_POINTS, MAX_ROWS, MAX_FEATURES, MAX_LISTED = 50_000, 400, 60, 100


class FittedTable:
    """Rows under a fitted k-means model, with all that is computed once for files and page.

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
        ids: Iterable[Any],
        features: Iterable[Any],
        annotations: Mapping[str, Sequence[Any]] | None = None,
        classes: Collection[str] = (),
        progress: Callable[[int, int], None] | None = None,
    ) -> None:
        n, k = X.shape[0], len(model.cluster_centers_)
        self.X, self.model, self.n_clusters = X, model, k
        self.labels = labels = np.asarray(labels)
        self.features = [*map(str, features)]
        self.annotations = [
            agreement(name, values, labels) for name, values in (annotations or {}).items()
        ]
        self.cells = cells_of(X, labels, k)
        self.markers = find_markers(X, labels, k)  # clusters and features by their numbers
        self.verdict = verdict(X, model, progress=progress)
        distances = np.asarray(model.transform(X), dtype=float)
        silhouette, next_cluster, next_distance = silhouettes(distances, labels)
        self.rows: dict[str, np.ndarray] = {
            "id": np.array([*map(str, ids)], object),
            "cluster": labels,
            "distance": distances[np.arange(n), labels],
            "next_cluster": next_cluster,
            "next_distance": next_distance,
            "confidence": self.verdict.confidence,
            "missing": 1.0 - observed_by_row(X) / X.shape[1],
            "silhouette": silhouette,
        }
        found_again = self.verdict.agreement  # by fits to other rows, for each cluster
        self.stability = None if k == 1 or np.isnan(found_again).any() else found_again
        warnings = [note for note in self.annotations if note.warns and note.name not in classes]
        warnings.sort(key=lambda note: -note.nested)
        self.batch_warnings = [note.sentence for note in warnings]


def page_of(fitted: FittedTable, title: str, embedding: str = "pca") -> dict[str, Any]:
    """Everything the page shows about a fitted table.

    The caller may add "command", "left_out", "notes", "preparation", "settings", "comparison", and
    what `search_facts` gives.
    """
    model, cells, rows = fitted.model, fitted.cells, fitted.rows
    n, p = fitted.X.shape
    shown = sample(n, MAX_POINTS)
    undecided = int((rows["confidence"] < BETWEEN).sum())
    missing = MissingnessDisplay._from_cells(cells, fitted.features)
    missingness, diagnosis, origin = getattr(model, "missingness_", None), [], "was given."
    if missingness is not None:
        diagnosis = [missingness.sentence, *filter(None, [why_no_penalty(missingness, cells)])]
        if isinstance(model.lam, str):
            origin = f"was chosen from the data. {missingness.sentence}"
    return plain({
        "page_version": PAGE_VERSION,
        "title": title,
        "created": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "versions": versions(),
        "data": {"rows": n, "features": p, "missing_share": rows["missing"].mean()},
        "fit": {
            "k": fitted.n_clusters,
            "lam": model.lam_,  # a number, or one per feature
            "inertia": model.inertia_,
        },
        "charts": {
            "missing": missing.chart().to_dict(),
            "by_feature": _histogram(cells.pooled().missing_share[0], "features"),
            "by_row": _histogram(rows["missing"], "rows"),
        },
        "sure": _certainty(fitted),
        "clusters": [_cluster(fitted, cluster) for cluster in range(fitted.n_clusters)],
        "embedding": _embedding(fitted, embedding, shown),
        "far": _listed(fitted, np.argsort(-rows["distance"], kind="stable")),
        "between": _listed(fitted, np.argsort(rows["confidence"], kind="stable")[:undecided]),
        "annotations": [_annotation(note, shown) for note in fitted.annotations],
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
    results = search.cv_results_
    several_k = len(np.unique(results["param_n_clusters"])) > 1
    text = (
        f"{f'k = {search.n_clusters_} and ' if several_k else ''}lam = {lam_words(search.lam_)} "
        f"{'were' if several_k else 'was'} chosen from {len(results['param_lam'])} candidates "
        f'(criterion "{search.criterion}").'
    )
    flows = [FlowDisplay._from_search(search, X, "lam")]
    if several_k:
        flows.append(FlowDisplay._from_search(search, X, "k"))
        text += f" {_equally_stable(search, verdict)}"
    return plain({
        "choice": InstabilityDisplay._from_search(search).chart().to_dict(),
        "flow": [
            {"partitions": flow.partitions, "names": flow.names, "chosen": flow.chosen,
             "axis_name": flow.axis_name, "moved": flow.moved_}
            for flow in flows if len(flow.partitions) > 1
        ],
        "several_k": several_k,
        "lam_text": text,
        "methods": methods_paragraph(search),
    })  # fmt: skip


# --- words ----------------------------------------------------------------------------------------


def _equally_stable(search: Any, verdict: Verdict) -> str:
    """Which of several numbers of clusters are equally stable: their mean instabilities differ by
    no more than the standard error of either."""
    results = search.cv_results_
    ks, mean, spread = (
        np.asarray(results[name], float)[results["chosen_for_k"]]
        for name in ("param_n_clusters", "mean_instability", "std_instability")
    )
    error = spread / np.sqrt(search.n_splits or 10)
    best = int(np.flatnonzero(ks == search.n_clusters_)[0])
    close = np.abs(mean - mean[best]) <= np.maximum(error, error[best])
    close &= ks > 1  # one cluster is always found again
    text = f"No other number of clusters is as stable (instability {mean[best]:.3f})."
    if close.sum() > 1:
        span = " to ".join(dict.fromkeys(f"{end:.3f}" for end in np.sort(mean[close])[[0, -1]]))
        text = (
            f"k = {names_of(ks[close].astype(int))} are equally stable (instability {span}); "
            f"k = {search.n_clusters_} was chosen."
        )
    if verdict.kind == "continuum":
        text += (
            " However stable, these clusters are slices of one continuum: no number of clusters is "
            "better supported than a single group."
        )
    return text


def _certainty(fitted: FittedTable) -> dict[str, Any]:
    """The verdict, its reasons, what to do next."""
    verdict, k = fitted.verdict, fitted.n_clusters
    confidence = verdict.confidence[~np.isnan(verdict.confidence)]
    between = int((confidence < BETWEEN).sum())
    reasons = [*fitted.batch_warnings, verdict.sentence]
    if confidence.size:
        reasons.append(
            f"{percent(float((confidence >= SURE).mean()))} of the rows clearly belong to their "
            f"cluster (confidence at least {SURE}); {between:,} of {confidence.size:,} "
            f"{'is' if between == 1 else 'are'} uncertain (below {BETWEEN})."
        )
    steps = []
    if k > 1 and len(verdict.groups) != k:
        steps.append(
            f"Try other numbers of clusters: \u201cselect\u201d with -k 2:{k + 2} compares them "
            "and shows how many rows change cluster."
        )
    if verdict.kind == "continuum":
        steps.append("Describe the rows by where they lie along the continuum, not by cluster.")
    if between:
        steps.append("Treat uncertain rows as undecided; labels.csv has their confidence.")
    return {
        "level": verdict.kind.replace(" ", "-"),
        "headline": verdict.headline,
        "reasons": reasons,
        "warnings": len(fitted.batch_warnings),
        "next": steps,
        "between": between,
        "mean_confidence": confidence.mean() if confidence.size else None,
        "silhouette": fitted.rows["silhouette"].mean(),
        "verdict": verdict.to_dict(),
    }


def _missing_in_words(chart: MissingnessDisplay) -> str:
    """The two ends of the line of the features."""
    shares = chart.feature_missing_share
    if not len(shares) or not np.any(chart.missing_share):
        return "Nothing is missing."
    return (
        f"Among the features with the lowest means, {percent(float(shares[0]))} of the entries are "
        f"missing; among those with the highest, {percent(float(shares[-1]))}."
    )


# --- numbers --------------------------------------------------------------------------------------


def _histogram(shares: np.ndarray, what: str) -> dict[str, Any]:
    """Bars over missing shares from 0 to 1."""
    counts, edges = np.histogram(shares, BINS, (0.0, 1.0))
    titles = [
        f"{percent(low)} to {percent(high)} missing: {count:,} {what}"
        for (low, high), count in zip(pairwise(edges.tolist()), counts, strict=True)
    ]
    axes = Axis("missing share", "share"), Axis(what, "count", from_zero=True)
    bars = Series(edges[:-1], counts, "bars", titles=titles)
    return Chart(f"Missing share of {what}", "", *axes, [bars]).to_dict()


def _cluster(fitted: FittedTable, cluster: int) -> dict[str, Any]:
    size, is_member = int(fitted.cells.sizes[cluster]), fitted.labels == cluster
    averaged = ("distance", "missing", "confidence", "silhouette")
    members = {name: fitted.rows[name][is_member] for name in averaged}
    confidence = members["confidence"]
    high, between = int((confidence >= SURE).sum()), int((confidence < BETWEEN).sum())
    has_levels = size > 0 and not np.isnan(confidence).any()
    return {
        "cluster": cluster,
        "rows": size,
        "share": size / len(fitted.labels),
        **{name: values.mean() if size else None for name, values in members.items()},
        "levels": [high, size - high - between, between] if has_levels else None,
    }


def _embedding(fitted: FittedTable, method: str, shown: np.ndarray) -> dict[str, Any]:
    """Where rows lie, by their values and what is missing, and what the picture says of them."""
    placed = embed(fitted.X[shown], fitted.model.lam_, fitted.model.reference_, method)
    rows = {name: values[shown] for name, values in fitted.rows.items()}
    return {
        "method": method,
        "rows": len(fitted.labels),
        "x": rounded(placed.points[:, 0], 5),
        "y": rounded(placed.points[:, 1], 5),
        "axis_names": placed.axis_names,
        "explained": placed.explained,
        "ids": rows["id"],
        "cluster": rows["cluster"],
        "distance": rounded(rows["distance"]),
        "missing": rounded(rows["missing"], 3),
        "confidence": rounded(rows["confidence"], 3),
    }


def _records(columns: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Columns as one dict for each line."""
    return [dict(zip(columns, line, strict=True)) for line in zip(*columns.values(), strict=True)]


def _listed(fitted: FittedTable, order: np.ndarray) -> list[dict[str, Any]]:
    """The first rows of an order."""
    first = {name: values[order[:MAX_LISTED]] for name, values in fitted.rows.items()}
    del first["silhouette"]
    return _records(first)


def _annotation(note: Agreement, shown: np.ndarray) -> dict[str, Any]:
    return {
        **{name: getattr(note, name) for name in ("name", "groups", "counts", "unknown", "ari")},
        "codes": note.codes[shown],
        "values": None if note.numbers is None else rounded(note.numbers[shown]),
    }


def _markers(fitted: FittedTable) -> list[dict[str, Any]]:
    """The strongest features of each cluster."""
    markers = strongest(fitted.markers, MARKERS)
    del markers["rank"]
    markers.feature = [fitted.features[j] for j in markers.feature]
    return _records(markers)


def _centers(fitted: FittedTable) -> dict[str, Any]:
    """The centres, and a sample of the table, of the features whose centres differ most."""
    cells, model = fitted.cells, fitted.model
    centers = np.asarray(model.cluster_centers_, dtype=float)
    reference = np.broadcast_to(np.asarray(model.reference_, dtype=float), centers.shape[1])
    mean = cells.sizes @ centers / max(cells.sizes.sum(), 1)
    shown = most_different(centers, MAX_FEATURES)
    names = [fitted.features[j] for j in shown]
    rows = sample(len(fitted.labels), MAX_ROWS)
    rows = rows[np.argsort(fitted.labels[rows], kind="stable")]
    values = Table(fitted.X[rows][:, shown], rows, names).dense()
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
            "ids": fitted.rows["id"][rows],
            "cluster": fitted.labels[rows],
            "features": names,
            "values": rounded(values),
        },
    }
