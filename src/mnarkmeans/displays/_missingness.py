"""Where values are missing: against the mean of cluster and feature."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from .._observed import values_with_nan
from ..missingness._cells import cell_counts, missing_against_mean
from ._centers import observed_means
from ._chart import draw, missing_curve


class MissingnessDisplay:
    """Missing share against the mean of cluster and feature.

    A falling curve is what values lost below a detection limit look like; values lost around a
    reference make a peak there, and gaps at random a flat line. The picture describes; it is no
    test.

    Parameters
    ----------
    magnitude, missing_share : arrays
        Points of the pooled curve.
    cell_magnitude, cell_missing_share : arrays, optional
        One point per cluster and feature, drawn faintly behind the curve.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure, after `plot`
    line_ : the curve

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[0.1, 5.0], [np.nan, 5.2], [np.nan, 4.9]])
    >>> MissingnessDisplay.from_predictions(X, np.array([0, 0, 0])).missing_share.round(2)
    array([0.67, 0.  ])
    """

    def __init__(
        self,
        *,
        magnitude: ArrayLike,
        missing_share: ArrayLike,
        cell_magnitude: Any = None,
        cell_missing_share: Any = None,
    ) -> None:
        self.magnitude = np.asarray(magnitude, dtype=float)
        self.missing_share = np.asarray(missing_share, dtype=float)
        self.cell_magnitude = cell_magnitude
        self.cell_missing_share = cell_missing_share

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, *, ax: Any = None, **kwargs: Any
    ) -> MissingnessDisplay:
        """Draw for the rows X under a fitted estimator."""
        check_is_fitted(estimator, "cluster_centers_")
        return cls._from_centers(
            values_with_nan(X, getattr(estimator, "missing_values", np.nan)),
            estimator.predict(X),
            estimator.cluster_centers_,
        ).plot(ax=ax, **kwargs)

    @classmethod
    def from_predictions(
        cls, X: Any, labels: ArrayLike, *, reference: Any = 0.0, ax: Any = None, **kwargs: Any
    ) -> MissingnessDisplay:
        """Draw for rows X (NaN missing) with given labels; centres are the observed means."""
        X, labels = values_with_nan(X), np.asarray(labels)
        centers = observed_means(X, labels, reference)
        return cls._from_centers(X, labels, centers).plot(ax=ax, **kwargs)

    @classmethod
    def _from_centers(cls, X: Any, labels: Any, centers: Any) -> MissingnessDisplay:
        counts = cell_counts(X, labels, centers.shape[0])
        curve = missing_against_mean(centers, counts)
        return cls(
            magnitude=curve.magnitude,
            missing_share=curve.missing_share,
            cell_magnitude=centers.ravel(),
            cell_missing_share=counts.missing_share.ravel(),
        )

    def plot(self, ax: Any = None, **kwargs: Any) -> MissingnessDisplay:
        """Draw; keywords go to the curve."""
        cells = None
        if self.cell_magnitude is not None and self.cell_missing_share is not None:
            cells = self.cell_magnitude, self.cell_missing_share
        chart = missing_curve(self.magnitude, self.missing_share, cells)
        self.figure_, self.ax_, (self.line_,) = draw(chart, ax, **kwargs)
        return self
