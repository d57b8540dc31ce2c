"""Minimise the loss for one number of clusters: starts, Lloyd's loop, Hartigan's moves, results.

``src/core/loss.h`` has the maths. ``_validation`` makes sure that the data are an
``Observed`` and the centres are finite.
"""

from __future__ import annotations

import logging
import math
import os
from collections.abc import Callable
from functools import lru_cache
from numbers import Integral
from typing import Any, NamedTuple

import joblib
import numpy as np
from threadpoolctl import threadpool_limits

from . import _core as core
from ._core import Starts
from ._observed import Observed, zero_filled

# --- threads --------------------------------------------------------------------------------------


@lru_cache(1)
def _cores() -> int:
    """Cores this process may use. Asking the system takes longer than a small fit."""
    return joblib.cpu_count()


def effective_threads(n_jobs: Any) -> int:
    """None: all cores this process may use, at most OMP_NUM_THREADS; negative: as in joblib."""
    cores = _cores()
    if n_jobs is None:
        limit = os.environ.get("OMP_NUM_THREADS", "")
        return min(cores, int(limit)) if limit.isdigit() and int(limit) > 0 else cores
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, Integral):
        raise TypeError(f"n_jobs must be None or a whole number; got {n_jobs!r}.")
    if n_jobs == 0:
        raise ValueError("n_jobs == 0 has no meaning; use None for all cores or a number >= 1.")
    wanted = int(n_jobs)
    return wanted if wanted > 0 else max(1, cores + 1 + wanted)


# --- starts ---------------------------------------------------------------------------------------


def k_means_plus_plus(
    observed: Observed, n_starts: int, k: int, rng: np.random.RandomState, threads: int
) -> np.ndarray:
    """Centres (R, k, p) of R starts."""
    draws = rng.random_sample((n_starts, k, 2 + int(math.log(k))))
    return core.seed(observed.table, observed.means, draws, threads)


def random_rows(
    observed: Observed, n_starts: int, k: int, rng: np.random.RandomState, threads: int
) -> np.ndarray:
    """Centres (R, k, p): k different rows each, drawn by weight, mean-filled."""
    share = observed.weights / observed.weights.sum()
    chosen = [rng.choice(observed.n_rows, k, replace=False, p=share) for _ in range(n_starts)]
    filled = core.fill_rows(observed.table, np.concatenate(chosen), observed.means)
    return filled.reshape(n_starts, k, -1)


STARTS: dict[str, Callable[..., np.ndarray]] = {
    "k-means++": k_means_plus_plus,
    "random": random_rows,
}


# --- bounds ---------------------------------------------------------------------------------------

MARGIN = 1.0 + 1e-6  # covers the rounding of the moves
FEWEST_FEATURES = 8  # with fewer, a row is compared as fast as its bound is read
RESTLESS = 1 / 3  # while more rows than this share change cluster, centres move too far to prune


class Bounds:
    """Hamerly's bounds, for the rows of one start: a row need not be compared with the centres
    while its margin exceeds the drift of its cluster (``pass.h``)."""

    def __init__(self, n_rows: int, k: int):
        self.margins, self.drift = np.full(n_rows, -np.inf, np.float32), np.zeros(k)
        self.changed = n_rows  # labels that changed in the last pass
        self._start = -1
        self._centers = np.empty(0)

    def worthwhile(self) -> bool:
        """Whether bounds save more in the next pass than they cost."""
        return self._start >= 0 or self.changed < RESTLESS * len(self.margins)

    def follow(self, start: int, centers: np.ndarray, lam: np.ndarray) -> Bounds:
        """Prepare for a pass of this start, with these centres (k, p) and penalties (p,)."""
        if start == self._start:
            moves = np.sqrt(np.sum((centers - self._centers) ** 2, axis=1))
            others = np.full(len(moves), moves.max())
            others[moves.argmax()] = np.partition(moves, -2)[-2] if len(moves) > 1 else 0.0
            self.drift += MARGIN * np.sqrt(max(1.0, lam.max())) * (moves + others)
        else:
            self.margins.fill(-np.inf)
            self.drift.fill(0.0)
        self._start, self._centers = start, centers.copy()
        return self


