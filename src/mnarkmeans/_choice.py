"""lam="auto" and reference="auto": one score decides between candidates (lam, reference).

A candidate is good if its clusters predict values they were not fitted to. It is fitted to some
rows and scored on others, by cross-validation or, for large tables, on one half of a sample: the
features are split into blocks, and each block of a held-out row is predicted from its other blocks,

    score_ig = log sum_l  w_lig  prod_{j in g}  P(r_ij | l)  f(x_ij | l)^r_ij   (r_ij: observed)

    w   weight of cluster l given the other blocks: its size times exp(-penalised cost / (2 noise))
    f   normal or Laplace, whichever fits the training rows better, around the mean of the cell
        (cluster, feature), shrunk to the feature's mean by PRIOR rows, plus the row's effect on
        values times the feature's slope; one scale for each feature
    P   log odds = those of the feature + slope * (distance of the cell's mean from the reference,
        in spreads of the feature, less its average) + the row's effect on observation; one
        slope >= 0 for all features, 0 without a penalty

All but the row effects come from the training rows (`ClusterStatistics`). Row effects are
estimated without the block, so a row that misses much everywhere favours no candidate; missingness
scores only where it depends on the size of the lost value. Scores are compared in standard errors
over rows and blocks; there is no penalty unless the best candidate is more than one better
(`Evaluator.best`).

Features that lose values at random, beside others that do not, get no penalty if that scores
better. Among values of lam within one standard error, the one is taken whose centres are closest to
those of a mixture fitted with a missingness mechanism (`fit_mixtures`). Fewer features than blocks
hardly predict each other: then mixtures also decide, by BIC, whether there is a penalty and at
which reference, and the score is how well clusters keep apart the rows whose expected centres
differ.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit, log_expit
from threadpoolctl import ThreadpoolController

from ._core import SoftSums
from ._em.em import EM, Parameters, State, missing_of, posteriors
from ._em.fit import MixtureFit
from ._em.mechanisms import MECHANISMS
from ._missingness import MechanismFit, Missingness
from ._observed import Observed, zero_filled
from ._solver import (
    assign_rows,
    centers_of_partition,
    k_means_plus_plus,
    run_starts,
    with_component_start,
)

LAMS = (0.0, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0)
MARGIN = 1.0  # standard errors from which candidates are told apart
PRIOR = 2.0  # rows (more than 1) that pull the mean of a cell (cluster, feature) to its feature's
BLOCKS = 8  # of features; with fewer features mixtures decide
FOLDS = 4  # if fewer than twice ENOUGH_ROWS
N_STARTS = 4  # of each training set
ENOUGH_ROWS, ENOUGH_COLUMNS = 650, 200  # to fit candidates, and as many rows to score them
ENTRIES_OF_SAMPLE = 1 << 17  # a larger sample is taken if it stays below this
MIXTURE_ITER, MIXTURE_TOL = 100, 1e-3  # EM of mixtures that decide
ROUGH_ITER, ROUGH_TOL = 20, 1e-2  # and of those that do not, of BLOCKS features
COMMON = 50.0  # values that the variance common to all clusters is worth in theirs


# --- the score ----------------------------------------------------------------------------------


class ScoredRows(NamedTuple):
    """Rows as the score reads them, and the block of each feature.

    In single precision: scores of candidates differ by far more than its last digits.
    """

    values: np.ndarray  # (n, p), 0 where missing
    observed: np.ndarray  # (n, p) 1, or 0 where missing
    weights: np.ndarray  # (n,)
    blocks: np.ndarray  # (p, G), 1 for the block of a feature

    @classmethod
    def of(cls, sample: Observed) -> ScoredRows:
        values, observed = zero_filled(sample.source, np.zeros(sample.n_features))
        block = np.random.default_rng(0).permutation(sample.n_features) % BLOCKS
        arrays = values, observed, sample.weights, np.eye(BLOCKS)[block]
        return cls(*(array.astype(np.float32) for array in arrays))

    def take(self, rows: Any) -> ScoredRows:
        return ScoredRows(self.values[rows], self.observed[rows], self.weights[rows], self.blocks)

    def without(self, entries: np.ndarray) -> np.ndarray:
        """(..., G) sums of entries (..., p) over the features outside each block."""
        sums = entries @ self.blocks
        return sums.sum(axis=-1, keepdims=True) - sums

    def products(self, entries: np.ndarray, cells: np.ndarray) -> np.ndarray:
        """(k, n, G) sums over each block, of entries (n, p) times cells (k, p)."""
        return entries @ (cells[:, :, None] * self.blocks)

    def row_effects(self, residuals: np.ndarray, shrinkage: float) -> np.ndarray:
        """(n, p) shrunken mean residual of each row, from the features outside the block."""
        effect = self.without(residuals) / (self.without(self.observed) + shrinkage)
        return (effect @ self.blocks.T) * self.observed


class ObservationRates(NamedTuple):
    """How often values are observed in every cluster and feature."""

    feature_odds: np.ndarray  # (p,) log odds of being observed
    distance: np.ndarray  # (k, p) from the reference, less its average; 0 if none is missing
    counts: np.ndarray  # (k, p) observed
    sizes: np.ndarray  # (k, 1)

    @property
    def gaps(self) -> np.ndarray:
        return np.maximum(self.sizes - self.counts, 0.0)

    def slope(self, included: Any = True) -> float:
        """Slope >= 0 of the log odds on the distance from the reference, of all or of the features
        included (p,), by Newton's method."""
        distance, slope = self.distance * included, 0.0
        for _ in range(4):
            q = expit(self.feature_odds + slope * distance)
            gradient = float((distance * (self.counts - self.sizes * q)).sum())
            slope += gradient / (float((distance**2 * self.sizes * q * (1.0 - q)).sum()) + 1e-9)
        return max(slope, 0.0)

    def odds(self, slope: Any) -> np.ndarray:
        """(k, p) log odds; slope: one number, or one per feature."""
        return np.clip(self.feature_odds + slope * self.distance, -9.0, 9.0).astype(np.float32)

    def explained(self) -> float:
        """Share of the variance of missingness, within features, that the distance explains."""
        shares = (expit(self.odds(slope)) for slope in (self.slope(), 0.0))
        residual, total = ((self.counts * (1 - q) ** 2 + self.gaps * q**2).sum() for q in shares)
        return max(float(1.0 - residual / max(total, 1e-300)), 0.0)

    def depends_on_magnitude(self) -> np.ndarray:
        """(p,) False for features whose missing values do not depend on the distance as those of
        other features do: missing at random is likelier by more than log(n)/2."""

        def log_likelihood(slope: float) -> np.ndarray:
            odds = self.odds(slope)
            return (self.counts * log_expit(odds) + self.gaps * log_expit(-odds)).sum(axis=0)

        price = 0.5 * math.log(max(self.sizes.sum(), 2.0))
        depends = np.ones(self.distance.shape[1], bool)
        for _ in range(4):
            last = depends
            depends = log_likelihood(self.slope(last)) - log_likelihood(0.0) > -price
            if np.array_equal(depends, last) or not depends.any():
                break
        return depends


