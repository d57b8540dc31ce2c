"""Fill missing values, then run ordinary k-means: what most people do today.

zero     with 0
mean     with the feature's observed mean
knn      with the mean of the 10 nearest rows that observe the feature (Troyanskaya et al. 2001)
mice     with the mean of 5 draws of chained equations of 10 sweeps each (`_mice`)
qrilc    a normal distribution is fitted to the observed quantiles, which are the upper ones: with m
         the missing share, the observed quantile at u is regressed on the normal one at
         m + (1 - m) u. Missing values are drawn from it below its m-quantile (Lazar et al. 2016).
minprob  drawn around a low quantile (1 %) of the observed values, with the median of the features'
         standard deviations (Lazar et al. 2016)
pca      with 0; k-means sees the first 50 principal components, as is usual for cells
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from scipy.special import ndtri
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA
from sklearn.impute import KNNImputer, SimpleImputer
from sklearn.utils import check_array, check_random_state

from .._observed import without_mask
from ._mice import mice_draws


def with_gaps(X: Any) -> np.ndarray:
    """A float64 copy of `X` with NaN where nothing was observed (not stored, if sparse)."""
    if sp.issparse(X):
        entries = sp.coo_array(X)
        dense = np.full(X.shape, np.nan)
        dense[entries.coords] = entries.data
        X = dense
    return check_array(without_mask(X), dtype=np.float64, ensure_all_finite="allow-nan", copy=True)


class Baseline(ClusterMixin, BaseEstimator):
    """A method to compare with. Subclasses fill missing values for k-means (`_fill`), or cluster in
    their own way (`_cluster`).

    Parameters
    ----------
    n_clusters : int
    n_init, max_iter : int
        Starts and iterations, as in the paper.
    random_state : int, RandomState or None

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
    cluster_centers_ : ndarray of shape (n_clusters, n_features), in data units
    imputed_ : ndarray of shape (n_samples, n_features), of methods that impute

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
        n_init: int = 100,
        max_iter: int = 100,
        random_state: Any = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.n_init = n_init
        self.max_iter = max_iter
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Self:
        """Cluster `X`, whose missing values are NaN."""
        X = with_gaps(X)
        if not 1 <= self.n_clusters <= len(X):
            raise ValueError(
                f"n_clusters={self.n_clusters}, but X has {len(X)} rows; give 1 to {len(X)}."
            )
        self.n_features_in_ = X.shape[1]
        rng = check_random_state(self.random_state)
        self.labels_, self.cluster_centers_ = self._cluster(X, rng)
        return self

    def _cluster(self, X: np.ndarray, rng: Any) -> tuple[np.ndarray, np.ndarray]:
        """Labels, and centres in data units."""
        seed = rng.randint(2**31 - 1)
        self.imputed_ = self._fill(X, seed)
        return self._kmeans(self.imputed_, seed)

    def _fill(self, X: np.ndarray, seed: int) -> np.ndarray:
        raise NotImplementedError

    def _kmeans(self, filled: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray]:
        kmeans = KMeans(
            self.n_clusters, n_init=self.n_init, max_iter=self.max_iter, random_state=seed
        ).fit(filled)
        self.inertia_, self.n_iter_ = kmeans.inertia_, kmeans.n_iter_
        return kmeans.labels_, kmeans.cluster_centers_


class ZeroKMeans(Baseline):
    """k-means on zero-filled data."""

    def _fill(self, X: np.ndarray, seed: int) -> np.ndarray:
        return np.nan_to_num(X, nan=0.0)


class MeanKMeans(Baseline):
    """k-means on mean-filled data.

    Examples
    --------
    >>> import numpy as np
    >>> from mnarkmeans.baselines import BASELINES
    >>> X = np.array([[1.0, 1.0], [1.2, np.nan], [5.0, 5.0], [np.nan, 5.2]])
    >>> BASELINES["mean"](2, random_state=0).fit(X).imputed_.round(2).tolist()
    [[1.0, 1.0], [1.2, 3.73], [5.0, 5.0], [2.4, 5.2]]
    """

    def _fill(self, X: np.ndarray, seed: int) -> np.ndarray:
        return SimpleImputer(keep_empty_features=True).fit_transform(X)


class KNNKMeans(Baseline):
    """k-means on data filled from the nearest rows."""

    def _fill(self, X: np.ndarray, seed: int) -> np.ndarray:
        return KNNImputer(n_neighbors=10, keep_empty_features=True).fit_transform(X)


class MICEKMeans(Baseline):
    """k-means on data filled by chained equations (van Buuren and Groothuis-Oudshoorn 2011)."""

    def _fill(self, X: np.ndarray, seed: int) -> np.ndarray:
        draws = mice_draws(X, 5, 10, np.random.default_rng(seed))
        return np.where(np.isnan(X), np.mean(draws, axis=0), X)


class QRILCKMeans(Baseline):
    """k-means on data filled from the lower end of a normal distribution."""

    levels = np.linspace(0.001, 0.99, 100)

    def _fill(self, X: np.ndarray, seed: int) -> np.ndarray:
        rng, filled = np.random.default_rng(seed), X.copy()
        for j in range(X.shape[1]):
            gaps = np.isnan(X[:, j])
            seen = X[~gaps, j]
            if not gaps.any():
                continue
            if len(seen) < 3:
                filled[gaps, j] = seen.min() if len(seen) else 0.0
                continue
            share = gaps.mean()
            normal = ndtri(share + (1.0 - share) * self.levels)
            sd, mean = np.polyfit(normal, np.quantile(seen, self.levels), 1)
            below = share * rng.random(gaps.sum())
            filled[gaps, j] = mean + max(sd, 0.0) * ndtri(np.maximum(below, 1e-12))
        return filled


class MinProbKMeans(Baseline):
    """k-means on data filled around a low quantile of each feature."""

    def _fill(self, X: np.ndarray, seed: int) -> np.ndarray:
        rng, filled = np.random.default_rng(seed), X.copy()
        seen = ~np.isnan(X)
        spreads = [X[own, j].std() for j, own in enumerate(seen.T) if own.sum() > 1]
        sd = float(np.median(spreads)) if spreads else 0.0
        for j, own in enumerate(seen.T):
            low = np.quantile(X[own, j], 0.01) if own.any() else 0.0
            filled[~own, j] = low + sd * rng.standard_normal((~own).sum())
        return filled


class PCAKMeans(ZeroKMeans):
    """k-means on the first 50 principal components of the zero-filled table.

    The centres are the means of the zero-filled rows.
    """

    def _cluster(self, X: np.ndarray, rng: Any) -> tuple[np.ndarray, np.ndarray]:
        seed = rng.randint(2**31 - 1)
        filled = self._fill(X, seed)
        projected = PCA(min(50, *X.shape), random_state=seed).fit_transform(filled)
        labels, _ = self._kmeans(projected, seed)
        return labels, np.stack([filled[labels == l].mean(axis=0) for l in range(self.n_clusters)])