# --- lloyd ----------------------------------------------------------------------------------------


class InMemory:
    """The rows of a table in memory, on threads: what ``lloyd`` asks of rows."""

    def __init__(self, table: core.Table, k: int, threads: int):
        self.table, self.threads = table, threads
        self.bounds = Bounds(table.n, k) if k > 1 and table.p >= FEWEST_FEATURES else None
        self._in_use: Bounds | None = None  # in the last pass

    def pass_(self, starts: Starts, active: np.ndarray, fresh: bool) -> float:
        """Labels and sums of the active starts: all rows anew, or what changed.

        Returns the largest |x - shift|^2 of a row that changed cluster.
        """
        bounds = self.bounds if len(active) == 1 else None
        self._in_use = None
        if bounds is not None and bounds.worthwhile():
            r = int(active[0])
            self._in_use = bounds.follow(r, starts.mu[r], starts.lam[r])
        changed, largest = core.pass_(
            self.table, starts, active, fresh=fresh, bounds=self._in_use, threads=self.threads
        )
        if bounds is not None:
            bounds.changed = changed
        return largest

    def relocate_empty(self, starts: Starts, r: int) -> None:
        """Relocate the empty clusters of start r to the rows that cost most. INOUT sums."""
        core.relocate_empty(self.table, starts, r, self._in_use, self.threads)

    def loss_of(self, starts: Starts, r: int) -> float:
        """The loss of start r's partition at its new centres, by direct differences."""
        centers = starts.centers([r])
        return core.loss_of(self.table, centers, starts.labels[r], self.threads)


def lloyd(rows: Any, starts: Starts, progress: Callable[[int], None] | None = None) -> None:
    """Run the starts to their ends; ``rows`` as ``InMemory``. INOUT starts.

    ``progress`` is called after every iteration with the number of starts that have ended.
    """
    active, fresh = np.arange(starts.count), True
    for iteration in range(starts.max_iter):
        largest = rows.pass_(starts, active, fresh)
        for r in active[starts.stats.sizes[active].min(axis=1) <= 0.0]:
            rows.relocate_empty(starts, int(r))
        losses, inexact = core.update(starts, active)
        for a in np.flatnonzero(inexact):
            losses[a] = rows.loss_of(starts, int(active[a]))
        active, fresh = core.decide(starts, iteration, losses, inexact, largest, active)
        if progress is not None:
            progress(starts.count - len(active))
        if not len(active):
            break


# --- results --------------------------------------------------------------------------------------

EQUAL = 1e-10  # losses whose relative difference is smaller differ by rounding only


def last_losses(starts: Starts) -> np.ndarray:
    """(R,) the loss of each start after its last iteration."""
    return starts.paths[np.arange(starts.count), starts.n_iter - 1]


class StartResults(NamedTuple):
    """Results of R starts."""

    centers: np.ndarray  # (R, k, p)
    losses: np.ndarray  # (R,) final loss of each start
    n_iter: np.ndarray  # (R,)
    paths: np.ndarray  # (R, max_iter) the loss after every iteration; the first n_iter are used

    @classmethod
    def of(cls, starts: Starts) -> StartResults:
        """A start that reached the same partition as an earlier one takes its result."""
        for r in np.flatnonzero(starts.merged_into >= 0):
            earlier, merged = starts.merged_into[r], starts.n_iter[r]
            starts.paths[r, merged:] = starts.paths[earlier, merged:]
            starts.n_iter[r], starts.mu[r] = starts.n_iter[earlier], starts.mu[earlier]
        return cls(starts.mu, last_losses(starts), starts.n_iter, starts.paths)

    def path(self, r: int) -> np.ndarray:
        """The loss of start r after every iteration."""
        return self.paths[r, : self.n_iter[r]].copy()

    @property
    def best(self) -> int:
        """The start with the smallest loss; the first of those that differ by rounding only."""
        return int(np.argmax(self.losses <= self.losses.min() * (1.0 + EQUAL)))


logger = logging.getLogger("mnarkmeans")  # handlers are the caller's


def log_line(message: str, verbose: bool, level: int = logging.INFO) -> None:
    """A line about a fit: logged, and printed if the estimator is verbose."""
    logger.log(level, message)
    if verbose:
        print(message)