class ClusterStatistics(NamedTuple):
    """Estimates from the training rows, for every cluster and feature."""

    log_size: np.ndarray  # (k,)
    mean: np.ndarray  # (k, p)
    noise: float
    shrinkage: float  # pseudo-observations that pull a row's effect to 0
    row_effect_slope: np.ndarray  # (p,) by which features respond to the row effect
    is_normal: bool  # the noise of a feature; Laplace otherwise
    scale: np.ndarray  # (p,) of that noise: mean square, or mean absolute value
    rates: ObservationRates

    @classmethod
    def of(
        cls, rows: ScoredRows, labels: np.ndarray, k: int, reference: np.ndarray
    ) -> ClusterStatistics:
        values, observed, weights, _ = rows
        member = np.zeros((k, len(labels)), np.float32)
        member[labels, np.arange(len(labels))] = weights
        sizes, counts, total = member.sum(axis=1), member @ observed, float(weights.sum())
        n_observed = np.maximum(counts.sum(axis=0), 1e-9)
        sums = member @ values
        mean = (sums + PRIOR * sums.sum(axis=0) / n_observed) / (counts + PRIOR)
        left_out = (counts + PRIOR) / (counts + PRIOR - 1.0)  # the row, of the mean of its cell
        residuals = observed * (values - mean[labels]) * left_out[labels]
        squares, per_row = weights @ residuals**2, np.maximum(observed.sum(axis=1), 1.0)
        noise = float(squares.sum() / n_observed.sum()) + 1e-18
        between_rows = (residuals.sum(axis=1) / per_row) ** 2 - noise / per_row
        shrinkage = noise / max(float(weights @ between_rows) / total, 1e-9 * noise)
        effect = rows.row_effects(residuals, shrinkage)
        square = weights @ effect**2
        pull = PRIOR * square / n_observed
        slope = (weights @ (effect * residuals) + pull) / (square + pull + 1e-12)
        error = np.abs(residuals - slope * effect)
        laplace, normal = (_scales(weights @ power, n_observed) for power in (error, error**2))
        # exp(entropy): the noise model with the larger maximised likelihood has the smaller one
        widths = 2.0 * math.e * laplace, np.sqrt(2.0 * math.pi * math.e * normal)
        is_normal = bool(n_observed @ np.log(widths[1] / widths[0]) < 0.0)
        share = (n_observed + 0.5) / (total + 1.0)
        distance = np.abs(mean - reference) / (np.sqrt(squares / n_observed) + 1e-12)
        distance = np.clip(distance - sizes @ distance / total, -6.0, 6.0)
        distance *= observed.min(axis=0) < 1.0
        return cls(
            np.log((sizes + 1.0) / (total + k)), mean, noise, shrinkage, slope, is_normal,
            normal if is_normal else laplace,
            ObservationRates(np.log(share / (1.0 - share)), distance, counts, sizes[:, None]),
        )  # fmt: skip

    def log_densities(self, rows: ScoredRows, labels: np.ndarray) -> np.ndarray:
        """(k, n, G) of the observed values of every block, for rows with these labels (n,)."""
        residuals = rows.observed * (rows.values - self.mean[labels])
        effect = self.row_effect_slope * rows.row_effects(residuals, self.shrinkage)
        error = rows.observed * ((rows.values - effect) - self.mean[:, None])
        power, constant = (0.5, 2.0 * math.pi) if self.is_normal else (1.0, 2.0)
        size = np.square(error, out=error) if self.is_normal else np.abs(error, out=error)
        log_density = size @ (rows.blocks * (-power / self.scale)[:, None])
        log_scale = power * np.log(constant * self.scale)
        log_density -= rows.observed @ (rows.blocks * log_scale[:, None])
        return log_density

    def log_patterns(
        self, rows: ScoredRows, labels: np.ndarray, penalised: np.ndarray
    ) -> np.ndarray:
        """(k, n, G) of what is observed and missing in every block. The effect of a row has a
        standard normal prior, and is one Newton step from 0 on the features outside the block."""
        odds = self.rates.odds(self.rates.slope(penalised) * penalised)
        q = expit(odds[labels])
        effect = rows.without(rows.observed - q) / (rows.without(q * (1.0 - q)) + 1.0)
        total = np.exp(effect) @ rows.blocks.T * np.exp(odds)[:, None]
        total += 1.0
        log_total = np.log(total, out=total) @ rows.blocks
        log_odds = rows.products(rows.observed, odds)
        return log_odds + effect * (rows.observed @ rows.blocks) - log_total


