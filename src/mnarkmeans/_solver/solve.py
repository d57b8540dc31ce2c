"""Solve the penalised loss for a table in memory: many starts, each with its own lam.

Clean numbers only: the data are an ``Observed``, the centres are finite. Judging the input is the
business of ``_data.validation``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from .. import _core as core
from .._data.observed import Observed
from .lloyd import InMemory, lloyd
from .progress import StartsProgress
from .results import Solution, StartResults, WarmStart

ALGORITHMS = ("lloyd", "hartigan")
# Starts that run side by side: as many as keep their labels and their centres below these. With
# more centres the time goes into memory that is asked for and given back.
BYTES_OF_LABELS = 1 << 25
BYTES_OF_CENTERS = 1 << 21


def penalties(lam, n_starts: int, p: int) -> np.ndarray:
    """(R, p) from one number, one per start (R,), or one per start and feature (R, p)."""
    lam = np.asarray(lam, dtype=np.float64)
    if lam.ndim == 1:
        lam = lam[:, None]
    every = np.empty((n_starts, p))
    every[:] = lam
    return every


def model_centers(observed: Observed, centers: np.ndarray, lam) -> core.Centers:
    """The centres (G, k, p) of fitted models; lam as in ``penalties``.

    The shift is the centres' own: what comes out depends on a row and the model alone.
    """
    mu = np.ascontiguousarray(centers, dtype=np.float64)
    groups, _, p = mu.shape
    return core.Centers(mu, penalties(lam, groups, p), observed.reference, mu.mean(axis=(0, 1)))


def run_starts(
    observed: Observed,
    centers: np.ndarray,
    lam: np.ndarray,
    *,
    max_iter: int,
    tol: float,
    threads: int,
    n_hartigan: int = 0,
    progress: StartsProgress | None = None,
) -> StartResults:
    """Run the starts ``centers`` (R, k, p) to their ends; ``lam`` as in ``penalties``.

    Small tables: all starts in one call of the core, which spreads them over the threads. Larger
    ones: as many starts as memory allows run side by side, the threads share the rows. Neither cut
    depends on the number of threads. ``progress`` hears of starts as they end.

    Lloyd's loop comes close in few passes; moves of single rows do the rest, in about
    ``n_hartigan`` of the starts, those with the smallest losses.
    """
    n_starts, k, p = centers.shape
    lam = penalties(lam, n_starts, p)
    table = observed.table
    size = n_starts
    if not table.is_small:
        most = max(1, min(BYTES_OF_LABELS // (4 * table.n), BYTES_OF_CENTERS // (8 * k * p)))
        size = math.ceil(n_starts / math.ceil(n_starts / most))
    share = min(1.0, n_hartigan / n_starts)
    pieces = []
    for first in range(0, n_starts, size):
        some = slice(first, first + size)
        starts = _starts_of(observed, centers[some], lam[some], max_iter, tol)
        rows, watch = None, _counting(progress, first)
        of_lloyd = None if n_hartigan > 0 else watch  # otherwise the moves end them
        if table.is_small:
            core.lloyd([table], [starts], threads, of_lloyd)
        else:
            rows = InMemory(table, k, threads)
            lloyd(rows, starts, after=_settled(len(starts.mu), of_lloyd))
        if n_hartigan > 0:
            most = math.ceil(share * len(starts.mu))
            core.hartigan(table, starts, _worth_moving(starts, most), threads, watch)
        piece = StartResults.of(starts)
        if n_starts == 1 and rows is not None and rows.bounds is not None and n_hartigan == 0:
            piece = piece._replace(warm=WarmStart(starts.labels[0], rows.bounds))
        if progress is not None:
            progress.finished(piece)
        pieces.append(piece)
    return StartResults.joined(pieces)


def _counting(progress: StartsProgress | None, before: int) -> Callable[[int], None] | None:
    """Hears how many starts of a lot have ended; ``before``: those of the lots before it."""
    return None if progress is None else lambda count: progress.ended(before + count)


def _settled(n_starts: int, watch: Callable[[int], None] | None):
    """What Lloyd's loop calls after an iteration with the starts that go on."""
    return None if watch is None else lambda _, active: watch(n_starts - len(active))


