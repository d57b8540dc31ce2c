"""The rows in the plane, coloured by cluster."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from ._centers import observed_means
from ._embedding import embed
from ._missingness import _values
from ._palette import INK, color, marker
from ._style import axes, title


class ClustersDisplay:
    """A two-dimensional picture of the rows: principal components of the imputed matrix, or UMAP.

    Gaps are filled from the row's own centre, which draws rows with many gaps towards it: the
    picture shows what the model sees, not how well it does.

    Parameters
    ----------
    points : array (n, 2)
    labels : array (n,)
    axis_names : pair of str
    explained : pair of float, optional
        Share of the variance along each axis.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure, after `plot`
    points_ : one collection per cluster

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[0.0, 0.1], [0.2, np.nan], [5.0, 5.1], [5.2, 4.9], [np.nan, 5.0]])
    >>> display = ClustersDisplay.from_predictions(X, np.array([0, 0, 1, 1, 1]))
    >>> len(display.points_)
    2
    """

    def __init__(
        self,
        *,
        points: ArrayLike,
        labels: ArrayLike,
        axis_names: tuple[str, str] = ("first axis", "second axis"),
        explained: tuple[float, float] | None = None,
    ) -> None:
        self.points = np.asarray(points, dtype=float)
        self.labels = np.asarray(labels)
        self.axis_names = axis_names
        self.explained = explained

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, *, method: str = "pca", ax: Any = None, **kwargs: Any
    ) -> ClustersDisplay:
        """Draw the rows X under a fitted estimator; `method` is "pca" or "umap"."""
        check_is_fitted(estimator, "cluster_centers_")
        values = _values(X, getattr(estimator, "missing_values", np.nan))
        labels = estimator.predict(X)
        return cls._embedded(values, labels, estimator.cluster_centers_, method).plot(ax, **kwargs)

    @classmethod
    def from_predictions(
        cls, X: Any, labels: ArrayLike, *, method: str = "pca", ax: Any = None, **kwargs: Any
    ) -> ClustersDisplay:
        """Draw rows X (NaN missing) with given labels; gaps are filled by the cluster's means."""
        X, labels = _values(X), np.asarray(labels)
        centers = observed_means(X, labels, 0.0)
        return cls._embedded(X, labels, centers, method).plot(ax, **kwargs)

    @classmethod
    def _embedded(cls, X: Any, labels: Any, centers: Any, method: str) -> ClustersDisplay:
        embedding = embed(X, centers, labels, method)
        return cls(
            points=embedding.points,
            labels=labels,
            axis_names=embedding.axis_names,
            explained=embedding.explained,
        )

    def plot(self, ax: Any = None, **kwargs: Any) -> ClustersDisplay:
        """Draw; keywords go to the scatter."""
        self.figure_, self.ax_ = axes(ax, size=(6.0, 4.8))
        size = float(np.clip(3000 / max(len(self.points), 1), 4, 30))
        self.points_ = []
        for cluster in np.unique(self.labels):
            own = self.labels == cluster
            look = {"s": size, "alpha": 0.75, "linewidths": 0} | kwargs
            self.points_.append(
                self.ax_.scatter(
                    *self.points[own].T,
                    color=color(int(cluster)),
                    marker=marker(int(cluster)),
                    label=f"{cluster} ({own.sum():,})",
                    **look,
                )
            )
        shares = self.explained or (None, None)
        for set_label, name, share in zip(
            (self.ax_.set_xlabel, self.ax_.set_ylabel), self.axis_names, shares, strict=True
        ):
            set_label(name if share is None else f"{name} ({share:.0%})", color=INK)
        self.ax_.legend(
            title="cluster (rows)", frameon=False, fontsize=9, title_fontsize=9, loc="upper left",
            bbox_to_anchor=(1.0, 1.0), markerscale=(30 / size) ** 0.5,
        )  # fmt: skip
        title(self.ax_, "The rows by cluster", "gaps filled from each row's centre")
        return self