def _scales(total: np.ndarray, observed: np.ndarray) -> np.ndarray:
    """(p,) total / observed, with PRIOR pseudo-values of a common scale."""
    common = float(observed @ np.log(total / observed + 1e-12)) / float(observed.sum())
    return (total + PRIOR * math.exp(common)) / (observed + PRIOR)


def _log_sum(terms: np.ndarray) -> np.ndarray:
    """log of the sum of exp over the first axis; without subnormal numbers, which are slow."""
    top = terms.max(axis=0)
    return top + np.log(np.exp(np.maximum(terms - top, -60.0)).sum(axis=0))


def block_scores(
    clusters: ClusterStatistics, rows: ScoredRows, labels: np.ndarray, centers: np.ndarray,
    penalty: np.ndarray, reference: np.ndarray,
) -> np.ndarray:  # fmt: skip
    """(n, G) scores of rows with these labels (n,), by centres (k, p) fitted to others."""
    pull = penalty * (centers - reference) ** 2
    costs = rows.products(rows.observed, centers**2 - pull)
    costs -= 2.0 * rows.products(rows.values, centers)
    costs += (pull @ rows.blocks)[:, None]
    outside = costs.sum(axis=2, keepdims=True) - costs
    log_weight = clusters.log_size[:, None, None] - outside / (2.0 * clusters.noise)
    log_weight -= _log_sum(log_weight)
    log_weight += clusters.log_densities(rows, labels)
    log_weight += clusters.log_patterns(rows, labels, penalty > 0.0)
    return _log_sum(log_weight)


