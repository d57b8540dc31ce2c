"""lam="auto" and reference=None: one score decides between candidates (lam, reference).

A candidate is good if its clusters predict what they have not seen. It is fitted to all but one
fold of the rows and judged on that fold: the features are cut into blocks, and each block of a row
left out is predicted from the other blocks of that row, values and gaps,

    score_ig = log sum_l  w_lig  prod_{j in g}  P(r_ij | l)  f(x_ij | l)^r_ij   (r_ij: observed)

    w   weight of cluster l given the other blocks: its size times exp(-penalised cost / (2 noise))
    f   normal or Laplace, whichever predicts better, around the mean of the cell (cluster, feature)
        in the training rows, shrunk to the feature's mean by PRIOR rows, moved by the row's own
        level of values; one scale for each feature
    P   log odds = those of the feature + slope * (distance of the cell's mean from the reference,
        in spreads of the feature, less its average) + the row's own level of observation; one
        slope >= 0 for all features, 0 without a penalty

The levels of a row are estimated without the block, so that gaps which follow the depth of a row
say nothing; and they count only as far as they follow the magnitude of what was lost, not a run or
a plate. A row that lost every value is not in the table: a block that holds all that a row has is
conditioned on something being observed. Scores are compared in standard errors over rows and
blocks; no penalty is taken unless the best candidate is more than one better (`Judge.best`).
With few features one block hardly predicts another. Between candidates within two standard errors
mixtures then decide by BIC: values lost around one of the references, or by chance (`likeliest`).

Where several lam lead to clusters that the score cannot tell apart, the one is taken that recovers
the centres (`fit_mechanisms`): what a gap of cluster l and feature j hides is E[x | missing] under
the likeliest mechanism, and the centre is right where the penalty makes up for it,

    lam = sum gaps (mu - c)(mu - E[x | missing]) / sum gaps (mu - c)^2
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from scipy.special import log_ndtr
from threadpoolctl import ThreadpoolController

from ._core import first_pass
from ._em.fit import likeliest_mechanism
from ._missingness import MARGIN, Mechanism, Missingness
from ._observed import Observed
from ._solver import assign_rows, run_starts_of_each, starts_of_each
from ._validation import far_from

LAMS = (0.0, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0)
PRIOR = 2.0  # rows that pull the mean of a cell to that of its feature
BLOCKS = 8
FOLDS = 4
FEW_ROWS, MOST_FOLDS = 60, 10  # folds of tables with fewer rows than that
SAME_CLUSTERS = 0.99  # of the rows
N_STARTS = 4  # tried with three of the lams; what they find is shared by all candidates
ENTRIES_OF_SAMPLE = 1 << 17  # of wide tables; of long ones FEWEST_ROWS are enough
FEWEST_ROWS, FEWEST_COLUMNS = 650, 200
NOISES = ("normal", "laplace")


# --- the score ----------------------------------------------------------------------------------


class Table:
    """A table as the score sees it: dense, centred, rows in the order of their folds.

    In single precision: scores of candidates differ by far more than its last digits.
    """

    def __init__(self, sample: Observed, folds: list[np.ndarray]):
        p = sample.n_features
        rows = np.concatenate(folds)
        ends = np.cumsum([len(fold) for fold in folds])
        self.folds = [slice(end - len(fold), end) for end, fold in zip(ends, folds, strict=True)]
        self.rows = rows
        values, gaps = sample.filled_and_gaps()
        seen, values = ~gaps[rows], values[rows].astype(np.float64)
        weights = sample.weights[rows]
        counts = weights @ seen
        values = np.where(seen, values, 0.0)
        self.shift = weights @ values / np.maximum(counts, 1e-300)
        values = np.where(seen, values - self.shift, 0.0)
        self.unit = math.sqrt(weights @ (values**2).sum(axis=1) / max(counts.sum(), 1e-300)) or 1.0
        self.values = (values / self.unit).astype(np.float32)
        self.seen = seen.astype(np.float32)
        self.weights = weights.astype(np.float32)
        self.counts, self.total = counts.astype(np.float32), float(weights.sum())
        blocks = min(BLOCKS, p)
        place = np.random.default_rng(0).permutation(p) % blocks
        self.cut = np.eye(blocks, dtype=np.float32)[place]  # (p, G)
        self.of_block = self.seen @ self.cut  # (n, G) observed values of each block
        self.of_row = self.of_block.sum(axis=1, keepdims=True)
        outside = self.of_row - self.of_block if blocks > 1 else self.of_block
        self.outside = outside
        self.holds_all = self.of_row == self.of_block
        self.training = [Rows.but(self, fold) for fold in self.folds]

    def moved(self, points: Any) -> np.ndarray:
        """Points (..., p) in the units of this table."""
        return ((np.asarray(points, np.float64) - self.shift) / self.unit).astype(np.float32)

    def without(self, own: np.ndarray) -> np.ndarray:
        """(..., G) sums over the features outside each block, of those over each block."""
        return own.sum(axis=-1, keepdims=True) - own if self.cut.shape[1] > 1 else own

    def products(self, rows: np.ndarray, cells: np.ndarray) -> np.ndarray:
        """(k, n, G) sums over each block, of rows (n, p) times cells (k, p)."""
        return rows @ (cells[:, :, None] * self.cut)


class Rows(NamedTuple):
    """The rows of a table that a fit was made of."""

    position: np.ndarray
    seen: np.ndarray
    values: np.ndarray
    weights: np.ndarray
    per_row: np.ndarray  # observed values of each row
    has_gaps: np.ndarray  # (p,)

    @classmethod
    def but(cls, table: Table, fold: slice) -> Rows:
        """All but a fold."""
        index = np.r_[0 : fold.start, fold.stop : len(table.seen)]
        seen = table.seen[index]
        return cls(
            index, seen, table.values[index], table.weights[index],
            np.maximum(seen.sum(axis=1), 1.0), seen.min(axis=0) < 1.0,
        )  # fmt: skip


class Cells(NamedTuple):
    """What training rows say about every cluster and feature."""

    log_size: np.ndarray  # (k,)
    mean: np.ndarray  # (k, p)
    away: np.ndarray  # (k, p) distance from the reference, less its average
    feature_odds: np.ndarray  # (p,)
    noise: float
    shrinkage: float  # observations that pull the level of a row to 0

    @classmethod
    def of(cls, rows: Rows, labels: np.ndarray, k: int, point: Any) -> Cells:
        seen, values, weights = rows.seen, rows.values, rows.weights
        member = np.zeros((k, len(labels)), np.float32)
        member[labels, np.arange(len(labels))] = weights
        size, count, sums, observed = member.sum(1), member @ seen, member @ values, weights @ seen
        total = float(weights.sum())
        average = sums.sum(axis=0) / np.maximum(observed, 1e-9)
        mean = (sums + PRIOR * average) / (count + PRIOR)
        rest = seen * (values - mean[labels])
        squares = weights @ rest**2
        noise = float(squares.sum() / max(observed.sum(), 1e-9)) + 1e-30
        spread = np.sqrt(squares / np.maximum(observed, 1e-9)) + 1e-12
        share = (observed + 0.5) / (total + 1.0)
        away = np.abs(mean - point) / spread
        away = np.clip(away - size @ away / total, -6.0, 6.0)
        away = np.where(rows.has_gaps, away, 0.0).astype(np.float32)
        level = rest.sum(axis=1) / rows.per_row
        differ = float(weights @ (level**2 - noise / rows.per_row)) / total
        return cls(
            np.log((size + 1.0) / (total + k)), mean.astype(np.float32), away,
            np.log(share / (1.0 - share)).astype(np.float32), noise,
            noise / max(differ, 1e-9 * noise),
        )  # fmt: skip


def block_scores(
    table: Table, labels: np.ndarray, centers: np.ndarray, lam: Any, reference: Any, noise: str,
    *, with_slope: bool = True,
) -> np.ndarray:  # fmt: skip
    """(n, G) scores of a candidate from its fits without each fold: labels (F, n), centres
    (F, k, p). ``with_slope=False``: as if gaps said nothing."""
    (n, p), k, blocks = table.values.shape, centers.shape[1], table.cut.shape[1]
    point, lam = table.moved(reference), np.float32(lam)
    weight = np.empty((k, n, blocks), np.float32)
    error = np.empty((k, n, p), np.float32)
    own = np.empty(n, np.intp)
    fitted = []
    for f, fold in enumerate(table.folds):
        rows = table.training[f]
        cells = Cells.of(rows, labels[f][rows.position], k, point)
        seen, values = table.seen[fold], table.values[fold]
        mu = table.moved(centers[f])
        pull = lam * (mu - point) ** 2
        costs = table.products(seen, mu**2 - pull) - 2.0 * table.products(values, mu)
        costs += (pull @ table.cut)[:, None]
        log_weight = cells.log_size[:, None, None] - table.without(costs) / (2.0 * cells.noise)
        weight[:, fold] = log_weight - _log_sum(log_weight)
        own[fold] = labels[f][fold]
        rest = seen * (values - cells.mean[own[fold]])
        level = table.without(rest @ table.cut) / (table.outside[fold] + cells.shrinkage)
        np.subtract(values - level @ table.cut.T, cells.mean[:, None], out=error[:, fold])
        fitted.append(cells)
    error *= table.seen
    slope = _slope(table, fitted, weight) if with_slope and np.max(lam) > 0.0 else 0.0
    gaps = np.empty((k, n, blocks), np.float32)
    for fold, cells in zip(table.folds, fitted, strict=True):
        odds = np.clip(cells.feature_odds + np.float32(slope) * cells.away, -9.0, 9.0)
        if slope == 0.0:
            odds = odds[:1]
        level = _observation_levels(table, fold, odds[own[fold] if slope > 0.0 else [0]])
        gaps[:, fold] = _log_pattern(table, fold, odds, level)
    return _log_sum(weight + gaps + _log_densities(table, noise, error, own, weight + gaps))


def _log_sum(parts: np.ndarray) -> np.ndarray:
    """log of the sum of exp over the first axis."""
    top = parts.max(axis=0)
    return top + np.log(_exp(parts - top).sum(axis=0))


def _exp(parts: np.ndarray) -> np.ndarray:
    """exp, but no subnormal numbers: arithmetic with them is slow."""
    return np.exp(np.maximum(parts, -60.0))


def _log_densities(
    table: Table, noise: str, error: np.ndarray, own: np.ndarray, prior: np.ndarray
) -> np.ndarray:
    """(k, n, G) of the observed values of every block, with the scale of each feature (p,) that
    predicts best after one step of EM from that of the nearest cluster."""
    power = 0.5 if noise == "normal" else 1.0
    size = (np.square if noise == "normal" else np.abs)(error, out=error)
    constant = 2.0 * math.pi if noise == "normal" else 2.0
    counts = np.maximum(table.counts, 1e-9)
    scale = table.weights @ size[own, np.arange(len(own))] / counts
    for step in range(2):
        scale = np.maximum(scale, 1e-12).astype(np.float32)
        found = size @ (table.cut * (-power / scale)[:, None])
        found -= table.seen @ (table.cut * (power * np.log(constant * scale))[:, None])
        if step == 0:
            joint = prior + found
            share = _exp(joint - _log_sum(joint)) * table.weights[:, None]
            sums = share.reshape(-1, share.shape[2]).T @ size.reshape(-1, size.shape[2])
            scale = (sums * table.cut.T).sum(axis=0) / counts
    return found


def _slope(table: Table, fitted: list[Cells], weight: np.ndarray) -> float:
    """One slope for all entries of rows left out, by Newton's method."""
    away, odds = np.empty_like(table.values), np.empty_like(table.values)
    for fold, cells in zip(table.folds, fitted, strict=True):
        share = _exp(weight[:, fold]).transpose(1, 0, 2)
        by_block = cells.away[:, None] * table.cut.T  # (k, G, p)
        away[fold] = share.reshape(len(share), -1) @ by_block.reshape(-1, away.shape[1])
        odds[fold] = cells.feature_odds
    weighted, slope = away * table.weights[:, None], 0.0
    for _ in range(3):
        q = _sigmoid(odds + np.float32(slope) * away)
        gradient = np.vdot(weighted, table.seen - q)
        information = np.vdot(weighted, away * (q * (1.0 - q)))
        slope += float(gradient) / (float(information) + 1e-9)
    return max(slope, 0.0)


