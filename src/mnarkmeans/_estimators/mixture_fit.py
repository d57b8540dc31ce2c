"""How MNARMixture comes to its clusters: first partitions, EM for each mechanism, the choice.

From every first partition a few rounds are taken for every mechanism, with normal clusters and with
heavy-tailed ones, and the likeliest goes on; a kind that is far behind by then is given up. Of them
all the one with the largest log-likelihood is taken, less log(n) / 2 for each parameter.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .._observed import Observed
from .._penalty.answer import DOUBT
from .._penalty.choice import first_fits, sample_rows
from .._penalty.em import Problem, State
from .._penalty.heavy import FIRST_FREEDOM
from .._penalty.mar import gain_of_complete_features
from .._penalty.mechanisms import MECHANISMS
from .._penalty.reference import choose_reference
from .._solver import STARTS, finish
from .mixture_doubt import memberships_of

KMEANS_STARTS = 10  # k-means fits for every start of the mixture
SHORT_ROUNDS = 5  # from every first partition, before only the best goes on
# Log-likelihood, and so much more for each row, by which a kind of mixture may then be behind the
# best kind without being given up.
BEHIND, BEHIND_PER_ROW = 20.0, 0.05


@dataclass(frozen=True)
class Wanted:
    """What the user asked for, checked."""

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


def fit_mechanisms(problem: Problem, wanted: Wanted, rng: Any) -> dict[str, State]:
    """The best state of every mechanism that is tried."""
    found: dict[tuple[str, float], State] = {}
    kinds = [
        (name, freedom)
        for name in names_to_try(problem, wanted.mechanism)
        for freedom in _tails_to_try(problem, wanted.tails)
    ]
    for start in range(wanted.n_init):
        firsts = [problem.sums_of(shares) for shares in _partitions(problem, wanted, rng)]
        begun = {
            kind: _short_runs(problem, wanted, [_begin(problem, wanted, f, *kind) for f in firsts])
            for kind in kinds
        }
        for kind in _with_a_chance(problem, begun):
            begun[kind] = _run(problem, wanted, begun[kind])
        for kind, state in begun.items():
            if wanted.verbose:
                told = f"start {start + 1}, {_words(state)}"
                print(f"{told}: {len(state.bounds)} rounds, {state.bound:.6f}")
            if kind not in found or state.bound > found[kind].bound:
                found[kind] = state
    best: dict[str, State] = {}
    for (name, _), state in found.items():
        if name not in best or score_of(problem, state) > score_of(problem, best[name]):
            best[name] = state
    return {name: problem.maximised(state) for name, state in best.items()}


def go_on(problem: Problem, wanted: Wanted, last: State) -> dict[str, State]:
    """From where an earlier fit ended."""
    tails = {"normal": 0.0, "t": last.freedom or FIRST_FREEDOM}
    last = last._replace(freedom=tails.get(wanted.tails, last.freedom))
    names = names_to_try(problem, wanted.mechanism)
    found = {name: _run(problem, wanted, _turned(problem, last, name)) for name in names}
    return {name: problem.maximised(state) for name, state in found.items()}


def names_to_try(problem: Problem, mechanism: str) -> list[str]:
    if mechanism != "auto":
        return [mechanism]
    rows = problem.rows
    if rows.missing_weight <= 0 or rows.magnitudes.mean_square <= 0:
        return ["mcar"]
    return [name for name, one in MECHANISMS.items() if one.is_possible(rows)]


def _tails_to_try(problem: Problem, tails: str) -> list[float]:
    """Degrees of freedom to begin with; a complete table is left to the normal clusters."""
    if tails == "auto" and problem.rows.missing_weight > 0:
        return [0.0, FIRST_FREEDOM]
    return [FIRST_FREEDOM] if tails == "t" else [0.0]


def score_of(problem: Problem, state: State) -> float:
    """Log-likelihood after the price of mechanism and tails."""
    n = problem.rows.n_rows
    parameters = state.mechanism.n_parameters(len(state.means)) + (state.freedom > 0)
    return state.bound * n - 0.5 * math.log(max(n, 2.0)) * parameters


def scores_of(problem: Problem, found: dict[str, State]) -> dict[str, float]:
    """Of every mechanism; what is in doubt goes to chance."""
    rows = problem.rows
    scores = {name: score_of(problem, state) for name, state in found.items()}
    if len(found) > 1:
        scores["mcar"] += DOUBT + gain_of_complete_features(
            rows.table.source, rows.has_gaps, rows.gaps_per_row, rows.weights
        )
    return scores


def with_reference(
    observed: Observed, k: int, kept: np.ndarray | None, rng: Any, threads: int
) -> Observed:
    """The table with the reference of an earlier fit, or with one of its own choice."""
    if kept is not None:
        return replace(observed, reference=kept)
    starts = STARTS["k-means++"](observed, KMEANS_STARTS, k, rng, threads)
    return choose_reference(observed, starts, max_iter=300, tol=1e-5, threads=threads)


# --- first partitions ---------------------------------------------------------------------------


def _partitions(problem: Problem, wanted: Wanted, rng: Any) -> list[np.ndarray]:
    """First memberships (n, k) to begin with, one or several."""
    observed, k, threads = problem.observed, wanted.n_components, problem.threads
    if wanted.means_init is not None:
        fits = [(wanted.means_init, 0.0)]
    elif wanted.init_params == "random":
        shares = rng.random_sample((observed.n_rows, k))
        return [shares / shares.sum(axis=1, keepdims=True)]
    elif wanted.init_params == "kmeans":
        starts = STARTS["k-means++"](observed, KMEANS_STARTS, k, rng, threads)
        sample = sample_rows(observed, max(200, 20 * k), threads)
        found = first_fits(sample, starts, max_iter=300, tol=1e-5, threads=threads)
        found = found if problem.rows.missing_weight > 0 else found[:1]
        fits = [(fit.centers + observed.reference, fit.lam) for fit in found]
    else:
        way = {"k-means++": "k-means++", "random_from_data": "random"}[wanted.init_params]
        fits = [(STARTS[way](observed, 1, k, rng, threads)[0], 0.0)]
    labels = [finish(observed, centers, lam, threads)[0] for centers, lam in fits]
    return [np.eye(k)[own] for own in labels]


def _begin(problem: Problem, wanted: Wanted, sums: Any, name: str, freedom: float) -> State:
    state = problem.begin(sums, name, freedom)
    if wanted.means_init is not None:
        state = state._replace(means=wanted.means_init)
    if wanted.weights_init is not None:
        state = state._replace(weights=wanted.weights_init)
    return state


def _turned(problem: Problem, last: State, name: str) -> State:
    """The last state, as another mechanism would begin from it."""
    if name == last.mechanism.name:
        return last._replace(mechanism=last.mechanism.before(problem.rows))
    return problem.begin(problem.sums_of(memberships_of(problem, last)), name, last.freedom)


def _short_runs(problem: Problem, wanted: Wanted, states: list[State]) -> State:
    """The likeliest after a few rounds from each state."""
    few = min(SHORT_ROUNDS, wanted.max_iter)
    return max((_run(problem, wanted, s, few) for s in states), key=lambda one: one.bound)


def _with_a_chance(problem: Problem, begun: dict[Any, State]) -> list[Any]:
    """The kinds that are not hopelessly behind."""
    scores = {kind: score_of(problem, state) for kind, state in begun.items()}
    least = max(scores.values()) - BEHIND - BEHIND_PER_ROW * problem.rows.n_rows
    return [kind for kind, score in scores.items() if score >= least]


def _run(problem: Problem, wanted: Wanted, state: State, most: int | None = None) -> State:
    """Rounds until it settles, or until there were so many."""
    if state.converged:
        return state
    left = (most or wanted.max_iter) - len(state.bounds)
    rounds = problem.run(state, max_iter=left, tol=wanted.tol)
    for state in rounds:
        if wanted.verbose > 1:
            print(f"  {_words(state)}, round {len(state.bounds)}: {state.bound:.6f}")
    return state


def _words(state: State) -> str:
    return f"{state.mechanism.name}, {'heavy tails' if state.freedom > 0 else 'normal'}"
