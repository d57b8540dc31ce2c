"""lam="auto" and reference=None: one score decides between candidates (lam, reference).

A candidate is good if its clusters predict what they have not seen. It is fitted to all but one
fold of the rows and judged on that fold: the features are cut into blocks, and each block of a row
left out is predicted from the other blocks of that row, values and gaps,

    score_ig = log sum_l  w_lig  prod_{j in g}  P(r_ij | l)  f(x_ij | l)^r_ij   (r_ij: observed)

    w   weight of cluster l given the other blocks: its size times exp(-penalised cost / (2 noise))
    f   normal or Laplace, whichever predicts better, around the mean of the cell (cluster, feature)
        in the training rows, shrunk to the feature's mean by PRIOR rows, moved by the row's own
        level of values as far as the feature follows it; one scale for each feature
    P   log odds = those of the feature + slope * (distance of the cell's mean from the reference,
        in spreads of the feature, less its average) + the row's own level of observation; one
        slope >= 0 for all features, 0 without a penalty

The levels of a row are estimated without the block, so that gaps which follow the depth of a row
say nothing; and they count only as far as they follow the magnitude of what was lost, not a run or
a plate. A row that lost every value is not in the table: a block that holds all that a row has is
conditioned on something being observed. Scores are compared in standard errors over rows and
blocks; no penalty is taken unless the best candidate is more than one better (`Judge.best`).

Features that lose values by chance, beside others that do not, get no penalty, if that scores
better. Of the lam that the score cannot tell apart, the one is taken whose centres are nearest to
those of a mixture with a missingness mechanism, fitted to the clusters found (`fit_mixtures`).
Fewer features than blocks hardly predict each other: then mixtures also decide, by BIC, whether
there is a penalty and at which reference, and being near their centres is the score.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit
from threadpoolctl import ThreadpoolController

from ._core import first_pass
from ._em.em import EM, State, missing_of, posteriors, prior_weight
from ._em.fit import Candidate as Mixture
from ._em.mechanisms import MECHANISMS
from ._missingness import MechanismFit, Missingness
from ._observed import Observed
from ._solver import (
    assign_rows,
    centers_of_partition,
    run_starts_of_each,
    starts_of_each,
    with_component_start,
)

LAMS = (0.0, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0)
MARGIN = 1.0  # standard errors from which candidates are told apart
PRIOR = 2.0  # rows that pull the mean of a cell (cluster, feature) to that of its feature
BLOCKS = 8  # of features; with fewer features mixtures decide
FOLDS = 4
N_STARTS = 4  # of each fold
ENTRIES_OF_SAMPLE = 1 << 17  # of wide tables; of long ones FEWEST_ROWS are enough
FEWEST_ROWS, FEWEST_COLUMNS = 650, 200
NOISES = ("normal", "laplace")
MIXTURE_ITER, MIXTURE_TOL = 20, 1e-2  # EM of mixtures that are compared
MIXTURE_COLUMNS = 16


# --- the score ----------------------------------------------------------------------------------


class ScoredSample:
    """A table as the score sees it: dense, centred, its rows in so many folds.

    In single precision: scores of candidates differ by far more than its last digits.
    """

    def __init__(self, sample: Observed, n_folds: int):
        ends = np.linspace(0, sample.n_rows, n_folds + 1).astype(int).tolist()
        self.folds = [slice(*pair) for pair in itertools.pairwise(ends)]
        every = np.arange(sample.n_rows)
        self.training = [np.delete(every, fold) for fold in self.folds]
        values, gaps = sample.filled_and_gaps()
        seen, weights = ~gaps, sample.weights
        values = np.where(seen, values.astype(np.float64), 0.0)
        counts = np.maximum(weights @ seen, 1e-9)
        self.shift = weights @ values / counts
        values = np.where(seen, values - self.shift, 0.0)
        spread = math.sqrt(weights @ (values**2).sum(axis=1) / counts.sum())
        self.unit = max(spread, 1e-7 * np.abs(self.shift).max()) or 1.0  # not a rounding error
        self.values = (values / self.unit).astype(np.float32)
        self.seen = seen.astype(np.float32)
        self.weights = weights.astype(np.float32)
        self.counts, self.total = counts.astype(np.float32), float(weights.sum())
        place = np.random.default_rng(0).permutation(sample.n_features) % BLOCKS
        self.cut = np.eye(BLOCKS, dtype=np.float32)[place]  # (p, G)
        self.of_block = self.seen @ self.cut  # (n, G) observed values of each block
        self.outside = self.without(self.of_block)
        self.holds_all = self.of_block == self.of_block.sum(axis=1, keepdims=True)

    def moved(self, points: Any) -> np.ndarray:
        """Points (..., p) in the units of this table."""
        return ((np.asarray(points, np.float64) - self.shift) / self.unit).astype(np.float32)

    def without(self, own: np.ndarray) -> np.ndarray:
        """(..., G) sums over the features outside each block, of those over each block."""
        return own.sum(axis=-1, keepdims=True) - own

    def products(self, rows: np.ndarray, cells: np.ndarray) -> np.ndarray:
        """(k, n, G) sums over each block, of rows (n, p) times cells (k, p)."""
        return rows @ (cells[:, :, None] * self.cut)


class Cells(NamedTuple):
    """What training rows say about every cluster and feature."""

    log_size: np.ndarray  # (k,)
    mean: np.ndarray  # (k, p)
    away: np.ndarray  # (k, p) distance from the reference, less its average
    feature_odds: np.ndarray  # (p,)
    noise: float
    shrinkage: float  # observations that pull the level of a row to 0

    @classmethod
    def of(
        cls, table: ScoredSample, rows: np.ndarray, labels: np.ndarray, k: int, point: Any
    ) -> Cells:
        seen, values, weights = table.seen[rows], table.values[rows], table.weights[rows]
        member = np.zeros((k, len(rows)), np.float32)
        member[labels, np.arange(len(rows))] = weights
        size, count, sums, observed = member.sum(1), member @ seen, member @ values, weights @ seen
        total, per_row = float(weights.sum()), np.maximum(table.of_block[rows].sum(axis=1), 1.0)
        average = sums.sum(axis=0) / np.maximum(observed, 1e-9)
        mean = (sums + PRIOR * average) / (count + PRIOR)
        rest = seen * (values - mean[labels])
        squares = weights @ rest**2
        noise = float(squares.sum() / max(observed.sum(), 1e-9)) + 1e-18
        spread = np.sqrt(squares / np.maximum(observed, 1e-9)) + 1e-12
        share = (observed + 0.5) / (total + 1.0)
        away = np.abs(mean - point) / spread
        away = np.clip(away - size @ away / total, -6.0, 6.0)
        away = np.where(seen.min(axis=0) < 1.0, away, 0.0).astype(np.float32)
        differ = float(weights @ ((rest.sum(axis=1) / per_row) ** 2 - noise / per_row)) / total
        return cls(
            np.log((size + 1.0) / (total + k)), mean.astype(np.float32), away,
            np.log(share / (1.0 - share)).astype(np.float32), noise,
            noise / max(differ, 1e-9 * noise),
        )  # fmt: skip


def block_scores(
    table: ScoredSample, labels: np.ndarray, centers: np.ndarray, penalty: np.ndarray,
    reference: Any, noise: str,
) -> np.ndarray:  # fmt: skip
    """(n, G) scores of a candidate from its fits without each fold: labels (F, n), centres
    (F, k, p)."""
    (n, p), k, blocks = table.values.shape, centers.shape[1], table.cut.shape[1]
    point, penalty = table.moved(reference), penalty.astype(np.float32)
    weight = np.empty((k, n, blocks), np.float32)
    error, level = np.empty((k, n, p), np.float32), np.empty((n, p), np.float32)
    own = np.empty(n, np.intp)
    fitted = []
    for fold, rows, found, mu in zip(table.folds, table.training, labels, centers, strict=True):
        cells = Cells.of(table, rows, found[rows], k, point)
        seen, values, own[fold] = table.seen[fold], table.values[fold], found[fold]
        mu = table.moved(mu)
        pull = penalty * (mu - point) ** 2
        costs = table.products(seen, mu**2 - pull) - 2.0 * table.products(values, mu)
        costs += (pull @ table.cut)[:, None]
        log_weight = cells.log_size[:, None, None] - table.without(costs) / (2.0 * cells.noise)
        weight[:, fold] = log_weight - _log_sum(log_weight)
        np.subtract(values, cells.mean[:, None], out=error[:, fold])
        rest = seen * (values - cells.mean[own[fold]])
        by_block = table.without(rest @ table.cut) / (table.outside[fold] + cells.shrinkage)
        level[fold] = by_block @ table.cut.T
        fitted.append(cells)
    error *= table.seen
    level *= table.seen
    square = table.weights @ level**2
    pull = PRIOR * square / table.counts
    follows = table.weights @ (level * error[own, np.arange(n)])
    error -= level * ((follows + pull) / (square + pull + 1e-12))
    slope = _slope(table, fitted, weight, penalty > 0.0)
    gaps = np.empty((k, n, blocks), np.float32)
    for fold, cells in zip(table.folds, fitted, strict=True):
        odds = np.clip(cells.feature_odds + slope * cells.away, -9.0, 9.0)
        gaps[:, fold] = _log_pattern(table, fold, odds, _levels(table, fold, odds[own[fold]]))
    return _log_sum(weight + gaps + _log_densities(table, noise, error, own))


def _log_sum(parts: np.ndarray) -> np.ndarray:
    """log of the sum of exp over the first axis."""
    top = parts.max(axis=0)
    return top + np.log(_exp(parts - top).sum(axis=0))


def _exp(parts: np.ndarray) -> np.ndarray:
    """exp, but no subnormal numbers: arithmetic with them is slow."""
    return np.exp(np.maximum(parts, -60.0))


def _log_densities(
    table: ScoredSample, noise: str, error: np.ndarray, own: np.ndarray
) -> np.ndarray:
    """(k, n, G) of the observed values of every block; the scale of a feature is that of the errors
    (k, n, p) in the nearest clusters (n,)."""
    power = 0.5 if noise == "normal" else 1.0
    size = (np.square if noise == "normal" else np.abs)(error, out=error)
    constant = 2.0 * math.pi if noise == "normal" else 2.0
    scale = table.weights @ size[own, np.arange(len(own))] / table.counts
    scale = np.maximum(scale, 1e-12).astype(np.float32)
    found = size @ (table.cut * (-power / scale)[:, None])
    found -= table.seen @ (table.cut * (power * np.log(constant * scale))[:, None])
    return found


def _slope(
    table: ScoredSample, fitted: list[Cells], weight: np.ndarray, some: np.ndarray
) -> np.ndarray:
    """(p,) one slope for rows left out; 0 in features that have none."""
    if not some.any():
        return some.astype(np.float32)
    away = np.stack([cells.away for cells in fitted]) * some
    odds = np.stack([cells.feature_odds for cells in fitted])[:, None]
    counts, sizes = np.empty_like(away), np.empty_like(away)  # (F, k, p) of cells
    for f, fold in enumerate(table.folds):
        share = (_exp(weight[:, fold]) * table.weights[fold, None]).transpose(0, 2, 1)
        counts[f] = ((share @ table.seen[fold]) * table.cut.T).sum(axis=1)
        sizes[f] = share.sum(axis=2) @ table.cut.T
    return (some * _newton(away, odds, counts, sizes)).astype(np.float32)


def _newton(away: np.ndarray, odds: np.ndarray, counts: np.ndarray, sizes: np.ndarray) -> float:
    """The slope >= 0 of log odds on the distance from the reference, over cells (..., k, p)."""
    slope = 0.0
    for _ in range(4):
        q = expit(odds + slope * away)
        gradient, information = away * (counts - sizes * q), away**2 * sizes * q * (1.0 - q)
        slope += float(gradient.sum()) / (float(information.sum()) + 1e-9)
    return max(slope, 0.0)


def _levels(table: ScoredSample, fold: slice, odds: np.ndarray) -> np.ndarray:
    """(n, G) what to add to the log odds (n, p) of a row: one step of Newton's method from 0, with
    the features outside the block; standard normal before."""
    q = expit(odds)
    left, information = table.seen[fold] - q, q * (1.0 - q)
    return table.without(left @ table.cut) / (table.without(information @ table.cut) + 1.0)


def _log_pattern(
    table: ScoredSample, fold: slice, odds: np.ndarray, level: np.ndarray
) -> np.ndarray:
    """(k, n, G) log probability of what is observed and missing in each block, from the log odds of
    cells (k, p) and what the rows (n, G) add to them."""
    none = np.exp(level) @ table.cut.T * np.exp(odds)[:, None]
    none += 1.0
    nothing = -np.log(none, out=none) @ table.cut
    pattern = table.products(table.seen[fold], odds) + level * table.of_block[fold] + nothing
    condition = np.log(1e-12 - np.expm1(np.minimum(nothing, 0.0)))
    return pattern - np.where(table.holds_all[fold], condition, 0.0)


def standard_errors(scores: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """(C,) how far candidates (C, n, G) are behind the best, in standard errors over rows and
    blocks."""
    best = int((scores.sum(axis=2) @ weights).argmax())
    behind = scores.astype(np.float64) - scores[best]
    rows = behind.sum(axis=2)
    total = rows @ weights
    by_block = np.tensordot(behind, weights, axes=(1, 0))
    variance = ((rows - total[:, None] / weights.sum()) ** 2) @ weights
    variance += by_block.var(axis=1) * by_block.shape[1]
    return total / (np.sqrt(variance) + 1e-9)


def followers(
    table: ScoredSample, labels: np.ndarray, k: int, reference: np.ndarray
) -> tuple[np.ndarray, float]:
    """(p,) False for features whose missing values do not follow the distance of clusters (n,)
    from the reference as those of other features do: chance is likelier by more than log(n)/2.
    And the share of the variation of missingness, within features, that follows this distance."""
    cells = Cells.of(table, np.arange(len(labels)), labels, k, table.moved(reference))
    member = np.eye(k)[labels] * table.weights[:, None]
    counts = member.T @ table.seen
    gaps = np.maximum(member.sum(axis=0)[:, None] - counts, 0.0)

    def observed(some: np.ndarray) -> np.ndarray:
        slope = _newton(cells.away * some, cells.feature_odds, counts, counts + gaps)
        return np.clip(expit(cells.feature_odds + slope * cells.away), 1e-9, 1.0 - 1e-9)

    def log_likelihood(q: np.ndarray) -> np.ndarray:
        return (counts * np.log(q) + gaps * np.log1p(-q)).sum(axis=0)

    def variation(q: np.ndarray) -> float:
        return float((counts * (1.0 - q) ** 2 + gaps * q**2).sum())

    follow = np.ones(counts.shape[1], bool)
    chance = observed(~follow)
    explained = max(1.0 - variation(observed(follow)) / variation(chance), 0.0)
    for _ in range(4):
        last, price = follow, 0.5 * math.log(max(table.total, 2.0))
        follow = log_likelihood(observed(last)) - log_likelihood(chance) > -price
        if np.array_equal(follow, last) or not follow.any():
            break
    return follow, explained


# --- mixtures with a missingness mechanism ------------------------------------------------------


class Centers(NamedTuple):
    """The centres that the likeliest mixture expects of each row, and how values go missing."""

    where: str  # the reference around which they do; "": by chance, or at a rate of each cluster
    expected: np.ndarray  # (n, m) of some features
    variance: np.ndarray  # (m,) of these within clusters
    columns: np.ndarray  # (m,)
    mechanisms: list[MechanismFit]

    def distances(self, candidate: Candidate) -> np.ndarray:
        """(n,) squared, of a candidate's centres from these, averaged over the parts."""
        found = [
            mu[:, self.columns][labels]
            for mu, labels in zip(candidate.centers, candidate.labels, strict=True)
        ]
        apart = (np.array(found) - self.expected) ** 2 / self.variance
        return apart.sum(axis=2).mean(axis=0)


