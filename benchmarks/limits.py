"""What the machine can do: bytes read and copied per second, multiply-adds per second."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from threadpoolctl import threadpool_limits


@dataclass(frozen=True)
class Limits:
    threads: int
    read: float  # GB/s
    copy: float  # GB/s moved (read + written)
    double: float  # GFlop/s in float64: a matrix product in cache, one per thread
    single: float  # GFlop/s in float32

    def seconds(self, n_bytes: float, flops: float) -> float:
        """The least time for this much data and arithmetic (float32)."""
        return max(n_bytes / (self.read * 1e9), flops / (self.single * 1e9))

    def describe(self) -> str:
        return (
            f"{self.threads} thread(s): read {self.read:.1f} GB/s, copy {self.copy:.1f} GB/s, "
            f"multiply-add {self.double:.0f} GFlop/s float64, {self.single:.0f} float32"
        )


def measure(
    threads: int, megabytes: int = 400, repeats: int = 5, clock=time.perf_counter
) -> Limits:
    """``clock``: processor time counts all threads, so it is for one thread only."""
    pool = ThreadPoolExecutor(threads)
    source = [np.ones(megabytes * 125_000 // threads) for _ in range(threads)]
    target = [np.empty_like(s) for s in source]
    n_bytes = sum(s.nbytes for s in source)

    def best(work, *columns):
        times = []
        for _ in range(repeats + 1):  # the first one warms up
            begin = clock()
            list(pool.map(work, *columns))
            times.append(clock() - begin)
        return min(times[1:])

    with threadpool_limits(1):  # one thread of BLAS in each of ours
        read = n_bytes / best(np.dot, source, source) / 1e9
    copy = 2 * n_bytes / best(np.copyto, target, source) / 1e9
    rates = []
    for dtype in (np.float64, np.float32):
        a = [np.ones((512, 512), dtype) for _ in range(threads)]
        out = [np.empty_like(m) for m in a]
        with threadpool_limits(1):
            seconds = best(lambda x, o: [np.matmul(x, x, out=o) for _ in range(10)], a, out)
        rates.append(threads * 10 * 2 * 512**3 / seconds / 1e9)
    return Limits(threads, read, copy, rates[0], rates[1])