def _sigmoid(odds: np.ndarray) -> np.ndarray:
    return 1.0 / (1.0 + np.exp(-odds))


def _observation_levels(table: Table, fold: slice, odds: np.ndarray) -> np.ndarray:
    """(n, G) what to add to a row's log odds, from outside the block; standard normal before."""
    seen, level = table.seen[fold], np.zeros((len(table.seen[fold]), 1), np.float32)
    for _ in range(3):
        q = _sigmoid(odds + level)
        left, information = seen - q, q * (1.0 - q)
        step = left.sum(axis=1, keepdims=True) - level
        level = level + step / (information.sum(axis=1, keepdims=True) + 1.0)
    if table.cut.shape[1] == 1:
        return level
    outside = table.without(information @ table.cut)
    return level - (left @ table.cut) / (outside + 1.0)  # the block taken out


def _log_pattern(table: Table, fold: slice, odds: np.ndarray, level: np.ndarray) -> np.ndarray:
    """(k, n, G) log probability of what is observed and missing in each block, from the log odds of
    cells (k, p) and what the rows (n, G) add to them."""
    none = np.exp(level) @ table.cut.T * np.exp(odds)[:, None]
    none += 1.0
    nothing = -np.log(none, out=none) @ table.cut
    pattern = table.products(table.seen[fold], odds) + level * table.of_block[fold] + nothing
    condition = np.log(1e-12 - np.expm1(np.minimum(nothing, 0.0)))
    return pattern - np.where(table.holds_all[fold], condition, 0.0)


