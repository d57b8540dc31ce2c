"""Imputation for values below a detection limit, as proteomics does it, feature by feature.

qrilc    a normal distribution is fitted to the observed quantiles, which are the upper ones: with m
         the missing share, the observed quantile at u is regressed on the normal one at
         m + (1 - m) u. Gaps are drawn from it below its m-quantile.
minprob  gaps are drawn around a low quantile (1 %) of the observed values, with the median of the
         features' standard deviations.

Lazar et al., Accounting for the multiple natures of missing values in label-free quantitative
proteomics data sets to compare imputation strategies, 2016.
"""

from __future__ import annotations

import numpy as np
from scipy.special import ndtr, ndtri

LEVELS = np.linspace(0.001, 0.99, 100)
LOW_QUANTILE = 0.01


def qrilc(X: np.ndarray, seed: int) -> np.ndarray:
    """Draws from the left end of a normal distribution fitted to the upper quantiles."""
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
        normal = ndtri(share + (1.0 - share) * LEVELS)
        sd, mean = np.polyfit(normal, np.quantile(seen, LEVELS), 1)
        below = ndtr(ndtri(share)) * rng.random(gaps.sum())
        filled[gaps, j] = mean + max(sd, 0.0) * ndtri(np.maximum(below, 1e-12))
    return filled


def minprob(X: np.ndarray, seed: int) -> np.ndarray:
    """Draws around a low quantile of each feature."""
    rng, filled = np.random.default_rng(seed), X.copy()
    seen = ~np.isnan(X)
    spreads = [X[own, j].std() for j, own in enumerate(seen.T) if own.sum() > 1]
    sd = float(np.median(spreads)) if spreads else 0.0
    for j, own in enumerate(seen.T):
        low = np.quantile(X[own, j], LOW_QUANTILE) if own.any() else 0.0
        filled[~own, j] = low + sd * rng.standard_normal((~own).sum())
    return filled
