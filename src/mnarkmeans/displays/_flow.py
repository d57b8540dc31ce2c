"""Rows flowing between the clusters of neighbouring lam, or of neighbouring k."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from .._kmeans import MNARKMeans
from .._observed import values_with_nan
from ._flow_layout import lay_out
from ._palette import INK, MUTED, color
from ._style import axes, title

MOST_ROWS = 5_000  # a sample of this many says as much
MOST_COLUMNS = 7
N_INIT = 10


class Path(NamedTuple):
    """Partitions of the same rows along candidates, and which one was chosen."""

    partitions: list[np.ndarray]
    names: list[str]
    chosen: int
    axis_name: str


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
    layout_ : boxes, ribbons, and the share of rows that move from each column to the next
    ribbons_ : one patch per ribbon

    Examples
    --------
    >>> display = FlowDisplay.from_predictions([[0, 0, 0, 1], [0, 0, 1, 1]], names=["a", "b"])
    >>> display.layout_.moved
    [0.25]
    """

    def __init__(
        self,
        *,
        partitions: Sequence[ArrayLike],
        names: Sequence[str] | None = None,
        chosen: int = 0,
        axis_name: str = "",
    ) -> None:
        self.partitions = [_consecutive(labels) for labels in partitions]
        lengths = {len(labels) for labels in self.partitions}
        if len(lengths) != 1 or 0 in lengths:
            raise ValueError(
                f"partitions must be labels of the same rows; found lengths {sorted(lengths)}."
            )
        if not 0 <= chosen < len(self.partitions):
            raise ValueError(f"chosen={chosen} names none of {len(self.partitions)} columns.")
        given = range(len(self.partitions)) if names is None else names
        self.names = [str(name) for name in given]
        if len(self.names) != len(self.partitions):
            raise ValueError(f"{len(self.names)} names for {len(self.partitions)} columns.")
        self.chosen = chosen
        self.axis_name = axis_name

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
        path = path_of(estimator, X, along)
        return cls(**path._asdict()).plot(ax=ax, **kwargs)

    @classmethod
    def from_predictions(
        cls,
        partitions: Sequence[ArrayLike],
        *,
        names: Sequence[str] | None = None,
        chosen: int = 0,
        axis_name: str = "",
        ax: Any = None,
        **kwargs: Any,
    ) -> FlowDisplay:
        """Draw given labels; keywords go to the ribbons."""
        display = cls(partitions=partitions, names=names, chosen=chosen, axis_name=axis_name)
        return display.plot(ax=ax, **kwargs)

    def plot(self, ax: Any = None, **kwargs: Any) -> FlowDisplay:
        """Draw; keywords go to the ribbons."""
        from matplotlib.patches import PathPatch, Rectangle

        self.layout_ = lay_out(self.partitions, self.chosen)
        columns = len(self.partitions)
        self.figure_, self.ax_ = axes(ax, size=(2.2 + 1.05 * columns, 4.4))
        wide, self.ribbons_ = 0.16, []
        for ribbon in self.layout_.ribbons:
            look = {"facecolor": color(ribbon.color), "alpha": 0.35, "lw": 0} | kwargs
            ends = ribbon.column + wide / 2, ribbon.column + 1 - wide / 2
            patch = PathPatch(_curve(*ends, ribbon.left, ribbon.right), **look)
            self.ribbons_.append(self.ax_.add_patch(patch))
        for box in self.layout_.boxes:
            corner = box.column - wide / 2, box.low
            self.ax_.add_patch(
                Rectangle(corner, wide, box.high - box.low, facecolor=color(box.color), lw=0)
            )
        self._dress(columns)
        return self

    def _dress(self, columns: int) -> None:
        for at, moved in enumerate(self.layout_.moved):
            self.ax_.text(
                at + 0.5,
                1.03,
                f"{moved:.0%} move",
                ha="center",
                va="bottom",
                fontsize=8,
                color=MUTED,
            )
        self.ax_.set_xlim(-0.3, columns - 0.7)
        self.ax_.set_ylim(-0.02, 1.1)
        self.ax_.set_yticks([])
        self.ax_.spines[["left", "bottom"]].set_visible(False)
        self.ax_.set_xticks(range(columns), self.names, parse_math=False)
        self.ax_.tick_params(length=0)
        self.ax_.get_xticklabels()[self.chosen].set_fontweight("bold")
        self.ax_.set_xlabel(self.axis_name, color=INK)
        title(self.ax_, "Where the rows go", "bold: chosen")


