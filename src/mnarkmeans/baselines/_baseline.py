"""The class behind every method: what goes in, what comes out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.utils import check_array, check_random_state

from .._observed import without_mask


class Found(NamedTuple):
    """What a method finds; None where it has no such thing."""

    labels: np.ndarray  # (n,)
    centers: np.ndarray  # (k, p) in data units
    inertia: float | None = None
    n_iter: int | None = None
    imputed: np.ndarray | None = None  # (n, p)
    probabilities: np.ndarray | None = None  # (n, k)


class Baseline(ClusterMixin, BaseEstimator):
    """A method to compare with, as `BASELINES` makes it.

    Parameters
    ----------
    n_clusters : int
    method : callable
        Clusters a table with NaN where values are missing, by the settings of the estimator.
    n_init, max_iter : int
        Starts and iterations.
    random_state : int, RandomState or None

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
    cluster_centers_ : ndarray of shape (n_clusters, n_features), in data units
    inertia_, n_iter_ : of methods that have a loss and iterations
    imputed_ : ndarray of shape (n_samples, n_features), of methods that impute
    probabilities_ : ndarray of shape (n_samples, n_clusters), of mixtures

    Examples
    --------
    >>> import numpy as np
    >>> from mnarkmeans.baselines import BASELINES
    >>> X = np.array([[0.0, 0.1], [0.2, np.nan], [5.0, 5.1], [np.nan, 5.0]])
    >>> labels = BASELINES["mean"](2, random_state=0).fit_predict(X)
    >>> bool(labels[0] == labels[1]), bool(labels[0] == labels[2])
    (True, False)
    """

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        method: Callable[[np.ndarray, Baseline, np.random.RandomState], Found],
        n_init: int = 100,
        max_iter: int = 100,
        random_state: Any = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.method = method
        self.n_init = n_init
        self.max_iter = max_iter
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Self:
        """Cluster `X`, whose missing values are NaN (not stored, if sparse)."""
        if sp.issparse(X):
            entries = sp.coo_array(X)
            X = np.full(X.shape, np.nan)
            X[entries.coords] = entries.data
        X = check_array(without_mask(X), dtype=np.float64, ensure_all_finite="allow-nan", copy=True)
        if not 1 <= self.n_clusters <= len(X):
            raise ValueError(
                f"n_clusters={self.n_clusters}, but X has {len(X)} rows; give 1 to {len(X)}."
            )
        found = self.method(X, self, check_random_state(self.random_state))
        self.labels_, self.cluster_centers_ = found.labels, found.centers
        for name, value in found._asdict().items():
            if name not in ("labels", "centers") and value is not None:
                setattr(self, f"{name}_", value)
        self.n_features_in_ = X.shape[1]
        return self
