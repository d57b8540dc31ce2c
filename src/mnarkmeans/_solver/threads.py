"""How many threads the core may use, and cuts of a problem that do not depend on it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import lru_cache
from numbers import Integral
from typing import Any

import joblib


@lru_cache(1)
def _cores() -> int:
    """Cores this process may use. Asking the system takes longer than a small fit."""
    return joblib.cpu_count()


def effective_threads(n_jobs: Any) -> int:
    """None: all cores this process may use, at most OMP_NUM_THREADS; negative: as in joblib."""
    cores = _cores()
    if n_jobs is None:
        limit = os.environ.get("OMP_NUM_THREADS", "")
        return min(cores, int(limit)) if limit.isdigit() and int(limit) > 0 else cores
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, Integral):
        raise TypeError(f"n_jobs must be None or a whole number; got {n_jobs!r}.")
    if n_jobs == 0:
        raise ValueError("n_jobs == 0 has no meaning; use None for all cores or a number >= 1.")
    wanted = int(n_jobs)
    return wanted if wanted > 0 else max(1, cores + 1 + wanted)


def slices(count: int, size: int) -> Sequence[tuple[int, int]]:
    """(start, stop) pairs that cut range(count) into pieces of the given size."""
    return [(start, min(start + size, count)) for start in range(0, count, size)]