def standard_errors(scores: np.ndarray, weights: np.ndarray, blocks: bool = True) -> np.ndarray:
    """(C,) how far candidates (C, n, G) are behind the best, in standard errors over rows and, if
    asked for, blocks."""
    best = int((scores.sum(axis=2) @ weights).argmax())
    behind = scores.astype(np.float64) - scores[best]
    rows = behind.sum(axis=2)
    total = rows @ weights
    variance = ((rows - total[:, None] / weights.sum()) ** 2) @ weights
    if blocks:
        by_block = np.tensordot(behind, weights, axes=(1, 0))
        variance = variance + by_block.var(axis=1) * by_block.shape[1]
    return total / (np.sqrt(variance) + 1e-9)


# --- the penalty that recovers centres ----------------------------------------------------------


class Moments:
    """Sums over clusters of the features with gaps, measured from the reference in spreads of the
    feature within clusters. E[x | missing] is `lost` below, Var[x | missing] `lost_variance`."""

    def __init__(self, sample: Observed, labels: np.ndarray, k: int):
        member = np.zeros((k, sample.n_rows))
        member[labels, np.arange(len(labels))] = sample.weights
        values, seen = sample.zero_filled()
        if sample.is_sparse:
            values, seen = values.toarray(), seen.toarray()
        counts, sums, squares = (member @ part for part in (seen, values, values**2))
        within = (squares - sums**2 / np.maximum(counts, 1e-300)).sum(axis=0)
        variance = within / np.maximum(counts.sum(axis=0), 1e-300)
        spread_out = squares.sum(axis=0) / np.maximum(counts.sum(axis=0), 1e-300)
        some = (seen.min(axis=0) < 1.0) & (variance > 1e-9 * spread_out)
        unit = np.sqrt(variance[some])
        self.counts, self.sums = counts[:, some], sums[:, some] / unit
        self.squares = squares[:, some] / unit**2
        self.gaps = np.maximum(member.sum(axis=1)[:, None] - self.counts, 0.0)
        self.sizes = self.counts + self.gaps
        self.price = 0.5 * math.log(max(sample.weights.sum(), 2.0))
        entries, weights = values[:, some] / unit, sample.weights[:, None] * seen[:, some]
        self.bins, self.bin_weights = _binned(entries[weights > 0], weights[weights > 0])

    def explained(self) -> float:
        """Share of the variation of the gaps, within features, that follows the distance of the
        clusters from the reference: one slope for all features, by Newton's method."""
        share = (self.counts.sum(axis=0) + 0.5) / (self.sizes.sum(axis=0) + 1.0)
        odds, slope = np.log(share / (1.0 - share)), 0.0
        away = np.abs(self.sums) / (self.counts + PRIOR)
        away -= (self.sizes * away).sum(axis=0) / self.sizes.sum(axis=0)
        for _ in range(6):
            q = _sigmoid(odds + slope * away)
            information = (self.sizes * away**2 * q * (1.0 - q)).sum()
            slope += (away * (self.counts - self.sizes * q)).sum() / (information + 1e-9)

        def variation(q: np.ndarray) -> float:
            return float((self.counts * (1.0 - q) ** 2 + self.gaps * q**2).sum())

        left = variation(_sigmoid(odds + max(slope, 0.0) * away))
        return max(1.0 - left / max(variation(np.broadcast_to(share, away.shape)), 1e-300), 0.0)

    def log_density(self, mu: np.ndarray, variance: np.ndarray) -> float:
        """Of the observed values."""
        square = self.squares - 2.0 * mu * self.sums + mu**2 * self.counts
        log_variance = self.counts * np.log(2.0 * np.pi * variance)
        return -0.5 * float((log_variance + square / variance).sum())

    def refitted(
        self, mu: np.ndarray, lost: np.ndarray, lost_variance: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """The M-step: means (k, p) and variances (p,) with the gaps as they are expected."""
        mu = (self.sums + self.gaps * lost) / np.maximum(self.sizes, 1e-300)
        square = self.squares - 2.0 * mu * self.sums + mu**2 * self.counts
        square += self.gaps * (lost_variance + (lost - mu) ** 2)
        return mu, np.maximum(square.sum(axis=0) / self.sizes.sum(axis=0), 1e-12)

    def penalty(self, mu: np.ndarray, lost: np.ndarray) -> float:
        """lam = 1 - (E[x | missing] - c) / (mu - c), averaged as the loss weighs it."""
        weight = float((self.gaps * mu**2).sum())
        return max(float((self.gaps * mu * (mu - lost)).sum()) / weight, 0.0) if weight else 0.0


def _binned(values: np.ndarray, weights: np.ndarray, bins: int = 256) -> tuple[Any, Any]:
    """Mean and weight of so many bins of sorted values, about equally heavy."""
    if not values.size:
        return values, weights
    order = np.argsort(values, kind="stable")
    values, weights = values[order], weights[order]
    reached = np.cumsum(weights)
    place = np.minimum((bins * (reached - weights / 2) / reached[-1]).astype(int), bins - 1)
    total = np.bincount(place, weights, bins)
    used = total > 0
    return (np.bincount(place, weights * values, bins) / np.maximum(total, 1e-300))[used], total[
        used
    ]


def fit_mechanisms(moments: Moments) -> list[Mechanism]:
    """Chance, loss around the reference, and loss below a limit, given a partition."""
    if not moments.bins.size:
        return [Mechanism("mcar", 1.0, 0.0, 0.0)]
    return [fit(moments) for fit in (_chance, _decay, _limit)]


def _chance(moments: Moments) -> Mechanism:
    counts, gaps = float(moments.counts.sum()), float(moments.gaps.sum())
    share = gaps / (counts + gaps)
    mu = moments.sums / np.maximum(moments.counts, 1e-300)
    mu, variance = moments.refitted(mu, mu, np.ones(mu.shape[1]))
    value = moments.log_density(mu, variance) + gaps * math.log(share) + counts * math.log1p(-share)
    return Mechanism("mcar", share, value - moments.price, 0.0)


def _decay(moments: Moments) -> Mechanism:
    """P(missing | x) = c exp(-t x^2); with D = 2 s t + 1, E[x | missing] = mu / D and
    Var[x | missing] = s / D, so that the penalty is 1 - 1 / D (Theorem 3.2)."""
    squares, weights, gaps = moments.bins**2, moments.bin_weights, moments.gaps

    def clusters(t: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        variance = np.ones(gaps.shape[1])
        for _ in range(4):
            kept = 1.0 / (2.0 * variance * t + 1.0)
            mu = moments.sums / np.maximum(moments.sizes - gaps * kept, 1e-300)
            mu, variance = moments.refitted(mu, mu * kept, variance * kept)
        return mu, variance, 1.0 / (2.0 * variance * t + 1.0)

    def value(log_t: float, c: np.ndarray) -> np.ndarray:
        t = math.exp(log_t)
        mu, variance, kept = clusters(t)
        cells = moments.log_density(mu, variance)
        cells += float((gaps * (0.5 * np.log(kept) - t * kept * mu**2)).sum())
        observed = np.log1p(-c[:, None] * np.exp(-t * squares)) @ weights
        return cells + float(gaps.sum()) * np.log(c) + observed

    best = _search(value, np.linspace(-6.0, 6.0, 17), np.linspace(0.05, 0.999, 16))
    t = math.exp(best.first)
    mu, _, kept = clusters(t)
    value_here = best.value - 2.0 * moments.price
    return Mechanism("decay", t, value_here, moments.penalty(mu, mu * kept))


def _limit(moments: Moments) -> Mechanism:
    """P(missing | x) = Phi((b - x) / zeta); with d = sqrt(s + zeta^2), a = (b - mu) / d and
    h = phi(a) / Phi(a), E[x | missing] = mu - (s / d) h, Var = s - (s / d)^2 h (a + h)."""
    x, gaps = moments.bins, moments.gaps
    mu = moments.sums / np.maximum(moments.counts, 1e-300)
    variance = np.ones(gaps.shape[1])

    def value(log_zeta: float, b: np.ndarray) -> np.ndarray:
        zeta = math.exp(log_zeta)
        a = (b[:, None, None] - mu) / np.sqrt(variance + zeta**2)
        lost = (gaps * log_ndtr(a)).sum(axis=(1, 2))
        return lost + log_ndtr((x - b[:, None]) / zeta) @ moments.bin_weights

    first, second = np.linspace(-4.0, 1.0, 9), np.linspace(x[0], x[-1], 17)
    for _ in range(4):
        best = _search(value, first, second)
        zeta, b = math.exp(best.first), best.second
        first, second = best.first + np.linspace(-0.6, 0.6, 3), b + np.linspace(-0.5, 0.5, 5)
        for _ in range(10):
            d = np.sqrt(variance + zeta**2)
            a, ratio = (b - mu) / d, variance / d
            h = np.exp(-0.5 * a * a - 0.5 * math.log(2.0 * math.pi) - log_ndtr(a))
            lost, spread = mu - ratio * h, np.maximum(variance - ratio**2 * h * (a + h), 0.0)
            mu, variance = moments.refitted(mu, lost, spread)
    total = best.value + moments.log_density(mu, variance) - 2.0 * moments.price
    return Mechanism(
        "limit", float(gaps.sum() / moments.sizes.sum()), total, moments.penalty(mu, lost)
    )


class Found(NamedTuple):
    """The best point of a grid."""

    value: float
    first: float
    second: float


def _search(value: Any, first: np.ndarray, second: np.ndarray) -> Found:
    """Maximise value(first, second array) on a grid, then on finer ones around its best point."""
    for _ in range(3):
        values = np.array([value(one, second) for one in first])
        i, j = np.unravel_index(np.nan_to_num(values, nan=-np.inf).argmax(), values.shape)
        found = Found(float(values[i, j]), float(first[i]), float(second[j]))
        first = np.linspace(first[max(i - 1, 0)], first[min(i + 1, len(first) - 1)], 5)
        second = np.linspace(second[max(j - 1, 0)], second[min(j + 1, len(second) - 1)], 5)
    return found


# --- the choice ---------------------------------------------------------------------------------


class Choice(NamedTuple):
    """The penalty, the reference (p,), and why."""

    lam: Any
    reference: np.ndarray
    missingness: Missingness


def choose(
    observed: Observed,
    k: int,
    *,
    lams: Sequence[Any] = LAMS,
    references: dict[str, np.ndarray] | None = None,
    max_iter: int = 300,
    tol: float = 1e-5,
    threads: int = 1,
) -> Choice:
    """lam and reference for k clusters of a table: the same whatever the seed of the fit.

    ``lams``: candidates, rising, each a number or one per feature; of one candidate only the
    reference is chosen. Between those of this module, lam may lie anywhere.
    ``references``: (p,) each, by name; that of ``observed`` if there is no choice.
    """
    references = references or {"given": observed.reference}
    sample, columns = sample_table(observed, k)
    if not observed.has_gaps.any() or sample.n_rows < k + 2:
        name, reference = next(iter(references.items()))
        return Choice(lams[0], reference, _no_choice(name, lams[0], bool(observed.has_gaps.any())))
    lams_here = [lam if np.ndim(lam) == 0 else np.asarray(lam)[columns] for lam in lams]
    points = {name: reference[columns] for name, reference in references.items()}
    with _one_blas_thread():
        judge = Judge(sample, k, dict(max_iter=max_iter, tol=tol, threads=threads))
        candidates = judge.judged(lams_here, points)
        behind = judge.behind(candidates)
        best = judge.best(candidates, behind)
        by_score, best = best, judge.likeliest(candidates, behind, best)
        chosen = candidates[best]
        mechanisms, explained = judge.mechanisms(chosen)
        low, high = _range(candidates, behind, best)
        lam = max(mechanisms, key=lambda one: one.log_likelihood).lam
        if lams is LAMS and chosen.largest > 0.0 and lam > 0.0:
            tried = judge.beside(chosen, float(f"{lam:.3g}"))
            at = low + sum(one.largest < tried.largest for one in candidates[low : high + 1])
            with_it = [*candidates[:at], tried, *candidates[at:]]
            new_behind = judge.behind(with_it)
            if _is_as_good(tried, new_behind[at], chosen, behind[best]):
                candidates, behind, low, high = with_it, new_behind, low, high + 1
        own = np.array([one.largest for one in candidates[low : high + 1]])
        lam = float(own[np.abs(own - lam).argmin()])
    table = {
        "lam": np.array([one.largest for one in candidates]),
        "reference": np.array([one.name for one in candidates]),
        "score": judge.mean_scores(candidates),
        "behind": behind,
    }
    span = float(table["lam"][low]), float(table["lam"][high])
    decided_by = "score" if best == by_score else "mechanism"
    found = Missingness(lam, chosen.name, table, span, mechanisms, explained, decided_by)
    given = next((one for one in lams if np.max(one) == lam), lam)
    return Choice(given, references[chosen.name], found)


class Candidate(NamedTuple):
    """lam and reference, what they came to in every fold, and the scores."""

    lam: Any  # a number, or one per feature
    name: str  # of the reference
    reference: np.ndarray  # (p,)
    centers: np.ndarray  # (F, k, p) of the fits without each fold
    labels: np.ndarray  # (F, n) by those fits
    scores: np.ndarray  # (n, G)

    @property
    def largest(self) -> float:
        return float(np.max(self.lam))


class Judge:
    """Fits candidates without each fold of the rows of a sample, and scores them on that fold."""

    def __init__(self, sample: Observed, k: int, settings: dict[str, Any]):
        self.sample, self.k, self.settings = sample, k, settings
        n = sample.n_rows
        count = FOLDS if n >= FEW_ROWS else min(n, MOST_FOLDS)
        while n - -(-n // count) < k:  # the rows left must be enough for k clusters
            count += 1
        shuffled = np.random.default_rng(0).permutation(n)
        folds = [np.sort(shuffled[f::count]) for f in range(count)]
        self.table = Table(sample, folds)
        every = np.arange(n)
        self.parts = [sample.take(np.setdiff1d(every, fold)) for fold in folds]
        seeds = list(range(len(folds)))
        self.starts = starts_of_each(
            "k-means++", self.parts, N_STARTS, k, seeds, settings["threads"]
        )
        self.noise = NOISES[0]

    def judged(self, lams: Sequence[Any], references: dict[str, np.ndarray]) -> list[Candidate]:
        """The candidates with their scores: what a few starts find at three of the lams is where
        all go on from. Of many lams, every second one at first, then those beside the best."""
        penalties = np.array([np.full(self.sample.n_features, lam) for lam in lams])
        anchors = sorted({0, len(lams) // 2, max(len(lams) - 2, 0)})
        found: list[list[Candidate]] = []
        for name, reference in references.items():
            pools = self._fitted(reference, self.starts, penalties[anchors])
            centers = np.stack(self._fitted(reference, pools, penalties), axis=1)
            found.append([
                self._labelled(lam, name, reference, own)
                for lam, own in zip(lams, centers, strict=True)
                if np.max(lam) > 0.0 or not found  # without a penalty there is no reference
            ])  # fmt: skip
        every = [one for part in found for one in part]
        scored = {i: self._scored(every[i]) for i in (0, anchors[len(anchors) // 2])}
        best = max(scored, key=lambda i: self._total(scored[i].scores))
        other = self._scores(every[best], NOISES[1])
        if self._total(other) > self._total(scored[best].scores):
            self.noise, scored = NOISES[1], {best: every[best]._replace(scores=other)}
        step = 2 if len(lams) > 5 else 1
        ends = np.cumsum([len(part) for part in found])
        first = {end - 1 - step * i for end, part in zip(ends, found, strict=True)
                 for i in range(-(-len(part) // step))} | {0}  # fmt: skip
        scored = {i: scored.get(i) or self._scored(every[i]) for i in first}
        best = max(scored, key=lambda i: self._total(scored[i].scores))
        for i in (best - 1, best + 1):
            if 0 <= i < len(every) and i not in scored and every[i].name == every[best].name:
                scored[i] = self._scored(every[i])
        return [scored[i] for i in sorted(scored)]

    def _scored(self, one: Candidate) -> Candidate:
        return one._replace(scores=self._scores(one, self.noise))

    def beside(self, near: Candidate, lam: float) -> Candidate:
        """The candidate with another lam, fitted from where this one is."""
        penalty = np.full((1, self.sample.n_features), lam)
        starts = [own[None] for own in near.centers]
        centers = np.concatenate(self._fitted(near.reference, starts, penalty))
        return self._scored(self._labelled(lam, near.name, near.reference, centers))

    def _fitted(
        self, reference: np.ndarray, starts: Sequence[np.ndarray], penalties: np.ndarray
    ) -> list[np.ndarray]:
        """Centres (L, k, p) without each fold: for each of the penalties (L, p), the best of where
        the starts (R, k, p) of the fold lead."""
        count = len(penalties)
        found = run_starts_of_each(
            [replace(part, reference=reference) for part in self.parts],
            [np.tile(own, (count, 1, 1)) for own in starts],
            [np.repeat(penalties, len(own), axis=0) for own in starts], **self.settings,
        )  # fmt: skip
        best = [own.losses.reshape(count, -1).argmin(axis=1) for own in found]
        every = np.arange(count)
        return [
            own.centers.reshape(count, -1, *own.centers.shape[1:])[every, first]
            for own, first in zip(found, best, strict=True)
        ]

    def _labelled(self, lam: Any, name: str, reference: Any, centers: np.ndarray) -> Candidate:
        sample = replace(self.sample, reference=reference)
        penalty = np.full((len(centers), self.sample.n_features), lam)
        labels = assign_rows(sample, centers, penalty, self.settings["threads"]).T
        return Candidate(lam, name, reference, centers, labels[:, self.table.rows], np.empty(0))

    def _scores(self, one: Candidate, noise: str, **how: Any) -> np.ndarray:
        return block_scores(
            self.table, one.labels, one.centers, one.lam, one.reference, noise, **how
        )

    def _total(self, scores: np.ndarray) -> float:
        return float(self.table.weights.astype(np.float64) @ scores.sum(axis=1))

    def mean_scores(self, candidates: Sequence[Candidate]) -> np.ndarray:
        return np.array([self._total(one.scores) for one in candidates]) / self.table.total

    def behind(self, candidates: Sequence[Candidate]) -> np.ndarray:
        """(C,) in standard errors."""
        return standard_errors(np.array([one.scores for one in candidates]), self.table.weights)

    def best(self, candidates: Sequence[Candidate], behind: np.ndarray) -> int:
        """The best candidate, unless no penalty is at most one standard error worse.

        Where the gaps themselves show nothing (they are not better predicted with the slope, and
        chance is the likeliest mechanism for clusters without a penalty), no penalty by two.
        """
        best = int(behind.argmax())
        if behind[0] >= -MARGIN or candidates[best].largest == 0.0:
            return 0
        if candidates[0].largest == 0.0 and behind[0] >= -2.0 * MARGIN:
            without = self._scores(candidates[best], self.noise, with_slope=False)
            both = np.array([candidates[best].scores, without])
            pays = standard_errors(both, self.table.weights, blocks=False)[1] < -MARGIN
            moved = candidates[0]._replace(reference=candidates[best].reference)
            likeliest = max(self.mechanisms(moved)[0], key=lambda one: one.log_likelihood)
            if not pays and likeliest.mechanism == "mcar":
                return 0
        return best

    def mechanisms(self, candidate: Candidate) -> tuple[list[Mechanism], float]:
        """How values get lost in the clusters of a candidate, fitted to all rows of the sample, and
        the share of the gaps that follows the clusters' distance from the reference."""
        sample = replace(self.sample, reference=candidate.reference)
        moments = Moments(sample, self._labels_of_all(candidate), self.k)
        return fit_mechanisms(moments), moments.explained()

    def likeliest(self, candidates: Sequence[Candidate], behind: np.ndarray, best: int) -> int:
        """Of few features, which of the candidates within two standard errors: the best one with a
        penalty at the reference around which values are lost, or that without one if chance is
        likelier."""
        if self.sample.n_features >= BLOCKS or candidates[0].largest > 0.0:
            return best
        as_good = {}
        for i in sorted(range(1, len(candidates)), key=lambda i: behind[i]):
            if behind[i] >= -2.0 * MARGIN:
                as_good[candidates[i].name] = i
        chance_is_possible = behind[0] >= -2.0 * MARGIN
        if len(as_good) + chance_is_possible < 2:
            return best
        labels = [self._labels_of_all(candidates[i]) for i in (0, *as_good.values())]
        references = [candidates[i].reference for i in as_good.values()]
        place = likeliest_mechanism(self.sample, references, labels, self.k)
        if place is None:
            return 0 if chance_is_possible else best
        return list(as_good.values())[place]

    def _labels_of_all(self, candidate: Candidate) -> np.ndarray:
        """(n,) of the rows of the sample, from a fit to all of them."""
        sample = replace(self.sample, reference=candidate.reference)
        penalty = np.full((len(candidate.centers), self.sample.n_features), candidate.lam)
        found = run_starts_of_each([sample], [candidate.centers], [penalty], **self.settings)[0]
        best = found.centers[[found.best]]
        return assign_rows(sample, best, penalty[:1], self.settings["threads"])[:, 0]


def _range(candidates: Sequence[Candidate], behind: np.ndarray, best: int) -> tuple[int, int]:
    """The first and last of the candidates around the best, with its reference and a penalty as it
    has, that are as good."""
    chosen, low, high = candidates[best], best, best
    good = [
        one.name == chosen.name and (one.largest > 0) == (chosen.largest > 0)
        and _is_as_good(one, own, chosen, behind[best])
        for one, own in zip(candidates, behind, strict=True)
    ]  # fmt: skip
    while low > 0 and good[low - 1]:
        low -= 1
    while high + 1 < len(candidates) and good[high + 1]:
        high += 1
    return low, high


def _is_as_good(one: Candidate, behind: float, chosen: Candidate, its_behind: float) -> bool:
    """Whether a candidate predicts as well as the one chosen, or finds the same clusters."""
    predicts = behind >= min(its_behind, 0.0) - MARGIN
    return bool(predicts or _agreement(one.labels, chosen.labels) >= SAME_CLUSTERS)


def _agreement(one: np.ndarray, two: np.ndarray) -> float:
    """Share of the rows in clusters (F, n) that correspond to each other."""
    k = max(one.max(), two.max()) + 1
    pairs = [np.bincount(a * k + b, minlength=k * k).reshape(k, k)
             for a, b in zip(one, two, strict=True)]  # fmt: skip
    return sum(table.max(axis=1).sum() for table in pairs) / one.size


def references_for(observed: Observed, extent: Any = None) -> dict[str, np.ndarray]:
    """The references to choose from, by name.

    ``extent``: least and largest values of all rows, where ``observed`` is a sample of them.
    """
    if extent is None:
        found = first_pass(observed.table, 1)
        extent = found.least, found.most
    least, most = (np.where(np.isfinite(end), end, 0.0) for end in extent)
    zero = {"zero": np.zeros(len(least))}
    judged = observed.has_gaps & np.isfinite(extent[0])
    if judged.any() and far_from(0.0, least, most)[judged].mean() > 0.5:
        zero = {}  # the values lie further from zero than from each other
    return zero | {"min": least}


def choose_reference(observed: Observed, k: int, threads: int) -> np.ndarray:
    """(p,) the reference that goes with lam="auto"."""
    return choose(observed, k, references=references_for(observed), threads=threads).reference


def sample_table(observed: Observed, k: int) -> tuple[Observed, np.ndarray]:
    """Some rows and features, and which features; all of them if there are few entries."""
    n, p = observed.source.shape
    entries = min(max(n * p // 64, ENTRIES_OF_SAMPLE), 8 * ENTRIES_OF_SAMPLE)
    wanted = max(FEWEST_ROWS, 50 * k, min(n // 64, entries // p))
    rows = observed.sample(wanted)
    sample = observed if len(rows) == n else observed.take(rows)
    columns, most = np.arange(p), max(FEWEST_COLUMNS, entries // len(rows))
    if p > most:
        columns = np.sort(np.random.default_rng(0).choice(p, most, replace=False))
        sample = sample.take_columns(columns)
    usable = np.flatnonzero(sample.weights)
    return (sample if len(usable) == sample.n_rows else sample.take(usable)), columns


def _no_choice(name: str, lam: Any, has_gaps: bool) -> Missingness:
    lam, likely = float(np.max(lam)), 1.0 if has_gaps else 0.0
    table = dict(
        lam=np.array([lam]), reference=np.array([name]), score=np.zeros(1), behind=np.zeros(1)
    )
    return Missingness(lam, name, table, (lam, lam), [Mechanism("mcar", likely, 0.0, 0.0)], 0.0)


@lru_cache(1)
def _blas() -> ThreadpoolController:
    return ThreadpoolController()


@contextmanager
def _one_blas_thread() -> Iterator[None]:
    """The last digits of a matrix product depend on the number of threads."""
    with _blas().limit(limits=1, user_api="blas"):
        yield
