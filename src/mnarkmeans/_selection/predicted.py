"""What the best partition for every candidate predicts of rows left out (`_penalty.partitions`).

The parts have found partitions of all rows; every candidate takes the one that costs it least,
whoever found it, and goes on from there with all rows. Large tables are judged by a sample.
"""

from __future__ import annotations

import numpy as np

from .._observed import Observed
from .._penalty.partitions import Partitions, distinct
from .._solver import assign_rows, run_starts
from .evidence import Evidence
from .fits import Settings

MOST_ENTRIES = 1 << 18  # of the table that is judged
SMALL = 1 << 17  # entries of a table whose rows also move one by one
FEWEST_ROWS, FEWEST_COLUMNS = 200, 500


def predicted_by(
    observed: Observed, evidence: Evidence, penalty: float, settings: Settings
) -> np.ndarray:
    """(2, G): what the candidates' partitions explain of rows left out, gaps counting ``penalty``,
    in the units of the data and in those of the features."""
    k = evidence.k
    penalties = settings.penalties(np.append(evidence.lams, penalty))
    n = max(MOST_ENTRIES // observed.n_features, FEWEST_ROWS, 20 * k)
    labels = evidence.labels.transpose(0, 2, 1).reshape(-1, observed.n_rows)
    if n < observed.n_rows:
        rows = observed.sample(n)
        observed, labels = observed.take(rows), labels[:, rows]
    p, wanted = observed.n_features, max(MOST_ENTRIES // observed.n_rows, FEWEST_COLUMNS)
    if wanted < p:  # every so many of them, in the order of their means
        order = np.argsort(observed.means, kind="stable")
        every = ((np.arange(wanted) + 0.5) * (p / wanted)).astype(np.intp)
        columns = np.sort(order[every])
        observed = observed.take_columns(columns)
        penalties = penalties if settings.features is None else penalties[:, columns]
    lams, held_out = penalties[:-1], penalties[-1]
    small = observed.n_rows * observed.n_features <= SMALL
    found = Partitions(observed, distinct(np.ascontiguousarray(labels), k), k)
    begin = np.stack([
        found.centers(index, lam)
        for index, lam in zip(found.best_for(lams), lams, strict=True)
    ])  # fmt: skip
    fits = run_starts(
        observed, begin, lams, n_hartigan=len(lams) if small else 0,
        max_iter=settings.max_iter, tol=settings.tol, threads=settings.threads,
    )  # fmt: skip
    labels = assign_rows(observed, fits.centers, lams, settings.threads).T
    found = Partitions(observed, distinct(np.ascontiguousarray(labels), k), k)
    best = found.best_for(lams)
    different = list(dict.fromkeys(best))
    gains = found.predicted(different, held_out)
    return gains[:, [different.index(index) for index in best]]
