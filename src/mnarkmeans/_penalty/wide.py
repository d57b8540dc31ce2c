"""Few rows with many features: a larger penalty, if its clusters predict rows better.

With more features than rows the noise of all features together can outweigh the clusters, and the
partition that fits the rows best need not be the one that is true. A large lam draws centres to the
reference wherever there are gaps and so finds clusters that are far from it throughout. Whether
those are better is asked of rows left out (`partitions`): among the best partitions for the
penalty of the gaps and for larger ones, the one that predicts most is taken, and with it the middle
of the penalties for which it is best.

Few starts find such a partition. So fits for a few penalties give theirs to all of them; with a
large one they begin at rows drawn by k-means++ with gaps at the reference, and one start for each
is Ward's partition of those rows. Single rows move only in the best.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .._observed import Observed
from .._solver import assign_rows, centers_of_partitions, row_distances, run_starts
from .partitions import Partitions, dense_values, distinct
from .ward import ward_labels

LARGER = (1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0)
APART = 1.1  # the first of them is at least so many times the penalty of the gaps
MIDDLE, LARGE = 2.0, 5.0  # that begin with Ward's partition, the second with other rows as well
OTHER_STARTS = 16
CLEARLY = 3.0  # standard errors


class Predicting(NamedTuple):
    """The penalty taken, and the partition (n,) that it was taken for."""

    lam: float
    labels: np.ndarray


def predicting_penalty(
    observed: Observed,
    starts: np.ndarray,
    own: tuple[float, float],
    settings: Any,
    *,
    sampled=False,
) -> Predicting:
    """From the penalty of the gaps upwards; ``own``: that one, and the theory's (`evidence`).

    ``sampled``: the table is a sample of the features, of which others may see things differently.
    """
    lam, theory = own
    lams = np.array([lam, *(larger for larger in LARGER if larger > APART * lam)])
    found = _found(observed, starts, lams, settings)
    best = found.best_for(lams)
    candidates = list(dict.fromkeys(best))
    gains = found.predicted(candidates, theory)[0]
    chosen = candidates[int(np.argmax(gains))]
    if chosen == best[0] and not (sampled and found.lead(chosen, lam) < CLEARLY):
        return Predicting(lam, found.labels[chosen])
    at = np.flatnonzero(np.equal(best, chosen))
    return Predicting(float(lams[at[(len(at) - 1) // 2]]), found.labels[chosen])


def _found(observed: Observed, starts: np.ndarray, lams: np.ndarray, settings: Any) -> Partitions:
    """Different partitions, by fits with every lam."""
    k, threads = starts.shape[1], settings["threads"]
    points = observed.reference + dense_values(observed)[0]
    between = row_distances(observed, points, 1.0, threads)
    ward = ward_labels(between, observed.weights, k)[None]
    others = points[_drawn(between, observed.weights, k)]
    begin, each = [starts, others], [np.full(len(starts), lams[0]), np.full(len(others), LARGE)]
    for lam in (lams[0], MIDDLE, LARGE):
        begin.append(centers_of_partitions(observed, ward, k, lam, threads))
        each.append(np.array([lam]))
    penalties = np.concatenate(each)
    fits = run_starts(observed, np.concatenate(begin), penalties, **settings)
    begun = assign_rows(observed, fits.centers, penalties, threads)
    first = Partitions(observed, distinct(np.ascontiguousarray(begun.T), k), k)
    best = np.stack([
        first.centers(index, lam) for index, lam in zip(first.best_for(lams), lams, strict=True)
    ])  # fmt: skip
    fits = run_starts(observed, best, lams, n_hartigan=len(lams), **settings)
    ended = assign_rows(observed, fits.centers, lams, threads).T
    return Partitions(observed, distinct(np.concatenate([first.labels, ended]), k), k)


def _drawn(between: np.ndarray, weights: np.ndarray, k: int) -> np.ndarray:
    """(R, k) rows by k-means++ from squared distances (n, n)."""
    draws = np.random.RandomState(0).random_sample((k, OTHER_STARTS))
    chosen = np.empty((OTHER_STARTS, k), np.intp)
    away = np.ones((OTHER_STARTS, len(weights)))
    for l, draw in enumerate(draws):
        reached = np.cumsum(away * weights, axis=1)
        beyond = (reached <= draw[:, None] * reached[:, -1:]).sum(axis=1)
        chosen[:, l] = np.minimum(beyond, len(weights) - 1)
        away = between[chosen[:, l]] if l == 0 else np.minimum(away, between[chosen[:, l]])
    return chosen
