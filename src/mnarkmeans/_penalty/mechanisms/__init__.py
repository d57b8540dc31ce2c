"""How values get lost, for clusters N(mu_lj, v_lj) with variances of their own.

Every mechanism says for cluster l and feature j

    P_lj,   E[x | missing],   Var[x | missing]

and what an observed value adds to the likelihood, log(1 - P(missing | x)):

    mcar       rate_j                      mu,         v
    class      rate_lj                     mu,         v
    decay      c exp(-t x^2)               mu / D,     v / D,    D = 2 v t + 1
    threshold  |x| < tau_j                 normal between -tau_j and tau_j
    limit      Phi((c_j - x) / zeta_j)     normal below it

x, mu measured from the reference. A feature that never lost anything has no part in it: whatever a
new row lacks there says nothing of its cluster.

`update` takes the clusters and soft gaps G_lj of one round of EM and raises

    sum_lj G_lj log P_lj + sum_observed log(1 - P(missing | x)).

contract   what clusters and mechanisms tell each other, and what others ask of them
rates      mcar, class
decaying   decay
threshold  threshold
limits     limit

`FAMILIES` are these and their special cases, each by the way it begins; `AROUND` those of one rate
or around the reference, which lam="auto" asks, before anything is known.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from .contract import Clusters, Lost, Mechanism, Parameter, Widths
from .decaying import Decaying, lost_far_away
from .limits import BelowLimit
from .rates import ByChance, ByClass
from .threshold import WithinThreshold

__all__ = [
    "AROUND", "FAMILIES", "MECHANISMS", "BelowLimit", "Clusters", "Lost", "Mechanism", "Parameter",
    "Widths", "lost_far_away", "mechanism_of",
]  # fmt: skip

MECHANISMS: dict[str, Any] = {
    one.name: one for one in (ByChance, Decaying, WithinThreshold, BelowLimit, ByClass)
}
_CURVES: dict[str, dict[str, Any]] = {
    "one rate": {"t": 0.0},
    "decay": {},
    "mnar0": {"c": 1.0},
    "mnar1": {"c": 0.5},  # nearly: its curve is 1 / (1 + exp(a x^2))
}
AROUND: dict[str, Callable[..., Any]] = {
    **{name: partial(Decaying.kind, **given) for name, given in _CURVES.items()},
    "threshold": WithinThreshold.kind,
}
FAMILIES: dict[str, Callable[..., Any]] = {
    **{name: one.begin for name, one in MECHANISMS.items()},
    **{name: partial(Decaying.begin, **given) for name, given in _CURVES.items()},
}


def mechanism_of(name: str, parameters: dict[str, Any], has_gaps: np.ndarray) -> Any:
    """From what `parameters` gives."""
    return MECHANISMS[name](**parameters, has_gaps=has_gaps)
