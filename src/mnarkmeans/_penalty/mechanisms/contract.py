"""What clusters and mechanisms tell each other in a round of EM."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Widths(NamedTuple):
    """Heavy clusters as normal ones of several widths (`heavy`), seen from their gaps."""

    w: np.ndarray  # (m,) the variance is v / w
    share: np.ndarray  # (m, k, p) of the gaps
    pull: np.ndarray  # (k, p) mean of w
    expected: np.ndarray  # (k, p) E[x | missing]


class Lost(NamedTuple):
    """What a mechanism says of clusters and features, each (k, p)."""

    log_missing: np.ndarray
    mean: np.ndarray  # of what is missing
    variance: np.ndarray
    log_observed: np.ndarray | None = None  # where it depends on the cluster, not on x
    widths: Widths | None = None  # of heavy tails: mean and variance are weighted by the pull


class Clusters(NamedTuple):
    """Clusters as a round of EM has them: centres from the reference, and soft weights."""

    mean: np.ndarray  # (k, p)
    variance: np.ndarray  # (k, p)
    gaps: np.ndarray  # (k, p) soft weight of missing entries
    sizes: np.ndarray  # (k,) of all rows
