"""The fits from which every criterion judges: parts of the rows, common to all candidates.

A split names the rows of one fit. All candidates of a split start from the same centres and run
side by side in one batch; small tables are cut by split over the threads, large ones by rows.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from .._data.observed import Observed
from .._solver.solve import assign_rows, row_distances, run_starts
from .._solver.starts import STARTS
from .._solver.threads import ordered_map


@dataclass(frozen=True)
class Settings:
    """How a part is fitted."""

    init: str
    n_init: int
    max_iter: int
    tol: float
    threads: int
    report: Callable[[], None] | None = None


@dataclass(frozen=True)
class Evidence:
    """What the fits of B parts with G candidates for lam showed, for one k."""

    k: int
    lams: np.ndarray  # (G,) rising
    labels: np.ndarray  # (B, n, G) of every row, by the fit to the part
    inside: np.ndarray  # (B, n) rows of the part
    held_out: np.ndarray  # (B, G) loss per held-out row; NaN where it was not asked for
    seconds: np.ndarray  # (B,) per candidate

    @property
    def smallest_share(self) -> np.ndarray:
        """(G,) rows of the smallest cluster, median over the parts."""
        n_parts, _, n_candidates = self.labels.shape
        sizes = np.empty((n_parts, n_candidates))
        for b in range(n_parts):
            for g in range(n_candidates):
                sizes[b, g] = np.bincount(self.labels[b, :, g], minlength=self.k).min()
        return np.median(sizes, axis=0)


def fit_part(
    observed: Observed, k: int, lams: np.ndarray, seed: int, settings: Settings, threads: int
) -> np.ndarray:
    """Centres (G, k, p): the best of n_init starts for every lam."""
    rng = np.random.RandomState(seed)
    starts = STARTS[settings.init](observed, settings.n_init, k, rng, threads)
    n_starts, n_lams = len(starts), len(lams)
    results = run_starts(
        observed,
        np.tile(starts, (n_lams, 1, 1)),
        np.repeat(lams, n_starts),
        max_iter=settings.max_iter,
        tol=settings.tol,
        threads=threads,
    )
    best = results.losses.reshape(n_lams, n_starts).argmin(axis=1)
    return results.centers[best + n_starts * np.arange(n_lams)]


def gather(
    observed: Observed,
    k: int,
    lams: np.ndarray,
    parts: np.ndarray,
    seeds: np.ndarray,
    settings: Settings,
    held_out_lam: float | None = None,
) -> Evidence:
    """Fit every part (B, n) of bool with every candidate and label all rows.

    With `held_out_lam`, the rows outside a part are also scored: their loss at the part's centres,
    with that one penalty for all candidates.
    """
    n_parts, n = parts.shape
    labels = np.empty((n_parts, n, len(lams)), np.int32)
    held_out = np.full((n_parts, len(lams)), np.nan)
    seconds = np.empty(n_parts)
    resident = observed.table.is_one_slab
    inner = 1 if resident else settings.threads

    def work(b: int) -> None:
        begin = time.perf_counter()
        centers = fit_part(
            observed.take(np.flatnonzero(parts[b])), k, lams, int(seeds[b]), settings, inner
        )
        labels[b] = assign_rows(observed, centers, lams, inner)
        if held_out_lam is not None:
            rest = observed.take(np.flatnonzero(~parts[b]), means=observed.means)
            for g in range(len(lams)):
                costs = row_distances(rest, centers[g], held_out_lam, inner).min(axis=1)
                held_out[b, g] = np.sum(costs * rest.weights) / rest.weights.sum()
        seconds[b] = (time.perf_counter() - begin) / len(lams)
        if settings.report is not None:
            settings.report()

    ordered_map(work, range(n_parts), settings.threads if resident else 1)
    return Evidence(k, lams, labels, parts, held_out, seconds)


def centers_of_partitions(observed: Observed, labels: np.ndarray, k: int, lam: float) -> np.ndarray:
    """Centres (B, k, p) of the partitions (B, n): mu = S / (C + lam (N - C)), from the reference.

    As starts of a fit to all rows they carry over what the fits to parts have found.
    """
    values, seen = observed.zero_filled()
    out = np.empty((len(labels), k, observed.n_features))
    for b, own in enumerate(labels):
        member = np.zeros((len(own), k))
        member[np.arange(len(own)), own] = observed.weights
        S, C = (values.T @ member).T, (seen.T @ member).T
        weight = C + lam * (member.sum(axis=0)[:, None] - C)
        out[b] = observed.reference + S / np.where(weight > 0, weight, 1.0)
    return out


def thirds(n: int, n_splits: int, rng: np.random.RandomState) -> np.ndarray:
    """Parts (2 * n_splits, n): every split draws one of three labels per row, parts 1 and 2."""
    drawn = rng.randint(3, size=(n_splits, n))
    return np.concatenate([drawn == 0, drawn == 1])


def subsamples(n: int, n_splits: int, share: float, rng: np.random.RandomState) -> np.ndarray:
    """Parts (n_splits, n): a share of the rows each, without replacement."""
    size = min(max(round(share * n), 1), n - 1) if n > 1 else n
    parts = np.zeros((n_splits, n), bool)
    for part in parts:
        part[rng.permutation(n)[:size]] = True
    return parts


def check_parts(parts: np.ndarray, k: int, n: int) -> None:
    """Refuse parts that have fewer rows than clusters are asked for."""
    smallest = int(parts.sum(axis=1).min())
    if smallest < k:
        raise ValueError(
            f"n_samples={n} usable rows are too few to choose with n_clusters={k}: a part of them "
            f"has only {smallest} rows. Ask for fewer clusters, or use MNARKMeans."
        )