def standard_errors(candidates: Sequence[Candidate], weights: np.ndarray) -> np.ndarray:
    """(C,) how far candidates are behind the best, in standard errors over rows and blocks."""
    scores = np.array([candidate.scores for candidate in candidates], np.float64)
    behind = scores - scores[(scores.sum(axis=2) @ weights).argmax()]
    rows, blocks = behind.sum(axis=2), np.tensordot(behind, weights, axes=(1, 0))
    total = rows @ weights
    variance = ((rows - total[:, None] / weights.sum()) ** 2) @ weights
    variance += blocks.var(axis=1) * blocks.shape[1]
    return total / (np.sqrt(variance) + 1e-9)


# --- mixtures with a missingness mechanism ------------------------------------------------------


class MixtureExpectation(NamedTuple):
    """The expected centre of each row under the mixture with the best BIC."""

    where: str  # the reference near which values go missing; "": for mcar and class
    expected: np.ndarray  # (n, m) of some features
    variance: np.ndarray  # (m,) of these within clusters
    columns: np.ndarray  # (m,)
    mechanisms: list[MechanismFit]

    def scatter(self, candidate: Candidate, weights: np.ndarray) -> np.ndarray:
        """(n,) squared distance of expected centres from their mean in the cluster of the row."""
        member = np.eye(len(candidate.centers[0]))[candidate.labels[0]]
        sizes = np.maximum(weights @ member, 1e-300)
        means = (member.T @ (weights[:, None] * self.expected)) / sizes[:, None]
        return ((member @ means - self.expected) ** 2 / self.variance).sum(axis=1)

    def distances(self, candidate: Candidate) -> np.ndarray:
        """(n,) squared, of a candidate's centres from these, averaged over its fits."""
        centers = [
            mu[:, self.columns][labels]
            for mu, labels in zip(candidate.centers, candidate.labels, strict=True)
        ]
        return ((np.array(centers) - self.expected) ** 2 / self.variance).sum(axis=2).mean(axis=0)


def fit_mixtures(
    sample: Observed,
    references: dict[str, np.ndarray],
    labels: np.ndarray,
    columns: np.ndarray | None = None,
) -> MixtureExpectation:
    """Normal mixtures with values missing at random, near each reference or below a limit; the one
    with the best BIC.

    All start from the same partition ``labels`` (n,), so that only their mechanisms differ; values
    missing at random also from the clusters of the best of the others. Without ``columns`` mixtures
    decide, and each cluster may also lose values at its own rate.
    """
    decide = columns is None
    max_iter, tol = (MIXTURE_ITER, MIXTURE_TOL) if decide else (ROUGH_ITER, ROUGH_TOL)
    columns = np.arange(sample.n_features) if columns is None else columns
    sample = sample.take_columns(columns)
    tables = [replace(sample, reference=reference[columns]) for reference in references.values()]
    ems = [EM(table) for table in tables]  # of the first where the reference does not matter
    sums = ems[0].sums_of(np.eye(labels.max() + 1)[labels])
    fitted: list[tuple[str, MixtureFit]] = []

    def fit(
        name: str, where: str = "", em: EM = ems[0], n_chosen: int = 0,
        clusters: Parameters | None = None,
    ) -> None:  # fmt: skip
        start = em.start(sums, name)
        if clusters:
            start = clusters._replace(mechanism=start.mechanism)
        if name == "decay":
            t = 1.0 / float(start.variances.mean())
            start = start._replace(mechanism=replace(start.mechanism, t=t, c=0.99))
        *_, last = em.with_prior(COMMON).run(State(start), max_iter=max_iter, tol=tol)
        fitted.append((where, MixtureFit(em, name, 0.0, n_chosen, last)))
        fitted.sort(key=lambda pair: pair[1].score)

    for name in ("mcar", "class")[: 1 + decide]:
        fit(name)
    for where, em in zip(references, ems, strict=True):
        # The means of observed values hide a strong loss, and EM is slow there.
        filled = em.start(_filled(sums, em), "mcar")
        n_chosen = 0 if em is ems[0] else int(sample.has_gaps.sum())
        for name in ("decay", "threshold"):
            if MECHANISMS[name].is_possible(em.values):
                fit(name, where, em, n_chosen, filled)
    fit("limit", where, em, clusters=filled)  # near the smallest values, if that is a reference
    if fitted[-1][0]:  # its clusters may do as well with values missing at random
        fit("mcar", clusters=fitted[-1][1].state.parameters)
    where, best = fitted[-1]
    parameters = best.state.parameters
    expected = posteriors(best.em.observed, parameters, 1).memberships @ parameters.means
    likeliest = {mixture.mechanism: mixture for _, mixture in fitted}
    mechanisms = [_mechanism_fit(likeliest[name]) for name in MECHANISMS if name in likeliest]
    return MixtureExpectation(
        where, expected, parameters.variances.mean(axis=0), columns, mechanisms
    )


