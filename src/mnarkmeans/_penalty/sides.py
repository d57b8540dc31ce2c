"""Do values get lost around the reference, or on one side of it, below a limit?

Fits for many lam between 0 and 4, from a few starts each, are partitions to choose from. `cells`
says how well each explains values and gaps together, when the missing share may fall with the
distance from the reference ("decay") and when it may fall with the value itself ("limit"). Where
next to no value lies below the reference the two are the same, and "limit" is meant, unless those
few get rarer towards the reference (`rare`): below a limit they get rarer away from it.

If low values are the missing ones, the answer is the lam of the partition that explains most, the
values by their absolute deviations (`deviations`), shares scattering around the curve where a limit
is hard. So tails and skew have little say, and a penalty that would tear apart what belongs
together loses more on the values than it gains on the gaps.

Where the limit lies below a reference with values on both sides of it, no penalty towards that
point makes up for what was lost: centres below the reference would move away from where they
belong.

A fit with a penalty has used the gaps: it puts rows that lost a value where values are low,
whatever the reason. So it speaks for a limit only by a wide margin and if gaps know the other
features too (`others`); the fit with lam = 0 may do so by less. Where values lie on both sides of
the reference, both must speak for a limit, and values close to the reference must not be rare.

Features cut off sharply at their least values whose gaps know the other features have a hard limit
(`hard`), also where the fit with lam = 0 has lost the groups.

Around the reference the partitions say less than the values close to it do: there the mixtures of
`evidence` decide.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from .._observed import Observed
from .._solver import run_starts
from .answer import DOUBT
from .cells import OF_CURVE, Cells
from .deviations import by_absolute_deviations
from .groups import below_their_limit, gains
from .hard import MAYBE_BY_CHANCE, edges_and_gaps
from .rare import ONE_SIDED, RARE, rare_at_reference, rare_below_reference
from .rows import Rows, Start

# lam, and which of the first fits (0, 1/2, 1) it starts from.
BETWEEN = (
    (0.1, 0), (0.1, 1), (0.25, 0), (0.25, 1), (0.75, 1), (0.75, 2), (1.5, 2), (2.0, 2), (3.0, 2),
    (4.0, 2),
)  # fmt: skip
CLEARLY = 20.0  # log-likelihood by which "limit" must lead where both could be
HONESTLY = 10.0  # and by the fit with lam = 0
FEW = 0.01  # share of the observed values below the reference that says nothing
WIDE_MARGIN = 15.0


class Sides(NamedTuple):
    """Which side values get lost on, and the best partitions for each answer."""

    below: bool  # below a limit; otherwise around the reference, or by chance
    cells: Cells  # of the best partition if it is a limit
    believed: bool  # low values are the missing ones
    lam: float  # then the penalty of that partition; 0 if the reference lies among the values
    explained: float  # how well it does, by `Cells.judged`; -inf: features must be told apart
    of_curve: float  # what the straight curve counts for in that
    apart: np.ndarray | None  # (features with gaps,) bool: not by chance; None: nobody can say
    path: list[Start]  # the fits that were judged, different ones
    log_likelihood: float
    by_chance: float  # the best log-likelihood of gaps that know nothing of the value
    around: Start  # the best partition if values get lost around the reference
    chance: Start  # and if they get lost by chance


def fit_between(
    observed: Observed, fits: Sequence[Start], *, max_iter: int, tol: float, threads: int
) -> list[Start]:
    """The fits given, and others for the lam between and beyond them; in rising order."""
    lams = np.array([lam for lam, _ in BETWEEN])
    centers = np.array([fits[index].centers for _, index in BETWEEN]) + observed.reference
    found = run_starts(observed, centers, lams, max_iter=max_iter, tol=tol, threads=threads)
    best = {}
    for index in np.argsort(-found.losses, kind="stable"):
        best[lams[index]] = found.centers[index] - observed.reference
    between = [Start(own, float(lam)) for lam, own in best.items()]
    return sorted([*fits, *between], key=lambda start: start.lam)


def side_of(observed: Observed, rows: Rows, path: Sequence[Start], elsewhere: float) -> Sides:
    """Judge the fits; ``rows``: of the table; ``elsewhere``: what gaps that follow another feature
    explain (`mar`)."""
    cells = Cells(rows, path)
    first, last = cells.distinct()
    upto = np.array([path[index].lam for index in last])
    cells, path = cells.take(first), [path[index] for index in first]
    fits = {kind: cells.fit(kind) for kind in ("limit", "decay", "mcar")}
    below = fits["limit"]
    values = {kind: fit.log_likelihood for kind, fit in fits.items()}
    best = {kind: first_best(own) for kind, own in values.items()}
    limit, index = values["limit"], best["limit"]
    price = 0.5 * math.log(max(rows.n_rows, 2.0)) + DOUBT
    by_chance = float(values["mcar"].max()) + elsewhere
    gain = np.where(below.slope > 0, limit - values["mcar"], 0.0) - elsewhere
    honest, wide = (
        gain[0] > price,
        below.slope[index] > 0 and limit[index] > by_chance + WIDE_MARGIN,
    )
    at_limit = is_at_limit(observed, rows.share_below)
    sides = Sides(
        below=at_limit or _leads(observed, limit, values["decay"]),
        cells=cells.take([index]),
        believed=bool(honest or wide),
        lam=0.0,
        explained=float(limit[index]),
        of_curve=OF_CURVE,
        apart=None,
        path=path,
        log_likelihood=float(limit[index]),
        by_chance=by_chance,
        around=path[best["decay"]],
        chance=path[best["mcar"]],
    )
    if not at_limit:
        return sides
    hard = edges_and_gaps(observed, asked=bool(wide and not honest))
    lams = np.array([start.lam for start in path])
    possible = (upto >= hard.least_lam) & (lams <= hard.most_lam)
    is_hard = hard.is_believed and gain[possible].max(initial=0.0) > price
    if not (honest or is_hard or (wide and hard.known > MAYBE_BY_CHANCE)):
        return sides._replace(believed=False)
    of_values = by_absolute_deviations(observed, rows, path)
    judged = cells.with_values(of_values).judged(of_curve=hard.of_curve)
    chosen = first_best(np.where(possible, judged, -math.inf))
    lams = np.maximum(lams, hard.least_lam)
    found = sides._replace(
        believed=True,
        cells=cells.take([chosen]),
        lam=float(lams[chosen]),
        explained=float(judged[chosen]),
        of_curve=hard.of_curve,
        path=[Start(path[i].centers, float(lams[i])) for i in np.flatnonzero(possible)],
    )
    own = gains(cells.take([0])) if honest else None
    if is_hard:
        some = hard.features(own)
        return found._replace(apart=some, explained=found.explained if some.all() else -math.inf)
    return found._replace(apart=None if own is None else below_their_limit(own))


def is_at_limit(observed: Observed, share_below: float) -> bool:
    """Next to no value lies below the reference, nor does it look as if they got lost there."""
    if share_below >= ONE_SIDED:
        return False
    return share_below < FEW or rare_below_reference(observed) <= 0.0


def _leads(observed: Observed, limit: np.ndarray, decay: np.ndarray) -> bool:
    """Low values are missing, not those around the reference; log-likelihoods of the fits."""
    return bool(
        limit.max() >= decay.max() + CLEARLY
        and limit[0] >= decay[0] + HONESTLY
        and rare_at_reference(observed) <= RARE
    )


def first_best(values: np.ndarray) -> int:
    """The first of those that differ by rounding only: the same partition may come up twice."""
    return int(np.argmax(values >= values.max() - 1e-9 * (1.0 + abs(values.max()))))
