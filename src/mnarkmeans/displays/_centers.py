"""The centres as a heatmap in which gaps stay visible."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._io import require
from .._validation import values_with_nan
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


@dataclass(kw_only=True, eq=False, repr=False)
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
    >>> from mnarkmeans import MNARKMeans
    >>> X = np.array([[0.0, 1.0], [0.5, np.nan], [4.0, np.nan]])
    >>> model = MNARKMeans(2, lam=0.1, init=[[0.0, 1.0], [4.0, 0.0]]).fit(X)
    >>> CentersDisplay.from_estimator(model, X).missing_share
    array([[0. , 0.5],
           [0. , 1. ]])
    """

    centers: Any
    reference: Any = 0.0
    missing_share: Any = None
    feature_names: Any = None
    sizes: Any = None
    max_features: int = 40

    def __post_init__(self) -> None:
        self.centers = np.asarray(self.centers, dtype=float)
        self.reference = np.broadcast_to(np.asarray(self.reference, float), self.centers.shape[1])
        share = np.zeros(self.centers.shape) if self.missing_share is None else self.missing_share
        self.missing_share = np.asarray(share)
        if self.feature_names is None:
            self.feature_names = [f"x{j}" for j in range(self.centers.shape[1])]

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
        share = self.missing_share[:, self.shown_].T
        left = np.arange(1, k + 1) - share
        self.gaps_ = self.ax_.barh(
            np.repeat(np.arange(rows) + 0.5, k), share.ravel(), 1.0, left.ravel(), color=GAP
        )
        self.ax_.hlines(np.arange(1, rows), 0, k, color="white", lw=0.8)
        self.ax_.vlines(np.arange(1, k), 0, rows, color=MUTED, lw=0.6, alpha=0.5)
        self.ax_.set_xlim(0, k)
        self.ax_.set_ylim(rows, 0)
        names = [f"{i}" if self.sizes is None else f"{i}\n({self.sizes[i]:,})" for i in range(k)]
        self.ax_.set_xticks(np.arange(k) + 0.5, names)
        shown = [brief(str(self.feature_names[j]), 24) for j in self.shown_]
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
