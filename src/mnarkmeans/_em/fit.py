"""How MNARMixture is fitted: starts, the choice between mixtures by BIC, tempering.

Candidates are the mechanisms, with normal clusters and with Student's t, and with each reference
that is possible. Each begins from several partitions, of which the one with the largest objective
after a few iterations goes on; candidates far behind are then dropped, and after CHOICE_ITER
iterations the one with the largest

    log-likelihood - (log n / 2) (number of parameters of mechanism and tails)

is taken and run to its end. The choice does not depend on ``max_iter``.
"""

from __future__ import annotations

import logging
import math
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import brentq

from .._observed import Observed
from .._solver import STARTS, best_start, finish, report, run_starts
from .em import EM, FEW_GAPS, Parameters, State, posteriors, prior_weight
from .mechanisms import MECHANISMS, BelowLimit, ByChance, ByClass
from .tails import FIRST_FREEDOM

FIRST_LAMS = (0.0, 0.5, 1.0)
KMEANS_STARTS = 4  # for every lam
ENTRIES_OF_SAMPLE = 1 << 17  # k-means looks at so many
SHORT_ITER = 5
CHOICE_ITER = 50
CHOICE_TOL = 1e-3  # of the log-likelihood per row
# Log-likelihood, and so much more per row, by which a candidate may be behind without being dropped
BEHIND, BEHIND_PER_ROW = 20.0, 0.05


@dataclass(frozen=True)
class Settings:
    """What the user asked for, validated."""

    n_components: int
    mechanism: str
    tails: str
    init_params: str
    weights_init: np.ndarray | None
    means_init: np.ndarray | None
    n_init: int
    max_iter: int
    tol: float
    verbose: int
    prior: float | str


class Candidate(NamedTuple):
    """A kind of mixture."""

    em: EM
    mechanism: str
    freedom: float
    n_chosen: int = 0  # numbers of the reference that were chosen from the data

    def __str__(self) -> str:
        return f"{self.mechanism}, {'Student t' if self.freedom > 0 else 'normal'}"

    def is_twin(self, other: Candidate) -> bool:
        """The same with other tails."""
        same = self.mechanism == other.mechanism and self.em.reference is other.em.reference
        return same and self.freedom != other.freedom

    def score(self, state: State) -> float:
        """BIC, as a log-likelihood; clusters have the same number of parameters everywhere."""
        parameters = state.parameters
        own = parameters.mechanism.n_parameters(len(parameters.weights)) + (self.freedom > 0)
        own += self.n_chosen
        price = 0.5 * math.log(max(self.em.n_rows, 2.0)) * own
        return state.expectation.log_likelihood - price


class Fitted(NamedTuple):
    """The mixture taken, and what was compared."""

    em: EM
    parameters: Parameters
    state: State  # of its last iteration
    log_likelihoods: dict[str, float]  # of each mechanism
    scores: dict[str, float]


def fit(observed: Observed, settings: Settings, references, rng, **em_settings: Any) -> Fitted:
    """references: those to choose from."""
    tables = [replace(observed, reference=reference) for reference in references]
    ems = [EM(table, **em_settings) for table in tables]
    runs: dict[int, tuple[Candidate, list[State]]] = {}
    candidates: list[Candidate] = []
    for start in range(settings.n_init):
        partitions = _partitions(ems, settings, rng)
        candidates = candidates or _candidates(ems, settings, partitions[0])
        compare = len(candidates) * settings.n_init > 1
        short = SHORT_ITER if compare or len(partitions) > 1 else 1
        begun = _begin(candidates, settings, partitions, short)
        if compare:
            least = max(one.score(path[-1]) for one, path in begun)
            least -= BEHIND + BEHIND_PER_ROW * ems[0].n_rows
            for one, path in begun:
                if one.score(path[-1]) >= least:
                    _go_on(one, path, CHOICE_ITER, settings)
        for key, (one, path) in enumerate(begun):
            report(f"start {start + 1}, {one}: {path[-1].path[-1]:.6f}", settings.verbose > 0)
            if key not in runs or _objective(path) > _objective(runs[key][1]):
                runs[key] = one, path
    return _finished(list(runs.values()), settings)


def go_on(observed: Observed, settings: Settings, last: Parameters, **em_settings: Any) -> Fitted:
    """From the parameters of an earlier fit (warm start)."""
    em = EM(observed, **em_settings)
    tails = {"normal": 0.0, "t": last.freedom or FIRST_FREEDOM}
    last = last._replace(freedom=tails.get(settings.tails, last.freedom))
    memberships = posteriors(observed, last, em.threads).memberships
    runs = []
    for one in _candidates([em], settings, memberships, freedoms=[last.freedom]):
        if one.mechanism == last.mechanism.name:
            begin = last._replace(mechanism=last.mechanism.continued(em.values))
        else:
            begin = one.em.start(memberships, one.mechanism, last.freedom)
        path = [State(begin)]
        _go_on(one, path, settings.max_iter, settings)
        runs.append((one, path[1:]))
    return _finished(runs, settings)


