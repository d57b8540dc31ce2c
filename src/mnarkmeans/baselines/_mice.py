"""Multiple imputation by chained equations, with Bayesian linear regression in every link.

One sweep visits the features in turn. With y the feature, Z the others (filled) and a constant,
over the n_o rows where y is observed:

    V      = (Z'Z + ridge diag(Z'Z))^-1          b = V Z'y
    s^2    = |y - Z b|^2 / chi2(n_o - q)         one draw of the noise
    beta   = b + s V^(1/2) z                     one draw of the coefficients
    y_mis  = Z_mis beta + s z                    one draw of the gaps

Why not scikit-learn's IterativeImputer(sample_posterior=True): on 300 x 50 with half the values
missing one draw of ten sweeps took it 2.0 s, and the reproduction of the paper needs 2,700 of
them. This sampler solves one small system per link and took 0.13 s; a test compares the two.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import cho_factor, cho_solve, solve_triangular

RIDGE = 1e-5  # relative, as small as keeps near-collinear features solvable


def mice_draws(
    X: np.ndarray, n_draws: int, n_sweeps: int, rng: np.random.Generator
) -> list[np.ndarray]:
    """`n_draws` completed copies of `X` (NaN in the gaps), each from its own chain."""
    return [_chain(X, n_sweeps, rng) for _ in range(n_draws)]


def _chain(X: np.ndarray, n_sweeps: int, rng: np.random.Generator) -> np.ndarray:
    gaps = np.isnan(X)
    filled = _first_fill(X, gaps, rng)
    visited = [j for j in np.flatnonzero(gaps.any(axis=0)) if not gaps[:, j].all()]
    # The constant sits in a last column, so that Z is "all columns but j".
    table = np.asfortranarray(np.column_stack([filled, np.ones(len(X))]))
    rows = {j: (np.flatnonzero(~gaps[:, j]), np.flatnonzero(gaps[:, j])) for j in visited}
    others = {j: np.delete(np.arange(table.shape[1]), j) for j in visited}
    for _ in range(n_sweeps):
        for j in visited:
            seen, lost = rows[j]
            table[lost, j] = _draw_gaps(table, j, seen, lost, others[j], rng)
    return np.ascontiguousarray(table[:, :-1])


def _first_fill(X: np.ndarray, gaps: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Gaps filled with values of the same feature drawn at random (0 if it has none)."""
    filled = X.copy()
    for j in np.flatnonzero(gaps.any(axis=0)):
        pool = X[~gaps[:, j], j]
        filled[gaps[:, j], j] = rng.choice(pool, gaps[:, j].sum()) if pool.size else 0.0
    return filled


def _draw_gaps(
    table: np.ndarray,
    j: np.integer,
    seen: np.ndarray,
    lost: np.ndarray,
    others: np.ndarray,
    rng: np.random.Generator,
) -> np.ndarray:
    block = table[seen]
    gram = block.T @ block
    normal = gram[np.ix_(others, others)]
    toward, square = gram[others, j], gram[j, j]
    # A feature that is 0 in these rows has no scale of its own: the absolute part keeps V finite.
    normal[np.diag_indices_from(normal)] += RIDGE * normal.diagonal() + 1e-12
    factor, lower = cho_factor(normal, lower=True, check_finite=False)
    mean = cho_solve((factor, lower), toward, check_finite=False)
    residual = max(square - 2 * mean @ toward + mean @ gram[np.ix_(others, others)] @ mean, 0.0)
    freedom = max(len(seen) - len(others), 1)
    noise = np.sqrt(residual / rng.chisquare(freedom))
    step = solve_triangular(
        factor, rng.standard_normal(len(others)), lower=True, trans="T", check_finite=False
    )
    coefficients = mean + noise * step
    expected = table[lost] @ np.insert(coefficients, j, 0.0)
    return expected + noise * rng.standard_normal(len(lost))
