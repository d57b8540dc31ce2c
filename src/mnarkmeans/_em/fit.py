"""How MNARMixture is fitted: starts, the choice between mixtures by BIC, tempering.

Candidates are the mechanisms, with normal clusters and with Student's t, and with each reference
that is possible. Each begins from several partitions, of which the one with the largest objective
after a few iterations goes on; candidates far behind are then dropped, and after CHOICE_ITER
iterations the one with the largest

    log-likelihood - (log n / 2) (number of parameters of the mechanism)

is taken and run to its end. The choice does not depend on ``max_iter``. ``model`` is the
MNARMixture, whose parameters are valid.
"""

from __future__ import annotations

import logging
import math
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from .._core import SoftSums
from .._observed import Observed
from .._solver import STARTS, finish, log_line, run_starts
from .._validation import is_auto
from .em import EM, FEW_GAPS, FREEDOM, Parameters, State, posteriors, prior_weight
from .mechanisms import MECHANISMS, TINY

FIRST_LAMS = (0.0, 0.5, 1.0)  # of the k-means fits that give the first partitions
ENTRIES_OF_SAMPLE = 1 << 17  # size of the sample that these are fitted to
SHORT_ITER, CHOICE_ITER = 5, 50
# Log-likelihood, in all and per row, by which a candidate may be behind without being dropped
BEHIND, BEHIND_PER_ROW = 20.0, 0.05


class MixtureFit(NamedTuple):
    """A mixture model, and how far its fit has come."""

    em: EM
    mechanism: str
    freedom: float
    n_chosen: int = 0  # numbers of the reference that were chosen from the data
    state: Any = None  # a State, once it has begun
    result: Any = None  # the same, but after at most max_iter iterations of the user

    def __str__(self) -> str:
        return f"{self.mechanism}, {'Student t' if self.freedom > 0 else 'normal'}"

    @property
    def objective(self) -> float:
        return self.state.path[-1]

    @property
    def log_likelihood(self) -> float:
        return self.state.expectation.log_likelihood

    @property
    def score(self) -> float:
        """BIC, as a log-likelihood; clusters have the same number of parameters everywhere."""
        count = self.state.parameters.mechanism.n_parameters + self.n_chosen
        return self.log_likelihood - 0.5 * math.log(max(self.em.n_rows, 2.0)) * count

    def run(self, max_iter: int, model: Any, begin: Parameters | None = None) -> MixtureFit:
        """From parameters, or on from the last state, up to ``max_iter`` iterations in all."""
        last, result = State(begin) if begin else self.state, self.result
        state, left = last, max_iter - len(last.path)
        for state in self.em.run(last, max_iter=left, tol=model.tol):
            message = f"  {self}, iteration {len(state.path)}: {state.path[-1]:.6f}"
            log_line(message, model.verbose > 1, logging.DEBUG)
            if len(state.path) <= model.max_iter:
                result = state
        return self._replace(state=state, result=result)


def fit(
    model: Any, tables: list[Observed], rng: Any, threads: int, last: Parameters | None = None
) -> tuple[MixtureFit, list[MixtureFit]]:
    """The best candidate, run to its end, and all as they were compared.

    tables: one for each reference to choose from; last: of an earlier fit (warm start).
    """
    spherical = model.covariance_type == "spherical"
    ems = [EM(table, spherical, float(model.reg_covar), threads=threads) for table in tables]
    has_gaps = ems[0].observed.has_gaps.any()
    # A complete table is left to GaussianMixture.
    freedoms = {"normal": [0.0], "t": [FREEDOM], "auto": [0.0, FREEDOM] if has_gaps else [0.0]}
    if last is not None:
        freedoms["auto"] = [last.freedom]
        last = last._replace(freedom=freedoms[model.tails][0])
    runs: list[MixtureFit] = []
    n_init = 1 if is_auto(model.n_init) or last is not None else model.n_init
    for start in range(n_init):
        if last is not None:
            partitions = [ems[0].sums_at(last)]
        else:
            partitions = [ems[0].sums_of(each) for each in _partitions(ems, model, rng)]
        candidates = runs or _candidates(ems, model, partitions[0], freedoms[model.tails])
        compare = len(candidates) * n_init > 1
        short = SHORT_ITER if compare or len(partitions) > 1 else 1
        new = _begin(candidates, model, partitions, short, last)
        if compare:
            bar = max(run.score for run in new) - BEHIND - BEHIND_PER_ROW * ems[0].n_rows
            new = [run.run(CHOICE_ITER, model) if run.score >= bar else run for run in new]
        for run in new:
            log_line(f"start {start + 1}, {run}: {run.objective:.6f}", model.verbose > 0)
        pairs = zip(runs or new, new, strict=True)
        runs = [max(pair, key=lambda run: run.objective) for pair in pairs]
    return max(runs, key=lambda run: run.score).run(model.max_iter, model), runs


# --- candidates and starts ------------------------------------------------------------------------


