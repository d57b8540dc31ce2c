"""Clustering of the observed values, without imputation first.

rkpod     k-POD with a group penalty on each feature's centres
fwpd      k-means with a dissimilarity that charges for missing values
gmm       a normal mixture over the observed values, which takes values as missing at random
gmm_mask  the same, and every cluster misses a feature at a rate of its own: the 0/1 pattern of
          missing values as further binary columns
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.utils import gen_batches

from .._io import require
from .._kmeans import MNARKMeans


def regularised_kpod(
    X: np.ndarray, settings: Any, seed: int, *, lam: float = 0.1
) -> dict[str, Any]:
    """k-POD with a group penalty on each feature's centres (arXiv 2507.11884).

        sum_{observed} (x_ij - mu_{z_i} j)^2 + n lam sum_j w_j |mu_.j|

    with standardised features, |mu_.j| the length of the j-th column of centres and w_j one over
    what k-POD found for it. Missing values are filled with the centre of the row (k-POD), and the
    penalty is majorised by a parabola, which shrinks a mean by N_l / (N_l + lam_j) with
    lam_j = n lam w_j / (2 |mu_.j|). It goes on from k-POD's centres until the labels repeat.
    """
    gaps = np.isnan(X)
    seen = np.maximum((~gaps).sum(axis=0), 1)  # StandardScaler warns of features without a value
    mean = np.nan_to_num(X).sum(axis=0) / seen
    sd = np.sqrt(np.where(gaps, 0.0, (X - mean) ** 2).sum(axis=0) / seen)
    sd[sd == 0] = 1.0
    Z = (X - mean) / sd
    kpod = MNARKMeans(settings.n_clusters, lam=0.0, n_init=settings.n_init, random_state=seed)
    labels = kpod.fit_predict(Z)
    M = kpod.cluster_centers_
    weight = 1.0 / np.maximum(np.linalg.norm(M, axis=0), 1e-8)
    for n_iter in range(1, settings.max_iter + 1):
        filled = np.where(gaps, M[labels], Z)
        sizes = np.bincount(labels, minlength=len(M))[:, None]
        sums = np.zeros_like(M)
        np.add.at(sums, labels, filled)
        length = np.maximum(np.linalg.norm(M, axis=0), 1e-8)
        pull = len(Z) * lam * weight / (2.0 * length)
        M = np.where(sizes > 0, sums / np.maximum(sizes + pull, 1e-12), M)
        cost = [np.where(gaps, 0.0, (Z - center) ** 2).sum(axis=1) for center in M]
        before, labels = labels, np.argmin(cost, axis=0)
        if n_iter > 10 and np.array_equal(before, labels):
            break
    return {"labels_": labels, "cluster_centers_": mean + sd * M, "n_iter_": n_iter}


def stepmix_clusters(
    X: np.ndarray, settings: Any, seed: int, *, mask: bool = False
) -> dict[str, Any]:
    """StepMix's diagonal Gaussian mixture; centres are observed means weighted by posteriors."""
    stepmix = require("stepmix", "rivals")
    p = X.shape[1]
    parts: dict[str, Any] = {"values": {"model": "gaussian_diag_nan", "n_columns": p}}
    table = X
    if mask:
        parts["mask"] = {"model": "binary", "n_columns": p}
        table = np.hstack([X, np.isnan(X).astype(np.float64)])
    model = stepmix.StepMix(
        n_components=settings.n_clusters, measurement=parts, n_init=settings.n_init,
        max_iter=settings.max_iter, verbose=0, progress_bar=0, random_state=seed,
    )  # fmt: skip
    model.fit(table)
    posterior = np.asarray(model.predict_proba(table))
    centers = (posterior.T @ np.nan_to_num(X)) / np.maximum(posterior.T @ ~np.isnan(X), 1e-12)
    labels = posterior.argmax(axis=1)
    return {"labels_": labels, "cluster_centers_": centers, "probabilities_": posterior}


# --- FWPD -----------------------------------------------------------------------------------------


def fwpd_kmeans(X: np.ndarray, settings: Any, seed: int) -> dict[str, Any]:
    """k-means with the feature-weighted penalty dissimilarity (Datta, Bhattacharjee and Das 2018).

    A centre is the observed mean of its rows, NaN where none of them observes the feature. Every
    start gives the rows random labels and ends when the labels repeat; the start with the smallest
    sum of dissimilarities wins. An empty cluster takes the row that fits its own cluster worst.
    """
    dissimilarity, k, rng = fwpd(X), settings.n_clusters, np.random.RandomState(seed)
    observed, values = (~np.isnan(X)).astype(float), np.nan_to_num(X, nan=0.0)

    def means(labels: np.ndarray) -> np.ndarray:
        member = (labels == np.arange(k)[:, None]).astype(float)
        counts, sums = member @ observed, member @ values
        return np.divide(sums, counts, out=np.full_like(sums, np.nan), where=counts > 0)

    starts = []
    for _ in range(settings.n_init):
        labels = rng.randint(k, size=len(X))
        for n_iter in range(1, settings.max_iter + 1):  # noqa: B007
            before, sizes = labels, np.bincount(labels, minlength=k)
            if not sizes.all():
                before = labels.copy()
                cost = dissimilarity(means(labels))[np.arange(len(X)), labels]
                worst = np.argsort(np.where(sizes[labels] > 1, -cost, np.inf), kind="stable")
                empty = np.flatnonzero(sizes == 0)
                before[worst[: len(empty)]] = empty
            centers = means(before)
            costs = dissimilarity(centers)
            labels = costs.argmin(axis=1)
            if np.array_equal(before, labels):
                break
        starts.append({"labels_": labels, "cluster_centers_": centers,
                       "inertia_": float(costs.min(axis=1).sum()), "n_iter_": n_iter})  # fmt: skip
    return min(starts, key=lambda start: start["inertia_"])


def fwpd(X: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """The dissimilarity (n, k) of every row to centres (k, p), which may lack features too.

    w_j     = rows that observe feature j
    d(x, z) = (1 - alpha) * |x - z over the features both have| / dmax
              + alpha * (sum of w_j over features missing in x or z) / (sum of all w_j)
    dmax    = the largest such distance between two rows
    alpha   = min(0.5, share of missing entries)
    """
    observed, values = (~np.isnan(X)).astype(float), np.nan_to_num(X, nan=0.0)
    weights = observed.sum(axis=0)
    total, alpha = weights.sum(), min(0.5, 1.0 - float(observed.mean()))

    def distances(points: np.ndarray, rows: slice = slice(None)) -> np.ndarray:
        z, has, x = np.nan_to_num(points, nan=0.0), ~np.isnan(points), values[rows]
        squared = x**2 @ has.T - 2 * x @ z.T + observed[rows] @ (z**2).T
        return np.sqrt(np.maximum(squared, 0.0))

    blocks = gen_batches(len(X), max(1, 2_000_000 // len(X)))  # bounds the memory
    dmax = max(distances(X, rows).max() for rows in blocks) or 1.0

    def dissimilarity(centers: np.ndarray) -> np.ndarray:
        penalty = (total - (observed * weights) @ ~np.isnan(centers).T) / total
        return (1 - alpha) * distances(centers) / dmax + alpha * penalty

    return dissimilarity
