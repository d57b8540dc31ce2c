"""Fill the gaps first, then run ordinary k-means: what most people do today.

zero   a gap becomes 0
mean   the feature's observed mean
knn    the mean of the 10 nearest rows that observe the feature (scikit-learn's KNNImputer)
mice   the mean of 5 draws of chained equations of 10 sweeps each
qrilc, minprob  draws from below the observed values (`_left`)

`PCAKMeans` fills gaps with zero and clusters the first 50 principal components, as is done with
cells.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA
from sklearn.impute import KNNImputer, SimpleImputer
from sklearn.utils import check_random_state

from ._left import minprob, qrilc
from ._mice import mice_draws
from ._table import with_gaps


class ImputedKMeans(ClusterMixin, BaseEstimator):
    """Ordinary k-means on imputed data.

    Parameters
    ----------
    n_clusters : int
    imputation : {"zero", "mean", "knn", "mice", "qrilc", "minprob"}
        How gaps are filled; see the table at the top of this module.
    n_init, max_iter : int
        Starts and iterations of k-means, as in the paper.
    random_state : int, RandomState or None

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
    cluster_centers_ : ndarray of shape (n_clusters, n_features), in data units
    imputed_ : ndarray of shape (n_samples, n_features)
    inertia_, n_iter_ : of the k-means

    References
    ----------
    van Buuren and Groothuis-Oudshoorn, mice: Multivariate Imputation by Chained Equations in R,
    2011. Troyanskaya et al., Missing value estimation methods for DNA microarrays, 2001 (KNN).

    Examples
    --------
    >>> import numpy as np
    >>> from mnarkmeans.baselines import ImputedKMeans
    >>> X = np.array([[1.0, 1.0], [1.2, np.nan], [5.0, 5.0], [np.nan, 5.2]])
    >>> ImputedKMeans(2, imputation="mean", random_state=0).fit(X).imputed_.round(2).tolist()
    [[1.0, 1.0], [1.2, 3.73], [5.0, 5.0], [2.4, 5.2]]
    """

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        imputation: str = "mean",
        n_init: int = 100,
        max_iter: int = 100,
        random_state: Any = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.imputation = imputation
        self.n_init = n_init
        self.max_iter = max_iter
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> ImputedKMeans:
        """Fill the gaps of `X` and cluster it."""
        if self.imputation not in IMPUTATIONS:
            known = ", ".join(map(repr, IMPUTATIONS))
            raise ValueError(f"imputation must be one of {known}; found {self.imputation!r}.")
        X = with_gaps(X)
        seed = check_random_state(self.random_state).randint(2**31 - 1)
        self.imputed_ = IMPUTATIONS[self.imputation](X, seed)
        kmeans = KMeans(
            self.n_clusters, n_init=self.n_init, max_iter=self.max_iter, random_state=seed
        ).fit(self.imputed_)
        self.labels_ = kmeans.labels_
        self.cluster_centers_ = kmeans.cluster_centers_
        self.inertia_, self.n_iter_ = kmeans.inertia_, kmeans.n_iter_
        self.n_features_in_ = X.shape[1]
        return self


def _zero(X: np.ndarray, seed: int) -> np.ndarray:
    return np.nan_to_num(X, nan=0.0)


def _mean(X: np.ndarray, seed: int) -> np.ndarray:
    return SimpleImputer(keep_empty_features=True).fit_transform(X)


def _knn(X: np.ndarray, seed: int) -> np.ndarray:
    return KNNImputer(n_neighbors=10, keep_empty_features=True).fit_transform(X)


def _mice(X: np.ndarray, seed: int) -> np.ndarray:
    draws = mice_draws(X, 5, 10, np.random.default_rng(seed))
    return np.where(np.isnan(X), np.mean(draws, axis=0), X)


IMPUTATIONS: dict[str, Callable[[np.ndarray, int], np.ndarray]] = {
    "zero": _zero,
    "mean": _mean,
    "knn": _knn,
    "mice": _mice,
    "qrilc": qrilc,
    "minprob": minprob,
}


class PCAKMeans(ClusterMixin, BaseEstimator):
    """k-means on the first principal components of the zero-filled table.

    Parameters
    ----------
    n_clusters : int
    n_components : int
        Components at most.
    n_init : int
    random_state : int, RandomState or None

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
    cluster_centers_ : ndarray of shape (n_clusters, n_features), means of the zero-filled rows

    Examples
    --------
    >>> import numpy as np
    >>> from mnarkmeans.baselines import PCAKMeans
    >>> nan = np.nan
    >>> X = [[5.0, nan], [5.2, 0.9], [4.8, nan], [nan, 5.1], [0.8, 4.9], [nan, 5.0]]
    >>> labels = PCAKMeans(2, n_init=5, random_state=0).fit_predict(X)
    >>> bool(labels[0] == labels[1]), bool(labels[1] == labels[4])
    (True, False)
    """

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        n_components: int = 50,
        n_init: int = 100,
        random_state: Any = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.n_components = n_components
        self.n_init = n_init
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> PCAKMeans:
        """Fill, project, cluster."""
        filled = np.nan_to_num(with_gaps(X), nan=0.0)
        seed = check_random_state(self.random_state).randint(2**31 - 1)
        few = min(self.n_components, *filled.shape)
        projected = PCA(few, random_state=seed).fit_transform(filled)
        kmeans = KMeans(self.n_clusters, n_init=self.n_init, random_state=seed).fit(projected)
        self.labels_ = kmeans.labels_
        self.cluster_centers_ = np.stack(
            [filled[self.labels_ == l].mean(axis=0) for l in range(self.n_clusters)]
        )
        self.n_features_in_ = filled.shape[1]
        return self
