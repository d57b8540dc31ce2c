"""lam="auto": a few fits to begin with, then the likelihood of the missing pattern.

Fits with lam = 0, 1/2 and 1 from the same starting centres, side by side, are what `sides` judges
and the places from which the mixtures of `evidence` are followed. Large tables are judged by a
sample of their rows, drawn at random, wide ones by a
sample of their features. Where there are more features than rows, `wide` may go on from there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from .._observed import Observed
from .._solver import best_start, centers_of_partitions, run_starts
from .answer import Missingness
from .depth import read_unevenly, side_beside_levels, without_levels
from .evidence import describe_limit, estimate_missingness, explained_elsewhere
from .groups import fit_groups
from .rows import Rows, Start
from .sides import fit_between, side_of
from .wide import predicting_penalty

FIRST_LAMS = np.array([0.0, 0.5, 1.0])
MOST_STARTS = 4  # per lam: the likelihood needs good places to begin, not the very best
ENTRIES_OF_SAMPLE = 1 << 17
FEWEST_ROWS = 200
FEWEST_COLUMNS = 500
FEW_COMPLETE = 50
# Log-likelihood that a penalty for some features only must gain: below a limit of all of them it
# gained up to 6 by luck, and beside features with gaps by chance 15 at the least.
APART = 10.0


class Choice(NamedTuple):
    """What the gaps say, and centres (k, p) worth starting from, if some were found on the way."""

    missingness: Missingness
    centers: np.ndarray | None


def likelihood_choice(
    observed: Observed, starts: np.ndarray, *, max_iter: int, tol: float, threads: int
) -> Missingness:
    """Estimate lam for the data from starting centres (R, k, p)."""
    choice = choose_penalty(observed, starts, max_iter=max_iter, tol=tol, threads=threads)
    return choice.missingness


def choose_penalty(
    observed: Observed,
    starts: np.ndarray,
    *,
    max_iter: int,
    tol: float,
    threads: int,
    whole: bool = True,
) -> Choice:
    """The same, with centres of the partition it was taken for where partitions were compared.

    ``whole``: the table is all there is, not a sample of its rows.
    """
    settings = dict(max_iter=max_iter, tol=tol, threads=threads)
    sample, columns = sample_table(observed, starts.shape[1], threads)
    found = _by_gaps(observed, sample, starts, settings, columns)
    starts = starts[:, :, columns]
    counting = np.flatnonzero(observed.weights > 0)
    wide = whole and observed.n_features > len(counting) == sample.n_rows
    if not wide or found.lam == 0.0 or found.mechanism == "limit" or starts.shape[1] == 1:
        return Choice(found, None)
    own = found.lam, found.lam_theory
    sampled = len(columns) < observed.n_features
    lam, labels = predicting_penalty(sample, starts, own, settings, sampled=sampled)
    rows, k = observed.take(counting), starts.shape[1]
    centers = centers_of_partitions(rows, labels[None], k, lam, threads)
    return Choice(replace(found, lam=lam), centers[0])


def _by_gaps(
    observed: Observed, sample: Observed, starts: np.ndarray, settings: Any, columns: np.ndarray
) -> Missingness:
    """The penalty that the pattern of gaps asks for; ``sample``: of a table, and its columns."""
    n_features = observed.n_features
    fits = first_fits(sample, starts[:, :, columns], **settings)
    rows = Rows(sample, settings["threads"])
    if rows.tell_nothing:
        return Missingness.nothing_to_estimate(rows.missing_weight, rows.observed_weight)
    if read_unevenly(sample, rows, fits[0]):
        return _beside_depth(observed, starts, settings)
    path = fit_between(sample, fits, **settings)
    elsewhere = explained_elsewhere(rows)
    sides = side_of(sample, rows, path, elsewhere)
    if not sides.below:
        return estimate_missingness(rows, [sides.around], elsewhere, [sides.chance])
    found = describe_limit(rows, sides).for_columns(columns, n_features)
    whole = len(columns) == n_features
    if not whole or not sides.believed or sides.apart is None or sides.apart.all():
        return found
    grouped = fit_groups(sample, rows, sides.path, sides.apart, settings, sides.of_curve)
    if grouped.explained < sides.explained + APART:
        return found
    is_one_number = grouped.lam == 0.0 or grouped.features.all()
    return replace(found, lam=grouped.lam, features=None if is_one_number else grouped.features)


def _beside_depth(observed: Observed, starts: np.ndarray, settings: Any) -> Missingness:
    """The same where rows were read unevenly. Most of such a table are gaps, so the sample is as
    large as its values allow."""
    threads = settings["threads"]
    sample, columns = sample_table(observed, starts.shape[1], threads, entries=_values)
    level = without_levels(sample)
    elsewhere = explained_elsewhere(Rows(level, threads))
    fits = first_fits(sample, starts[:, :, columns], **settings)
    sides = side_beside_levels(sample, level, fits, elsewhere, settings)
    found = describe_limit(Rows(sample, threads), sides)
    return found.for_columns(columns, observed.n_features)


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
    best = [
        lam * n_starts + best_start(losses)
        for lam, losses in enumerate(batch.losses.reshape(n_lams, n_starts))
    ]
    return [
        Start(batch.centers[index] - observed.reference, float(lam))
        for index, lam in zip(best, FIRST_LAMS, strict=True)
    ]


def sample_table(
    observed: Observed, k: int, threads: int, entries: Callable[[Observed], int] | None = None
) -> tuple[Observed, np.ndarray]:
    """At most about ENTRIES_OF_SAMPLE entries, and the features they are of.

    First fewer rows, then, where few rows have many features, fewer of those: each so many of them
    in the order of their means, so that their own order does not matter. Complete features are kept
    if they are few: gaps may follow one of them. ``entries``: of a table, what counts as entries
    (None: what is stored).
    """
    entries = entries or _stored
    sample = sample_rows(observed, max(FEWEST_ROWS, 20 * k), threads, entries)
    p = sample.n_features
    wanted = max(FEWEST_COLUMNS, ENTRIES_OF_SAMPLE * p // max(entries(sample), 1))
    if p <= 1.5 * wanted:
        return sample, np.arange(p)
    order = np.argsort(sample.means, kind="stable")
    chosen = np.zeros(p, bool)
    chosen[order[((np.arange(wanted) + 0.5) * (p / wanted)).astype(np.intp)]] = True
    if np.count_nonzero(~sample.has_gaps) <= FEW_COMPLETE:
        chosen |= ~sample.has_gaps
    columns = np.flatnonzero(chosen)
    return sample.take_columns(columns), columns


def sample_rows(
    observed: Observed,
    fewest: int,
    threads: int,
    entries: Callable[[Observed], int] | None = None,
) -> Observed:
    """Rows that count, at most about ENTRIES_OF_SAMPLE entries of them (the whole, if small)."""
    stored = (entries or _stored)(observed)
    wanted = max(fewest, ENTRIES_OF_SAMPLE * observed.n_rows // max(stored, 1))
    counting = observed.weights > 0
    if counting.sum() <= wanted:
        return observed if counting.all() else observed.take(np.flatnonzero(counting))
    return observed.take(observed.sample(wanted))


def _stored(observed: Observed) -> int:
    """Entries that a fit reads, gaps of a dense table included."""
    source = observed.source
    return source.size if isinstance(source, np.ndarray) else source.nnz


def _values(observed: Observed) -> int:
    """Observed entries, about."""
    share = observed.observed_weight.sum() / max(observed.total_weight[1], 1e-300)
    return round(share * observed.n_rows)
