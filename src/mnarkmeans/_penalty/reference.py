"""reference="auto": zero, or the least observed value of each feature?

Both are tried: fits for many lam (`sides`) with the one and with the other. Where values lie on
both sides of zero and those close to it are rare, that is where values get lost, unless lower tails
are the shorter ones and the best partition of the limit says clearly more than that. Otherwise it
matters whether the lower tails of the features are cut off, and whether, in the fit without a
penalty, the missing share of clusters and features falls with the value (then there is a limit) or
with its distance from zero (`cells`): the longer the lower tails, the more must speak for a limit.
Below a soft limit they are as long as the upper ones, and that fit may have lost the groups. Then
it counts that values close to zero are as frequent as others, which they are not where values get
lost around it, and that the best partition of the limit explains more, by more than that fit speaks
for zero. Where next to no value lies below zero, the partition that explains values and gaps best
says which; zero wins unless the limit leads. A feature whose values lie further from zero than from
each other has a limit in any case, and if most are so, all that lie above zero have.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from .._core import first_pass
from .._observed import Observed
from .._validation import far_from
from .cells import Cells
from .choice import first_fits, sample_table
from .groups import explained_by_some
from .rare import ONE_SIDED, RARE, rare_at_reference
from .rows import Rows
from .sides import CLEARLY, fit_between

CUT_OFF = 0.6  # of the length of the upper tail: a shorter lower one is cut off
ALIKE = 0.95  # from here on both are equally long
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
    if np.count_nonzero(far) >= 0.5 * np.count_nonzero(seen):  # then one outlier hides no other
        far |= least > 0.0
    zero = np.where(far, least, 0.0)
    if not observed.has_gaps[seen].any() or np.array_equal(zero, least):
        return Chosen(zero, far)
    sample, columns = sample_table(observed, starts.shape[1], settings["threads"])
    starts = starts[:, :, columns]
    at_zero, at_limit = (
        explained(replace(sample, reference=reference[columns]), starts, settings)
        for reference in (zero, least)
    )
    return Chosen(least, seen) if at_limit.rather_than(at_zero) else Chosen(zero, far)


class Explained(NamedTuple):
    """The best log-likelihoods of values and gaps with a reference, in the units of the data."""

    limit: float  # if the missing share falls with the value
    decay: float  # with the distance from the reference
    falls: float  # the difference, by the fit without a penalty: its labels have not used the gaps
    below: float  # share of the observed values below the reference
    rare: float  # what speaks for values close to the reference being rare
    tails: float  # how far the lower tail of a feature reaches, in lengths of the upper one

    def rather_than(self, zero: Explained) -> bool:
        """Whether this limit is to be preferred to zero."""
        lead = self.best - zero.best
        if zero.below >= ONE_SIDED:
            if zero.rare > RARE:
                return zero.tails < ALIKE and lead > zero.rare + CLEARLY
            if zero.tails < CUT_OFF or zero.falls > CLEARLY:
                return True
            refuted = zero.rare < -RARE and lead + min(zero.falls, 0.0) > LEAD
            return refuted or (zero.tails < ALIKE and zero.falls > -LEAD)
        return lead > LEAD

    @property
    def best(self) -> float:
        """By the partition that explains most, whichever way its missing share falls."""
        return max(self.limit, self.decay)


def explained(observed: Observed, starts: np.ndarray, settings: dict) -> Explained:
    rows = Rows(observed, settings["threads"])
    if rows.tell_nothing:
        return Explained(-math.inf, -math.inf, 0.0, 0.0, 0.0, 1.0)
    path = fit_between(observed, first_fits(observed, starts, **settings), **settings)
    units = -0.5 * rows.observed_weight * math.log(rows.scale)
    cells = Cells(rows, path)
    limit, decay = cells.fit("limit"), cells.fit("decay")
    falls, around = (
        explained_by_some(cells.take([0]).measured_by(kind)) for kind in ("limit", "decay")
    )
    return Explained(
        limit=units + float(limit.log_likelihood.max()),
        decay=units + float(decay.log_likelihood.max()),
        falls=falls - around,
        below=rows.share_below,
        rare=rare_at_reference(observed),
        tails=_tails(observed, *extent_of(observed, settings["threads"])),
    )


def _tails(observed: Observed, least: np.ndarray, most: np.ndarray) -> float:
    """Of the features with gaps, the median."""
    some = observed.has_gaps & np.isfinite(least) & (most > observed.means)
    if not some.any():
        return 1.0
    return float(np.median((observed.means - least)[some] / (most - observed.means)[some]))
