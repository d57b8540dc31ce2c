"""Mixtures with gaps, and what gets lost (``mixture.h``)."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from .arrays import Table, shaped
from .library import structs
from .waiting import call


class Mixture(NamedTuple):
    """Clusters with gaps, normal or Student's t. Arrays are (k, p) float64 but for the first."""

    log_weight: np.ndarray  # (k,)
    mean: np.ndarray
    variance: np.ndarray
    log_missing: np.ndarray  # log P(missing | cluster, feature), finite
    log_observed: np.ndarray | None = None  # added for an observed entry beside its density
    freedom: float = 0.0  # degrees of freedom; 0: normal


class SoftSums(NamedTuple):
    """Sums over rows, weighted by their memberships. They add up over any split of the rows.

    With heavy tails a value far out counts for less in ``sums``, ``squares`` and ``pulls``.
    """

    sizes: np.ndarray  # (k,)
    sums: np.ndarray  # (k, p) of the observed values, less the shift
    counts: np.ndarray  # (k, p) weight of the observed entries
    squares: np.ndarray  # (k, p) of the observed values, less the shift, squared
    log_likelihood: float
    pulls: np.ndarray | None = None  # (k, p) what counts became; None: the same
    tail: float = 0.0  # sum of log(1 + (x - mu)^2 / (freedom v))


class SoftRows(NamedTuple):
    """Memberships, likelihoods and labels of rows."""

    memberships: np.ndarray  # (n, k)
    log_likelihoods: np.ndarray  # (n,)
    labels: np.ndarray  # (n,) int32


def _struct(mixture: Mixture, shift: np.ndarray, p: int):
    k = len(mixture.log_weight)
    return structs.Mixture(
        k, shaped(mixture.log_weight, k),
        *(shaped(values, k, p) for values in mixture[1:5]), shaped(shift, p),
        mixture.freedom, log_peak(mixture.freedom),
    )  # fmt: skip


def log_peak(freedom: float) -> float:
    """Log density of Student's t at its centre, for scale 1."""
    if freedom <= 0:
        return 0.0
    half = 0.5 * freedom
    return math.lgamma(half + 0.5) - math.lgamma(half) - 0.5 * math.log(freedom * math.pi)


class EStep:
    """E-steps of k clusters on one table, with the sums that M-steps need; its room is made once.

    Fill ``mixture`` in place, then call.
    """

    def __init__(self, table: Table, k: int, shift: np.ndarray, threads: int, log_observed=False):
        p = table.p
        mean, variance, log_missing, log_seen = (np.zeros((k, p)) for _ in range(4))
        self.mixture = Mixture(
            np.zeros(k), mean, variance, log_missing, log_seen if log_observed else None
        )
        self._table, self._shift, self._threads = table, shift, threads
        self._own = _struct(self.mixture, shift, p)

    def fill(self, mixture: Mixture) -> None:
        """Take over what a mixture says, in arrays that may be broadcast."""
        for own, new in zip(self.mixture[:5], mixture[:5], strict=True):
            if own is not None:
                np.copyto(own, 0.0 if new is None else new)
        self._own.freedom, self._own.log_peak = mixture.freedom, log_peak(mixture.freedom)

    def __call__(self) -> SoftSums:
        k, p = self.mixture.mean.shape
        heavy = self._own.freedom > 0
        parts = 4 if heavy else 3
        room = np.zeros(k + parts * k * p)
        sizes, sums = room[:k], room[k:].reshape(parts, k, p)
        out = structs.Softened(sizes, *sums)
        call(
            "soften", self._table.struct, self._own, out,
            threads=self._threads, work=(20.0 if heavy else 3.0) * self._table.entries * k,
        )  # fmt: skip
        pulls = sums[3] if heavy else None
        return SoftSums(sizes, sums[0], sums[1], sums[2], out.log_likelihood, pulls, out.tail)


def soft_rows(table: Table, mixture: Mixture, threads: int) -> SoftRows:
    """Memberships, log-likelihood and likeliest cluster of every row, whatever its weight."""
    n, k = table.n, len(mixture.log_weight)
    own = _struct(mixture, np.zeros(table.p), table.p)
    rows = SoftRows(np.empty((n, k)), np.empty(n), np.empty(n, np.int32))
    out = structs.Softened(*[None] * 5, *(part for part in rows))
    call(
        "soften", table.struct, own, out, threads=threads,
        work=2.0 * table.entries * k,
    )  # fmt: skip
    return rows
