"""scImpute (Li and Li 2018): borrow dropped-out gene counts from similar cells, then k-means.

1  y = log10(count / library size * 1e6 + 1.01)
2  groups: PCA (40 % of the variance, at least k components), outliers set aside (distance to
   the nearest cell above Q3 + 1.5 IQR), spectral clustering into k
3  per group and gene   f(y) = r Gamma(y; a, b) + (1 - r) Normal(y; mu, sigma)   by EM;
   dropout probability d = r Gamma / f, 0 for values above mu
4  per cell, genes with d > 0.5 are predicted from the group's other cells, with the
   non-negative weights that fit best on its other genes; never above the gene's maximum
5  back to counts
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import nnls
from scipy.special import digamma, polygamma
from scipy.stats import gamma, norm
from sklearn.cluster import SpectralClustering
from sklearn.decomposition import PCA
from sklearn.metrics import pairwise_distances
from sklearn.preprocessing import StandardScaler

from ._imputation import kmeans

FLOOR = np.log10(1.01)  # a count of zero


def scimpute_kmeans(X: np.ndarray, settings: Any, seed: int) -> dict[str, Any]:
    """k-means on standardised genes after imputation. NaN and zero are both counts of zero."""
    filled = scimpute(np.nan_to_num(X, nan=0.0), settings.n_clusters, seed)
    scaler = StandardScaler().fit(filled)
    results = kmeans(scaler.transform(filled), settings, seed)
    centers = scaler.inverse_transform(results["cluster_centers_"])
    return results | {"cluster_centers_": centers, "imputed_": filled}


def scimpute(counts: np.ndarray, n_groups: int, random_state: Any = None) -> np.ndarray:
    """Imputed counts; outliers stay as they are."""
    counts = np.asarray(counts, dtype=float)
    if (counts < 0).any():
        raise ValueError(
            f"scImpute works on counts, and X holds negative values (down to {counts.min():g}). "
            "Give raw counts, not standardised or log-ratio values."
        )
    library = counts.sum(axis=1, keepdims=True)
    library[library == 0] = 1.0
    logged = np.log10(counts / library * 1e6 + 1.01)
    groups = group_cells(logged, n_groups, random_state)
    completed = logged.copy()
    for group in range(n_groups):
        members = np.flatnonzero(groups == group)
        if members.size > 1:
            completed[members] = impute_group(logged[members])
    return np.maximum(10**completed - 1.01, 0.0) * library / 1e6


def group_cells(logged: np.ndarray, n_groups: int, random_state: Any) -> np.ndarray:
    """Groups of similar cells; -1 for cells far from every other one."""
    most = min(logged.shape)
    pca = PCA(n_components=most, svd_solver="full").fit(logged)
    enough = np.searchsorted(np.cumsum(pca.explained_variance_ratio_), 0.4) + 1
    points = pca.transform(logged)[:, : min(max(enough, n_groups), most)]

    distances = pairwise_distances(points)
    np.fill_diagonal(distances, np.inf)
    nearest = distances.min(axis=1)
    low, high = np.quantile(nearest, [0.25, 0.75])
    usual = nearest <= high + 1.5 * (high - low)

    groups = np.full(len(logged), -1)
    inner = distances[np.ix_(usual, usual)]
    typical = np.median(inner[np.isfinite(inner)] ** 2) or 1.0  # 0 where most cells are equal
    groups[usual] = SpectralClustering(
        n_groups, gamma=1 / typical, random_state=random_state
    ).fit_predict(points[usual])
    return groups


class Mixture(NamedTuple):
    """One Gamma + Normal mixture per gene (arrays of n_genes)."""

    rate: np.ndarray
    shape: np.ndarray
    inverse_scale: np.ndarray
    mean: np.ndarray
    spread: np.ndarray

    def densities(self, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Of the Gamma part, and of both parts, at y (cells, genes)."""
        low = self.rate * gamma.pdf(y, self.shape, scale=1 / self.inverse_scale)
        return low, low + (1 - self.rate) * norm.pdf(y, self.mean, self.spread)

    def dropout(self, y: np.ndarray) -> np.ndarray:
        """Posterior probability of the Gamma part."""
        low, total = self.densities(y)
        return np.divide(low, total, out=np.zeros_like(total), where=total > 0)