def likeliest_mechanism(
    observed: Observed, references: list[np.ndarray], partitions: list[np.ndarray], k: int
) -> int | None:
    """Around which of the references values get lost, by BIC of normal mixtures that begin with
    partitions (n,); None if they are likelier lost by chance, or at a rate of each cluster."""
    starts = [np.eye(k)[labels] for labels in partitions]
    em = EM(observed)
    em = em.copy(prior=prior_weight(em, starts[0], 0.0))
    around = [em.copy(observed=replace(observed, reference=point)) for point in references]
    candidates = [Candidate(em, "mcar", 0.0), Candidate(em, "class", 0.0)]
    candidates += [Candidate(one, "decay", 0.0) for one in around]

    def score(one: Candidate) -> float:
        """Of the best start."""
        begun = [State(one.em.start(start, one.mechanism)) for start in starts]
        runs = [[*one.em.run(state, max_iter=CHOICE_ITER, tol=CHOICE_TOL)] for state in begun]
        return max(one.score(path[-1]) for path in runs)

    best = int(np.argmax([score(one) for one in candidates]))
    return best - 2 if best >= 2 else None


def _finished(runs: list[tuple[Candidate, list[State]]], settings: Settings) -> Fitted:
    """The best candidate, run to its end; scores of all."""
    best, path = max(runs, key=lambda run: run[0].score(run[1][-1]))
    if len(path) < settings.max_iter:
        _go_on(best, path, settings.max_iter, settings)
    state = path[min(len(path), settings.max_iter) - 1]
    scores: dict[str, float] = {}
    values: dict[str, float] = {}
    for one, states in runs:
        score = one.score(states[-1])
        if score > scores.get(one.mechanism, -math.inf):
            scores[one.mechanism] = score
            values[one.mechanism] = states[-1].expectation.log_likelihood
    parameters = best.em.m_step(state.parameters, state.expectation)
    return Fitted(best.em, parameters, state, values, scores)


def _objective(path: list[State]) -> float:
    return path[-1].path[-1]


def _go_on(one: Candidate, path: list[State], most: int, settings: Settings) -> None:
    """INOUT path: iterations up to ``most`` in all."""
    if path[-1].converged:
        return
    done = len(path[-1].path)
    for state in one.em.run(path[-1], max_iter=most - done, tol=settings.tol):
        path.append(state)
        message = f"  {one}, iteration {len(state.path)}: {state.path[-1]:.6f}"
        report(message, settings.verbose > 1, logging.DEBUG)


# --- candidates and starts ----------------------------------------------------------------------


def _candidates(
    ems: list[EM], settings: Settings, memberships: np.ndarray, freedoms: list[float] | None = None
) -> list[Candidate]:
    values = ems[0].values
    complete = not values.has_gaps.any()
    if freedoms is None:
        freedoms = {"normal": [0.0], "t": [FIRST_FREEDOM]}.get(settings.tails)
    if freedoms is None:  # a complete table is left to GaussianMixture
        freedoms = [0.0] if complete else [0.0, FIRST_FREEDOM]
    names = [settings.mechanism] if settings.mechanism != "auto" else list(MECHANISMS)
    if complete and settings.mechanism == "auto":
        names = ["mcar"]
    found = []
    for freedom in freedoms:
        prior = settings.prior
        if prior == "auto":
            prior = prior_weight(ems[0], memberships, freedom)
        own = [em.copy(prior=float(prior)) for em in ems]
        for name in names:
            # Only "decay" and "threshold" depend on the reference.
            around = issubclass(MECHANISMS[name], (ByClass, ByChance, BelowLimit))
            for number, em in enumerate(own[:1] if around else own):
                if settings.mechanism != "auto" or MECHANISMS[name].is_possible(em.values):
                    n_chosen = int(values.has_gaps.sum()) if number > 0 else 0
                    found.append(Candidate(em, name, freedom, n_chosen))
    return found


def _begin(
    candidates: list[Candidate], settings: Settings, partitions: list[np.ndarray], short: int
) -> list[tuple[Candidate, list[State]]]:
    """A few iterations of each.

    Where normal clusters are compared with Student's t, mechanisms other than rates are costly for
    Student's t, and begin where their normal twin and "mcar" have led.
    """
    begun: list[tuple[Candidate, list[State]]] = []
    for one in candidates:
        starts = partitions
        if one.freedom > 0 and not MECHANISMS[one.mechanism].ignorable:
            led = [
                posteriors(other.em.observed, path[-1].parameters, other.em.threads).memberships
                for other, path in begun
                if other.is_twin(one) or (other.mechanism, other.freedom) == ("mcar", one.freedom)
            ]
            starts = led or partitions
        begun.append((one, _best_start(one, settings, starts, short)))
    return begun


