"""A hard limit: features cut off at their least values (`edge`) whose gaps are not due to chance.

Where half of a table lies below a hard limit, the fit without a penalty has lost the groups and
says nothing of the gaps. The gaps still know the other features (`others`), and what was lost lies
below the reference, so that lam is at least 1 (`limit`). Below a soft limit some of the lowest
values are still seen, so that what was lost lies above the least one, and lam is at most 1.
Features without a sharp edge whose gaps know nothing of the others lose values by chance.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from .._observed import Observed
from .cells import OF_CURVE
from .edge import SHARP, edges_of
from .groups import below_their_limit
from .others import gaps_know_others

NOT_BY_CHANCE = 3.0  # standard deviations; beyond it by chance in one table of a hundred
MAYBE_BY_CHANCE = 1.5  # below it, in nine of ten
OF_ONE_FEATURE = 2.5, 4.0  # the same of one of many, whatever the others know
LITTLE, NEXT_TO_NOTHING = 0.15, 0.1  # of what the gaps of other features know
TELLING = 6.5  # what those must know for one to stand out that knows next to nothing
CLEARLY_AGAINST = 50.0  # log-likelihood
AT_LEAST_VALUE = 1.0  # lam, if what was lost lies where the least values do


class Hard(NamedTuple):
    """What edges and gaps say before any fit."""

    sharp: bool  # the features whose gaps know the others are cut off
    known: float  # how much gaps know, in standard deviations
    know_little: np.ndarray  # (features with gaps,) bool
    blunt: np.ndarray  # the same: and have no edge
    perhaps: np.ndarray  # the same: know next to nothing, and their edge is not sharp

    @property
    def is_believed(self) -> bool:
        return self.sharp and self.known > NOT_BY_CHANCE

    @property
    def least_lam(self) -> float:
        return AT_LEAST_VALUE if self.sharp else 0.0

    @property
    def most_lam(self) -> float:
        return math.inf if self.sharp else AT_LEAST_VALUE

    @property
    def of_curve(self) -> float:
        """What the straight curve counts for: close to a soft limit shares do follow it."""
        return OF_CURVE if self.sharp else 1.0

    def features(self, gain: np.ndarray | None) -> np.ndarray:
        """Those that have a limit; ``gain``: what a falling curve gains for each in the fit without
        a penalty (`groups`), if that says anything."""
        if gain is None:
            out = self.blunt | self.perhaps
        else:
            clearly = self.know_little & (gain < -CLEARLY_AGAINST)
            out = self.blunt | clearly | (self.perhaps & ~below_their_limit(gain))
        return out if out.all() else ~out


def edges_and_gaps(observed: Observed, asked: bool = True) -> Hard:
    """``asked``: whether it matters what gaps know where no feature has a sharp edge."""
    edges = edges_of(observed)
    if not asked and not edges.sharp.any():
        none = np.zeros(len(edges.sharp), bool)
        return Hard(sharp=False, known=0.0, know_little=none, blunt=none, perhaps=none)
    known = gaps_know_others(observed)
    usual = float(np.quantile(known.each, 0.75))
    little = known.each < np.clip(LITTLE * usual, *OF_ONE_FEATURE)
    nothing = known.each < min(NEXT_TO_NOTHING * usual, OF_ONE_FEATURE[0])
    tells = usual > TELLING
    return Hard(
        sharp=edges.share(None if little.all() else ~little) > SHARP,
        known=known.together,
        know_little=little,
        blunt=little & edges.blunt,
        perhaps=nothing & ~edges.sharp & tells,
    )
