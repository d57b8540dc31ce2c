"""EM of a mixture with one variance for all entries: what lam="auto" asks.

Values get lost around the reference, or by chance, which is the same curve without a slope. The
rounds are made by the core (``src/core/em.h`` has the formulas): with few features they are many
and short. `em` has mixtures with variances of their own and every other mechanism.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from .._core.likelihood import Decay
from .._core.rounds import EM, Looked, Until
from .mechanisms import AROUND, Clusters
from .rows import Rows, Start

NOTHING = np.zeros(0)


class State(NamedTuple):
    """A mixture on its way, after a look at the rows."""

    looked: Looked
    mechanism: Any
    variance: float
    bound: float  # mean log-likelihood of a row
    equal_sizes: bool  # all clusters keep the same weight
    converged: bool


class Problem:
    """A table, for a mixture with one variance."""

    def __init__(self, rows: Rows):
        self.rows, self.reference = rows, rows.reference
        magnitudes = rows.magnitudes
        observed = Decay(
            magnitudes.square, magnitudes.weight, NOTHING, NOTHING, None, rows.observed_weight, 0.0
        )
        self._rounds = EM(
            rows.table, rows.reference, rows.has_gaps, observed, n_rows=rows.n_rows,
            scale=rows.scale, threads=rows.threads,
        )  # fmt: skip

    def begin(self, fit: Start, family: str, until: Until, *, equal_sizes: bool = True) -> State:
        """Rounds from the partition of a k-means fit; family: one of AROUND."""
        (k, p), (sizes, sums, counts) = fit.centers.shape, self.rows.hard_sums([fit])
        looked = Looked(k, p)
        looked.weights[:] = 1.0 / k
        looked.sizes[:], looked.counts[:] = sizes[0], counts[0]
        np.multiply(sums[0], self.rows.root, out=looked.sums)
        np.add(fit.centers, self.reference, out=looked.mean)
        mechanism = AROUND[family](self.rows)
        state = State(looked, mechanism, math.nan, -math.inf, equal_sizes, False)
        return self._run(state, until, mechanism.starts(self.rows), placed=True)

    def turned(self, state: State, family: str, until: Until) -> State:
        """Rounds of another family of mechanisms, from the memberships of a state."""
        mechanism = AROUND[family](self.rows)
        starts = mechanism.starts(self.rows, near=state.mechanism)
        bound = state.bound if state.converged else -math.inf
        return self._run(state._replace(mechanism=mechanism, bound=bound), until, starts)

    def on(self, state: State, until: Until) -> State:
        """More rounds."""
        return self._run(state, until)

    def _run(self, state: State, until: Until, starts=None, placed: bool = False) -> State:
        rows, looked = self.rows, state.looked.copy()
        bound, converged = self._rounds(
            looked, state.mechanism.moves(starts), until, bound=state.bound, placed=placed,
            equal_sizes=state.equal_sizes,
        )  # fmt: skip
        return state._replace(
            looked=looked, mechanism=state.mechanism.moved(looked.theta, rows),
            variance=rows.scale * math.exp(looked.theta[1]), bound=bound,
            converged=converged,
        )  # fmt: skip

    def clusters(self, state: State) -> Clusters:
        """The clusters of a state, as mechanisms see them."""
        looked = state.looked
        return Clusters(
            looked.mean - self.reference, np.array([[state.variance]]), looked.gaps,
            looked.sizes + looked.hidden,
        )  # fmt: skip