def path_of(search: Any, X: Any, along: str = "auto") -> Path:
    """Partitions of (a sample of) the rows along the candidates of a fitted MNARKMeansCV."""
    check_is_fitted(search, "cv_results_")
    if along not in ("auto", "lam", "k"):
        raise ValueError(f"along must be 'auto', 'lam' or 'k', got {along!r}.")
    results = search.cv_results_
    ks = np.asarray(results["param_n_clusters"])
    if along == "auto":
        along = "k" if len(np.unique(ks)) > 1 else "lam"
    if along == "k":
        candidates = np.flatnonzero(results["chosen_for_k"])
    else:
        candidates = np.flatnonzero(ks == search.n_clusters_)
    candidates = _thinned(candidates, int(search.best_index_))
    values = values_with_nan(X, search.missing_values)
    if values.shape[0] > MOST_ROWS:
        kept = np.random.default_rng(0).choice(values.shape[0], MOST_ROWS, replace=False)
        values = values[np.sort(kept)]
    partitions = [_labels(search, values, int(i)) for i in candidates]
    names = [f"{ks[i]}" if along == "k" else f"{results['param_lam'][i]:.3g}" for i in candidates]
    chosen = int(np.flatnonzero(candidates == search.best_index_)[0])
    axis_name = "number of clusters" if along == "k" else "penalty lam"
    return Path(partitions, names, chosen, axis_name)


def _thinned(candidates: np.ndarray, best: int) -> np.ndarray:
    """The chosen candidate and its neighbours, not more than fit into the picture."""
    if len(candidates) <= MOST_COLUMNS:
        return candidates
    at = int(np.flatnonzero(candidates == best)[0])
    spread = np.linspace(0, len(candidates) - 1, MOST_COLUMNS).round().astype(int)
    if at not in spread:
        spread[np.abs(spread - at).argmin()] = at
    return candidates[np.unique(spread)]


def _labels(search: Any, values: Any, candidate: int) -> np.ndarray:
    k = int(search.cv_results_["param_n_clusters"][candidate])
    lam = float(search.cv_results_["param_lam"][candidate])
    if np.ndim(search.lam_):  # candidates are for the features that the chosen one is for
        lam = lam * (search.lam_ > 0)
    model = MNARKMeans(
        k, lam=lam, reference=search.reference_,
        n_init=N_INIT, random_state=0, n_jobs=search.n_jobs,
    )  # fmt: skip
    if candidate == search.best_index_:  # the clusters that the user has
        model.cluster_centers_, model.lam_ = search.cluster_centers_, search.lam_
        model.reference_, model.n_features_in_ = search.reference_, search.n_features_in_
        return model.predict(values)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of candidates that were not taken
        return model.fit(values).labels_


def _consecutive(labels: ArrayLike) -> np.ndarray:
    """Whole numbers from 0; those that are so already keep their names."""
    labels = np.asarray(labels)
    if np.issubdtype(labels.dtype, np.integer) and (labels.size == 0 or labels.min() >= 0):
        return labels
    return np.unique(labels, return_inverse=True)[1]


def _curve(begin: float, end: float, left: Any, right: Any) -> Any:
    from matplotlib.path import Path as Outline

    middle = (begin + end) / 2
    move, line, curve = Outline.MOVETO, Outline.LINETO, Outline.CURVE4
    points = [
        (begin, left[0]), (middle, left[0]), (middle, right[0]), (end, right[0]),
        (end, right[1]), (middle, right[1]), (middle, left[1]), (begin, left[1]),
        (begin, left[0]),
    ]  # fmt: skip
    codes = [move, curve, curve, curve, line, curve, curve, curve, Outline.CLOSEPOLY]
    return Outline(points, codes)
