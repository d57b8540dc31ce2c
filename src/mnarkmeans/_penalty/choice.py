"""lam="auto": a few fits to begin with, then the likelihood of the missing pattern.

Fits with lam = 0, 1/2 and 1 from the same starting centres, side by side, are what `sides` judges
and the places from which the mixture of `mixture` is followed. Large tables are judged by a sample
of their rows, drawn by content so that the order of the rows does not matter.
"""

from __future__ import annotations

import numpy as np

from .._data.observed import Observed
from .._solver.solve import run_starts
from .._solver.starts import content_order
from .evidence import Missingness, describe_limit, estimate_missingness, explained_elsewhere
from .mixture import Rows, Start
from .sides import fit_between, side_of

FIRST_LAMS = np.array([0.0, 0.5, 1.0])
MOST_STARTS = 10  # per lam: the likelihood needs good places to begin, not the very best
ENTRIES_OF_SAMPLE = 1 << 18
FEWEST_ROWS = 200


def likelihood_choice(
    observed: Observed, starts: np.ndarray, *, max_iter: int, tol: float, threads: int
) -> Missingness:
    """Estimate lam for the data from starting centres (R, k, p)."""
    sample = sample_rows(observed, max(FEWEST_ROWS, 20 * starts.shape[1]), threads)
    fits = first_fits(sample, starts, max_iter=max_iter, tol=tol, threads=threads)
    rows = Rows(sample, threads)
    if rows.tell_nothing:
        return Missingness.nothing_to_estimate(rows.missing_weight, rows.observed_weight)
    path = fit_between(sample, fits, max_iter=max_iter, tol=tol, threads=threads)
    elsewhere = explained_elsewhere(rows)
    sides = side_of(rows, path, elsewhere)
    if sides.below:
        return describe_limit(rows, sides)
    return estimate_missingness(rows, [sides.around], elsewhere, [sides.chance])


def first_fits(
    observed: Observed, starts: np.ndarray, *, max_iter: int, tol: float, threads: int
) -> list[Start]:
    """The best fit for each of FIRST_LAMS, measured from the reference."""
    starts = starts[:MOST_STARTS]
    n_starts, n_lams = len(starts), len(FIRST_LAMS)
    batch = run_starts(
        observed,
        np.tile(starts, (n_lams, 1, 1)),
        np.repeat(FIRST_LAMS, n_starts),
        max_iter=max_iter,
        tol=tol,
        threads=threads,
    )
    best = batch.losses.reshape(n_lams, n_starts).argmin(axis=1) + n_starts * np.arange(n_lams)
    return [
        Start(batch.centers[index] - observed.reference, float(lam))
        for index, lam in zip(best, FIRST_LAMS, strict=True)
    ]


def sample_rows(observed: Observed, fewest: int, threads: int) -> Observed:
    """Rows that count, at most about ENTRIES_OF_SAMPLE entries of them (the whole, if small)."""
    source = observed.source
    entries = source.size if isinstance(source, np.ndarray) else source.nnz
    wanted = max(fewest, ENTRIES_OF_SAMPLE * observed.n_rows // max(entries, 1))
    counting = observed.weights > 0
    if counting.sum() <= wanted:
        return observed if counting.all() else observed.take(np.flatnonzero(counting))
    order = content_order(observed, threads)
    return observed.take(np.sort(order[counting[order]][:wanted]))
