"""What clusters and mechanisms tell each other in a round of EM, and what others ask of them."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ..rows import Rows


class Widths(NamedTuple):
    """Heavy clusters as normal ones of several widths (`heavy`), seen from their gaps."""

    w: np.ndarray  # (m,) the variance is v / w
    share: np.ndarray  # (m, k, p) of the gaps
    pull: np.ndarray  # (k, p) mean of w
    expected: np.ndarray  # (k, p) E[x | missing]


class Lost(NamedTuple):
    """What a mechanism says of clusters and features, each (k, p)."""

    log_missing: np.ndarray
    mean: np.ndarray  # of what is missing
    variance: np.ndarray  # (or what is broadcast to it)
    log_observed: np.ndarray | None = None  # where it depends on the cluster, not on x
    widths: Widths | None = None  # of heavy tails: mean and variance are weighted by the pull


class Clusters(NamedTuple):
    """Clusters as a round of EM has them: centres from the reference, and soft weights."""

    mean: np.ndarray  # (k, p)
    variance: np.ndarray  # (k, p), or (1, 1) where one is common to all entries
    gaps: np.ndarray  # (k, p) soft weight of missing entries
    sizes: np.ndarray  # (k,) of all rows


class Parameter(NamedTuple):
    """Of a mechanism, as model files have it."""

    shape: str  # a letter for each axis: k clusters, p features, 1; none for a number
    most: float = math.inf  # a probability if it is 1
    least: float = 0.0


class Mechanism:
    """A way of losing values: a frozen dataclass that its own parameters and `has_gaps` make.

    Every one of them also has

    begin(rows, clusters, near=None)   where its steps begin; near: what another one found there
    lost(mean, variance)               what it says of normal clusters
    probability(values, labels)        P(missing) of values (n, p) less the reference
    n_parameters(k)                    what its parameters cost

    and, where P(missing | x) depends on x, both `log_observed` and `total_log_observed`, which say
    nothing otherwise. Those that lam="auto" asks (`evidence`) also have a strength ``t``, a
    ``share_at_reference``, and for the rounds of `common`, which the core makes,

    kind(rows)                         itself, before anything is known
    starts(rows, near=None)            theta (``decay.h``) where it begins; None: it has none
    moves(starts)                      what of it moves
    moved(theta, rows)                 the same afterwards
    """

    name: ClassVar[str]
    sentence: ClassVar[str]  # begins what lam="auto" says of a table
    in_short: ClassVar[str]  # which values are lost
    curve: ClassVar[str]  # of missing shares, seen from the reference: flat, decaying, one-sided
    own_parameters: ClassVar[dict[str, Parameter]]
    ignorable: ClassVar[bool] = False  # within a cluster, gaps know nothing of the value
    has_gaps: np.ndarray

    @classmethod
    def is_possible(cls, rows: Rows) -> bool:
        """No observed value contradicts it."""
        return True

    def parameters(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.own_parameters}

    def finished(self) -> Any:
        """Without what only fitting needs."""
        return self

    def lost(self, mean: np.ndarray, variance: np.ndarray) -> Lost:
        raise NotImplementedError

    def before(self, rows: Rows) -> Any:
        """The same, about to be fitted to these rows, which may have gaps in other features."""
        return replace(self, has_gaps=rows.has_gaps)  # type: ignore[type-var]

    def update(self, rows: Rows, clusters: Clusters, steps: int = 2) -> Any:
        """Its own step in a round of EM; steps: at most, where there is no closed form."""
        return self

    def log_observed(self, values: np.ndarray, features: np.ndarray) -> np.ndarray:
        """log(1 - P(missing | x)) of values less the reference: nothing to add."""
        return np.zeros(len(values))

    def total_log_observed(self, rows: Rows) -> float:
        """Its sum over all observed values."""
        return 0.0