def fit_mixture(y: np.ndarray, *, tol: float = 0.5, max_iter: int = 100) -> Mixture:
    """EM for every gene (column) of y, until no log-likelihood moves by more than `tol`."""
    zero = y <= FLOOR + 1e-9
    rate = np.clip(zero.mean(axis=0), 0.01, 0.99)
    count = np.maximum((~zero).sum(axis=0), 1)
    mean = np.where(zero, 0, y).sum(axis=0) / count
    square = np.where(zero, 0, (y - mean) ** 2).sum(axis=0) / np.maximum(count - 1, 1)
    spread = np.sqrt(np.maximum(square, 1e-4))
    genes = np.ones(y.shape[1])
    mixture = Mixture(rate, 0.5 * genes, genes, mean, spread)
    before = np.full(y.shape[1], -np.inf)
    for _ in range(max_iter):
        low = mixture.dropout(y)
        high = 1 - low
        sum_high = high.sum(axis=0)
        known, divisor = sum_high > 1e-9, np.maximum(sum_high, 1e-12)
        mean = np.where(known, (high * y).sum(axis=0) / divisor, mixture.mean)
        square = (high * (y - mean) ** 2).sum(axis=0) / divisor
        spread = np.where(known, np.sqrt(np.maximum(square, 1e-4)), mixture.spread)
        mixture = Mixture(low.mean(axis=0), *_fit_gamma(y, low), mean, spread)
        now = np.log10(mixture.densities(y)[1] + 1e-300).sum(axis=0)
        if (np.abs(now - before) < tol).all():
            break
        before = now
    return mixture


def _fit_gamma(y: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Weighted Gamma: log a - digamma(a) = log(mean) - mean(log); a at most 20."""
    total = np.maximum(weight.sum(axis=0), 1e-12)
    mean = np.maximum((weight * y).sum(axis=0) / total, 1e-12)
    gap = np.log(mean) - (weight * np.log(y)).sum(axis=0) / total
    gap = np.maximum(gap, 1e-8)
    shape = (3 - gap + np.sqrt((gap - 3) ** 2 + 24 * gap)) / (12 * gap)
    shape = np.clip(shape, 1e-3, 20.0)
    for _ in range(5):
        value = np.log(shape) - digamma(shape) - gap
        slope = 1 / shape - polygamma(1, shape)
        shape = np.clip(shape - value / slope, 1e-3, 20.0)
    return shape, shape / mean


def impute_group(logged: np.ndarray) -> np.ndarray:
    """Replace likely dropouts of one group's cells from the group's other cells."""
    completed = logged.copy()
    expressed = np.flatnonzero((logged > FLOOR + 1e-9).any(axis=0))
    mixture = fit_mixture(logged[:, expressed])
    # Genes whose "expressed" part sits at about one count say nothing about dropout.
    informative = mixture.mean > np.log10(2.01)
    genes = expressed[informative]
    if genes.size == 0:
        return completed
    part = Mixture(*(value[informative] for value in mixture))
    y = logged[:, genes]
    dropped = (part.dropout(y) > 0.5) & (y <= part.mean)
    top = y.max(axis=0)
    for cell in range(len(y)):
        lost = dropped[cell]
        if not lost.any() or lost.all():
            continue
        others = np.delete(np.arange(len(y)), cell)
        weights, _ = nnls(y[np.ix_(others, ~lost)].T, y[cell, ~lost], maxiter=10 * len(others))
        guess = np.minimum(weights @ y[np.ix_(others, lost)], top[lost])
        completed[cell, genes[lost]] = guess
    return completed
