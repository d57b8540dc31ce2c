"""How values get lost, for clusters N(mu_lj, v_lj) with variances of their own.

Every mechanism says for cluster l and feature j

    P_lj,   E[x | missing],   Var[x | missing]

and what an observed value adds to the likelihood, log(1 - P(missing | x)):

    mcar       rate_j                      mu,         v
    class      rate_lj                     mu,         v
    decay      c exp(-t x^2)               mu / D,     v / D,    D = 2 v t + 1     (`decay`)
    threshold  |x| < tau_j                 normal between -tau_j and tau_j         (`threshold`)
    limit      Phi((c_j - x) / zeta_j)     normal below it                         (`limit`)

x, mu measured from the reference. A feature that never lost anything has no part in it: whatever a
new row lacks there says nothing of its cluster.

`update` takes the clusters and soft gaps G_lj of one round of EM and raises

    sum_lj G_lj log P_lj + sum_observed log(1 - P(missing | x)).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from .contract import Clusters, Lost, Widths
from .decaying import BelowThreshold, Decaying
from .limits import BelowLimit
from .rates import ByChance, ByClass

__all__ = ["MECHANISMS", "Clusters", "Lost", "Widths", "finished", "mechanism_of"]

MECHANISMS: dict[str, Any] = {
    one.name: one for one in (ByChance, Decaying, BelowThreshold, BelowLimit, ByClass)
}


def finished(mechanism: Any) -> Any:
    """Without what only fitting needs."""
    return replace(mechanism, bins=None) if mechanism.name == "limit" else mechanism


def mechanism_of(name: str, parameters: dict[str, Any], has_gaps: np.ndarray) -> Any:
    """From what `parameters` gives."""
    return MECHANISMS[name](**parameters, has_gaps=has_gaps)