def _filled(sums: SoftSums, em: EM) -> SoftSums:
    """The sums of a partition if missing values were at the reference."""
    gaps = np.maximum(sums.sizes[:, None] - sums.counts, 0.0) * em.observed.has_gaps
    value, counts = em.observed.reference - em.observed.means, sums.counts + gaps
    return sums._replace(
        sums=sums.sums + gaps * value, squares=sums.squares + gaps * value**2,
        counts=counts, pulls=counts,
    )  # fmt: skip


def _mechanism_fit(mixture: MixtureFit) -> MechanismFit:
    """Its penalty is lam = 1 - (E[x | missing] - c) / (mu - c), averaged as the loss weighs it."""
    em, (parameters, expectation, *_) = mixture.em, mixture.state
    mu, variance = parameters.means - em.observed.reference, parameters.variances.mean(axis=0)
    lost = missing_of(parameters, em.observed.reference).mean
    sums, has_gaps = expectation.sums, em.observed.has_gaps
    gaps = np.maximum(sums.sizes[:, None] - sums.counts, 0.0) * has_gaps / variance
    weight = max(float((gaps * mu**2).sum()), 1e-300)
    lam = max(float((gaps * mu * (mu - lost)).sum()) / weight, 0.0)
    strength = float(em.values.missing_rate[has_gaps].mean())
    if mixture.mechanism == "decay":
        strength = parameters.mechanism.t * float(variance.mean())
    elif mixture.mechanism == "threshold":
        strength = float((parameters.mechanism.tau / np.sqrt(variance))[has_gaps].mean())
    return MechanismFit(mixture.mechanism, strength, mixture.score, lam)


# --- the choice ---------------------------------------------------------------------------------


class Choice(NamedTuple):
    """The penalty, the reference (p,), why, and centres (k, p) fitted with them."""

    lam: Any  # a number, or one per feature
    reference: np.ndarray
    missingness: Missingness
    centers: np.ndarray | None = None


def choose(
    observed: Observed,
    k: int,
    *,
    lams: Sequence[Any] = LAMS,
    references: dict[str, np.ndarray] | None = None,
    max_iter: int,
    tol: float,
    threads: int,
) -> Choice:
    """lam and reference for k clusters of a table: the same whatever the seed of the fit.

    ``lams``: candidates in increasing order, each a number or one per feature; with one candidate
    only the reference is chosen. ``LAMS`` are searched: lam may lie between them, and single
    features may have no penalty.
    ``references``: (p,) each, by name; that of ``observed`` if there is no choice.
    """
    references = references or {"given": observed.reference}
    search, p = lams is LAMS, observed.n_features
    sample, rows, columns = sample_table(observed, k)
    if not sample.has_gaps.any() or sample.n_rows < k + 2:
        name, reference = next(iter(references.items()))
        return Choice(lams[0], reference, _no_choice(name, lams[0], observed))
    penalties = np.array([np.broadcast_to(lam, p)[columns] for lam in lams], np.float64)
    points = {name: reference[columns] for name, reference in references.items()}
    # The last digits of a matrix product depend on the number of threads.
    with _blas().limit(limits=1, user_api="blas"):
        settings = dict(max_iter=max_iter, tol=tol, threads=threads)
        evaluator = Evaluator(*standardised(sample, points), k, settings)
        candidates = evaluator.candidates(penalties, search)
        best = evaluator.best(candidates)
        mixture = evaluator.mixture or evaluator.mixture_of(best)
        theory = round(max(mixture.mechanisms, key=lambda fit: fit.log_likelihood).lam, 3)
        if search and best.lam > 0.0 and theory > 0.0:
            penalty = np.where(best.penalty > 0.0, theory, 0.0)
            candidates += evaluator.fit(best.family, best.name, penalty[None])
            candidates.sort(key=lambda candidate: (candidate.family, candidate.lam))
        behind = standard_errors(candidates, evaluator.weights)
        in_family = np.array([candidate.family == best.family for candidate in candidates])
        near = np.flatnonzero(in_family & (behind >= behind[in_family].max() - MARGIN))
        as_good = [candidates[i] for i in near]
        chosen = min(as_good, key=lambda c: float(sample.weights @ mixture.distances(c)))
        rates = evaluator.observation_rates(chosen)
    table = _table([
        (c.lam, c.name, p - c.n_unpenalised if c.lam > 0.0 else 0,
         np.average(c.scores.sum(axis=1), weights=evaluator.weights), below)
        for c, below in zip(candidates, behind, strict=True)
    ])  # fmt: skip
    missingness = Missingness(
        chosen.lam, chosen.name, table, (as_good[0].lam, as_good[-1].lam), mixture.mechanisms,
        rates.explained(), chosen.n_unpenalised if search else 0,
        "mechanism" if evaluator.mixture else "score",
    )  # fmt: skip
    lam = next((lam for lam in lams if np.max(lam) == chosen.lam), chosen.lam)
    if search and chosen.n_unpenalised:
        lam = np.full(p, chosen.lam)
        lam[columns[chosen.penalty == 0.0]] = 0.0
    whole = replace(observed, reference=references[chosen.name]).take(rows)
    centers = centers_of_partition(whole, chosen.labels[0], k, lam, threads)
    return Choice(lam, references[chosen.name], missingness, centers)