def run_starts_of_each(
    tables: Sequence[Observed],
    centers: Sequence[np.ndarray],
    lam: Sequence[np.ndarray],
    *,
    max_iter: int,
    tol: float,
    threads: int,
) -> list[StartResults]:
    """What ``run_starts`` gives for each table with its own starts and lam, by Lloyd's loop alone.

    Small tables go to the core together, which spreads the starts of all over the threads.
    """
    each = list(zip(tables, centers, lam, strict=True))
    if not all(own.table.is_small for own in tables):
        return [run_starts(*own, max_iter=max_iter, tol=tol, threads=threads) for own in each]
    starts = [
        _starts_of(own, begin, penalties(lams, len(begin), own.n_features), max_iter, tol)
        for own, begin, lams in each
    ]
    core.lloyd([own.table for own in tables], starts, threads)
    return [StartResults.of(own) for own in starts]


def _starts_of(
    observed: Observed, centers: np.ndarray, lam: np.ndarray, max_iter: int, tol: float
) -> core.Starts:
    return core.Starts(
        centers, lam, observed.reference, observed.means, n_rows=observed.n_rows,
        max_iter=max_iter, tol=tol, weights=observed.total_weight,
    )  # fmt: skip


def centers_of_partitions(
    observed: Observed, labels: np.ndarray, k: int, lam, threads: int
) -> np.ndarray:
    """Centres (R, k, p) that are best for partitions (R, n) of the rows; lam as in ``penalties``.

    Summed up from the reference, which is where a centre lies that nothing pulls.
    """
    reference, shape = observed.reference, (len(labels), k, observed.n_features)
    starts = core.Starts(
        np.broadcast_to(reference, shape), penalties(lam, shape[0], shape[2]), reference, reference,
        n_rows=observed.n_rows, max_iter=1, tol=0.0, weights=observed.total_weight,
    )  # fmt: skip
    core.centers_of(observed.table, starts, labels, threads)
    return starts.mu


def _worth_moving(starts: core.Starts, most: int) -> np.ndarray:
    """The ``most`` starts with the smallest losses, twins left out, in their order."""
    losses = starts.paths[np.arange(len(starts.mu)), starts.n_iter - 1]
    order = np.argsort(losses, kind="stable")
    return np.sort(order[starts.twins[order] < 0][:most])


def best_of(observed: Observed, results: StartResults, lam, threads: int = 1) -> Solution:
    """Finish the best start; ``lam`` as in ``penalties``."""
    best = results.best
    # What is reported belongs to the centres the user sees, in the precision they are kept in.
    centers = results.centers[best].astype(observed.dtype)
    own = penalties(lam, len(results.losses), observed.n_features)[best]
    labels, loss, members = finish(observed, centers, own, threads, results.warm)
    return Solution(
        centers,
        labels,
        loss,
        members,
        int(results.n_iter[best]),
        results.path(best),
        results.losses,
        bool(results.converged[best]),
        int(results.empty[best]),
    )


def finish(
    observed: Observed, centers: np.ndarray, lam, threads: int = 1, warm: WarmStart | None = None
) -> tuple[np.ndarray, float, np.ndarray]:
    """Labels (n,) that the centres (k, p) give, the loss by direct differences, rows per label.

    ``lam``: one number, or one per feature.
    """
    model = model_centers(observed, centers[None], np.atleast_2d(lam))
    if warm is None:
        return core.last_look(observed.table, model, threads)
    known = warm.bounds.follow(0, model.arrays[0][0], model.arrays[1][0])
    return core.last_look(observed.table, model, threads, warm.labels, known)


def assign_rows(observed: Observed, centers: np.ndarray, lam, threads: int = 1) -> np.ndarray:
    """Labels (n, G) of every row for the centres (G, k, p) of G models; lam as in ``penalties``."""
    return core.assign(observed.table, model_centers(observed, centers, lam), threads).T


def row_distances(
    observed: Observed, centers: np.ndarray, lam, threads: int = 1, *, roots: bool = False
) -> np.ndarray:
    """Loss (n, k) of every row at every centre (k, p), or its square root."""
    model = model_centers(observed, centers[None], np.atleast_2d(lam))
    return core.distances(observed.table, model, observed.dtype, threads, roots=roots)
