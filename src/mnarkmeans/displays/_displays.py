"""The rows in the plane, centres, missing shares, and the course of a fit and of a search."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_consistent_length, check_is_fitted, column_or_1d

from .._embedding import embed
from .._io import require
from .._validation import values_with_nan
from ..metrics import confidence
from ..missingness._diagnose import Cells, cells_of, missing_against_mean
from ._chart import Axis, Chart, Series, axes, draw, write_title
from ._style import DIVERGING, GAP, INK, MUTED, brief, color, lam_ticks, number, percent

MOST_DOTS = 2_000


def most_different(centers: np.ndarray, count: int) -> np.ndarray:
    """Indices, in their order, of the features whose centres differ most."""
    spread = centers.max(axis=0) - centers.min(axis=0)
    return np.sort(np.argsort(-spread, kind="stable")[:count])


def centers_of(estimator: Any) -> np.ndarray:
    """The centres of a fitted k-means, or the means of a fitted mixture."""
    check_is_fitted(estimator)
    return getattr(estimator, "means_" if hasattr(estimator, "means_") else "cluster_centers_")


def cells_of_estimator(estimator: Any, X: Any) -> Cells:
    """Observed counts and means of the rows X by cluster of a fitted estimator and feature."""
    k = len(centers_of(estimator))
    values = values_with_nan(X, getattr(estimator, "missing_values", np.nan))
    return cells_of(values, estimator.predict(X), k)


def cells_of_labels(X: Any, labels: Any) -> tuple[Cells, np.ndarray]:
    """The same for the rows X (NaN missing) with given labels, and the names of the clusters."""
    values = values_with_nan(X)
    check_consistent_length(values, labels)
    names, numbers = np.unique(column_or_1d(labels), return_inverse=True)
    return cells_of(values, numbers, len(names)), names


@dataclass(kw_only=True, eq=False, repr=False)
class ClustersDisplay:
    """The rows in two dimensions, coloured by cluster: their principal components, or UMAP.

    The labels only give the colours. The position of a row depends on its values and on which are
    missing (the loss of the model with a plane instead of centres), so the picture shows no
    clusters that are not in the data. A row with few values lies near the middle. Rows of low
    confidence are faint.

    Parameters
    ----------
    points : array (n, 2)
    labels : array (n,)
    axis_names : pair of str
    explained : pair of float, optional
        Share of the variance along each axis.
    confidence : array (n,), optional
        How sure the cluster of each row is, from 0 to 1 (`mnarkmeans.metrics.confidence`).

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure, after `plot`
    points_ : one collection per cluster

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[0.0, 0.1], [0.2, np.nan], [5.0, 5.1], [5.2, 4.9], [np.nan, 5.0]])
    >>> len(ClustersDisplay.from_predictions(X, [0, 0, 1, 1, 1]).points_)
    2
    """

    points: Any
    labels: Any
    axis_names: tuple[str, str] = ("first axis", "second axis")
    explained: tuple[float, float] | None = None
    confidence: Any = None

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, *, method: str = "pca", ax: Any = None, **kwargs: Any
    ) -> ClustersDisplay:
        """Draw the rows X under a fitted estimator; `method` is "pca" or "umap"."""
        check_is_fitted(estimator)
        values = values_with_nan(X, getattr(estimator, "missing_values", np.nan))
        lam, reference = (getattr(estimator, name, 0.0) for name in ("lam_", "reference_"))
        placed = embed(values, lam, reference, method)._asdict()
        ours = hasattr(estimator, "lam_") or hasattr(estimator, "predict_proba")
        sure = confidence(X, estimator) if ours else None
        return cls(**placed, labels=estimator.predict(X), confidence=sure).plot(ax, **kwargs)

    @classmethod
    def from_predictions(
        cls, X: Any, labels: ArrayLike, *, method: str = "pca", ax: Any = None, **kwargs: Any
    ) -> ClustersDisplay:
        """Draw rows X (NaN missing) with given labels, placed by their observed values."""
        values = values_with_nan(X)
        check_consistent_length(values, labels)
        return cls(**embed(values, method=method)._asdict(), labels=labels).plot(ax, **kwargs)

    def plot(self, ax: Any = None, **kwargs: Any) -> ClustersDisplay:
        """Draw; keywords go to the scatter."""
        self.figure_, self.ax_ = axes(ax, size=(6.0, 4.8))
        with_opacity = require("matplotlib.colors", "plot").to_rgba_array
        points, labels = np.asarray(self.points, float), np.asarray(self.labels)
        known = np.full(len(points), np.nan)
        if self.confidence is not None:
            known[:] = self.confidence
        opacity = 0.1 + 0.65 * np.nan_to_num(known, nan=1.0) ** 2
        size = float(np.clip(3000 / max(len(points), 1), 4, 30))
        self.points_ = []
        clusters = np.unique(labels)
        numbers = clusters if clusters.dtype.kind in "iu" else range(len(clusters))
        for cluster, shade in zip(clusters, map(color, numbers), strict=True):
            members = labels == cluster
            colors = with_opacity(shade, opacity[members])
            style = {"s": size, "linewidths": 0, "color": colors} | kwargs
            label = f"{cluster} ({members.sum():,})"
            self.points_.append(self.ax_.scatter(*points[members].T, label=label, **style))
        names = list(self.axis_names)
        if self.explained is not None:
            names = [f"{name} ({s:.0%})" for name, s in zip(names, self.explained, strict=True)]
        self.ax_.set_xlabel(names[0], color=INK)
        self.ax_.set_ylabel(names[1], color=INK)
        legend = self.ax_.legend(
            title="cluster (rows)", frameon=False, fontsize=9, title_fontsize=9, loc="upper left",
            bbox_to_anchor=(1.0, 1.0), markerscale=(30 / size) ** 0.5,
        )  # fmt: skip
        for handle in legend.legend_handles:
            handle.set_alpha(0.75)
        faint = "" if np.isnan(known).all() else "; faint: low confidence"
        write_title(self.ax_, "Rows by cluster", f"the labels do not affect the positions{faint}")
        return self


@dataclass(kw_only=True, eq=False, repr=False)
class CentersDisplay:
    """Heatmap of the centres minus the reference, clusters in columns, with what is missing.

    The grey part of a cell is the share of the cluster in which the feature is missing.

    Parameters
    ----------
    centers : array (k, p)
    reference : number or array (p,)
    missing_share : array (k, p), optional
    feature_names : list of str, optional
    sizes : array (k,), optional
        Rows per cluster, for the labels.
    cluster_names : sequence (k,), optional
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
    >>> CentersDisplay.from_predictions(X, [0, 0, 1]).missing_share
    array([[0. , 0.5],
           [0. , 1. ]])
    """

    centers: Any
    reference: Any = 0.0
    missing_share: Any = None
    feature_names: Any = None
    sizes: Any = None
    cluster_names: Any = None
    max_features: int = 40

    def __post_init__(self) -> None:
        self.centers = np.asarray(self.centers, dtype=float)
        self.reference = np.broadcast_to(np.asarray(self.reference, float), self.centers.shape[1])
        share = np.zeros(self.centers.shape) if self.missing_share is None else self.missing_share
        self.missing_share = np.asarray(share)
        if self.feature_names is None:
            self.feature_names = [f"x{j}" for j in range(self.centers.shape[1])]
        if self.cluster_names is None:
            self.cluster_names = range(len(self.centers))

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
        """Draw the centres of a fitted estimator; with the rows X, their missing values as well."""
        centers, share, sizes = centers_of(estimator), None, None
        if X is not None:
            cells = cells_of_estimator(estimator, X)
            share, sizes = cells.missing_share, cells.sizes
        if feature_names is None:
            feature_names = getattr(estimator, "feature_names_in_", None)
        return cls(
            centers=centers, reference=estimator.reference_,
            missing_share=share, feature_names=feature_names, sizes=sizes,
            max_features=max_features,
        ).plot(ax, **kwargs)  # fmt: skip

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
        """Draw the observed means of rows X (NaN missing) with given labels.

        A cluster without any observed value of a feature has the reference there.
        """
        cells, names = cells_of_labels(X, labels)
        if feature_names is None:
            feature_names = getattr(X, "columns", None)
        return cls(
            centers=np.where(np.isnan(cells.mean), reference, cells.mean), reference=reference,
            missing_share=cells.missing_share, feature_names=feature_names, sizes=cells.sizes,
            cluster_names=names, max_features=max_features,
        ).plot(ax, **kwargs)  # fmt: skip

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
        style = {"cmap": cmap, "vmin": -top, "vmax": top} | kwargs
        self.image_ = self.ax_.pcolormesh(
            np.arange(k + 1), np.arange(rows + 1), distance.T, **style
        )
        share = self.missing_share[:, self.shown_].T
        left = np.arange(1, k + 1) - share
        self.gaps_ = self.ax_.barh(
            np.repeat(np.arange(rows) + 0.5, k), share.ravel(), 1.0, left.ravel(), color=GAP
        )
        self.ax_.hlines(np.arange(1, rows), 0, k, color="white", lw=0.8)
        self.ax_.vlines(np.arange(1, k), 0, rows, color=MUTED, lw=0.6, alpha=0.5)
        self.ax_.set_xlim(0, k)
        self.ax_.set_ylim(rows, 0)
        names = [str(name) for name in self.cluster_names]
        if self.sizes is not None:
            names = [f"{name}\n({size:,})" for name, size in zip(names, self.sizes, strict=True)]
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


@dataclass(kw_only=True, eq=False, repr=False)
class MissingnessDisplay:
    """Missing share against the observed mean, of features and of features within clusters.

    Values missing below a detection limit give a falling curve, values missing near a reference a
    peak there, and values missing by chance a flat line. The picture describes the data; it is not
    a test.

    Parameters
    ----------
    magnitude, missing_share : arrays
        The curve by mean of cluster and feature, pooled in bins.
    feature_magnitude, feature_missing_share : arrays
        The curve by mean of the feature, pooled in bins.
    feature_mean, feature_share : arrays, optional
        One point per feature.
    feature_names : sequence of str, optional

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure, after `plot`
    feature_line_, line_ : the two curves

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[0.1, 5.0], [np.nan, 5.2], [np.nan, 4.9]])
    >>> MissingnessDisplay.from_predictions(X, [0, 0, 0]).missing_share.round(2)
    array([0.67, 0.  ])
    """

    magnitude: Any
    missing_share: Any
    feature_magnitude: Any = ()
    feature_missing_share: Any = ()
    feature_mean: Any = ()
    feature_share: Any = ()
    feature_names: Any = None

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, *, ax: Any = None, **kwargs: Any
    ) -> MissingnessDisplay:
        """Draw for the rows X under a fitted estimator."""
        return cls._from_cells(cells_of_estimator(estimator, X)).plot(ax, **kwargs)

    @classmethod
    def from_predictions(
        cls, X: Any, labels: ArrayLike, *, ax: Any = None, **kwargs: Any
    ) -> MissingnessDisplay:
        """Draw for rows X (NaN missing) with given labels."""
        return cls._from_cells(cells_of_labels(X, labels)[0]).plot(ax, **kwargs)

    @classmethod
    def _from_cells(cls, cells: Cells, names: Sequence[str] | None = None) -> MissingnessDisplay:
        """Of what clusters observe of features with these names; nothing is drawn."""
        features = cells.pooled()
        some = features.some_features(MOST_DOTS)
        curve, of_features = missing_against_mean(cells), missing_against_mean(features)
        return cls(
            magnitude=curve.mean, missing_share=curve.missing_share,
            feature_magnitude=of_features.mean, feature_missing_share=of_features.missing_share,
            feature_mean=features.mean[0][some], feature_share=features.missing_share[0][some],
            feature_names=[f"x{j}" if names is None else names[j] for j in some],
        )  # fmt: skip

    def plot(self, ax: Any = None, **kwargs: Any) -> MissingnessDisplay:
        """Draw; keywords go to the curves."""
        self.figure_, self.ax_, (self.feature_line_, self.line_) = draw(self.chart(), ax, **kwargs)
        return self

    def chart(self) -> Chart:
        """The picture as a chart, for matplotlib or the report."""
        names = self.feature_names
        if names is None:
            names = [f"x{j}" for j in range(len(self.feature_mean))]
        dots = zip(names, self.feature_mean, self.feature_share, strict=True)
        titles = [f"{name}: mean {number(m)}, {percent(s)} missing" for name, m, s in dots]
        series = [Series(self.feature_mean, self.feature_share, "dots", titles=titles)]
        for mean, share, ink, name in (
            (self.feature_magnitude, self.feature_missing_share, "accent", "by feature"),
            (self.magnitude, self.missing_share, "warm", "by cluster and feature"),
        ):
            points = zip(mean, share, strict=True)
            titles = [f"mean {number(m)}: {percent(s)} missing" for m, s in points]
            series.append(Series(mean, share, "line", ink, name, titles))
        return Chart(
            "Missing share against the mean", "dots: single features; lines: pooled",
            Axis("observed mean"), Axis("missing", "share"), series,
        )  # fmt: skip


@dataclass(kw_only=True, eq=False, repr=False)
class InstabilityDisplay:
    """Instability against lam, one line per number of clusters; the chosen candidate is marked.

    Parameters
    ----------
    lam, mean_instability : arrays, one entry per candidate
    std_instability, n_clusters : arrays, optional
    best_index : int, optional
        The candidate chosen.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure, after `plot`
    lines_ : one line per number of clusters, or one against them where all have the same lam

    Examples
    --------
    >>> display = InstabilityDisplay(lam=[0.1, 1.0], mean_instability=[0.2, 0.05], best_index=1)
    >>> len(display.plot().lines_)
    1
    """

    lam: Any
    mean_instability: Any
    std_instability: Any = None
    n_clusters: Any = None
    best_index: int | None = None

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None, **kwargs: Any) -> InstabilityDisplay:
        """Draw `cv_results_` of a fitted MNARKMeansCV."""
        return cls._from_search(estimator).plot(ax, **kwargs)

    @classmethod
    def _from_search(cls, search: Any) -> InstabilityDisplay:
        """Of the candidates of a fitted MNARKMeansCV; nothing is drawn."""
        check_is_fitted(search, "cv_results_")
        results = search.cv_results_
        return cls(
            lam=results["param_lam"], mean_instability=results["mean_instability"],
            std_instability=results["std_instability"], n_clusters=results["param_n_clusters"],
            best_index=search.best_index_,
        )  # fmt: skip

    def plot(self, ax: Any = None, **kwargs: Any) -> InstabilityDisplay:
        """Draw; keywords go to the lines."""
        self.figure_, self.ax_, self.lines_ = draw(self.chart(), ax, **kwargs)
        return self

    def chart(self) -> Chart:
        """Against lam, one line per k; against k where all candidates have one lam."""
        lams, means = np.asarray(self.lam, dtype=float), np.array(self.mean_instability, float)
        ks = np.broadcast_to(0 if self.n_clusters is None else self.n_clusters, lams.shape)
        by_k = len(np.unique(lams)) == 1 and len(np.unique(ks)) > 1
        places = ks if by_k else lams
        series = []
        for index, k in enumerate([None] if by_k else np.unique(ks)):
            shown = np.flatnonzero(np.isfinite(means) & (by_k | (ks == k)))
            shown = shown[np.argsort(places[shown], kind="stable")]
            titles = [f"k = {ks[i]}, lam = {number(lams[i])}: {number(means[i])}" for i in shown]
            band = None
            if self.std_instability is not None:
                band = np.nan_to_num(np.array(self.std_instability, float)[shown]).tolist()
            name = "" if by_k else f"k = {k}"
            line = places[shown].tolist(), means[shown].tolist()
            series.append(Series(*line, "line", index, name, titles, band))
        chosen, below, best = None, "", self.best_index
        if best is not None:
            chosen = float(places[best]), float(np.nan_to_num(means[best]))
            below = f"chosen: lam = {lams[best]:.3g}" + (f", k = {ks[best]}" if ks[best] else "")
        x = Axis("penalty lam", "lam", ticks=lam_ticks(np.unique(lams).tolist()))
        if by_k:
            x = Axis("number of clusters", "whole")
        y = Axis("instability (lower is better)", from_zero=True)
        return Chart("How stable the clusters are", below, x, y, series, chosen)


@dataclass(kw_only=True, eq=False, repr=False)
class LossPathDisplay:
    """Loss against iteration, with the final losses of all starts at the side.

    Parameters
    ----------
    loss_path : array
        Loss after every iteration of the best start.
    start_losses : array, optional
        Final loss of every start.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure, after `plot`
    line_ : the path

    Examples
    --------
    >>> display = LossPathDisplay(loss_path=[9.0, 5.0, 4.0], start_losses=[4.0, 6.0])
    >>> display.plot().ax_.get_xlabel()
    'iteration'
    """

    loss_path: Any
    start_losses: Any = None

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None, **kwargs: Any) -> LossPathDisplay:
        """Draw the path of a fitted estimator."""
        check_is_fitted(estimator, "loss_path_")
        starts = getattr(estimator, "start_losses_", None)
        return cls(loss_path=estimator.loss_path_, start_losses=starts).plot(ax, **kwargs)

    def plot(self, ax: Any = None, **kwargs: Any) -> LossPathDisplay:
        """Draw; keywords go to the line."""
        path, starts = np.asarray(self.loss_path, float), self.start_losses
        n = len(path)
        below = f"best start: {path[-1]:.5g} after {n} iteration{'s' * (n != 1)}"
        if starts is not None and len(starts) > 1:
            below += f"; dashes: final loss of all {len(starts)} starts"
        line = Series(range(1, n + 1), path)
        x, y = Axis("iteration", "whole"), Axis("penalised loss")
        self.figure_, self.ax_, (self.line_,) = draw(
            Chart("Loss path", below, x, y, [line]), ax, **kwargs
        )
        if starts is not None and len(starts) > 1:
            side = [n + max(0.04 * n, 0.3)] * len(starts)
            self.ax_.plot(side, starts, "_", color=MUTED, alpha=0.7, markersize=11, clip_on=False)
        return self
