"""A table under a fitted model: what labels, summary, model file and page say of it, computed once.

The distances to the centres are computed in one pass; labels, distances, confidence and the noise
follow from them, and nobody else validates the table again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._stability import stability_of
from ..metrics._confidence import confidence_of
from ..metrics._markers import Contrasts, contrasts
from ..missingness._cells import CellCounts, cell_counts
from ._annotations import agreement


class FittedTable:
    """Rows, a fitted k-means model, and what it says of them.

    Parameters
    ----------
    X : array with NaN, or CSR matrix whose stored entries are observed
        The values as they were clustered (after preparation).
    model : fitted MNARKMeans, MNARKMeansCV or MiniBatchMNARKMeans
    ids, features : sequences of str, optional
        Names of rows and columns; numbers if not given.
    labels : array of shape (n_samples,), optional
        The model's own labels of these rows, where it has them; else they are predicted.
    annotations : mapping, optional
        What else is known of the rows: name -> one value per row, None where unknown.

    Examples
    --------
    >>> from mnarkmeans import MNARKMeans
    >>> X = np.array([[0.0, 1.0], [0.2, np.nan], [5.0, 6.0], [5.1, 6.2]])
    >>> fitted = FittedTable(X, MNARKMeans(2, lam=0.5, random_state=0).fit(X))
    >>> fitted.sizes.tolist(), fitted.missing_by_row.tolist()
    ([2, 2], [0.0, 0.5, 0.0, 0.0])
    """

    def __init__(
        self,
        X: Any,
        model: Any,
        *,
        ids: Sequence[Any] | None = None,
        features: Sequence[str] | None = None,
        labels: Any = None,
        annotations: Mapping[str, Sequence[Any]] | None = None,
    ) -> None:
        n, p = X.shape
        self.X, self.model = X, model
        self.ids = np.array(range(n) if ids is None else ids, dtype=object)
        self.features = [f"x{j}" for j in range(p)] if features is None else list(features)
        self.annotations = dict(annotations or {})
        self.labels = np.asarray(model.predict(X) if labels is None else labels)
        self.n_clusters = len(model.cluster_centers_)

    @cached_property
    def distances(self) -> np.ndarray:
        """(n, k) square roots of the penalised distances to the centres."""
        return np.asarray(self.model.transform(self.X), dtype=float)

    @property
    def own_distance(self) -> np.ndarray:
        """(n,) distance to the row's own centre."""
        return self.distances[np.arange(len(self.labels)), self.labels]

    @cached_property
    def observed_by_row(self) -> np.ndarray:
        """(n,) number of observed entries."""
        if sp.issparse(self.X):
            return self.X.getnnz(axis=1).astype(float)
        return (~np.isnan(self.X)).sum(axis=1).astype(float)

    @property
    def missing_by_row(self) -> np.ndarray:
        """(n,) share of missing entries."""
        return 1.0 - self.observed_by_row / self.X.shape[1]

    @cached_property
    def noise(self) -> float:
        """Variance of an observed entry around its centre, as `metrics.confidence` takes it."""
        own = np.square(self.own_distance[self.observed_by_row > 0])
        return float(own.sum() / max(self.observed_by_row.sum(), 1.0))

    @cached_property
    def confidence(self) -> np.ndarray:
        """(n,) confidence of each row in its own cluster."""
        return confidence_of(self.distances, self.noise)

    @cached_property
    def cells(self) -> CellCounts:
        """Rows of each cluster, and observed entries of each cluster and feature."""
        return cell_counts(self.X, self.labels, self.n_clusters)

    @property
    def sizes(self) -> np.ndarray:
        """(k,) rows of each cluster."""
        return self.cells.sizes

    @cached_property
    def contrasts(self) -> Contrasts:
        """Each cluster against the other rows, feature by feature: the markers."""
        return contrasts(self.X, self.labels, self.n_clusters)

    @cached_property
    def stability(self) -> np.ndarray | None:
        """(k,) how much of each cluster comes back when rows are left out; None if unknown."""
        return stability_of(self.X, self.model)

    @cached_property
    def agreement(self) -> list[dict[str, Any]]:
        """How far each annotation agrees with the clusters."""
        return agreement(self.annotations, self.labels)