# --- solve ----------------------------------------------------------------------------------------

ALGORITHMS = ("lloyd", "hartigan")
# As many starts run side by side as keep their labels and their centres below these sizes. With
# more centres the time goes into allocating and freeing memory.
BYTES_OF_LABELS = 1 << 25
BYTES_OF_CENTERS = 1 << 21


def penalties(lam, n_starts: int, p: int) -> np.ndarray:
    """(R, p) from one number, one per feature (p,), or one per start (R, 1) and feature (R, p)."""
    return np.array(np.broadcast_to(np.asarray(lam, np.float64), (n_starts, p)))


def model_centers(observed: Observed, centers: np.ndarray, lam) -> core.Centers:
    """The centres (G, k, p) of fitted models; lam as in ``penalties``.

    The shift is the mean of the centres: results depend on a row and the model alone.
    """
    mu = np.ascontiguousarray(centers, dtype=np.float64)
    groups, _, p = mu.shape
    return core.Centers(mu, penalties(lam, groups, p), observed.reference, mu.mean(axis=(0, 1)))


def run_starts(
    observed: Observed,
    centers: np.ndarray,
    lam: float | np.ndarray,
    *,
    max_iter: int,
    tol: float,
    threads: int,
    n_hartigan: int = 0,
    verbose: int | None = None,
    progress: Callable[[int], None] | None = None,
) -> StartResults:
    """Run the starts ``centers`` (R, k, p) to their ends; ``lam`` as in ``penalties``.

    Small tables: all starts in one call of the core, which spreads them over the threads. Larger
    ones: as many starts as memory allows run side by side, and the threads share the rows. Neither
    split depends on the number of threads.

    After Lloyd's loop, about ``n_hartigan`` of the starts, those with the smallest losses, go on
    with Hartigan's moves of single rows.

    ``verbose``: a line for each start is logged, unless None, and printed above 0. ``progress`` is
    called now and then with the number of starts that have ended.
    """
    n_starts, k, p = centers.shape
    lam, table, size = penalties(lam, n_starts, p), observed.table, n_starts
    if not table.is_small:
        most = max(1, min(BYTES_OF_LABELS // (4 * table.n), BYTES_OF_CENTERS // (8 * k * p)))
        size = math.ceil(n_starts / math.ceil(n_starts / most))
    parts = []
    for first in range(0, n_starts, size):
        side_by_side = slice(first, first + size)
        starts = Starts(
            centers[side_by_side], lam[side_by_side], observed.reference, observed.means,
            n_rows=table.n, max_iter=max_iter, tol=tol, weights=observed.summary.total_weight,
        )  # fmt: skip

        def ended(number: int, first: int = first) -> None:
            if progress is not None:
                progress(first + number)

        n_moved = math.ceil(min(1.0, n_hartigan / n_starts) * starts.count)
        in_lloyd = None if n_moved > 0 else ended  # a start ends after Hartigan's moves
        if table.is_small:
            core.lloyd(table, starts, threads, in_lloyd)
        else:
            lloyd(InMemory(table, k, threads), starts, in_lloyd)
        if n_moved > 0:  # the starts with the smallest losses that did not merge with another
            order = np.argsort(last_losses(starts), kind="stable")
            chosen = order[starts.merged_into[order] < 0][:n_moved]
            core.hartigan(table, starts, np.sort(chosen), threads, ended)
        results = StartResults.of(starts)
        if verbose is not None:
            each = zip(results.losses, results.n_iter, strict=True)
            for r, (loss, n_iter) in enumerate(each, first + 1):
                line = f"start {r}/{n_starts}: loss {loss:.6g} after {n_iter} iterations"
                log_line(line, verbose > 0)
        ended(starts.count)
        parts.append(results)
    return StartResults(*map(np.concatenate, zip(*parts, strict=True)))


def finish(
    observed: Observed, centers: np.ndarray, lam: Any, threads: int
) -> tuple[np.ndarray, float, np.ndarray]:
    """Labels (n,) that the centres (k, p) give, the loss by direct differences, rows per label.

    ``lam``: one number, or one per feature.
    """
    return core.label_and_loss(observed.table, model_centers(observed, centers[None], lam), threads)


def centers_of_partition(
    observed: Observed, labels: np.ndarray, k: int, lam: float | np.ndarray, threads: int
) -> np.ndarray:
    """(k, p); the mean of all rows where a cluster has no value and there is no penalty."""
    means, lam = np.tile(observed.means, (1, k, 1)), penalties(lam, 1, observed.n_features)
    start = Starts(means, lam, observed.reference, observed.means)
    core.add_rows(observed.table, start.centers([0]), labels, start.stats, threads)
    core.update(start, [0])
    return start.mu[0]


def assign_rows(observed: Observed, centers: np.ndarray, lam: Any, threads: int) -> np.ndarray:
    """Labels (n, G) of every row for the centres (G, k, p) of G models; lam as in ``penalties``."""
    return core.assign(observed.table, model_centers(observed, centers, lam), threads).T


# --- a start from principal components ------------------------------------------------------------

WIDE = 40  # features per cluster from which the noise of a row hides the group it belongs to
SAMPLE_ENTRIES, SAMPLE_ROWS = 1 << 20, 100  # size of the sample; at least 100 rows per cluster
STARTS_IN_COMPONENTS, KRYLOV_STEPS = 20, 5


def with_component_start(
    observed: Observed, centers: np.ndarray, lam: float | np.ndarray, threads: int
) -> np.ndarray:
    """The starts (R, k, p); in wide tables the last one is k-means on leading principal components.

    k-means++ takes single rows as centres. With many features the noise of a row outweighs what
    separates the groups; components average most of it away.
    """
    _, k, p = centers.shape
    if k == 1 or p < WIDE * k:
        return centers
    sample = observed.take(observed.sample(max(SAMPLE_ENTRIES // p, SAMPLE_ROWS * k)))
    penalty = penalties(lam, 1, p)[0]
    scores = _principal_scores(sample, penalty, 2 * k)
    if scores is None:
        return centers
    plane = Observed.of(scores, sample.weights, np.zeros(scores.shape[1]), threads=threads)
    rng = np.random.RandomState(0)
    starts = k_means_plus_plus(plane, STARTS_IN_COMPONENTS, k, rng, threads)
    results = run_starts(plane, starts, 0.0, max_iter=100, tol=1e-4, threads=threads)
    labels = finish(plane, results.centers[results.best], 0.0, threads)[0]
    last = centers_of_partition(sample, labels, k, penalty, threads)
    return np.concatenate([centers[:-1], last[None]])


def _principal_scores(sample: Observed, lam: np.ndarray, d: int) -> np.ndarray | None:
    """(n, d) scores of the rows on the leading components of sqrt(W) (x - m): block Krylov method.

    W is 1 for observed and lam for missing values, and m is the centre of all rows: missing values
    of feature j all have the same score, as if filled with m + sqrt(lam) (c - m). None if every
    value is at that centre.
    """
    counts = sample.summary.counts
    weight = counts + lam * (sample.weights.sum() - counts)
    offset = counts * (sample.means - sample.reference) / np.where(weight > 0, weight, 1.0)
    point = sample.reference + offset * (1.0 - np.sqrt(lam))
    values = zero_filled(sample.source, point, sample.missing)[0]
    entries = values.data if sample.is_sparse else values
    scale = max(entries.max(initial=0.0), -entries.min(initial=0.0))
    if scale == 0.0:
        return None
    entries /= scale
    values = values.astype(np.float32)
    shares = (sample.weights / sample.weights.sum()).astype(np.float32)
    mean = shares @ values
    axes = np.random.RandomState(0).standard_normal((values.shape[1], d)).astype(np.float32)
    blocks = []
    with threadpool_limits(1, user_api="blas"):  # the same bits for any number of threads
        for _ in range(KRYLOV_STEPS):
            scores = values @ axes - mean @ axes
            axes = np.linalg.qr(values.T @ (shares[:, None] * scores))[0]
            blocks.append(axes)
        axes = np.linalg.qr(np.hstack(blocks))[0]
        scores = values @ axes - mean @ axes
        _, turn = np.linalg.eigh(scores.T @ (shares[:, None] * scores))
        return (scores @ turn[:, : -d - 1 : -1]).astype(np.float64)
