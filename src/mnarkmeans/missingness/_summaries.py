"""Plain counts of a table with gaps, dense or sparse."""

from __future__ import annotations

import numpy as np

from .._observed import Observed

MANY_ZEROS = 0.05  # share of exact zeros from which they may be gaps


def shares(observed: Observed) -> tuple[np.ndarray, np.ndarray]:
    """Missing share of every row and feature."""
    n, p = observed.source.shape
    if observed.is_sparse:
        per_row = np.diff(observed.source.indptr)
        per_feature = np.bincount(observed.source.indices, minlength=p)
    else:
        seen = observed.seen()
        per_row, per_feature = seen.sum(axis=1), seen.sum(axis=0)
    return 1.0 - per_row / p, 1.0 - per_feature / n


def feature_summaries(observed: Observed) -> tuple[np.ndarray, ...]:
    """Least, greatest, mean and standard deviation of the observed values of each feature."""
    p = observed.n_features
    if observed.is_sparse:
        source = observed.source
        values, column = source.data.astype(float), source.indices
        count = np.bincount(column, minlength=p).astype(float)
        least, most = np.full(p, np.inf), np.full(p, -np.inf)
        np.minimum.at(least, column, values)
        np.maximum.at(most, column, values)
        total = np.bincount(column, values, p)
        square = np.bincount(column, values * values, p)
    else:
        seen = observed.seen()
        count = seen.sum(axis=0).astype(float)
        least = np.where(seen, observed.source, np.inf).min(axis=0)
        most = np.where(seen, observed.source, -np.inf).max(axis=0)
        filled = np.where(seen, observed.source, 0.0)
        total, square = filled.sum(axis=0), np.square(filled).sum(axis=0)
    known = np.where(count > 0, count, np.nan)
    mean = total / known
    deviation = np.sqrt(np.maximum(square / known - mean**2, 0.0))
    least, most = (np.where(count > 0, bound, np.nan) for bound in (least, most))
    return least, most, mean, deviation


def zero_share(observed: Observed) -> float:
    """Share of the entries of a table that are exactly 0 (of a sparse one: stored zeros)."""
    n, p = observed.source.shape
    values = observed.source.data if observed.is_sparse else observed.source
    return float(np.count_nonzero(values == 0)) / (n * p)


def zeros_note(share: float, missing_share: float) -> str:
    """A sentence where a complete table has so many exact zeros that they may stand for gaps."""
    if missing_share > 0 or share < MANY_ZEROS:
        return ""
    return (
        f"{share:.0%} of the values are exactly 0: if those stand for values that were not "
        "measured, say so with missing_values=0 (--missing-value 0 on the command line)."
    )
