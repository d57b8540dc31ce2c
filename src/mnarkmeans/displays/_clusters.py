"""The rows in the plane, coloured by cluster, faint where the cluster is not sure."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from .._embedding import Embedding, embed
from .._io import require
from .._observed import values_with_nan
from ..metrics import confidence
from ._palette import INK, color, marker
from ._style import axes, title


class ClustersDisplay:
    """A two-dimensional picture of the rows: the main directions of a table with gaps, or UMAP.

    The labels only give the colours: where a row lies follows from its values and gaps (the loss of
    the model with a plane instead of centres), so clusters that are not there do not show. A row
    with few values lies near the middle. Rows that the model is not sure of are faint.

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
        confidence: ArrayLike | None = None,
    ) -> None:
        self.points = np.asarray(points, dtype=float)
        self.labels = np.asarray(labels)
        self.axis_names = axis_names
        self.explained = explained
        self.confidence = None if confidence is None else np.asarray(confidence, dtype=float)

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, *, method: str = "pca", ax: Any = None, **kwargs: Any
    ) -> ClustersDisplay:
        """Draw the rows X under a fitted estimator; `method` is "pca" or "umap"."""
        check_is_fitted(estimator, "cluster_centers_")
        values = values_with_nan(X, getattr(estimator, "missing_values", np.nan))
        lam, reference = (getattr(estimator, name, 0.0) for name in ("lam_", "reference_"))
        sure = confidence(X, estimator) if hasattr(estimator, "lam_") else None
        embedding = embed(values, lam, reference, method)
        return cls._embedded(embedding, estimator.predict(X), sure).plot(ax, **kwargs)

    @classmethod
    def from_predictions(
        cls, X: Any, labels: ArrayLike, *, method: str = "pca", ax: Any = None, **kwargs: Any
    ) -> ClustersDisplay:
        """Draw rows X (NaN missing) with given labels; the observed entries place them."""
        embedding = embed(values_with_nan(X), method=method)
        return cls._embedded(embedding, np.asarray(labels), None).plot(ax, **kwargs)

    @classmethod
    def _embedded(cls, embedding: Embedding, labels: Any, sure: Any) -> ClustersDisplay:
        return cls(
            points=embedding.points,
            labels=labels,
            axis_names=embedding.axis_names,
            explained=embedding.explained,
            confidence=sure,
        )

    def _shades(self, cluster: int, own: np.ndarray) -> Any:
        """One colour per row, faint where the row is not sure."""
        to_rgba = require("matplotlib.colors", "plot").to_rgba
        shades = np.tile(to_rgba(color(cluster), 0.75), (int(own.sum()), 1))
        if self.confidence is not None:
            # Where nothing can be said of a row, nothing is faint.
            shades[:, 3] = 0.1 + 0.65 * np.nan_to_num(self.confidence[own], nan=1.0) ** 2
        return shades

    def plot(self, ax: Any = None, **kwargs: Any) -> ClustersDisplay:
        """Draw; keywords go to the scatter."""
        self.figure_, self.ax_ = axes(ax, size=(6.0, 4.8))
        size = float(np.clip(3000 / max(len(self.points), 1), 4, 30))
        self.points_ = []
        for cluster in np.unique(self.labels):
            own = self.labels == cluster
            look = {"s": size, "linewidths": 0, "color": self._shades(int(cluster), own)} | kwargs
            self.points_.append(
                self.ax_.scatter(
                    *self.points[own].T,
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
        legend = self.ax_.legend(
            title="cluster (rows)", frameon=False, fontsize=9, title_fontsize=9, loc="upper left",
            bbox_to_anchor=(1.0, 1.0), markerscale=(30 / size) ** 0.5,
        )  # fmt: skip
        for handle in legend.legend_handles:
            handle.set_alpha(0.75)
        below = "placed without the labels"
        judged = self.confidence is not None and not np.isnan(self.confidence).all()
        title(
            self.ax_, "The rows by cluster",
            f"{below}; faint: rows that are not sure" if judged else below,
        )  # fmt: skip
        return self
