"""Fill missing values, then run ordinary k-means: what most people do today.

zero     with 0
mean     with the feature's observed mean
knn      with the mean of the 10 nearest rows that observe the feature (Troyanskaya et al. 2001)
mice     with the mean of 5 draws of chained equations of 10 sweeps each
         (van Buuren and Groothuis-Oudshoorn 2011)
qrilc    a normal distribution is fitted to the observed quantiles, which are the upper ones: with m
         the missing share, the observed quantile at u is regressed on the normal one at
         m + (1 - m) u. Missing values are drawn from it below its m-quantile (Lazar et al. 2016).
minprob  drawn around a low quantile (1 %) of the observed values, with the median of the features'
         standard deviations (Lazar et al. 2016)
pca      with 0; k-means sees the first 50 principal components, as is usual for cells
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve, solve_triangular
from scipy.special import ndtri
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA
from sklearn.impute import KNNImputer, SimpleImputer


def kmeans(filled: np.ndarray, settings: Any, seed: int) -> dict[str, Any]:
    model = KMeans(
        settings.n_clusters, n_init=settings.n_init, max_iter=settings.max_iter, random_state=seed
    ).fit(filled)
    results = ("labels_", "cluster_centers_", "inertia_", "n_iter_")
    return {name: getattr(model, name) for name in results}


def imputed_kmeans(name: str, X: np.ndarray, settings: Any, seed: int) -> dict[str, Any]:
    """k-means on the table that one of ``FILLS`` completes."""
    filled = FILLS[name](X, np.random.default_rng(seed))
    return kmeans(filled, settings, seed) | {"imputed_": filled}


def pca_kmeans(X: np.ndarray, settings: Any, seed: int) -> dict[str, Any]:
    """The centres are the means of the zero-filled rows."""
    filled = np.nan_to_num(X, nan=0.0)
    projected = PCA(min(50, *X.shape), random_state=seed).fit_transform(filled)
    results = kmeans(projected, settings, seed)
    members = [results["labels_"] == label for label in range(settings.n_clusters)]
    centers = np.stack([filled[rows].mean(axis=0) for rows in members])
    return results | {"cluster_centers_": centers}


# --- ways to fill a table -------------------------------------------------------------------------


def fill_mice(X: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    draws = [chained_equations(X, 10, rng) for _ in range(5)]
    return np.where(np.isnan(X), np.mean(draws, axis=0), X)


def fill_qrilc(X: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    filled, levels = X.copy(), np.linspace(0.001, 0.99, 100)
    for j in np.flatnonzero(np.isnan(X).any(axis=0)):
        gaps = np.isnan(X[:, j])
        seen = X[~gaps, j]
        if len(seen) < 3:
            filled[gaps, j] = seen.min() if len(seen) else 0.0
            continue
        share = gaps.mean()
        normal = ndtri(share + (1.0 - share) * levels)
        sd, mean = np.polyfit(normal, np.quantile(seen, levels), 1)
        below = share * rng.random(gaps.sum())
        filled[gaps, j] = mean + max(sd, 0.0) * ndtri(np.maximum(below, 1e-12))
    return filled


def fill_minprob(X: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    filled, columns = X.copy(), [column[~np.isnan(column)] for column in X.T]
    sd = np.median([seen.std() for seen in columns if len(seen) > 1] or [0.0])
    for j, seen in enumerate(columns):
        low = np.quantile(seen, 0.01) if len(seen) else 0.0
        gaps = np.isnan(X[:, j])
        filled[gaps, j] = low + sd * rng.standard_normal(gaps.sum())
    return filled


FILLS = {
    "zero": lambda X, rng: np.nan_to_num(X, nan=0.0),
    "mean": lambda X, rng: SimpleImputer(keep_empty_features=True).fit_transform(X),
    "knn": lambda X, rng: KNNImputer(n_neighbors=10, keep_empty_features=True).fit_transform(X),
    "mice": fill_mice,
    "qrilc": fill_qrilc,
    "minprob": fill_minprob,
}


# --- chained equations ----------------------------------------------------------------------------


def chained_equations(X: np.ndarray, n_sweeps: int, rng: np.random.Generator) -> np.ndarray:
    """One draw of X completed by Bayesian linear regression of each feature on the others.

    One sweep visits the features in turn. With y the feature, Z the others (filled) and a constant,
    over the n_o rows where y is observed:

        V      = (Z'Z + ridge diag(Z'Z))^-1          b = V Z'y
        s^2    = |y - Z b|^2 / chi2(n_o - q)         one draw of the noise
        beta   = b + s V^(1/2) z                     one draw of the coefficients
        y_mis  = Z_mis beta + s z                    one draw of the missing values

    It does what scikit-learn's IterativeImputer(sample_posterior=True) does, many times faster.
    """
    gaps = np.isnan(X)
    # The constant sits in a last column, so that Z is "all columns but j".
    table = np.asfortranarray(np.column_stack([X, np.ones(len(X))]))
    for j in np.flatnonzero(gaps.any(axis=0)):  # values of the same feature to begin with
        pool = X[~gaps[:, j], j]
        table[gaps[:, j], j] = rng.choice(pool, gaps[:, j].sum()) if pool.size else 0.0
    visited = [j for j in np.flatnonzero(gaps.any(axis=0)) if not gaps[:, j].all()]
    for _ in range(n_sweeps):
        for j in visited:
            table[gaps[:, j], j] = _draw_missing(table, j, ~gaps[:, j], rng)
    return np.ascontiguousarray(table[:, :-1])


def _draw_missing(
    table: np.ndarray, j: np.integer, seen: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    others = np.delete(np.arange(table.shape[1]), j)
    block = table[seen]
    gram = block.T @ block
    plain = gram[np.ix_(others, others)]
    toward, square = gram[others, j], gram[j, j]
    # A feature that is 0 in these rows has no scale of its own: the absolute part keeps V finite.
    normal = plain + np.diag(1e-5 * plain.diagonal() + 1e-12)
    factor, lower = cho_factor(normal, lower=True, check_finite=False)
    mean = cho_solve((factor, lower), toward, check_finite=False)
    residual = max(square - 2 * mean @ toward + mean @ plain @ mean, 0.0)
    noise = np.sqrt(residual / rng.chisquare(max(len(block) - len(others), 1)))
    step = solve_triangular(
        factor, rng.standard_normal(len(others)), lower=True, trans="T", check_finite=False
    )
    expected = table[~seen] @ np.insert(mean + noise * step, j, 0.0)
    return expected + noise * rng.standard_normal(len(expected))
