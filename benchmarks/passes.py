"""What one pass over a table costs, and the least it could: ``python -m benchmarks.passes``.

Milliseconds of processor time on one thread, the least of several, of the first look, of passes in
which all rows join a cluster, many change it, or none does, of the last look and of all distances;
beside them what the machine needs to read the table, and for the multiply-adds of a comparison.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np

from mnarkmeans import _core as core

from . import limits
from .jobs import Job


class Passes:
    """The calls of the core that a fit makes, one by one."""

    def __init__(self, job: Job, lam: float):
        data = job.make()
        self.job, self.start = job, data.start
        self.table = core.Table(data.X, np.nan, np.ones(job.n))
        first = core.first_pass(self.table, 1)
        self.shift = first.sums / np.maximum(first.counts, 1)
        self.lam, self.zero = np.full((1, job.p), lam), np.zeros(job.p)
        self.best: dict[str, float] = {}

    def time(self, name: str, work: Callable[[], object]) -> None:
        begin = time.process_time()
        work()
        self.best[name] = min(self.best.get(name, np.inf), time.process_time() - begin)

    def turn(self) -> None:
        job, table, one = self.job, self.table, np.arange(1)
        starts = core.Starts(
            self.start[None], self.lam, self.zero, self.shift, n_rows=job.n, max_iter=9, tol=0.0,
            weights=(True, float(job.n)),
        )  # fmt: skip

        def step(fresh: bool, known: core.Known | None = None):
            return core.pass_(table, starts, one, fresh=fresh, known=known, threads=1)

        self.time("first look", lambda: core.first_pass(table, 1))
        self.time("pass, all rows join", lambda: step(True))
        core.update(starts, one)
        self.time("pass, many rows change", lambda: step(False))
        self.time("pass, no row changes", lambda: step(False))
        nothing = core.Known(np.full(job.n, -np.inf, np.float32), np.zeros(job.k))
        self.time("pass, bounds are taken", lambda: step(False, nothing))
        model, labels = starts.centers(one), starts.labels[0].copy()
        surely = core.Known(np.full(job.n, np.inf, np.float32), np.zeros(job.k))
        self.time("last look", lambda: core.last_look(table, model, 1))
        self.time(
            "last look, labels known", lambda: core.last_look(table, model, 1, labels, surely)
        )
        dtype = np.dtype(job.dtype)
        self.time("distances", lambda: core.distances(table, model, dtype, 1, roots=True))


def main() -> None:
    parser = argparse.ArgumentParser("python -m benchmarks.passes", description=__doc__)
    parser.add_argument("--rows", type=int, default=400_000)
    parser.add_argument("--features", type=int, default=50)
    parser.add_argument("--clusters", type=int, default=10)
    parser.add_argument("--dtype", choices=("float32", "float64"), default="float64")
    parser.add_argument("--lam", type=float, default=1.0)
    parser.add_argument("--repeats", type=int, default=7)
    options = parser.parse_args()
    job = Job("passes", options.rows, options.features, options.clusters, dtype=options.dtype)
    machine = limits.measure(1, clock=time.process_time)
    passes = Passes(job, options.lam)
    for _ in range(options.repeats):
        passes.turn()
    print(f"{job.shape}, k={job.k}, {job.dtype}, lam={options.lam:g}, {core.level()}")
    print(machine.describe())
    entries = job.n * job.p
    size = entries * np.dtype(job.dtype).itemsize
    for name, seconds in {
        **passes.best,
        "limit: reading the table": size / machine.read / 1e9,
        "limit: comparing": 2 * entries * job.k / machine.single / 1e9,
    }.items():
        print(f"  {name:26s}{1e3 * seconds:8.1f} ms")


if __name__ == "__main__":
    main()
