"""reference="auto": zero, or the least observed value of each feature?

Both are tried: fits for many lam (`sides`) with the one and with the other, and the partition that
explains values and gaps best (`cells`) says which. Zero wins unless the limit leads. A feature
whose values lie further from zero than from each other has a limit in any case.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from .._core import first_pass
from .._data.observed import Observed
from .cells import Cells
from .choice import FEWEST_ROWS, first_fits, sample_rows
from .mixture import Rows
from .sides import fit_between

LEAD = 5.0  # log-likelihood by which the limit must explain more than zero does


class Chosen(NamedTuple):
    """A reference for every feature, and which of them are limits: least values, not zero."""

    reference: np.ndarray  # (p,)
    at_limit: np.ndarray  # (p,) bool


def choose_reference(
    observed: Observed, starts: np.ndarray, *, max_iter: int, tol: float, threads: int
) -> Observed:
    """The table with a reference of its own choice (zero where nothing is missing)."""
    settings = dict(max_iter=max_iter, tol=tol, threads=threads)
    extent = extent_of(observed, threads)
    return replace(observed, reference=zero_or_limit(observed, extent, starts, settings).reference)


def extent_of(observed: Observed, threads: int) -> tuple[np.ndarray, np.ndarray]:
    """(p,) least and largest value of the rows that count; not finite where there are none."""
    found = first_pass(observed.table, threads)
    return found.least, found.most


def zero_or_limit(
    observed: Observed, extent: tuple[np.ndarray, np.ndarray], starts: np.ndarray, settings: dict
) -> Chosen:
    """The choice for a table, or for a sample of it; ``extent``: least and largest values of all
    rows that count; ``settings``: of the fits (max_iter, tol, threads)."""
    seen = np.isfinite(extent[0])
    least, most = (np.where(seen, end, 0.0) for end in extent)
    far = far_from(0.0, least, most)
    zero = np.where(far, least, 0.0)
    if not observed.has_gaps[seen].any() or np.array_equal(zero, least):
        return Chosen(zero, far)
    sample = sample_rows(observed, max(FEWEST_ROWS, 20 * starts.shape[1]), settings["threads"])
    at_zero, at_limit = (
        explained(replace(sample, reference=reference), starts, settings)
        for reference in (zero, least)
    )
    if at_limit > at_zero + LEAD:
        return Chosen(least, seen)
    return Chosen(zero, far)


def far_from(point, least: np.ndarray, most: np.ndarray) -> np.ndarray:
    """(p,) features whose values lie further from a point than they do from each other."""
    span = most - least
    return (span > 0) & (np.maximum(least - point, point - most) > span)


def explained(observed: Observed, starts: np.ndarray, settings: dict) -> float:
    """The best log-likelihood of values and gaps together, in the units of the data."""
    rows = Rows(observed, settings["threads"])
    if rows.tell_nothing:
        return -math.inf
    path = fit_between(observed, first_fits(observed, starts, **settings), **settings)
    units = -0.5 * rows.observed_weight * math.log(rows.scale)
    cells = [Cells(rows, rows.hard_sums(start)) for start in path]
    kinds = ("limit", "decay")
    return units + max(own.fit(kind).log_likelihood for own in cells for kind in kinds)
