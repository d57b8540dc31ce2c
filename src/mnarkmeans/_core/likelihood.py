"""Mixtures with gaps, and what gets lost: ``mixture.h``, ``around.h``, ``decay.h``."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from .arrays import Table, shaped
from .library import invoke, structs
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
    """What a mixture says of each row."""

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


class Decay(NamedTuple):
    """What the likelihood of a decaying mechanism needs of a table (``decay.h``)."""

    squares: np.ndarray  # (m,) observed (x - reference)^2, and their weights
    weights: np.ndarray
    gap_squares: np.ndarray  # (g,) (mu - reference)^2 where there are gaps, and their weights
    gap_weights: np.ndarray
    gap_spreads: np.ndarray | None  # (g,) the variance there, in units of s; None: 1 for all
    observed: float  # weight of all observed entries
    residual: float  # sum of their squared distances to their centres

    @property
    def struct(self):
        m, g = (len(self.squares),), (len(self.gap_squares),)
        return structs.Decay(
            *m, *g, shaped(self.squares, *m), shaped(self.weights, *m),
            shaped(self.gap_squares, *g), shaped(self.gap_weights, *g),
            shaped(self.gap_spreads, *g), self.observed, self.residual,
        )  # fmt: skip


def decay_value(data: Decay, theta: np.ndarray) -> tuple[float, np.ndarray]:
    """Log-likelihood at theta (4,), and its gradient."""
    own, gradient = data.struct, np.empty(4)
    value = invoke("decay_value", own, shaped(theta, 4), gradient)
    return value, gradient


def decay_fit(data: Decay, starts: np.ndarray, free: np.ndarray, max_steps: int) -> np.ndarray:
    """The likeliest theta (4,), from the best of starts (m, 4); only those ``free`` move."""
    own, theta = data.struct, np.empty(4)
    m = len(starts)
    invoke("decay_fit", own, shaped(starts, m, 4), m, shaped(free, 4), max_steps,
        theta,
    )  # fmt: skip
    return theta


def lost_around(
    mean: np.ndarray, variance: np.ndarray, has_gaps: np.ndarray, *, tau=None, t=0.0, c=1.0, r=0.0
) -> np.ndarray:
    """(3, k, p): log P(missing), mean and variance of what gets lost around the reference.

    mean (k, p) is measured from it, variance (k, p) or (1, 1). With tau (p,) values within it get
    lost, otherwise c (r + (1 - r) exp(-t x^2)) of them.
    """
    k, p = mean.shape
    mean, variance = np.ascontiguousarray(mean), np.ascontiguousarray(variance)
    is_common = variance.size == 1
    out = np.empty((3, k, p))
    own = structs.Lost(
        k, p, shaped(mean, k, p),
        variance, is_common,
        shaped(has_gaps, p), shaped(tau, p), t, c, r,
        *out,
    )  # fmt: skip
    invoke("lost_around", own)
    return out


def hidden_rows(weights: np.ndarray, log_missing: np.ndarray) -> tuple[float, np.ndarray]:
    """Share of rows that lose everything, and each cluster's part of it (k,)."""
    k, p = log_missing.shape
    parts, log_missing = np.empty(k), np.ascontiguousarray(log_missing)
    share = invoke("hidden_rows", k, p, shaped(weights, k), shaped(log_missing, k, p), parts)
    return share, parts