def fit_mixtures(
    sample: Observed,
    references: dict[str, np.ndarray],
    labels: np.ndarray,
    k: int,
    columns: np.ndarray,
    free: bool,
) -> Centers:
    """Normal mixtures with values missing by chance, if ``free`` also at a rate of each cluster,
    around each reference or below a limit; the one with the best BIC.

    All begin with the same partition ``labels`` (n,), so that they differ by their mechanism and
    not by luck.
    """
    sample = sample.take_columns(columns)
    memberships = np.eye(k)[labels]
    plain = EM(sample)
    prior = prior_weight(plain, memberships, 0.0)
    kinds = [("", plain, name, 0) for name in (("mcar", "class") if free else ("mcar",))]
    for number, (where, reference) in enumerate(references.items()):
        around = EM(replace(sample, reference=reference[columns]))
        n_chosen = int(sample.has_gaps.sum()) if number > 0 else 0
        for name in ("decay", "threshold"):
            if MECHANISMS[name].is_possible(around.values):
                kinds.append((where, around, name, n_chosen))
    kinds.append((where, around, "limit", 0))  # near the smallest values, if that is a reference
    fitted = []
    for where, em, name, n_chosen in kinds:
        begin = em.start(memberships, name)
        starts = [begin]
        if name == "decay":  # the means of observed values hide a strong loss, and EM is slow there
            strong = replace(begin.mechanism, t=1.0 / float(begin.variances.mean()), c=0.99)
            starts.append(begin._replace(mechanism=strong))
        for one in starts:
            run = em.with_prior(prior).run(State(one), max_iter=MIXTURE_ITER, tol=MIXTURE_TOL)
            fitted.append((where, Mixture(em, name, 0.0, n_chosen, (list(run)[-1],))))
    where, best = max(fitted, key=lambda one: one[1].score)
    parameters = best.states[-1].parameters
    expected = posteriors(best.em.observed, parameters, 1).memberships @ parameters.means
    each = {one.mechanism: one for _, one in sorted(fitted, key=lambda one: one[1].score)}
    mechanisms = [_mechanism_fit(each[name]) for name in MECHANISMS if name in each]
    return Centers(where, expected, parameters.variances.mean(axis=0), columns, mechanisms)


