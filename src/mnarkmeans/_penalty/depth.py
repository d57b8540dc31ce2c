"""Rows that were read less deeply than others: more gaps, and larger values in what is left.

Counts of single cells are divided by the total of their cell. Where few were counted, more genes
are missed and one count is worth more:

    x_ij = m_lj + b_j r_i + noise,      the level r_i of a row rises with the number of its gaps

r_i is the mean of what is left of a row beside its centre; b_j, 1 on average, says how far a
feature follows it (genes that are counted often hardly do). Without a penalty k-means takes the
levels for clusters. Their missing shares rise with their means, whichever values get lost, and they
explain the values better than the classes do. So, where levels rise with the gaps even within these
clusters,

1. whether low values are the missing ones is asked of the fit without a penalty to the values less
   their levels: no cluster of it lies above another in all features, so depth cannot feign a share
   that falls with the mean;
2. fits of the table as it is, for many lam, begin at that partition and share what they find; they
   are judged as in `sides`, the level of each row being part of what explains its values.

Everywhere else values speak for themselves: below a limit, rows that lost much have low values.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from .._observed import Observed
from .._solver import assign_rows, best_start, k_means_plus_plus, run_starts, seeded
from .answer import DOUBT
from .cells import OF_CURVE, PRIOR, Cells
from .partitions import Sums
from .rows import Rows, Start, stored_entries
from .sides import Sides, first_best, is_at_limit

ROUNDS = 6  # of centres and levels in turn
RISES = 0.3  # correlation of levels and gaps from which depth is at work
CLEARLY = 4.0  # and in standard errors
AS_USUAL = 5.0  # values that each feature knows beforehand, with b = 1
KNOWN = 0.5  # share of the spread of the levels that is not due to noise
N_STARTS = 4
LAMS = np.array([0.1, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 4.0])


class Levels(NamedTuple):
    """The levels r of rows, and of every entry what its level does to it and what is left of it
    beside level and centre."""

    of_rows: np.ndarray
    effect: np.ndarray
    rest: np.ndarray


class Entries(NamedTuple):
    """The observed entries of a table one by one."""

    values: np.ndarray  # less the reference
    features: np.ndarray
    rows: np.ndarray
    per_row: np.ndarray  # (n,) how many
    weights: np.ndarray  # (n,) of the rows
    n_features: int

    @classmethod
    def of(cls, observed: Observed) -> Entries:
        values, features, per_row = stored_entries(observed)
        rows = np.repeat(np.arange(len(per_row)), per_row)
        return cls(values, features, rows, per_row, observed.weights, observed.n_features)

    def sums(self, labels: np.ndarray, k: int) -> Sums:
        """Of a partition (n,)."""
        cell, weights = labels[self.rows] * self.n_features + self.features, self.weights[self.rows]
        S, C = (
            np.bincount(cell, entry, k * self.n_features).reshape(k, -1)
            for entry in (weights * self.values, weights)
        )
        return Sums(S, C, np.bincount(labels, self.weights, k)[:, None] - C)

    def levels(self, labels: np.ndarray, k: int) -> Levels:
        """Beside the centres of a partition (n,)."""
        p, w = self.n_features, self.weights[self.rows]
        cell = labels[self.rows] * p + self.features
        C = np.bincount(cell, w, k * p).reshape(k, p)
        count = np.maximum(C.sum(axis=0), 1e-300)

        def away_from_centers(less):
            S = np.bincount(cell, w * (self.values - less), k * p).reshape(k, p)
            means = (S + PRIOR * S.sum(axis=0) / count) / (C + PRIOR)
            return self.values - means.ravel()[cell]

        r = np.zeros(len(labels))
        for _ in range(ROUNDS):
            away = away_from_centers(r[self.rows])
            r = np.bincount(self.rows, away, len(labels)) / (self.per_row + PRIOR)
        own = r[self.rows]
        usual = AS_USUAL * float((w * own * own).sum()) / max(float(w.sum()), 1e-300)
        moved = np.bincount(self.features, w * own * away, p) + usual
        slope = moved / np.maximum(np.bincount(self.features, w * own * own, p) + usual, 1e-300)
        effect = slope[self.features] * own
        return Levels(r, effect, away_from_centers(effect) - effect)


def read_unevenly(observed: Observed, rows: Rows, fit: Start) -> bool:
    """Within the clusters of a fit without a penalty, rows with more gaps have larger values."""
    if not is_at_limit(observed, rows.share_below):
        return False
    entries, k = Entries.of(observed), len(fit.centers)
    labels = _labels(observed, [fit], rows.threads)[0]
    levels, _, rest = entries.levels(labels, k)
    w = observed.weights
    size = np.maximum(np.bincount(labels, w, k), 1e-300)
    gaps = rows.gaps_per_row.astype(np.float64)
    r, g = (x - (np.bincount(labels, w * x, k) / size)[labels] for x in (levels, gaps))
    spread, among = float((w * r * r).sum()), float((w * g * g).sum())
    if min(spread, among) <= 0.0:
        return False
    free = rows.observed_weight - rows.n_rows - k * entries.n_features
    s = float((w[entries.rows] * rest * rest).sum()) / max(free, 0.5 * rows.observed_weight)
    noise = s * float((w / np.maximum(entries.per_row, 1)).sum())
    correlation = float((w * r * g).sum()) / math.sqrt(spread * among)
    return (
        noise < (1.0 - KNOWN) * spread
        and correlation > RISES
        and correlation * math.sqrt(rows.n_rows) > CLEARLY
    )


def without_levels(observed: Observed) -> Observed:
    """The same table, every value less what the level of its row does to it."""
    entries = Entries.of(observed)
    effect = entries.levels(np.zeros(observed.n_rows, np.intp), 1).effect
    if observed.is_sparse:
        source = observed.source.astype(np.float64)
        source.data = source.data - effect
    else:
        source = np.full(observed.source.shape, np.nan)
        seen = observed.seen()
        source[seen] = observed.source[seen] - effect
    return replace(observed, source=source, missing=math.nan).take(np.arange(observed.n_rows))


def side_beside_levels(
    observed: Observed, level: Observed, fits: list[Start], elsewhere: float, settings: dict
) -> Sides:
    """What gets lost where rows are read unevenly; ``level``: the table `without_levels`; ``fits``:
    to the table, the first without a penalty; ``elsewhere``: what gaps that follow another feature
    explain (`mar`)."""
    k, threads = len(fits[0].centers), settings["threads"]
    rows, of_level = (Rows(table, threads) for table in (observed, level))
    honest = _without_penalty(level, k, settings)
    cells = Cells(of_level, [honest])
    falls, chance = cells.fit("limit"), float(cells.fit("mcar").log_likelihood[0])
    explained = float(falls.log_likelihood[0]) if falls.slope[0] > 0 else chance
    believed = explained - chance - elsewhere > 0.5 * math.log(max(rows.n_rows, 2.0)) + DOUBT
    path = fits[:1]
    if believed:
        labels = _labels(level, [honest], threads)
        found = _fits_from(observed, labels, k, settings)
        labels = np.concatenate([labels, _labels(observed, [*fits, *found], threads)])
        path = [*path, *_fits_from(observed, labels, k, settings)]
    judged, cells = _judged(observed, rows, path)
    chosen = first_best(judged)
    units = 0.5 * rows.observed_weight * math.log(rows.scale / of_level.scale)
    return Sides(
        below=True,
        cells=cells.take([chosen]),
        believed=believed,
        lam=path[chosen].lam,
        explained=float(judged[chosen]),
        of_curve=OF_CURVE,
        apart=None,
        path=path,
        log_likelihood=explained + units,
        by_chance=chance + elsewhere + units,
        around=path[chosen],
        chance=fits[0],
    )


def _without_penalty(level: Observed, k: int, settings: dict) -> Start:
    """Its labels have used neither levels nor gaps."""
    starts = k_means_plus_plus(level, N_STARTS, k, seeded(0), settings["threads"])
    found = run_starts(level, starts, np.zeros(N_STARTS), n_hartigan=N_STARTS, **settings)
    return Start(found.centers[best_start(found.losses)] - level.reference, 0.0)


def _fits_from(observed: Observed, labels: np.ndarray, k: int, settings: dict) -> list[Start]:
    """A fit for every lam, each from the partition (of R, n) that costs it least. Without moves of
    single rows they would hardly leave it, and tell the lam apart by luck."""
    entries = Entries.of(observed)
    sums = [entries.sums(own, k) for own in labels]
    begin = [min(sums, key=lambda own: float(own.loss(lam).sum())).centers(lam) for lam in LAMS]
    found = run_starts(
        observed, observed.reference + np.stack(begin), LAMS, n_hartigan=len(LAMS), **settings
    )
    return [
        Start(centers - observed.reference, float(lam))
        for centers, lam in zip(found.centers, LAMS, strict=True)
    ]


def _judged(observed: Observed, rows: Rows, path: list[Start]) -> tuple[np.ndarray, Cells]:
    """(R,) how well fits explain values and gaps, the level of each row being part of what explains
    its values, and their cells. A missing share that rises with the mean explains nothing."""
    entries, cells = Entries.of(observed), Cells(rows, path)
    k, weights = len(path[0].centers), observed.weights[entries.rows]
    left = [entries.levels(own, k).rest for own in _labels(observed, path, rows.threads)]
    squares = np.array([float((weights * rest * rest).sum()) for rest in left])
    residual = np.maximum(squares / (rows.scale * rows.observed_weight), 1e-12)
    cells = cells.with_values(-0.5 * rows.observed_weight * np.log(residual))
    below = cells.fit("limit")
    return np.where(below.slope > 0, cells.judged(below), -math.inf), cells


def _labels(observed: Observed, fits: list[Start], threads: int) -> np.ndarray:
    """(R, n)"""
    centers = np.stack([fit.centers for fit in fits]) + observed.reference
    lams = np.array([fit.lam for fit in fits])
    return np.ascontiguousarray(assign_rows(observed, centers, lams, threads).T)
