"""The paper's procedure as its authors run it, with this package's estimator.

A fit: gaps filled by column means, k-means++ on that, then a whole k-means on it (R's default, so
one with moves of single rows) whose centres start the penalised Lloyd loop; it stops when the loss
falls by less than 1e-5 of itself, after 100 iterations at most; the best of 100 starts wins.

The choice of lam: for every candidate, ten times, rows fall into three parts at random; two parts
are fitted (10 starts), both fits label the third; the disagreement is the number of row pairs that
one keeps together and the other does not, over (m-1)(m-2)/2. The candidate with the smallest mean
is taken; if that is the largest one, the smallest whose mean is below its mean + sd.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np
from sklearn.metrics import pair_confusion_matrix

from mnarkmeans import MissingDataWarning, MNARKMeans

STARTS = 100
STARTS_OF_CHOICE = 10
SPLITS = 10
MAX_ITER = 100


def fit(
    X: np.ndarray, k: int, lam: float, rng: np.random.Generator, starts: list | None = None
) -> MNARKMeans:
    """The best of 100 starts, drawn here unless given."""
    if starts is None:
        starts = draw_starts(X, k, STARTS, rng)
    remaining = iter(starts)
    model = MNARKMeans(
        k, lam=lam, reference=0.0, init=lambda *_, random_state: next(remaining),
        n_init=len(starts), max_iter=MAX_ITER, tol=1e-5, algorithm="lloyd", n_jobs=1,
    )  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MissingDataWarning)  # a part of the rows may lack a feature
        return model.fit(X)


def draw_starts(X: np.ndarray, k: int, n_starts: int, rng: np.random.Generator) -> list[np.ndarray]:
    """The centres of whole k-means runs on the mean-filled table."""
    observed = ~np.isnan(X)
    means = np.where(observed, X, 0.0).sum(axis=0) / np.maximum(observed.sum(axis=0), 1)
    filled = np.where(observed, X, means)
    return [
        MNARKMeans(
            k, lam=0.0, reference=0.0, n_init=1, max_iter=MAX_ITER, algorithm="hartigan",
            random_state=int(seed), n_jobs=1,
        ).fit(filled).cluster_centers_
        for seed in rng.integers(2**31 - 1, size=n_starts)
    ]  # fmt: skip


def instability(X: np.ndarray, k: int, lam: float, rng: np.random.Generator) -> np.ndarray:
    """Disagreement of each split, with the authors' denominator."""
    values = np.empty(SPLITS)
    for split in range(SPLITS):
        one, two, test = _three_parts(X, k, rng)
        labels = [
            fit(part, k, lam, rng, draw_starts(part, k, STARTS_OF_CHOICE, rng)).predict(test)
            for part in (one, two)
        ]
        values[split] = disagreement(*labels)
    return values


def disagreement(one: np.ndarray, two: np.ndarray) -> float:
    m = len(one)
    pairs = pair_confusion_matrix(one, two)  # counts each pair twice
    return float(pairs[0, 1] + pairs[1, 0]) / ((m - 1) * (m - 2))


def choose_lam(X: np.ndarray, k: int, lams: Sequence[float], rng: np.random.Generator) -> float:
    """The candidate that the authors' rule takes."""
    values = np.array([instability(X, k, lam, rng) for lam in lams])
    return float(lams[take(values.mean(axis=1), values.std(axis=1, ddof=1))])


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
