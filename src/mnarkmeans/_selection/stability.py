"""How much of each cluster of a fitted model comes back when rows are left out.

A few parts of four fifths of the rows are fitted anew with the model's lam, k and reference; a
cluster's stability is the mean Jaccard similarity with the cluster most like it in each part.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .._observed import Observed
from .._solver import STARTS, assign_rows, run_starts
from .agreement import cluster_stability
from .evidence import subsamples

N_PARTS, SHARE, N_INIT = 6, 0.8, 3
ROWS_PER_CLUSTER = 5  # fewer on average say nothing about what comes back
MOST_ROWS = 5_000
MOST_ENTRIES = 4_000_000


def stability_of(X: Any, model: Any, seed: int = 0) -> np.ndarray | None:
    """Stability (k,) of the clusters of a fitted MNARKMeans on rows X; None where it says nothing.

    That is: one cluster, or too few rows to leave any out.

    Examples
    --------
    >>> from mnarkmeans import MNARKMeans
    >>> X = np.r_[np.zeros((20, 2)), np.ones((20, 2)) * 9] + np.arange(40)[:, None] % 5 / 10
    >>> stability_of(X, MNARKMeans(2, lam=0.0, random_state=0).fit(X))
    array([1., 1.])
    """
    k = len(model.cluster_centers_)
    if k < 2:
        return None
    observed = model._observe(X)
    counting = np.flatnonzero(observed.weights > 0)
    most = max(min(MOST_ROWS, MOST_ENTRIES // observed.n_features), 50 * k)
    rng = np.random.RandomState(seed)
    if len(counting) > most:
        counting = np.sort(rng.choice(counting, most, replace=False))
    if len(counting) < ROWS_PER_CLUSTER * k:
        return None
    judged = observed.take(counting)
    threads, lams = model._threads(), np.atleast_2d(model.lam_)
    parts = subsamples(judged.n_rows, N_PARTS, SHARE, rng)
    labels = [_labels_by(part, judged, k, lams, rng, threads) for part in parts]
    centers = model.cluster_centers_.astype(np.float64)[None]
    own = assign_rows(judged, centers, lams, threads)[:, 0]
    return cluster_stability(own, np.array(labels), parts, k)


def _labels_by(
    part: np.ndarray,
    judged: Observed,
    k: int,
    lams: np.ndarray,
    rng: np.random.RandomState,
    threads: int,
) -> np.ndarray:
    """Labels of all rows by a fit to a part of them; lam may be a number for each feature."""
    rows = judged.take(np.flatnonzero(part))
    starts = STARTS["k-means++"](rows, N_INIT, k, rng, threads)
    found = run_starts(rows, starts, lams, max_iter=100, tol=1e-4, threads=threads)
    best = found.centers[found.losses.argmin()][None]
    return assign_rows(judged, best, lams, threads)[:, 0]