def _best_start(
    one: Candidate, settings: Settings, partitions: list[np.ndarray], short: int
) -> list[State]:
    """A few iterations from every partition, and the path of the best."""
    paths = []
    for memberships in partitions:
        begin = one.em.start(memberships, one.mechanism, one.freedom)
        if settings.means_init is not None:
            begin = begin._replace(means=settings.means_init)
        if settings.weights_init is not None:
            begin = begin._replace(weights=settings.weights_init)
        path = [State(begin)]
        _go_on(one, path, short, settings)
        paths.append(path[1:])
    return max(paths, key=_objective)


def _partitions(ems: list[EM], settings: Settings, rng: Any) -> list[np.ndarray]:
    """Memberships (n, k) to begin with, one or several."""
    observed, k, threads = ems[0].observed, settings.n_components, ems[0].threads
    if settings.means_init is not None:
        return [_memberships(observed, settings.means_init, 0.0, threads)]
    if settings.init_params == "random":
        shares = rng.random_sample((observed.n_rows, k))
        return [shares / shares.sum(axis=1, keepdims=True)]
    if settings.init_params != "kmeans":
        way = {"k-means++": "k-means++", "random_from_data": "random"}[settings.init_params]
        return [_memberships(observed, STARTS[way](observed, 1, k, rng, threads)[0], 0.0, threads)]
    starts = STARTS["k-means++"](observed, KMEANS_STARTS, k, rng, threads)
    found = []
    for number, em in enumerate(ems):
        table = em.observed
        sample = _sample_rows(table, 20 * k)
        lams = FIRST_LAMS if number == 0 else FIRST_LAMS[-1:]
        lams = lams if table.has_gaps.any() else FIRST_LAMS[:1]
        for lam in lams:
            runs = run_starts(sample, starts, lam, max_iter=300, tol=1e-5, threads=threads)
            centers = runs.centers[best_start(runs.losses)]
            found.append(_memberships(table, centers, lam, threads))
    return found


def _memberships(observed: Observed, centers: np.ndarray, lam: float, threads: int) -> np.ndarray:
    labels = finish(observed, centers, lam, threads)[0]
    return np.eye(len(centers))[labels]


def _sample_rows(observed: Observed, fewest: int) -> Observed:
    """About ENTRIES_OF_SAMPLE entries of the rows that count."""
    source = observed.source
    stored = source.size if isinstance(source, np.ndarray) else source.nnz
    wanted = ENTRIES_OF_SAMPLE * observed.n_rows // max(stored, 1)
    rows = observed.sample(max(200, fewest, wanted))
    return observed if len(rows) == observed.n_rows else observed.take(rows)


# --- tempering ----------------------------------------------------------------------------------

DRAWS = 12
DRAW_ITER = 10  # from where the fit ended
MANY_ROWS = 1000  # per cluster: parameters are known well enough
LEAST_POWER = 0.1


def tempered(memberships: np.ndarray, power: float) -> np.ndarray:
    """Memberships (n, k) raised to a power and normalised."""
    if power == 1.0:
        return memberships
    raised = memberships**power
    return raised / raised.sum(axis=1, keepdims=True)


def temper_of(em: EM, parameters: Parameters, rng: np.random.RandomState) -> float:
    """The power that accounts for parameters estimated from few rows.

    With parameters theta_b of the Bayesian bootstrap (rows in random weights), T <= 1 solves

        mean_i tempered(rho_i, T)[label_i] = mean_ib rho_i(theta_b)[label_i].

    The truth is as far from the estimate as the theta_b are, but the labels are the estimate's own,
    which hides half of the uncertainty: the power is T^2. It is 1 on a complete table.
    """
    observed, share = em.observed, em.values.missing_share
    n, k, weights = observed.n_rows, len(parameters.weights), observed.weights
    if share <= 0.0 or k < 2 or em.n_rows > MANY_ROWS * k:
        return 1.0
    own = posteriors(observed, parameters, em.threads).memberships
    at = np.arange(n), own.argmax(axis=1)
    believed = 0.0
    for _ in range(DRAWS):
        drawn = rng.standard_gamma(weights)  # a weight of w is w rows
        drawn *= weights.sum() / drawn.sum()
        other = em.copy(observed=replace(observed, weights=drawn))
        *_, state = other.run(State(parameters), max_iter=DRAW_ITER, tol=0.0)
        there = other.m_step(state.parameters, state.expectation)
        memberships = posteriors(observed, there, em.threads).memberships
        believed += float(weights @ memberships[at]) / DRAWS

    def excess(power: float) -> float:
        return float(weights @ tempered(own, power)[at]) - believed

    power = 1.0 if excess(1.0) <= 0 else LEAST_POWER
    if power < 1.0 and excess(LEAST_POWER) < 0:
        power = float(brentq(excess, LEAST_POWER, 1.0, xtol=1e-4))
    return 1.0 - min(1.0, share / FEW_GAPS) * (1.0 - power**2)
