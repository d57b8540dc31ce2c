"""What the gaps say: the likeliest mechanism, and the penalty that follows from it.

Labels fitted with a penalty have already used the gaps, so a likelihood that takes them for granted
confirms whatever lam they were fitted with. In a mixture a row belongs to every cluster with its
probability instead. Mixtures with one variance for all entries (`common`) are fitted for gaps that
know nothing of the value and for every way of depending on it (`mechanisms`):

    mnar0      exp(-t x^2)
    mnar1      exp(-t x^2) / 2, close to the logistic curve 1 / (1 + exp(a x^2))
    threshold  |x| below a threshold of the feature
    decay      c exp(-t x^2), the general case of the first two

Clusters are of equal size at first: with free sizes, a small cluster near the reference and rows
lost there look alike, and k-means favours equal sizes anyway. A parameter more must earn its keep,
at the price of the BIC: log(n) / 2 for each parameter of the mechanism and each free size.

One penalty for all entries is the mean of lam_lj = 1 - E[x | missing] / mu_lj weighted by the part
each has in the loss,

    lam = sum_lj mu_lj^2 lam_lj (m_lj + h_l) / sum_lj mu_lj^2 m_lj

where m_lj are the gaps and h_l the rows that lost every value: the gaps of the rows that are left
pull for them too.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from .._core.rounds import Until
from .answer import DOUBT, Missingness
from .common import Problem, State
from .limit import limit_of
from .mar import gain_of_complete_features
from .mechanisms import MECHANISMS, Clusters, lost_far_away
from .rows import Rows, Start
from .sides import Sides

SHORT_ROUNDS = 4  # from every start, after the first, before only the best goes on
MOST_ROUNDS = 40
# Gain of log-likelihood per round below which nothing more will change, for up to SMALL coordinates
# of centres; of more, each may still gain as much.
TOLERANCE = 1e-2
SMALL = 1000

SLACK = 20.0  # log-likelihood that a family may always be behind before it is given up
# What more rounds may gain for each coordinate of a centre (0.11 was the most ever seen).
GAIN_PER_CENTER = 0.25
HOPEFUL = 0.2  # of their price, what sizes of their own must gain in the first round
FAR_BEHIND = 3.0  # what a family may lack before its first round, in units of `_reach`
AFTER_FIRST = 0.7  # and all rounds after the first, for each coordinate and each row
# k-means draws hard borders, which moves the centres of overlapping clusters apart; more pull than
# the theory of the single cluster asks for makes up for it. On Figure 2 powers from 0.4 to 0.67 do
# equally well, 1 is worse.
POWER = 0.5
LARGEST = 2.0  # with few features and most rows lost the formula has no bound of its own


class _Candidate(NamedTuple):
    """A mixture, and its log-likelihood with and without the price of its parameters."""

    state: State
    value: float
    score: float


def explained_elsewhere(rows: Rows) -> float:
    """Log-likelihood gained by gaps that follow a feature without gaps."""
    return gain_of_complete_features(
        rows.table.source, rows.has_gaps, rows.gaps_per_row, rows.weights
    )


def estimate_missingness(
    rows: Rows,
    starts: Sequence[Start],
    elsewhere: float | None = None,
    by_chance_from: Sequence[Start] | None = None,
) -> Missingness:
    """Fit the mixtures from every start; the likeliest mechanism gives lam.

    ``elsewhere``: what gaps that follow a complete feature explain, if it is known already;
    ``by_chance_from``: other starts for gaps that know nothing of the value.
    """
    if rows.tell_nothing:
        return Missingness.nothing_to_estimate(rows.missing_weight, rows.observed_weight)
    elsewhere = explained_elsewhere(rows) if elsewhere is None else elsewhere
    problem = Problem(rows)
    chosen = _with_free_sizes(problem, _likeliest(problem, starts))
    within_reach = chosen.value - elsewhere - _reach(problem, chosen.state)
    by_chance = _begin(problem, by_chance_from or starts, "one rate", within_reach)
    behind = chosen.score - by_chance.score - elsewhere
    if behind < SLACK + GAIN_PER_CENTER * chosen.state.looked.mean.size:
        by_chance = _with_free_sizes(problem, _finish(problem, by_chance))
    return _describe(problem, chosen, by_chance, elsewhere)


def _likeliest(problem: Problem, starts: Sequence[Start]) -> _Candidate:
    """The best of the families that depend on the value, clusters being of equal size."""
    general = _begin(problem, starts, "decay")
    families = ["mnar0", "mnar1"]
    if _threshold_possible(problem, general.state):
        families.append("threshold")
    begun = [general]
    within_reach = general.value - _reach(problem, general.state)
    for family in families:
        if family == "mnar1" and _as_likely(begun[-1], general):
            continue  # it is a case of "decay" too, and mnar0 is the likeliest of those
        until = _until(problem, general.state.looked.mean.size, SHORT_ROUNDS + 1, within_reach)
        begun.append(_priced(problem, problem.turned(general.state, family, until)))
    *others, first = sorted(begun, key=_score)
    best = _finish(problem, first)
    # Who is further behind than twice what the leader gained will not catch up.
    behind = SLACK + 2.0 * (best.score - first.score)
    finished = [_finish(problem, other) for other in others if best.score - other.score < behind]
    return max([best, *finished], key=_score)


def _as_likely(case: _Candidate, general: _Candidate) -> bool:
    """Nothing is left to gain for a special case of a family."""
    settled = case.state.converged and general.state.converged
    return settled and case.value > general.value - 0.01


def _threshold_possible(problem: Problem, general: State) -> bool:
    """Not with a value at the reference itself, nor if the gaps of the clusters as they are would
    be far less likely."""
    rows, clusters = problem.rows, problem.clusters(general)
    threshold = MECHANISMS["threshold"]
    if not threshold.is_possible(rows):
        return False
    log_p = threshold.kind(rows).lost(clusters.mean, clusters.variance).log_missing
    gain = float((clusters.gaps * (log_p - general.looked.log_missing)).sum())
    gain -= general.mechanism.total_log_observed(rows)
    return gain > -FAR_BEHIND * _reach(problem, general)


def _begin(
    problem: Problem, starts: Sequence[Start], family: str, within_reach: float = -math.inf,
    equal_sizes: bool = True,
) -> _Candidate:  # fmt: skip
    """A few rounds from every start; the best of them. Those that are not within reach after their
    first round are left there."""
    problem.rows.hard_sums(starts)  # of all of them in one look at the rows
    until = _until(problem, starts[0].centers.size, SHORT_ROUNDS + 1, within_reach)
    begun = (
        _priced(problem, problem.begin(start, family, until, equal_sizes=equal_sizes))
        for start in starts
    )
    return max(begun, key=_score)


def _finish(problem: Problem, begun: _Candidate) -> _Candidate:
    if begun.state.converged:
        return begun
    until = _until(problem, begun.state.looked.mean.size, MOST_ROUNDS)
    return _priced(problem, problem.on(begun.state, until))


def _until(problem: Problem, size: int, rounds: int, at_least: float = -math.inf) -> Until:
    """Rounds until the likelihood settles; only one, if it is not ``at_least`` so likely; size:
    coordinates of centres."""
    tol = TOLERANCE * max(1.0, size / SMALL) / problem.rows.n_rows
    return Until(rounds, tol, at_least)


def _priced(problem: Problem, state: State) -> _Candidate:
    k, value = len(state.looked.mean), state.bound * problem.rows.n_rows
    parameters = state.mechanism.n_parameters(k) + (0 if state.equal_sizes else k - 1)
    price = 0.5 * parameters * math.log(max(problem.rows.n_rows, 2.0))
    return _Candidate(state, value, value - price)


def _reach(problem: Problem, state: State) -> float:
    """How far behind a family may be after its first round for others to be worth their time."""
    return SLACK + AFTER_FIRST * (state.looked.mean.size + problem.rows.n_rows)


def _with_free_sizes(problem: Problem, equal: _Candidate) -> _Candidate:
    """The same with sizes of their own, if that is worth its price."""
    means = equal.state.looked.mean
    price = 0.5 * (len(means) - 1) * math.log(max(problem.rows.n_rows, 2.0))
    free = equal.state._replace(equal_sizes=False, bound=-math.inf)
    until = _until(problem, means.size, MOST_ROUNDS, equal.value + HOPEFUL * price)
    return max(equal, _priced(problem, problem.on(free, until)), key=_score)


def describing_mixture(problem: Problem, starts: Sequence[Start]) -> State:
    """The mixture with P(missing | x) = c exp(-t x^2), which includes MCAR (t = 0)."""
    return _finish(problem, _begin(problem, starts, "decay", equal_sizes=False)).state


def _score(candidate: _Candidate) -> float:
    return candidate.score


def mean_penalty(found: State, clusters: Clusters) -> float:
    """One penalty for all gaps."""
    mu, looked = clusters.mean, found.looked
    total = float((np.square(mu) * (clusters.gaps - looked.hidden[:, None])).sum())
    if total <= 0:  # every centre at the reference, where E[x | missing] / mu is its slope
        return float(np.mean(1.0 - looked.lost_variance / found.variance))
    return float((mu * (mu - looked.lost_mean) * clusters.gaps).sum()) / total


def _describe(
    problem: Problem, chosen: _Candidate, by_chance: _Candidate, elsewhere: float
) -> Missingness:
    """The answer in the units of the data."""
    rows, found, clusters = problem.rows, chosen.state, problem.clusters(chosen.state)
    believed = chosen.score > by_chance.score + elsewhere + DOUBT
    theory = mean_penalty(found, clusters)
    at_random = lost_far_away(rows, clusters, found.mechanism) if believed else rows.missing_share
    return Missingness(
        lam=min(max(theory, theory**POWER), LARGEST) if believed else 0.0,
        lam_theory=theory,
        lam_star=found.mechanism.t,
        sigma2=found.variance,
        share_at_reference=found.mechanism.share_at_reference,
        share_at_random=at_random,
        log_likelihood=chosen.value,
        log_likelihood_mcar=by_chance.value + elsewhere,
        mechanism=found.mechanism.name if believed else "mcar",
    )


def describe_limit(rows: Rows, sides: Sides) -> Missingness:
    """The answer where values get lost below a limit, in the units of the data."""
    found = limit_of(sides.cells)
    weight = np.square(found.centers) * sides.cells.gaps[0]
    theory = float((weight * found.penalties).sum() / max(weight.sum(), 1e-300))
    limit = np.full(len(rows.reference), np.nan)
    limit[rows.has_gaps] = found.mechanism.c * rows.root + rows.reference[rows.has_gaps]
    units = -0.5 * rows.observed_weight * math.log(rows.scale)
    believed = sides.believed
    return Missingness(
        lam=sides.lam,
        lam_theory=theory if believed else 0.0,
        lam_star=0.0,
        sigma2=found.s * rows.scale,
        share_at_reference=found.share_at_reference if believed else rows.missing_share,
        share_at_random=0.0 if believed else rows.missing_share,
        log_likelihood=sides.log_likelihood + units,
        log_likelihood_mcar=sides.by_chance + units,
        mechanism="limit" if believed else "mcar",
        limit=limit if believed else None,
        softness=float(found.mechanism.zeta[0]) * rows.root if believed else 0.0,
    )
