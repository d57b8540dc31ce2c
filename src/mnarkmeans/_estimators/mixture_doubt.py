"""How sure a mixture may be that was fitted to few rows.

EM takes the clusters it ends with for the true ones. Were the rows drawn again, it would end with
others, and memberships that know this are less sure: with theta_b fitted to the same rows in random
weights (the Bayesian bootstrap),

    mean_i rho_i(label)^T  (made to sum to 1)   =   mean_ib rho_i(label; theta_b)

has a solution T <= 1. The truth lies as far from theta as the theta_b do, but the label was chosen
by theta itself, so that only half of the doubt is seen: memberships are raised to T^2. Labels stay.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import brentq

from .._core.likelihood import soft_rows
from .._penalty.em import FEW_GAPS, Problem, State, core_mixture

DRAWS = 6
ROUNDS = 10  # of each draw, from where the fit ended
MANY_ROWS = 1000  # for each cluster: there the doubt is gone
LEAST = 0.1


def tempered(memberships: np.ndarray, power: float) -> np.ndarray:
    """Memberships (n, k) raised to a power, made to sum to 1."""
    if power == 1.0:
        return memberships
    raised = memberships**power
    return raised / raised.sum(axis=1, keepdims=True)


def power_of(problem: Problem, state: State, rng: np.random.RandomState) -> float:
    """The power that memberships of a fitted state deserve; 1 on a complete table."""
    n, k = problem.observed.n_rows, len(state.means)
    share = problem.rows.missing_share if problem.rows.missing_weight > 0 else 0.0
    if share == 0.0 or k < 2 or problem.rows.n_rows > MANY_ROWS * k:
        return 1.0
    own = memberships_of(problem, state)
    at = np.arange(n), own.argmax(axis=1)
    weights = problem.observed.weights
    believed = 0.0
    for _ in range(DRAWS):
        drawn = rng.standard_gamma(weights)  # weight w is w rows
        again = problem.with_weights(drawn * (weights.sum() / drawn.sum()))
        other = again.maximised(list(again.run(state, max_iter=ROUNDS, tol=0.0))[-1])
        believed += float(weights @ memberships_of(problem, other)[at]) / DRAWS

    def too_sure(power: float) -> float:
        return float(weights @ tempered(own, power)[at]) - believed

    power = 1.0 if too_sure(1.0) <= 0 else LEAST
    if power < 1.0 and too_sure(LEAST) < 0:
        power = float(brentq(too_sure, LEAST, 1.0, xtol=1e-4))
    return 1.0 - min(1.0, share / FEW_GAPS) * (1.0 - power**2)


def memberships_of(problem: Problem, state: State) -> np.ndarray:
    """(n, k), by the clusters of a state."""
    mixture = core_mixture(state, problem.reference)
    return soft_rows(problem.observed.table, mixture, problem.threads).memberships
