"""Which features lose values below a limit, and which by chance? A penalty for the former only.

At the fit without a penalty, whose labels have not used the gaps, the log-likelihood of the gaps of
feature j is compared with a curve that falls with the mean, its slope b common to all features that
follow it, and without (`cells`):

    gain_j(b) = max_alpha sum_l g log P_lj + C log(1 - P_lj)  -  the same with b = 0

Features that the curve makes less likely by a margin lose values by chance: their gaps get lam = 0.
Then the fits for many lam are made once more with a penalty for the others alone, and judged as
before, chance being what explains the gaps of the former. If that explains more than one penalty
for all features did, it is the answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from .._observed import Observed
from .._solver import run_starts
from .cells import Cells
from .deviations import by_absolute_deviations
from .rows import Rows, Start

AGAINST = 3.0  # log-likelihood that must speak against the curve
MOST_STEPS = 4  # of choosing the features and their slope in turn


class Grouped(NamedTuple):
    """The features that get a penalty, and the best of the fits."""

    features: np.ndarray  # (p,) bool
    lam: float
    explained: float  # log-likelihood of values and gaps


def below_their_limit(gain: np.ndarray) -> np.ndarray:
    """(p,) bool, of the features with gaps: not those whose gaps look like chance.

    ``gain``: of each of them (`gains`).
    """
    return gain > -AGAINST


def explained_by_some(cells: Cells) -> float:
    """Log-likelihood of values and gaps where each feature follows the curve or chance; of one
    partition."""
    return float(cells.fit("mcar").log_likelihood[0] + np.maximum(gains(cells), 0.0).sum())


def gains(cells: Cells) -> np.ndarray:
    """(p,) what the curve gains for the gaps of each feature, if those that gain anything share its
    slope; of one partition."""
    some = np.ones(cells.means.shape[2], bool)
    gain = np.zeros(len(some))
    for _ in range(MOST_STEPS):
        slope = max(float(cells.only(some).fit("limit").slope[0]), 0.0)
        gain = cells.pattern_of_features(slope) - cells.pattern_of_features(0.0)
        new = gain > 0.0
        if not new.any() or np.array_equal(new, some):
            break
        some = new
    return gain


def fit_groups(
    observed: Observed, rows: Rows, path: Sequence[Start], some: np.ndarray, settings: dict,
    of_curve: float,
) -> Grouped:  # fmt: skip
    """Fits of the path with a penalty for some of the features with gaps; the one that explains
    values and gaps best, ``of_curve`` being what the straight curve counts for."""
    features = np.ones(observed.n_features, bool)
    features[rows.has_gaps] = some
    lams = np.array([start.lam for start in path])[:, None] * features
    centers = np.stack([start.centers for start in path]) + observed.reference
    found = run_starts(observed, centers, lams, **settings)
    fits = [
        Start(own - observed.reference, lam) for own, lam in zip(found.centers, lams, strict=True)
    ]
    cells = Cells(rows, fits).with_values(by_absolute_deviations(observed, rows, fits))
    chance = cells.only(~some)
    values = cells.only(some).judged(of_curve=of_curve)
    values += chance.fit("mcar").log_likelihood - chance.of_values
    best = int(np.argmax(values))
    return Grouped(features, path[best].lam, float(values[best]))