def _mechanism_fit(mixture: Mixture) -> MechanismFit:
    """Its penalty is lam = 1 - (E[x | missing] - c) / (mu - c), averaged as the loss weighs it."""
    em, (parameters, expectation, *_) = mixture.em, mixture.states[-1]
    mu = parameters.means - em.observed.reference
    lost = missing_of(parameters, em.observed.reference).mean
    sums = expectation.sums
    gaps = np.maximum(sums.sizes[:, None] - sums.counts, 0.0) * em.observed.has_gaps
    gaps /= parameters.variances.mean(axis=0)
    weight = max(float((gaps * mu**2).sum()), 1e-300)
    lam = max(float((gaps * mu * (mu - lost)).sum()) / weight, 0.0)
    spread, mechanism = np.sqrt(parameters.variances.mean(axis=0)), parameters.mechanism
    strength = float(em.values.missing_rate[em.observed.has_gaps].mean())
    if mixture.mechanism == "decay":
        strength = mechanism.t * float(np.mean(spread**2))
    elif mixture.mechanism == "threshold":
        strength = float((mechanism.tau / spread)[em.observed.has_gaps].mean())
    return MechanismFit(mixture.mechanism, strength, mixture.score, lam)


# --- the choice ---------------------------------------------------------------------------------


class Choice(NamedTuple):
    """The penalty, the reference (p,), why, and the centres (k, p) that were found with them."""

    lam: Any  # a number, or one per feature
    reference: np.ndarray
    missingness: Missingness
    centers: np.ndarray | None = None

    @property
    def features(self) -> np.ndarray:
        """(p,) 1, or 0 for features that have no penalty where others have one."""
        spared = (np.ndim(self.lam) > 0) & (np.asarray(self.lam) == 0.0)
        return np.where(spared, 0.0, np.ones(len(self.reference)))


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
    reference is chosen. Those of this module are searched: lam may lie between them, and single
    features may have no penalty.
    ``references``: (p,) each, by name; that of ``observed`` if there is no choice.
    """
    references = references or {"given": observed.reference}
    search = lams is LAMS
    sample, rows, columns = sample_table(observed, k)
    if not observed.has_gaps.any() or sample.n_rows < k + 2:
        name, reference = next(iter(references.items()))
        return Choice(lams[0], reference, _no_choice(name, lams[0], bool(observed.has_gaps.any())))
    p = observed.n_features
    penalties = np.array([np.broadcast_to(lam, p)[columns] for lam in lams], np.float64)
    points = {name: reference[columns] for name, reference in references.items()}
    with _one_blas_thread():
        judge = Judge(sample, k, dict(max_iter=max_iter, tol=tol, threads=threads))
        candidates = judge.candidates(penalties, points, search)
        chosen = judge.best(candidates)
        found = judge.mixture or judge.mixture_of(chosen)
        theory = round(max(found.mechanisms, key=lambda one: one.log_likelihood).lam, 3)
        if search and chosen.lam > 0.0 and theory > 0.0:
            candidates.append(judge.with_lam(chosen, theory))
            candidates.sort(key=lambda one: (one.ladder, one.lam))
        behind = judge.behind(candidates)
        ladder = np.array([one.ladder == chosen.ladder for one in candidates])
        equal = [
            candidates[i]
            for i in np.flatnonzero(ladder & (behind >= behind[ladder].max() - MARGIN))
        ]
        taken = min(equal, key=lambda one: float(judge.weights @ found.distances(one)))
        labels = judge.labels_of_all(taken)
        explained = followers(judge.table, labels, k, taken.reference)[1]
    lam = taken.lam
    table = {
        "lam": np.array([one.lam for one in candidates]),
        "reference": np.array([one.name for one in candidates]),
        "features": np.array([p - one.n_unpenalised if one.lam > 0.0 else 0 for one in candidates]),
        "score": np.array([judge.total(one) / judge.weights.sum() for one in candidates]),
        "behind": behind,
    }
    missingness = Missingness(
        lam, chosen.name, table, (equal[0].lam, equal[-1].lam), found.mechanisms, explained,
        chosen.n_unpenalised if search else 0, "mechanism" if judge.mixture else "score",
    )  # fmt: skip
    penalty = next((one for one in lams if np.max(one) == lam), lam)
    if search and chosen.n_unpenalised:
        penalty = np.full(p, lam)
        penalty[columns[chosen.penalty == 0.0]] = 0.0
    whole = replace(observed, reference=references[chosen.name]).take(rows)
    centers = centers_of_partition(whole, labels, k, penalty, threads)
    return Choice(penalty, references[chosen.name], missingness, centers)


class Candidate(NamedTuple):
    """lam and reference, what they came to in every part of the rows, and the scores."""

    ladder: int  # candidates of one ladder differ in lam only; -1 without a penalty
    name: str  # of the reference
    reference: np.ndarray  # (p,)
    penalty: np.ndarray  # (p,) lam, or 0 in features that have none
    centers: np.ndarray  # (F, k, p) of the fits to each part
    labels: np.ndarray  # (F, n) of all rows by those fits
    scores: np.ndarray = np.empty(0)  # (n, G)

    @property
    def lam(self) -> float:
        return float(self.penalty.max())

    @property
    def n_unpenalised(self) -> int:
        """Features without a penalty, where others have one."""
        return int(np.count_nonzero(self.penalty == 0.0)) if self.lam > 0.0 else 0


class Judge:
    """Fits candidates to parts of the rows of a sample, and scores them.

    The parts leave out a fold each; where mixtures decide, the only part is the sample.
    """

    def __init__(self, sample: Observed, k: int, settings: dict[str, Any]):
        self.sample, self.k, self.settings = sample, k, settings
        self.threads, n = settings["threads"], sample.n_rows
        self.few, n_folds = sample.n_features < BLOCKS, FOLDS
        while n - -(-n // n_folds) < k:  # the rows left must be enough for k clusters
            n_folds += 1
        self.table, self.weights = ScoredSample(sample, n_folds), sample.weights
        self.parts = [sample] if self.few else [sample.take(t) for t in self.table.training]
        self.pools: dict[str, list[np.ndarray]] = {}  # of each reference and part
        self.noise, self.mixture = "", None  # type: str, Centers | None

    def candidates(
        self, penalties: np.ndarray, references: dict[str, np.ndarray], search: bool
    ) -> list[Candidate]:
        """The candidates with their scores: penalties (L, p) at each reference, and if ``search``,
        without those features that lose values by chance."""
        none = ~penalties.any(axis=1)
        self._fill_pools(penalties, references)
        first, *_ = references
        found = self._ladder(-1, first, references[first], penalties[none], self.pools[first])
        ladders = [
            self._ladder(number, name, reference, penalties[~none], self.pools[name])
            for number, (name, reference) in enumerate(references.items())
        ]
        if self.few:
            start = min(ladders[0] or found, key=lambda one: abs(one.lam - 1.0))
            columns = np.arange(self.sample.n_features)
            self.mixture = fit_mixtures(
                self.sample, references, start.labels[0], self.k, columns, True
            )
        else:
            one = (found or ladders[0])[0]
            totals = [self.total(self._scored(one, noise)) for noise in NOISES]
            self.noise = NOISES[int(np.argmax(totals))]
        found = self._score_all([found, *ladders])
        if not search or self.few:
            return found
        labels, ladders = self.labels_of_all(found[0]), []
        for number, (name, reference) in enumerate(references.items(), start=len(references)):
            follow = followers(self.table, labels, self.k, reference)[0]
            if 0 < np.count_nonzero(follow) < len(follow):
                some = penalties[~none] * follow
                ladders.append(self._ladder(number, name, reference, some, self.pools[name]))
        return found + self._score_all(ladders)

    def _fill_pools(self, penalties: np.ndarray, references: dict[str, np.ndarray]) -> None:
        """For each reference and part, centres (3, k, p) from which all candidates go on: where the
        best of a few starts leads with three of the penalties."""
        anchors = sorted({0, len(penalties) // 2, max(len(penalties) - 2, 0)})
        n_starts = N_STARTS * (FOLDS if self.few else 1)
        seeds = list(range(len(self.parts)))
        drawn = starts_of_each("k-means++", self.parts, n_starts, self.k, seeds, self.threads)
        for name, reference in references.items():
            starts = [
                with_component_start(replace(part, reference=reference), own, 1.0, self.threads)
                for part, own in zip(self.parts, drawn, strict=True)
            ]
            self.pools[name] = self._fitted(reference, penalties[anchors], starts)

    def _fitted(
        self, reference: np.ndarray, penalties: np.ndarray, starts: Sequence[np.ndarray]
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

    def _ladder(
        self, number: int, name: str, reference: np.ndarray, penalties: np.ndarray, starts: Any
    ) -> list[Candidate]:
        """One candidate for each of the penalties (L, p), without scores."""
        if not len(penalties):
            return []
        centers = np.stack(self._fitted(reference, penalties, starts), axis=1)
        count, folds, k, p = centers.shape
        sample, every = replace(self.sample, reference=reference), np.repeat(penalties, folds, 0)
        labels = assign_rows(sample, centers.reshape(-1, k, p), every, self.threads)
        labels = labels.T.reshape(count, folds, -1)
        return [
            Candidate(number, name, reference, *one)
            for one in zip(penalties, centers, labels, strict=True)
        ]

    def _score_all(self, ladders: list[list[Candidate]]) -> list[Candidate]:
        """With scores. A candidate with the labels of another one of its ladder has its scores."""
        found: list[Candidate] = []
        for one in (one for ladder in ladders for one in ladder):
            alike = (
                other for other in found
                if other.ladder == one.ladder and np.array_equal(other.labels, one.labels)
            )  # fmt: skip
            known = None if self.few else next(alike, None)
            found.append(one._replace(scores=(known or self._scored(one, self.noise)).scores))
        return found

    def _scored(self, one: Candidate, noise: str) -> Candidate:
        if self.mixture:
            return one._replace(scores=-self.mixture.distances(one)[:, None])
        how = one.labels, one.centers, one.penalty, one.reference
        return one._replace(scores=block_scores(self.table, *how, noise))

    def total(self, one: Candidate) -> float:
        return float(self.weights.astype(np.float64) @ one.scores.sum(axis=1))

    def with_lam(self, near: Candidate, lam: float) -> Candidate:
        """The candidate with another lam: the best of where its centres and the pool lead."""
        penalty = np.where(near.penalty > 0.0, lam, 0.0)
        starts = [
            np.concatenate([own[None], pool])
            for own, pool in zip(near.centers, self.pools[near.name], strict=True)
        ]
        ladder = self._ladder(near.ladder, near.name, near.reference, penalty[None], starts)
        return self._scored(ladder[0], self.noise)

    def behind(self, candidates: Sequence[Candidate]) -> np.ndarray:
        """(C,) in standard errors."""
        return standard_errors(np.array([one.scores for one in candidates]), self.weights)

    def best(self, candidates: Sequence[Candidate]) -> Candidate:
        """The best candidate, unless no penalty is at most one standard error worse; where
        mixtures decide, the best with the reference around which they say that values are missing.
        """
        if self.mixture:
            where = self.mixture.where
            penalised = [one for one in candidates if one.lam > 0.0 and one.name == where]
            candidates = penalised or [one for one in candidates if one.lam == 0.0] or candidates
        behind = self.behind(candidates)
        if candidates[0].lam == 0.0 and behind[0] >= -MARGIN:
            return candidates[0]
        return candidates[int(behind.argmax())]

    def mixture_of(self, chosen: Candidate) -> Centers:
        """The mixture with the clusters of a candidate and values missing around its reference."""
        some = (chosen.penalty > 0.0) | (chosen.lam == 0.0)
        columns = np.flatnonzero(self.sample.has_gaps & some)[:MIXTURE_COLUMNS]
        labels, reference = self.labels_of_all(chosen), {chosen.name: chosen.reference}
        return fit_mixtures(self.sample, reference, labels, self.k, columns, False)

    def labels_of_all(self, candidate: Candidate) -> np.ndarray:
        """(n,) of the rows of the sample, from a fit to all of them."""
        sample = replace(self.sample, reference=candidate.reference)
        penalty = np.tile(candidate.penalty, (len(candidate.centers), 1))
        found = run_starts_of_each([sample], [candidate.centers], [penalty], **self.settings)[0]
        best = found.centers[[found.best]]
        return assign_rows(sample, best, penalty[:1], self.threads)[:, 0]


def references_for(observed: Observed, extent: Any = None) -> dict[str, np.ndarray]:
    """The references to choose from, by name.

    ``extent``: least and largest values of all rows, where ``observed`` is a sample of them.
    """
    if extent is None:
        found = first_pass(observed.table, 1)
        extent = found.lowest, found.highest
    least, most = (np.where(np.isfinite(end), end, 0.0) for end in extent)
    zero = {"zero": np.zeros(len(least))}
    judged = observed.has_gaps & np.isfinite(extent[0])
    far = np.maximum(least, -most) > most - least  # further from zero than from each other
    if judged.any() and far[judged].mean() > 0.5:
        zero = {}
    return zero | {"min": least}


def sample_table(observed: Observed, k: int) -> tuple[Observed, np.ndarray, np.ndarray]:
    """Some rows of positive weight in random order, some features, and which they are; all of them
    if there are few."""
    n, p = observed.source.shape
    entries = min(max(n * p // 64, ENTRIES_OF_SAMPLE), 8 * ENTRIES_OF_SAMPLE)
    wanted = max(FEWEST_ROWS, 50 * k, min(n // 64, entries // p))
    rows = observed.sample(wanted)
    columns, most = np.arange(p), max(FEWEST_COLUMNS, entries // len(rows))
    rows = np.random.default_rng(0).permutation(rows[observed.weights[rows] > 0])
    sample = observed.take(rows)
    if p > most:
        columns = np.sort(np.random.default_rng(0).choice(p, most, replace=False))
        sample = sample.take_columns(columns)
    return sample, rows, columns


def _no_choice(name: str, lam: Any, has_gaps: bool) -> Missingness:
    lam, likely = float(np.max(lam)), 1.0 if has_gaps else 0.0
    table = dict(
        lam=np.array([lam]), reference=np.array([name]), features=np.zeros(1, int),
        score=np.zeros(1), behind=np.zeros(1),
    )  # fmt: skip
    return Missingness(lam, name, table, (lam, lam), [MechanismFit("mcar", likely, 0.0, 0.0)], 0.0)


@lru_cache(1)
def _blas() -> ThreadpoolController:
    return ThreadpoolController()


@contextmanager
def _one_blas_thread() -> Iterator[None]:
    """The last digits of a matrix product depend on the number of threads."""
    with _blas().limit(limits=1, user_api="blas"):
        yield
