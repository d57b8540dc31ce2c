"""Threads for compiled work that has let go of the interpreter lock.

Tasks are fixed pieces of the problem (slabs of rows, slices of starts) and results come back in
the order of the pieces, so the number of threads changes the time and nothing else.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import lru_cache
from numbers import Integral
from typing import Any

import joblib

_pools = threading.local()


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


def ordered_map(work: Callable[[Any], Any], tasks: Iterable[Any], threads: int) -> list[Any]:
    """[work(task) for task in tasks], on several threads that pull the next open task."""
    tasks = list(tasks)
    threads = min(threads, len(tasks))
    if threads <= 1:
        return [work(task) for task in tasks]
    results: list[Any] = [None] * len(tasks)
    queue = iter(range(len(tasks)))
    lock = threading.Lock()

    def pull() -> None:
        while True:
            with lock:
                number = next(queue, None)
            if number is None:
                return
            results[number] = work(tasks[number])

    helpers: list[Future[None]] = []
    try:
        for _ in range(threads - 1):
            helpers.append(_pool(threads - 1).submit(pull))
        pull()
    finally:
        with lock:  # after an error or Ctrl-C no further piece is begun
            for _ in queue:
                pass
        errors = _outcomes(helpers)
    for error in errors:
        if error is not None:
            raise error
    return results


def _outcomes(helpers: list[Future[None]]) -> list[BaseException | None]:
    """What became of each, once all have ended, whatever comes meanwhile: they work on arrays that
    would be gone if an exception left this place before they do."""
    asked: BaseException | None = None
    while True:
        try:
            errors = [helper.exception() for helper in helpers]
            break
        except (KeyboardInterrupt, SystemExit) as signal:
            asked = signal
    return [asked, *errors]


def _pool(size: int) -> ThreadPoolExecutor:
    """A pool of this thread and this process: threads do not survive a fork."""
    key = (os.getpid(), size)
    if getattr(_pools, "key", None) != key:
        _pools.key = key
        _pools.pool = ThreadPoolExecutor(size, thread_name_prefix="mnarkmeans")
    return _pools.pool


def slices(count: int, size: int) -> Sequence[tuple[int, int]]:
    """(start, stop) pairs that cut range(count) into pieces of the given size."""
    return [(start, min(start + size, count)) for start in range(0, count, size)]