class Candidate(NamedTuple):
    """lam and reference, the fits to each training set, and the scores."""

    family: int  # candidates of one family differ in lam only; -1 without a penalty
    name: str  # of the reference
    penalty: np.ndarray  # (p,) lam, or 0 in features that have none
    centers: np.ndarray  # (F, k, p) of the fit to each training set
    labels: np.ndarray  # (F, n) of all rows by those fits
    scores: np.ndarray = np.empty(0)  # (m, G) of the rows held out

    @property
    def lam(self) -> float:
        return float(self.penalty.max())

    @property
    def n_unpenalised(self) -> int:
        """Features without a penalty, where others have one."""
        return int(np.count_nonzero(self.penalty == 0.0)) if self.lam > 0.0 else 0


class Evaluator:
    """Fits candidates to training rows of a sample, and scores them on the other rows.

    Each training set leaves out a fold; with many rows, one half is for training and the other is
    scored. Where mixtures decide, the whole sample is the only training set.
    """

    def __init__(
        self, sample: Observed, references: dict[str, np.ndarray], k: int, settings: dict[str, Any]
    ):
        self.sample, self.references, self.k, self.settings = sample, references, k, settings
        self.rows, self.threads, n = ScoredRows.of(sample), settings["threads"], sample.n_rows
        self.mixtures_decide, halves = sample.n_features < BLOCKS, n >= 2 * ENOUGH_ROWS
        # The rows left must be enough for k clusters: n - n / n_folds >= k.
        n_folds = 2 if halves else max(FOLDS, -(-n // (n - k)))
        fold = np.arange(n) * n_folds // n
        self.test_rows = [np.flatnonzero(fold == f) for f in range(1 if halves else n_folds)]
        self.train_rows = [np.setdiff1d(np.arange(n), test) for test in self.test_rows]
        if self.mixtures_decide:
            self.test_rows = self.train_rows = [np.arange(n)]
            self.train_tables = [sample]
        else:
            self.train_tables = [sample.take(train) for train in self.train_rows]
        self.weights = sample.weights[np.concatenate(self.test_rows)]
        self.mixture: MixtureExpectation | None = None
        self.warm_starts: dict[str, list[np.ndarray]] = {}  # by reference, for each training set

    def candidates(self, penalties: np.ndarray, search: bool) -> list[Candidate]:
        """The candidates with their scores: penalties (L, p) at each reference, and if ``search``,
        without those features that lose values at random."""
        self._find_warm_starts(penalties)
        first, *_ = self.references
        if self.mixtures_decide:
            middle = penalties[[np.abs(penalties.max(axis=1) - 1.0).argmin()]]
            centers = self._centers(first, middle, self.warm_starts[first])
            labels = self._labels(first, middle, centers)
            self.mixture = fit_mixtures(self.sample, self.references, labels[0, 0])
        positive = penalties.any(axis=1)
        candidates = self.fit(-1, first, penalties[~positive])
        for family, name in enumerate(self.references):
            candidates += self.fit(family, name, penalties[positive])
        if not search or self.mixtures_decide:
            return candidates
        for family, name in enumerate(self.references, start=len(self.references)):
            depends = self.observation_rates(candidates[0], name).depends_on_magnitude()
            if 0 < np.count_nonzero(depends) < len(depends):
                candidates += self.fit(family, name, penalties[positive] * depends)
        return candidates

    def _find_warm_starts(self, penalties: np.ndarray) -> None:
        """For each reference and training set, centres (3, k, p) from which all candidates start:
        the best of a few k-means++ starts for each of three penalties."""
        anchor_penalties = penalties[sorted({0, len(penalties) // 2, max(len(penalties) - 2, 0)})]
        n_starts, starts = N_STARTS * (FOLDS if self.mixtures_decide else 1), []
        for seed, table in enumerate(self.train_tables):
            rng = np.random.RandomState(seed)
            drawn = k_means_plus_plus(table, n_starts, self.k, rng, self.threads)
            starts.append(with_component_start(table, drawn, 0.0, self.threads))
        for name in self.references:
            self.warm_starts[name] = self._centers(name, anchor_penalties, starts)

    def _centers(
        self, name: str, penalties: np.ndarray, starts: Sequence[np.ndarray]
    ) -> list[np.ndarray]:
        """Centres (L, k, p) for each training set: for each of the penalties (L, p), those with the
        smallest loss that its starts (R, k, p) lead to."""
        count, fitted = len(penalties), []
        for table, begin in zip(self.train_tables, starts, strict=True):
            lams = np.repeat(penalties, len(begin), axis=0)
            table = replace(table, reference=self.references[name])
            results = run_starts(table, np.tile(begin, (count, 1, 1)), lams, **self.settings)
            best = results.losses.reshape(count, -1).argmin(axis=1)
            fitted.append(results.centers[np.arange(count) * len(begin) + best])
        return fitted

    def _labels(
        self, name: str, penalties: np.ndarray, centers: Sequence[np.ndarray]
    ) -> np.ndarray:
        """(L, F, n) of all rows, by the centres of each training set."""
        sample = replace(self.sample, reference=self.references[name])
        each = [assign_rows(sample, mu, penalties, self.threads).T for mu in centers]
        return np.stack(each, axis=1)

    def fit(self, family: int, name: str, penalties: np.ndarray) -> list[Candidate]:
        """A candidate with its scores for each of the penalties (L, p). One with the labels of the
        candidate before it has the same scores."""
        candidates: list[Candidate] = []
        if not len(penalties):
            return candidates
        centers = self._centers(name, penalties, self.warm_starts[name])
        labels = self._labels(name, penalties, centers)
        for fitted in zip(penalties, np.stack(centers, axis=1), labels, strict=True):
            new = Candidate(family, name, *fitted)
            same = candidates and np.array_equal(candidates[-1].labels, new.labels)
            known = same and not self.mixtures_decide
            scores = candidates[-1].scores if known else self._scores(new)
            candidates.append(new._replace(scores=scores))
        return candidates

    def _scores(self, candidate: Candidate) -> np.ndarray:
        """(m, G), or (m, 1) where mixtures decide."""
        if self.mixture:
            return -self.mixture.scatter(candidate, self.weights)[:, None]
        penalty, reference = (
            array.astype(np.float32)
            for array in (candidate.penalty, self.references[candidate.name])
        )
        fits = candidate.labels, candidate.centers
        folds = zip(self.train_rows, self.test_rows, *fits, strict=True)
        return np.concatenate([
            block_scores(
                ClusterStatistics.of(self.rows.take(train), labels[train], self.k, reference),
                self.rows.take(test), labels[test], centers.astype(np.float32), penalty, reference,
            )
            for train, test, labels, centers in folds
        ])  # fmt: skip

    def best(self, candidates: Sequence[Candidate]) -> Candidate:
        """The best candidate, or no penalty if that is at most one standard error worse; where
        mixtures decide, the best candidate with the reference of the best mixture."""
        if self.mixture:
            where = self.mixture.where
            penalised = [c for c in candidates if c.lam > 0.0 and c.name == where]
            candidates = penalised or [c for c in candidates if c.lam == 0.0] or candidates
        behind = standard_errors(candidates, self.weights)
        if candidates[0].lam == 0.0 and behind[0] >= -MARGIN:
            return candidates[0]
        return candidates[int(behind.argmax())]

    def mixture_of(self, candidate: Candidate) -> MixtureExpectation:
        """The mixture started from the clusters of a candidate, with its reference."""
        included = (candidate.penalty > 0.0) | (candidate.lam == 0.0)
        columns = np.flatnonzero(self.sample.has_gaps & included)[:BLOCKS]
        reference = {candidate.name: self.references[candidate.name]}
        return fit_mixtures(self.sample, reference, candidate.labels[0], columns)

    def observation_rates(self, candidate: Candidate, name: str = "") -> ObservationRates:
        """In all rows, by the labels of a candidate."""
        reference = self.references[name or candidate.name].astype(np.float32)
        return ClusterStatistics.of(self.rows, candidate.labels[0], self.k, reference).rates


def references_for(observed: Observed) -> dict[str, np.ndarray]:
    """The references to choose from, by name: zero unless it lies far outside the values of most
    features with missing values."""
    least, most = observed.summary.minimum, observed.summary.maximum
    known = np.isfinite(least)
    least, most = np.where(known, least, 0.0), np.where(known, most, 0.0)
    far = (np.maximum(least, -most) > most - least)[observed.has_gaps & known]
    zero = {} if far.sum() > 0.5 * len(far) else {"zero": np.zeros(len(least))}
    return zero | {"min": least}


def sample_table(observed: Observed, k: int) -> tuple[Observed, np.ndarray, np.ndarray]:
    """Rows of positive weight in random order, features, and their numbers; all of them if there
    are few, except features without a value."""
    n, p = observed.source.shape
    entries = min(max(n * p // 64, ENTRIES_OF_SAMPLE), 8 * ENTRIES_OF_SAMPLE)
    enough = ENOUGH_ROWS if p < BLOCKS else 2 * ENOUGH_ROWS
    rows = observed.sample(max(enough, 50 * k, min(n // 64, entries // p)))
    rows = np.random.default_rng(0).permutation(rows)
    sample, columns = observed.take(rows), np.arange(p)
    most = max(ENOUGH_COLUMNS, entries // min(len(rows), ENOUGH_ROWS))
    if p > most:
        columns = np.sort(np.random.default_rng(0).choice(p, most, replace=False))
        sample = sample.take_columns(columns)
    used = np.flatnonzero(sample.summary.counts > 0.0)
    if 0 < len(used) < len(columns):
        sample, columns = sample.take_columns(used), columns[used]
    return sample, rows, columns


def standardised(
    sample: Observed, references: dict[str, np.ndarray]
) -> tuple[Observed, dict[str, np.ndarray]]:
    """A sample and references (p,), as a dense table of features with mean 0, in units of their
    common spread."""
    arrays = zero_filled(sample.source, sample.means, sample.missing)
    values, observed = (array.toarray() if sample.is_sparse else array for array in arrays)
    squares, count = float((sample.weights @ values**2).sum()), float(sample.summary.counts.sum())
    spread = math.sqrt(squares / max(count, 1e-300))
    unit = max(spread, 1e-7 * np.abs(sample.means).max()) or 1.0  # not a rounding error
    points = {name: (point - sample.means) / unit for name, point in references.items()}
    sample = replace(
        sample, source=np.where(observed > 0.0, values / unit, np.nan), missing=math.nan,
        means=np.zeros(sample.n_features), reference=next(iter(points.values())),
    )  # fmt: skip
    return sample, points


def _table(rows: list[tuple[Any, ...]]) -> dict[str, np.ndarray]:
    columns = (np.array(column) for column in zip(*rows, strict=True))
    return dict(zip(("lam", "reference", "features", "score", "behind"), columns, strict=True))


def _no_choice(name: str, lam: Any, observed: Observed) -> Missingness:
    counts, lam = observed.summary.counts, float(np.max(lam))
    share = max(1.0 - float(counts[counts > 0.0].mean() / observed.weights.sum()), 0.0)
    table = _table([(lam, name, 0, 0.0, 0.0)])
    return Missingness(lam, name, table, (lam, lam), [MechanismFit("mcar", share, 0.0, 0.0)], 0.0)


@lru_cache(1)
def _blas() -> ThreadpoolController:
    return ThreadpoolController()
