"""The paper's procedure as its authors run it, on this package's solvers.

A fit: gaps filled by column means, k-means++ on that, then a whole k-means on it (R's default, so
a Hartigan-type one) whose centres start the penalised Lloyd loop; it stops when the loss falls by
less than 1e-5 of itself, after 100 iterations at most; the best of 100 starts wins.

The choice of lam: for every candidate, ten times, rows fall into three parts at random; two parts
are fitted (10 starts), both fits label the third; the disagreement is the number of row pairs that
one keeps together and the other does not, over (m-1)(m-2)/2. The candidate with the smallest mean
is taken; if that is the largest one, the smallest whose mean is below its mean + sd.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from .._observed import Observed
from .._selection.agreement import disagreement
from .._solver import assign_rows, run_starts
from ._kmeans import MAX_ITER, Starts, run_kmeans

STARTS = 100
STARTS_OF_CHOICE = 10
SPLITS = 10
TOL = 1e-5


class Fit(NamedTuple):
    labels: np.ndarray
    centers: np.ndarray
    loss: float
    n_iter: int
    path: np.ndarray  # the loss after every iteration of the best start
    start_losses: np.ndarray


class Choice(NamedTuple):
    lam: float
    lams: np.ndarray
    mean: np.ndarray  # instability of every candidate
    sd: np.ndarray


def observe(X: np.ndarray) -> Observed:
    """A table with NaN in the gaps as the solvers see it: reference 0, all weights 1."""
    seen = ~np.isnan(X)
    counts = seen.sum(axis=0).astype(float)
    means = np.where(seen, X, 0.0).sum(axis=0) / np.maximum(counts, 1.0)
    zero = np.zeros(X.shape[1])
    return Observed(
        np.ascontiguousarray(X, dtype=np.float64),
        np.nan,
        np.ones(len(X)),
        means,
        zero,
        counts,
        np.isnan(X).any(axis=0),
    )


def draw_starts(X: np.ndarray, k: int, n_starts: int, rng: np.random.Generator) -> Starts:
    """Whole k-means runs on the mean-filled table; runs that end alike are kept once."""
    filled = np.ascontiguousarray(np.where(np.isnan(X), observe(X).means, X))
    return run_kmeans(filled, k, n_starts, rng)


def fit(
    X: np.ndarray,
    k: int,
    lam: float,
    rng: np.random.Generator,
    *,
    n_starts: int = STARTS,
    starts: Starts | None = None,
) -> Fit:
    """The best of `n_starts` starts (drawn here unless given)."""
    if starts is None:
        starts = draw_starts(X, k, n_starts, rng)
    table, penalties = observe(X), np.full(len(starts.centers), float(lam))
    batch = run_starts(
        table,
        starts.centers,
        penalties,
        max_iter=MAX_ITER,
        tol=TOL,
        threads=1,
    )
    best = int(np.argmin(batch.losses))
    centers = batch.centers[best]
    return Fit(
        assign_rows(table, centers[None], penalties[:1])[:, 0],
        centers,
        float(batch.losses[best]),
        int(batch.n_iter[best]),
        batch.path(best),
        batch.losses[starts.which],
    )


def instability(
    X: np.ndarray, k: int, lam: float, rng: np.random.Generator, n_splits: int = SPLITS
) -> np.ndarray:
    """Disagreement of each split, with the authors' denominator."""
    values = np.empty(n_splits)
    for split in range(n_splits):
        one, two, test = _three_parts(X, k, rng)
        fits = [fit(part, k, lam, rng, n_starts=STARTS_OF_CHOICE) for part in (one, two)]
        centers = [found.centers for found in fits]
        labels = assign_rows(observe(test), np.array(centers), np.full(2, float(lam)))
        everyone = np.ones(len(test), dtype=np.bool_)
        values[split] = disagreement(labels[:, 0].copy(), labels[:, 1].copy(), everyone, k)
    return values


def choose_lam(
    X: np.ndarray,
    k: int,
    lams: ArrayLike,
    rng: np.random.Generator,
    n_splits: int = SPLITS,
) -> Choice:
    """The candidate the authors' rule takes."""
    candidates = np.asarray(lams, dtype=float)
    values = np.array([instability(X, k, lam, rng, n_splits) for lam in candidates])
    mean, sd = values.mean(axis=1), values.std(axis=1, ddof=1)
    return Choice(float(candidates[take(mean, sd)]), candidates, mean, sd)


def take(mean: np.ndarray, sd: np.ndarray) -> int:
    """Index of the smallest mean, or of the first below (last mean + last sd) if it is the last."""
    best = int(np.argmin(mean))
    if best == len(mean) - 1:
        below = np.flatnonzero(mean < mean[-1] + sd[-1])
        best = int(below[0]) if below.size else best
    return best


def _three_parts(X: np.ndarray, k: int, rng: np.random.Generator) -> list[np.ndarray]:
    """Rows in three random parts, drawn again when one is too small to hold k clusters."""
    while True:
        part = rng.integers(3, size=len(X))
        if np.bincount(part, minlength=3).min() > max(k, 2):
            return [X[part == label] for label in range(3)]
