"""Few rows with many features: a larger penalty, if its clusters predict rows better.

With more features than rows the noise of all features together can outweigh the clusters, and the
partition that fits the rows best need not be the one that is true. A large lam draws centres to the
reference wherever there are gaps and so finds clusters that are far from it throughout. Whether
those are better is asked of rows left out (`partitions`): among the best partitions for the
penalty of the gaps and for larger ones, the one that predicts most is taken, and with it the middle
of the penalties for which it is best.

Few starts find such a partition. So fits for a few penalties give theirs to all of them, one start
is Ward's partition of the rows with gaps at the reference, and single rows move only in the best.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .._data.observed import Observed
from .._solver.solve import assign_rows, row_distances, run_starts
from .partitions import Partitions, centers_of_partitions, dense_values, distinct
from .ward import ward_labels

LARGER = (1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0)
APART = 1.1  # the first of them is at least so many times the penalty of the gaps
FITTED = (2.0, 5.0)  # from all starts, beside the penalty of the gaps


class Predicting(NamedTuple):
    """The penalty taken, and the partition (n,) that it was taken for."""

    lam: float
    labels: np.ndarray


def predicting_penalty(
    observed: Observed, starts: np.ndarray, own: tuple[float, float], settings: Any
) -> Predicting:
    """From the penalty of the gaps upwards; ``own``: that one, and the theory's (`evidence`)."""
    lam, theory = own
    lams = np.array([lam, *(larger for larger in LARGER if larger > APART * lam)])
    found = _found(observed, starts, lams, settings)
    best = _best(found, lams)
    candidates = list(dict.fromkeys(best))
    gains = found.predicted(candidates, theory)
    chosen = candidates[int(np.argmax(gains))]
    taken = lam
    if chosen != best[0]:
        at = np.flatnonzero(np.equal(best, chosen))
        taken = float(lams[at[(len(at) - 1) // 2]])
    return Predicting(taken, found.labels[chosen])


def _best(found: Partitions, lams: np.ndarray) -> list[int]:
    """For every lam, which partition costs least."""
    return [int(np.argmin(found.losses(lam))) for lam in lams]


def _found(observed: Observed, starts: np.ndarray, lams: np.ndarray, settings: Any) -> Partitions:
    """Different partitions, by fits with every lam."""
    k = starts.shape[1]
    points = observed.reference + dense_values(observed)[0]
    between = row_distances(observed, points, 1.0, settings["threads"])
    ward = ward_labels(between, observed.weights, k)[None]
    fitted = [lams[0], *(lam for lam in FITTED if lam > lams[0])]
    begin = np.concatenate([
        np.concatenate([starts, centers_of_partitions(observed, ward, k, lam)]) for lam in fitted
    ])  # fmt: skip
    each = np.repeat(fitted, len(starts) + 1)
    fits = run_starts(observed, begin, each, **settings)
    first = _partitions(observed, fits.centers, each, k, settings)
    begin = np.stack([
        first.centers(index, lam) for index, lam in zip(_best(first, lams), lams, strict=True)
    ])  # fmt: skip
    fits = run_starts(observed, begin, lams, n_hartigan=len(lams), **settings)
    return _partitions(observed, fits.centers, lams, k, settings)


def _partitions(
    observed: Observed, centers: np.ndarray, lams: np.ndarray, k: int, settings: Any
) -> Partitions:
    labels = assign_rows(observed, centers, lams, settings["threads"])
    return Partitions(observed, distinct(np.ascontiguousarray(labels.T), k), k)
