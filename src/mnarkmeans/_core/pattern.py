"""The pattern of gaps: how missing shares fall (``shares.h``), and how far observed values lie from
the reference (``magnitudes.h``)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .arrays import Table, shaped
from .library import invoke, structs
from .waiting import DONE, call


class FallingShares(NamedTuple):
    """logit P_lj = alpha_j - slope z_lj, of R partitions (``shares.h``)."""

    alphas: np.ndarray  # (R, p)
    slopes: np.ndarray  # (R,)
    values: np.ndarray  # (R,) log-likelihood of the gaps
    each: np.ndarray  # (R, p) of those of every feature


def fit_shares(gaps, observed, z, max_steps: int, slope: float | None = None) -> FallingShares:
    """The likeliest curves, from gaps, observed entries and z of cells (R, k, p); slope: given."""
    R, k, p = shape = gaps.shape
    parts = [np.ascontiguousarray(part) for part in (gaps, observed, z)]
    found = FallingShares(np.empty((R, p)), np.full(R, slope or 0.0), np.empty(R), np.empty((R, p)))
    own = structs.Shares(
        R, k, p, *(shaped(part, *shape) for part in parts), max_steps, slope is not None,
        *(found[i] for i in (1, 0, 2, 3)),
    )  # fmt: skip
    if invoke("fit_shares", own) != DONE:
        raise MemoryError
    return found


class Distances(NamedTuple):
    """Of observed values from the reference."""

    per_row: np.ndarray  # (n,) int64: how many values
    least: np.ndarray  # (p,) the smallest of each feature; inf: none is observed
    weights: np.ndarray  # (bins,) of squared distances, of features with gaps
    logs: np.ndarray  # (bins,) weighted sum of their logarithms, in units of their mean
    total: float  # weight of all values
    square: float  # weighted sum of their squares
    below: float  # weight of those below the reference


def distances_from(
    table: Table, reference: np.ndarray, has_gaps: np.ndarray, bins: int, least_share: float
) -> Distances:
    """least_share: of the mean square, below which all are the same."""
    n, p = table.n, table.p
    found = Distances(
        np.empty(n, np.int64), np.full(p, np.inf), np.zeros(bins), np.zeros(bins), 0.0, 0.0, 0.0
    )
    own = structs.Magnitudes(
        shaped(reference, p), shaped(has_gaps, p), bins, least_share,
        *(part for part in found[:4]), 0.0, 0.0, 0.0,
    )  # fmt: skip
    call("magnitudes", table.struct, own, threads=1, work=8.0 * table.entries)
    return found._replace(total=own.total, square=own.square, below=own.below)
