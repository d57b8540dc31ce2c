"""Rows flowing between the clusters of neighbouring lam, or of neighbouring k.

A column per partition, a box per cluster, as high as its share of the rows; a ribbon between two
neighbouring boxes, as wide as the rows they share.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import linear_sum_assignment
from sklearn.utils.validation import check_is_fitted

from .._kmeans import MNARKMeans
from .._validation import values_with_nan
from ._chart import axes, write_title
from ._style import INK, MUTED, brief, color, percent, sample

MOST_ROWS = 5_000  # a sample of this many says as much
MOST_COLUMNS = 7
N_INIT = 10
GAP = 0.12  # of the height, shared by the spaces between the boxes of a column
WIDE = 0.16  # of a box, columns being 1 apart


class Box(NamedTuple):
    """A cluster, with where its box begins and ends in a height of 1, and its colour."""

    column: int
    cluster: int
    rows: int
    span: tuple[float, float]
    color: int


class Ribbon(NamedTuple):
    """Rows of a cluster of one column that share a cluster of the next; where its sides lie."""

    column: int
    source: int
    target: int
    rows: int
    left: tuple[float, float]
    right: tuple[float, float]
    color: int


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
        self.partitions = [_numbered(labels) for labels in self.partitions]
        columns, lengths = len(self.partitions), sorted(set(map(len, self.partitions)))
        if len(lengths) != 1 or lengths == [0]:
            raise ValueError(
                f"partitions must be labels of the same rows; found lengths {lengths}."
            )
        numbers = map(str, range(columns))
        self.names = [str(name) for name in (numbers if self.names is None else self.names)]
        self.shared_ = [_shared(a, b) for a, b in pairwise(self.partitions)]
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
        return cls._from_search(estimator, X, along).plot(ax=ax, **kwargs)

    @classmethod
    def _from_search(cls, search: Any, X: Any, along: str) -> FlowDisplay:
        """Of at most seven candidates of a fitted MNARKMeansCV; nothing is drawn."""
        check_is_fitted(search, "cv_results_")
        if along not in ("auto", "lam", "k"):
            raise ValueError(f"along must be 'auto', 'lam' or 'k', got {along!r}.")
        results, best = search.cv_results_, int(search.best_index_)
        ks = np.asarray(results["param_n_clusters"])
        by_k = along == "k" or (along == "auto" and len(np.unique(ks)) > 1)
        candidates = np.flatnonzero(results["chosen_for_k"] if by_k else ks == search.n_clusters_)
        if len(candidates) > MOST_COLUMNS:  # the chosen one, and some of the others
            spread = np.linspace(0, len(candidates) - 1, MOST_COLUMNS).round().astype(int)
            at = int(np.flatnonzero(candidates == best)[0])
            spread[np.abs(spread - at).argmin()] = at
            candidates = candidates[spread]
        values = values_with_nan(X, search.missing_values)
        kept = sample(values.shape[0], MOST_ROWS)
        return cls(
            partitions=[
                search.predict(X)[kept] if i == best else _labels(search, values[kept], i)
                for i in candidates.tolist()
            ],
            names=[f"{ks[i]}" if by_k else f"{results['param_lam'][i]:.3g}" for i in candidates],
            chosen=candidates.tolist().index(best),
            axis_name="number of clusters" if by_k else "penalty lam",
        )

    def plot(self, ax: Any = None, **kwargs: Any) -> FlowDisplay:
        """Draw; keywords go to the ribbons."""
        columns, names = len(self.partitions), [brief(name, 12) for name in self.names or ()]
        self.figure_, self.ax_ = axes(ax, (2.2 + 1.05 * columns, 4.4))
        boxes, ribbons = self.layout()
        for c, _, _, (low, high), shade in boxes:
            self.ax_.bar(c, high - low, WIDE, low, color=color(shade))
        self.ribbons_ = []
        course = np.linspace(0, 1, 40)
        bend = course**2 * (3 - 2 * course)
        for ribbon in ribbons:
            (low, low_end), (high, high_end) = ribbon.left, ribbon.right
            x = ribbon.column + WIDE / 2 + (1 - WIDE) * course
            edges = low + (high - low) * bend, low_end + (high_end - low_end) * bend
            look = {"color": color(ribbon.color), "alpha": 0.35, "lw": 0} | kwargs
            self.ribbons_.append(self.ax_.fill_between(x, *edges, **look))
        for c, moved in enumerate(self.moved_):
            look = {"ha": "center", "va": "bottom", "fontsize": 8, "color": MUTED}
            self.ax_.text(c + 0.5, -0.03, f"{percent(moved)} move", **look)
        # Names come from the data: a dollar sign in them is a dollar sign, not mathematics.
        self.ax_.set_xticks(range(columns), names, parse_math=False)
        self.ax_.get_xticklabels()[self.chosen].set_fontweight("bold")
        self.ax_.set(xlim=(-0.3, columns - 0.7), ylim=(1.02, -0.1), yticks=[])
        self.ax_.set_xlabel(self.axis_name, color=INK)
        self.ax_.spines[:].set_visible(False)
        self.ax_.tick_params(length=0)
        write_title(self.ax_, "Where the rows go", "bold: chosen")
        return self

    def layout(self) -> tuple[list[Box], list[Ribbon]]:
        """What lies where, for matplotlib or the report."""
        placed, boxes, ribbons = _lay_out(self.partitions, self.shared_, self.chosen), [], []
        for c, labels in enumerate(self.partitions):
            for cluster, rows in enumerate(np.bincount(labels).tolist()):
                low, high, shade = (of[cluster] for of in placed[c])
                boxes.append(Box(c, cluster, rows, (low, high), shade))
        for c, table in enumerate(self.shared_):
            # A ribbon begins in its box where the ribbon before it ends.
            here, there = ([*starts] for starts, _, _ in placed[c : c + 2])
            units = [(ends - starts).sum() / table.sum() for starts, ends, _ in placed[c : c + 2]]
            for a in np.argsort(placed[c][0], kind="stable"):
                for b in np.argsort(placed[c + 1][0], kind="stable"):
                    if rows := int(table[a, b]):
                        left = here[a], here[a] + units[0] * rows
                        right = there[b], there[b] + units[1] * rows
                        here[a], there[b] = left[1], right[1]
                        shade = placed[c][2][a]
                        ribbons.append(Ribbon(c, int(a), int(b), rows, left, right, shade))
        return boxes, ribbons


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


def _numbered(labels: ArrayLike) -> np.ndarray:
    """Whole numbers from 0; labels that are so already keep their numbers."""
    labels = np.asarray(labels)
    if labels.size and labels.dtype.kind in "iu" and labels.min() >= 0:
        return labels
    return np.unique(labels, return_inverse=True)[1]


def _shared(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """How many rows have label i in a and j in b."""
    table = np.zeros((a.max() + 1, b.max() + 1), dtype=int)
    np.add.at(table, (a, b), 1)
    return table


# --- where boxes and ribbons lie ------------------------------------------------------------------


def _lay_out(
    partitions: Sequence[Any], tables: list[np.ndarray], chosen: int
) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Of each column, by cluster: where the boxes begin and end (in a height of 1), their colours.

    Next to the chosen column, boxes are ordered by where their rows come from (the mean position of
    these), so that ribbons cross little, and take the colour of the cluster that gives them most.
    """
    columns = len(partitions)
    count = [np.bincount(labels) for labels in partitions]
    order: dict[int, np.ndarray] = {chosen: np.arange(len(count[chosen]))}
    colors: dict[int, np.ndarray] = {chosen: np.arange(len(count[chosen]))}
    outwards = [(c, c + 1) for c in range(chosen, columns - 1)]
    outwards += [(c, c - 1) for c in range(chosen, 0, -1)]
    for here, there in outwards:
        table = tables[here] if here < there else tables[there].T  # rows: here, columns: there
        place = np.argsort(order[here]) @ table / np.maximum(table.sum(axis=0), 1)
        order[there] = np.argsort(place, kind="stable")
        colors[there] = colors[here][table.argmax(axis=0)]
    return [(*_spans(count[c], order[c]), colors[c]) for c in range(columns)]


def _spans(count: np.ndarray, order: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Where the boxes of a column begin and end, by cluster."""
    gaps = len(order) - 1
    gap = GAP / max(gaps, 1)
    heights = (1.0 - gap * gaps) * count[order] / count.sum()
    ends = np.cumsum(heights + gap) - gap
    place = np.argsort(order)
    return (ends - heights)[place], ends[place]
