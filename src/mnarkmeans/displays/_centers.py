"""The centres as a heatmap in which gaps stay visible."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from .._io import require
from .._observed import values_with_nan
from .._validation import unnamed
from ..missingness._diagnose import Cells, cells_of
from ._chart import axes, write_title
from ._style import DIVERGING, GAP, INK, MUTED, brief


def most_different(centers: np.ndarray, count: int) -> np.ndarray:
    """Indices, in their order, of the features whose centres differ most."""
    spread = centers.max(axis=0) - centers.min(axis=0)
    return np.sort(np.argsort(-spread, kind="stable")[:count])


def cells_of_estimator(estimator: Any, X: Any) -> Cells:
    """What every cluster of a fitted estimator observes of every feature in the rows X."""
    check_is_fitted(estimator, "cluster_centers_")
    values = values_with_nan(X, getattr(estimator, "missing_values", np.nan))
    return cells_of(values, estimator.predict(X), len(estimator.cluster_centers_))


class CentersDisplay:
    """Centres minus reference, clusters in columns; the grey part of a cell is its missing share.

    A cell is coloured only as far as its cluster observed the feature: half missing is half grey,
    never observed is all grey.

    Parameters
    ----------
    centers : array (k, p)
    reference : number or array (p,)
    missing_share : array (k, p), optional
    feature_names : list of str, optional
    sizes : array (k,), optional
        Rows per cluster, for the labels.
    max_features : int
        Features shown: those whose centres differ most.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure, after `plot`
    image_ : the heatmap
    shown_ : indices of the features shown

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[0.0, 1.0], [0.5, np.nan], [4.0, np.nan]])
    >>> display = CentersDisplay.from_predictions(X, np.array([0, 0, 1]))
    >>> display.missing_share
    array([[0. , 0.5],
           [0. , 1. ]])
    """

    def __init__(
        self,
        *,
        centers: ArrayLike,
        reference: Any = 0.0,
        missing_share: ArrayLike | None = None,
        feature_names: list[str] | None = None,
        sizes: ArrayLike | None = None,
        max_features: int = 40,
    ) -> None:
        self.centers = np.asarray(centers, dtype=float)
        p = self.centers.shape[1]
        self.reference = np.broadcast_to(np.asarray(reference, float), p)
        given = missing_share is not None
        self.missing_share = np.asarray(missing_share) if given else np.zeros(self.centers.shape)
        self.feature_names = unnamed(p) if feature_names is None else list(map(str, feature_names))
        self.sizes = None if sizes is None else np.asarray(sizes)
        self.max_features = max_features

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any = None,
        *,
        feature_names: list[str] | None = None,
        max_features: int = 40,
        ax: Any = None,
        **kwargs: Any,
    ) -> CentersDisplay:
        """Draw the centres of a fitted estimator; with the rows X, their gaps as well."""
        check_is_fitted(estimator, "cluster_centers_")
        share = sizes = None
        if X is not None:
            cells = cells_of_estimator(estimator, X)
            share, sizes = cells.missing_share, cells.sizes
        if feature_names is None:
            feature_names = getattr(estimator, "feature_names_in_", None)
        display = cls(
            centers=estimator.cluster_centers_, reference=estimator.reference_,
            missing_share=share, feature_names=feature_names, sizes=sizes,
            max_features=max_features,
        )  # fmt: skip
        return display.plot(ax=ax, **kwargs)

    @classmethod
    def from_predictions(
        cls,
        X: Any,
        labels: ArrayLike,
        *,
        reference: Any = 0.0,
        feature_names: list[str] | None = None,
        max_features: int = 40,
        ax: Any = None,
        **kwargs: Any,
    ) -> CentersDisplay:
        """Draw the observed means of rows X (NaN missing) with given labels."""
        if feature_names is None:
            feature_names = getattr(X, "columns", None)
        cells = cells_of(values_with_nan(X), labels, int(np.max(labels)) + 1)
        display = cls(
            centers=np.where(np.isnan(cells.mean), reference, cells.mean), reference=reference,
            missing_share=cells.missing_share, feature_names=feature_names, sizes=cells.sizes,
            max_features=max_features,
        )  # fmt: skip
        return display.plot(ax=ax, **kwargs)

    def plot(self, ax: Any = None, **kwargs: Any) -> CentersDisplay:
        """Draw; keywords go to `pcolormesh`."""
        self.shown_ = most_different(self.centers, self.max_features)
        distance = (self.centers - self.reference)[:, self.shown_]
        k, rows = distance.shape
        p = self.centers.shape[1]
        self.figure_, self.ax_ = axes(ax, size=(2.6 + 0.75 * k, 1.5 + 0.22 * rows))
        colors = require("matplotlib.colors", "plot")
        top = float(np.abs(distance).max()) or 1.0
        cmap = colors.LinearSegmentedColormap.from_list("mnarkmeans", DIVERGING)
        look = {"cmap": cmap, "vmin": -top, "vmax": top} | kwargs
        self.image_ = self.ax_.pcolormesh(np.arange(k + 1), np.arange(rows + 1), distance.T, **look)
        self._draw_gaps(k, rows)
        self.ax_.set_xlim(0, k)
        self.ax_.set_ylim(rows, 0)
        names = [f"{i}" if self.sizes is None else f"{i}\n({self.sizes[i]:,})" for i in range(k)]
        self.ax_.set_xticks(np.arange(k) + 0.5, names)
        shown = [brief(self.feature_names[j], 24) for j in self.shown_]
        # Names come from the data: a dollar sign in them is a dollar sign, not mathematics.
        self.ax_.set_yticks(np.arange(rows) + 0.5, shown, fontsize=8, parse_math=False)
        self.ax_.tick_params(length=0)
        self.ax_.spines[:].set_visible(False)
        self.ax_.set_xlabel("cluster" if self.sizes is None else "cluster (rows)", color=INK)
        bar = self.figure_.colorbar(self.image_, ax=self.ax_, pad=0.02, aspect=30)
        bar.set_label("centre minus reference", color=INK)
        bar.outline.set_visible(False)
        below = "grey: missing share" if rows == p else f"{rows} of {p} features; grey: missing"
        write_title(self.ax_, "Centres", below)
        return self

    def _draw_gaps(self, k: int, rows: int) -> None:
        from matplotlib.collections import PatchCollection
        from matplotlib.patches import Rectangle

        share = self.missing_share[:, self.shown_]
        gaps = [
            Rectangle((i + 1 - share[i, j], j), share[i, j], 1)
            for i in range(k)
            for j in range(rows)
            if share[i, j] > 0
        ]
        self.ax_.add_collection(PatchCollection(gaps, facecolor=GAP, edgecolor="none"))
        self.ax_.hlines(np.arange(1, rows), 0, k, color="white", lw=0.8)
        self.ax_.vlines(np.arange(1, k), 0, rows, color=MUTED, lw=0.6, alpha=0.5)
