"""Do values get lost around the reference, or on one side of it, below a limit?

Fits for many lam between 0 and 3, from a few starts each, are partitions to choose from. `cells`
says how well each explains values and gaps together, when the missing share may fall with the
distance from the reference ("decay") and when it may fall with the value itself ("limit"). Where
next to no value lies below the reference the two are the same, and "limit" is meant. Then the best
partition's lam is the answer: no shape of the noise is assumed, and a penalty that would tear apart
what belongs together loses more on the values than it gains on the gaps.

Around the reference the partitions say less than the values close to it do: there the mixtures of
`evidence` decide.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from .._data.observed import Observed
from .._solver.solve import run_starts
from .cells import CellFit, Cells
from .mixture import Rows, Start

# lam, and which of the first fits (0, 1/2, 1) it starts from.
BETWEEN = (
    (0.1, 0), (0.1, 1), (0.25, 0), (0.25, 1), (0.75, 1), (0.75, 2), (1.5, 2), (2.0, 2), (3.0, 2),
)  # fmt: skip
ONE_SIDED = 0.05  # share of the observed values that may lie below the reference
CLEARLY = 20.0  # log-likelihood by which "limit" must lead where both could be
DOUBT = 0.5


class Sides(NamedTuple):
    """The best partition if values get lost below a limit, and how sure that is."""

    cells: Cells
    fit: CellFit
    log_likelihood: float
    by_chance: float  # the best log-likelihood of gaps that know nothing of the value
    around: float  # the best of gaps around the reference
    believed: bool  # low values are the missing ones, whether or not a penalty helps
    lam: float  # the penalty of the best partition, if it is clearly better than without


def fit_between(
    observed: Observed, fits: Sequence[Start], *, max_iter: int, tol: float, threads: int
) -> list[Start]:
    """The fits given, and others for the lam between and beyond them; in rising order."""
    lams = np.array([lam for lam, _ in BETWEEN])
    centers = np.stack([fits[index].centers for _, index in BETWEEN]) + observed.reference
    found = run_starts(observed, centers, lams, max_iter=max_iter, tol=tol, threads=threads)
    best = {}
    for index in np.argsort(-found.losses, kind="stable"):
        best[lams[index]] = found.centers[index] - observed.reference
    between = [Start(own, float(lam)) for lam, own in best.items()]
    return sorted([*fits, *between], key=lambda start: start.lam)


def below_a_limit(rows: Rows, path: Sequence[Start], below: float, elsewhere: float):
    """Sides if values get lost on one side, otherwise None.

    ``below``: share of the observed values below the reference; ``elsewhere``: what gaps that
    follow another feature explain (`mar`).
    """
    cells = [Cells(rows, rows.hard_sums(start)) for start in path]
    limit = [own.fit("limit") for own in cells]
    values = np.array([fit.log_likelihood for fit in limit])
    around = max(own.fit("decay").log_likelihood for own in cells)
    chance = max(own.fit("mcar").log_likelihood for own in cells)
    best = int(np.argmax(values))
    if below >= ONE_SIDED and values[best] < around + CLEARLY:
        return None
    price = 0.5 * math.log(max(rows.n_rows, 2.0)) + DOUBT
    chance += elsewhere
    falls = limit[best].slope > 0
    helps = falls and values[best] > max(chance, values[0]) + price
    believed = helps or (falls and values[best] > chance + CLEARLY)
    lam = path[best].lam if helps else 0.0
    return Sides(cells[best], limit[best], float(values[best]), chance, around, believed, lam)
