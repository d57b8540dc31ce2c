"""Rows flowing between the clusters of neighbouring lam, or of neighbouring k.

A column per partition, a box per cluster, as high as its share of the rows; a ribbon between two
neighbouring boxes, as wide as the rows they share. Boxes next to the chosen column are ordered by
where their rows come from (the mean position of these), so that ribbons cross little, and take the
colour of the cluster that gives them most.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import linear_sum_assignment
from sklearn.utils.validation import check_is_fitted

from .._kmeans import MNARKMeans
from .._observed import values_with_nan
from ._chart import Axis, Chart, Series, draw
from ._style import brief, percent, sample

MOST_ROWS = 5_000  # a sample of this many says as much
MOST_COLUMNS = 7
N_INIT = 10
GAP = 0.12  # of the height, shared by the spaces between the boxes of a column
WIDE = 0.16  # of a box, columns being 1 apart


@dataclass(kw_only=True, eq=False, repr=False)
class FlowDisplay:
    """One column per candidate, one box per cluster, ribbons where rows go.

    Straight ribbons: the choice of lam, or k, hardly matters. Tangled ones: it does.

    Parameters
    ----------
    partitions : sequence of arrays (n,)
        Labels of the same rows, one array per column.
    names : sequence of str, optional
        What stands below each column.
    chosen : int
        The column whose clusters give the colours.
    axis_name : str
        What the columns differ in.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure, after `plot`
    shared_ : rows that each cluster of a column shares with each of the next, (k, next k)
    moved_ : share of the rows that change cluster from each column to the next
    ribbons_ : one patch per ribbon

    Examples
    --------
    >>> display = FlowDisplay(partitions=[[0, 0, 0, 1], [0, 0, 1, 1]], names=["a", "b"])
    >>> display.moved_
    [0.25]
    """

    partitions: Sequence[Any]
    names: Sequence[str] | None = None
    chosen: int = 0
    axis_name: str = ""

    def __post_init__(self) -> None:
        self.partitions = [_consecutive(labels) for labels in self.partitions]
        columns, lengths = len(self.partitions), sorted(set(map(len, self.partitions)))
        if len(lengths) != 1 or lengths == [0]:
            raise ValueError(
                f"partitions must be labels of the same rows; found lengths {lengths}."
            )
        if not 0 <= self.chosen < columns:
            raise ValueError(f"chosen must be one of the {columns} columns, got {self.chosen}.")
        numbers = map(str, range(columns))
        self.names = [str(name) for name in (numbers if self.names is None else self.names)]
        if len(self.names) != columns:
            raise ValueError(f"{len(self.names)} names for {columns} columns.")
        self.shared_ = []
        for a, b in pairwise(self.partitions):
            table = np.zeros((int(a.max()) + 1, int(b.max()) + 1), dtype=int)
            np.add.at(table, (a, b), 1)
            self.shared_.append(table)
        # Rows outside the best one-to-one matching of the clusters of two columns.
        kept = [table[linear_sum_assignment(-table)].sum() for table in self.shared_]
        self.moved_ = [float(1.0 - rows / lengths[0]) for rows in kept]

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, *, along: str = "auto", ax: Any = None, **kwargs: Any
    ) -> FlowDisplay:
        """Draw how the clusters of a fitted MNARKMeansCV change along its candidates.

        Each candidate is fitted once more, to a sample where there are many rows.

        Parameters
        ----------
        estimator : fitted MNARKMeansCV
        X : the rows it was fitted on
        along : {"auto", "lam", "k"}
            "lam": at the chosen k; "k": each with the lam chosen for it; "auto": k if several were
            given.
        ax : matplotlib Axes, optional
        """
        return flow_of_search(estimator, X, along).plot(ax=ax, **kwargs)

    def plot(self, ax: Any = None, **kwargs: Any) -> FlowDisplay:
        """Draw; keywords go to the ribbons."""
        self.figure_, self.ax_, self.ribbons_ = draw(self.chart(), ax, **kwargs)
        return self

    def chart(self) -> Chart:
        """The layout as a chart, for matplotlib or the report."""
        series = _lay_out(self.partitions, self.shared_, self.chosen)
        shown = [brief(name, 12) for name in self.names or ()]
        moved = [(at + 0.5, -0.03, f"{percent(m)} move") for at, m in enumerate(self.moved_)]
        return Chart(
            "Where the rows go", "bold: chosen", Axis(self.axis_name, "names", names=shown),
            Axis("", "none"), series, (float(self.chosen), 0.0), moved,
        )  # fmt: skip


# --- the partitions of a search -------------------------------------------------------------------


def flow_of_search(search: Any, X: Any, along: str = "auto") -> FlowDisplay:
    """Partitions of (a sample of) the rows along the candidates of a fitted MNARKMeansCV."""
    check_is_fitted(search, "cv_results_")
    if along not in ("auto", "lam", "k"):
        raise ValueError(f"along must be 'auto', 'lam' or 'k', got {along!r}.")
    results, best = search.cv_results_, int(search.best_index_)
    ks = np.asarray(results["param_n_clusters"])
    by_k = along == "k" or (along == "auto" and len(np.unique(ks)) > 1)
    candidates = np.flatnonzero(results["chosen_for_k"] if by_k else ks == search.n_clusters_)
    if len(candidates) > MOST_COLUMNS:  # the chosen one, and some of the others
        at = int(np.flatnonzero(candidates == best)[0])
        spread = np.linspace(0, len(candidates) - 1, MOST_COLUMNS).round().astype(int)
        spread[np.abs(spread - at).argmin()] = at
        candidates = candidates[np.unique(spread)]
    values = values_with_nan(X, search.missing_values)
    kept = sample(values.shape[0], MOST_ROWS)
    return FlowDisplay(
        partitions=[
            search.predict(X)[kept] if i == best else _labels(search, values[kept], int(i))
            for i in candidates
        ],
        names=[f"{ks[i]}" if by_k else f"{results['param_lam'][i]:.3g}" for i in candidates],
        chosen=int(np.flatnonzero(candidates == best)[0]),
        axis_name="number of clusters" if by_k else "penalty lam",
    )


def _labels(search: Any, values: Any, candidate: int) -> np.ndarray:
    """Clusters of a candidate that was not taken."""
    k = int(search.cv_results_["param_n_clusters"][candidate])
    lam = float(search.cv_results_["param_lam"][candidate])
    if np.ndim(search.lam_):  # candidates are for the features that the chosen one is for
        lam = lam * (search.lam_ > 0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return MNARKMeans(
            k, lam=lam, reference=search.reference_,
            n_init=N_INIT, random_state=0, n_jobs=search.n_jobs,
        ).fit(values).labels_  # fmt: skip


def _consecutive(labels: ArrayLike) -> np.ndarray:
    """Whole numbers from 0; those that are so already keep their names."""
    labels = np.asarray(labels)
    if np.issubdtype(labels.dtype, np.integer) and (labels.size == 0 or labels.min() >= 0):
        return labels
    return np.unique(labels, return_inverse=True)[1]


# --- where boxes and ribbons lie ------------------------------------------------------------------


def _lay_out(partitions: Sequence[Any], tables: list[np.ndarray], chosen: int) -> list[Series]:
    """Ribbons and boxes in a picture of height 1, columns 1 apart."""
    columns, half = len(partitions), WIDE / 2
    count = [np.bincount(labels) for labels in partitions]
    order: dict[int, np.ndarray] = {chosen: np.arange(len(count[chosen]))}
    color: dict[int, np.ndarray] = {chosen: np.arange(len(count[chosen]))}
    outwards = [(c, c + 1) for c in range(chosen, columns - 1)]
    outwards += [(c, c - 1) for c in range(chosen, 0, -1)]
    for here, there in outwards:
        table = tables[here] if here < there else tables[there].T  # rows: here, columns: there
        place = np.argsort(order[here]) @ table / np.maximum(table.sum(axis=0), 1)
        order[there] = np.argsort(place, kind="stable")
        color[there] = color[here][table.argmax(axis=0)]
    low, high = zip(*(_spans(count[c], order[c]) for c in range(columns)), strict=True)
    series = []
    for c, table in enumerate(tables):
        left, right = low[c].copy(), low[c + 1].copy()  # where the next ribbon begins
        for a in order[c]:
            for b in order[c + 1]:
                if rows := int(table[a, b]):
                    begin = left[a], right[b]
                    left[a] += (high[c][a] - low[c][a]) * rows / count[c][a]
                    right[b] += (high[c + 1][b] - low[c + 1][b]) * rows / count[c + 1][b]
                    ends = tuple(map(float, (begin[0], left[a], begin[1], right[b])))
                    told = [f"{rows:,} rows: cluster {a} to {b}"]
                    at = c + half, c + 1 - half
                    series.append(Series(at, ends, "ribbon", int(color[c][a]), titles=told))
    for c in range(columns):
        for l in order[c][count[c][order[c]] > 0]:
            told = [f"cluster {l}: {count[c][l]:,} rows"]
            ends = (float(low[c][l]), float(high[c][l])) * 2
            series.append(Series((c - half, c + half), ends, "box", int(color[c][l]), titles=told))
    return series


def _spans(count: np.ndarray, order: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Where the boxes of a column begin and end, by cluster."""
    gaps = len(order) - 1
    gap = GAP / max(gaps, 1)
    heights = (1.0 - gap * gaps) * count[order] / count.sum()
    ends = np.cumsum(heights + gap) - gap
    place = np.argsort(order)
    return (ends - heights)[place], ends[place]
