"""Rows flowing between the clusters of neighbouring lam, or of neighbouring k.

A column per partition, a box per cluster, as high as its share of the rows; a ribbon between two
neighbouring boxes, as wide as the rows they share.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.metrics.cluster import contingency_matrix
from sklearn.utils.validation import check_is_fitted

from .._kmeans import MNARKMeans
from .._validation import values_with_nan
from ._chart import axes, write_title
from ._style import INK, MUTED, brief, color, percent, sample

MOST_ROWS = 5_000  # larger tables are sampled
MOST_COLUMNS = 7
N_INIT = 10
GAP = 0.12  # share of the height left empty between the boxes of a column
BOX_WIDTH = 0.16  # columns are 1 apart


@dataclass(kw_only=True, eq=False, repr=False)
class FlowDisplay:
    """Rows that change cluster from one lam, or one number of clusters, to the next.

    One column per candidate, one box per cluster, and ribbons for the rows that two boxes share.
    Where they are straight the choice hardly matters, where they are tangled it does.

    Parameters
    ----------
    partitions : sequence of arrays (n,)
        Labels (whole numbers) of the same rows, one array per column.
    names : sequence of str, optional
        Name of each column.
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
        self.partitions = [np.asarray(labels, dtype=int) for labels in self.partitions]
        lengths = sorted(set(map(len, self.partitions)))
        if len(lengths) != 1 or lengths == [0]:
            raise ValueError(
                f"partitions must be labels of the same rows; found lengths {lengths}."
            )
        self.names = [*map(str, self.names or range(len(self.partitions)))]
        self.shared_ = [contingency_matrix(a, b) for a, b in itertools.pairwise(self.partitions)]
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
            shown = np.linspace(0, len(candidates) - 1, MOST_COLUMNS).round().astype(int)
            chosen = int(np.flatnonzero(candidates == best)[0])
            shown[np.abs(shown - chosen).argmin()] = chosen
            candidates = candidates[shown]
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
        boxes, self.ribbons_ = [self._boxes(labels) for labels in self.partitions], []
        for c, ((low, high), colors) in enumerate(boxes):
            self.ax_.bar(np.full(len(low), c), high - low, BOX_WIDTH, low, color=colors)
        course = np.linspace(0, 1, 40)
        bend = course**2 * (3 - 2 * course)
        for c, (table, moved) in enumerate(zip(self.shared_, self.moved_, strict=True)):
            x = c + BOX_WIDTH / 2 + (1 - BOX_WIDTH) * course
            # A ribbon begins in its box where the one before it ends.
            (left, left_end), (right, right_end) = (spans.copy() for spans, _ in boxes[c : c + 2])
            per_row = (left_end - left).sum() / table.sum(), (right_end - right).sum() / table.sum()
            for a, b in itertools.product(np.argsort(left), np.argsort(right)):
                begin, end = per_row[0] * table[a, b], per_row[1] * table[a, b]
                low = left[a] + (right[b] - left[a]) * bend
                high = low + begin + (end - begin) * bend
                left[a], right[b] = left[a] + begin, right[b] + end
                style = {"color": boxes[c][1][a], "alpha": 0.35, "lw": 0} | kwargs
                if table[a, b]:
                    self.ribbons_.append(self.ax_.fill_between(x, low, high, **style))
            style = {"ha": "center", "va": "bottom", "fontsize": 8, "color": MUTED}
            self.ax_.text(c + 0.5, -0.03, f"{percent(moved)} move", **style)
        # Names come from the data: a dollar sign in them is a dollar sign, not mathematics.
        self.ax_.set_xticks(range(columns), names, parse_math=False)
        self.ax_.get_xticklabels()[self.chosen].set_fontweight("bold")
        self.ax_.set(xlim=(-0.3, columns - 0.7), ylim=(1.02, -0.1), yticks=[])
        self.ax_.set_xlabel(self.axis_name, color=INK)
        self.ax_.spines[:].set_visible(False)
        self.ax_.tick_params(length=0)
        write_title(self.ax_, "Where the rows go", "bold: chosen")
        return self

    def _boxes(self, labels: np.ndarray) -> tuple[np.ndarray, list[str]]:
        """Where the boxes of a column begin and end (2, k), and their colours.

        Boxes are ordered by the chosen clusters that their rows are in (the mean position of
        these), so that ribbons cross little, and have the colour of the one they share most with.
        """
        chosen = self.partitions[self.chosen]
        table = contingency_matrix(chosen, labels)
        rows = table.sum(axis=0)
        order = np.argsort(np.arange(len(table)) @ table / rows, kind="stable")
        gap = GAP / max(len(rows) - 1, 1)
        heights = (1.0 - gap * (len(rows) - 1)) * rows[order] / rows.sum()
        ends = np.cumsum(heights + gap) - gap
        spans = np.array([ends - heights, ends])[:, np.argsort(order)]
        most_shared = np.unique(chosen)[table.argmax(axis=0)]
        return spans, [color(cluster) for cluster in most_shared]


def _labels(search: Any, values: Any, candidate: int) -> np.ndarray:
    """Clusters of a candidate that was not chosen."""
    k = int(search.cv_results_["param_n_clusters"][candidate])
    lam = float(search.cv_results_["param_lam"][candidate])
    if np.ndim(search.lam_):  # features without a penalty have none with any candidate
        lam = lam * (search.lam_ > 0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return MNARKMeans(
            k, lam=lam, reference=search.reference_,
            n_init=N_INIT, random_state=0, n_jobs=search.n_jobs,
        ).fit(values).labels_  # fmt: skip