def _candidates(
    ems: list[EM], model: Any, partition: SoftSums, freedoms: list[float]
) -> list[MixtureFit]:
    n_gaps = int(ems[0].observed.has_gaps.sum())
    names = [model.mechanism]
    if model.mechanism == "auto":
        names = list(MECHANISMS) if n_gaps else ["mcar"]
    candidates = []
    for freedom in freedoms:
        prior = model.variance_prior
        if prior == "auto":
            prior = prior_weight(ems[0], partition, freedom)
        with_prior = [em.with_prior(float(prior)) for em in ems]
        for name, kind in ((name, MECHANISMS[name]) for name in names):
            for number, em in enumerate(with_prior if kind.uses_reference else with_prior[:1]):
                if model.mechanism != "auto" or kind.is_possible(em.values):
                    n_chosen = n_gaps if number > 0 else 0
                    candidates.append(MixtureFit(em, name, freedom, n_chosen))
    return candidates


def _begin(
    candidates: list[MixtureFit], model: Any, partitions: list[SoftSums], short: int,
    last: Parameters | None,
) -> list[MixtureFit]:  # fmt: skip
    """A few iterations of each, from the best of its starts.

    Where normal clusters are compared with Student's t, mechanisms other than rates are costly for
    Student's t, and start from the results of "mcar" and of their normal twin.
    """
    given: dict[str, Any] = {
        name: np.array(value, dtype=np.float64)
        for name, value in (("means", model.means_init), ("weights", model.weights_init))
        if value is not None and last is None
    }
    begun: list[MixtureFit] = []
    for candidate in candidates:
        em, name, freedom = candidate[:3]
        fitted = []
        if freedom > 0 and not MECHANISMS[name].ignorable:
            fitted = [
                run.em.sums_at(run.state.parameters)
                for run in begun
                if (run.mechanism, run.freedom) == ("mcar", freedom)
                or (run.mechanism == name and run.em.observed is em.observed)
            ]
        starts = [
            em.start(partition, name, freedom)._replace(**given)
            for partition in fitted or partitions
        ]
        has_gaps = em.observed.has_gaps
        if last and last.mechanism.name == name and (last.mechanism.has_gaps == has_gaps).all():
            starts = [last]
        runs = [candidate.run(short, model, start) for start in starts]
        begun.append(max(runs, key=lambda run: run.objective))
    return begun


def _partitions(ems: list[EM], model: Any, rng: Any) -> list[np.ndarray]:
    """Memberships (n, k) to begin with, one or several."""
    observed, k, threads = ems[0].observed, model.n_components, ems[0].threads
    if model.means_init is not None:
        means = np.array(model.means_init, dtype=np.float64)
        return [_memberships(observed, means, 0.0, threads)]
    if model.init_params == "random":
        shares = rng.random_sample((observed.n_rows, k))
        return [shares / shares.sum(axis=1, keepdims=True)]
    if model.init_params != "kmeans":
        way = {"k-means++": "k-means++", "random_from_data": "random"}[model.init_params]
        return [_memberships(observed, STARTS[way](observed, 1, k, rng, threads)[0], 0.0, threads)]
    starts = STARTS["k-means++"](observed, 4, k, rng, threads)
    stored = observed.source.nnz if observed.is_sparse else observed.source.size
    wanted = ENTRIES_OF_SAMPLE * observed.n_rows // max(stored, 1)
    partitions = []
    for number, em in enumerate(ems):
        table = em.observed
        rows = table.sample(max(200, 20 * k, wanted))
        sample = table if len(rows) == table.n_rows else table.take(rows)
        lams = FIRST_LAMS if number == 0 else FIRST_LAMS[-1:]
        for lam in lams if table.has_gaps.any() else FIRST_LAMS[:1]:
            runs = run_starts(sample, starts, lam, max_iter=300, tol=1e-5, threads=threads)
            centers = runs.centers[runs.best]
            partitions.append(_memberships(table, centers, lam, threads))
    return partitions


def _memberships(observed: Observed, centers: np.ndarray, lam: float, threads: int) -> np.ndarray:
    return np.eye(len(centers))[finish(observed, centers, lam, threads)[0]]


# --- tempering ------------------------------------------------------------------------------------

MAX_DRAWS = 12  # bootstrap tables; fewer where each has many rows
DRAW_ITER, DRAW_TOL = 10, 1e-4  # EM of each, from where the fit ended
MANY_ROWS = 1000  # per cluster: parameters are known well enough
POWERS = np.linspace(0.1, 1.0, 46)


def tempered(memberships: np.ndarray, power: float) -> np.ndarray:
    """Memberships (n, k) raised to a power and normalised."""
    if power == 1.0:
        return memberships
    raised = np.exp(power * np.log(np.maximum(memberships, TINY)))
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
    fitted = posteriors(observed, parameters, em.threads).memberships
    labelled = np.arange(n), fitted.argmax(axis=1)
    believed = 0.0
    draws = min(MAX_DRAWS, math.ceil(2 * MANY_ROWS * k / em.n_rows))
    for _ in range(draws):
        drawn = rng.standard_gamma(weights)  # a weight of w is w rows
        drawn *= weights.sum() / drawn.sum()
        other = replace(em, observed=replace(observed, weights=drawn))
        *_, state = other.run(State(parameters), max_iter=DRAW_ITER, tol=DRAW_TOL)
        there = other.m_step(state.parameters, state.expectation)
        memberships = posteriors(observed, there, em.threads).memberships
        believed += float(weights @ memberships[labelled]) / draws
    of_powers = [weights @ tempered(fitted, power)[labelled] for power in POWERS]
    power = float(np.interp(believed, of_powers, POWERS))
    return 1.0 - min(1.0, share / FEW_GAPS) * (1.0 - power**2)
