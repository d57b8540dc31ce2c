"""What 100 million cells would take: one block measured here, the rest is arithmetic.

    python -m benchmarks.arithmetic [--rows 20000] [--workers 16]

The block has the width, density and k of the large table and is stepped by one thread, as on a
worker; its time is processor time. Nothing beyond that block is measured: no
network, no disk, no scheduler.
"""

from __future__ import annotations

import argparse
import os
import time

import numpy as np
from scipy import sparse

CELLS, GENES, STORED, K = 100_000_000, 2_000, 0.07, 50
BLOCK = 100_000  # rows of a block on the cluster
TASK_SECONDS = 1e-3  # what Dask's documentation gives as the order of a task's overhead
NETWORK = 1.25e9  # bytes per second: 10 Gbit/s


def block(rows: int) -> sparse.csr_array:
    rng = np.random.default_rng(0)
    seen = rng.random((rows, GENES), dtype=np.float32) < STORED
    values = sparse.csr_array(seen.astype(np.float32))
    values.data[:] = rng.gamma(2.0, size=values.nnz)
    return values


def measure(rows: int, repeats: int = 3) -> tuple[float, float, int]:
    """Seconds of a first pass and of a later one over a block, and its stored entries."""
    from mnarkmeans.dask._lloyd import Job, step
    from mnarkmeans.dask._pieces import make_piece

    piece = make_piece(block(rows), None, 0, 1, GENES, np.nan)
    rng = np.random.default_rng(1)
    zero, lam = np.zeros(GENES), np.full((1, GENES), 0.2)
    mu = rng.gamma(1.0, size=(1, K, GENES))
    job = Job(1, np.zeros(1, np.int64), mu, lam, zero, zero, fresh=False)

    def seconds(job: Job) -> float:
        began = time.process_time()  # the core runs in a thread of its own, to be interruptible
        step(piece, 0, job)
        return time.process_time() - began

    first = later = np.inf
    for _ in range(repeats):
        piece.memo.partition = None
        first = min(first, seconds(job))
        later = min(later, seconds(job._replace(mu=mu * 1.001)))
    return first, later, piece.source.nnz


def main() -> None:
    parser = argparse.ArgumentParser("python -m benchmarks.arithmetic", description=__doc__)
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--workers", type=int, default=16)
    options = parser.parse_args()
    first, later, entries = measure(options.rows)
    per_entry = later / entries / K
    workers, total = options.workers, CELLS * GENES * STORED
    print(
        f"measured: {options.rows:,} x {GENES:,}, {entries:,} stored, k={K}, one thread: first "
        f"pass {first:.2f} s, later {later:.2f} s = {1e9 * per_entry:.3f} ns per entry and centre "
        f"(load {os.getloadavg()[0]:.1f})"
    )
    n_blocks = CELLS // BLOCK
    sums = 16 * K * GENES
    print(f"{CELLS:,} x {GENES:,}, {STORED:.0%} stored, k={K}, one start, {workers} workers of one "
          f"thread, {n_blocks:,} blocks:")  # fmt: skip
    for name, width in (("float32", 8), ("float64", 12)):
        size = total * width
        print(f"  memory, {name} values and 4-byte indices: {size / 1e9:.0f} GB, "
              f"{size / workers / 1e9:.1f} GB per worker")  # fmt: skip
    print(f"  memory of labels {4 * CELLS / 1e9:.1f} GB and of the blocks' sums "
          f"{n_blocks * sums / 1e9:.1f} GB, over all workers, per start")  # fmt: skip
    print(f"  network per iteration: centres {8 * K * GENES / 1e6:.1f} MB to each worker; sums "
          f"{sums / 1e6:.1f} MB per block, at most {n_blocks * sums / 1e9:.1f} GB in all if no two "
          f"blocks are merged where they are: {n_blocks * sums / workers / NETWORK:.2f} s at "
          "10 Gbit/s per worker")  # fmt: skip
    tasks = n_blocks * (1 + 1 / 8 + 1 / 64) + 3
    compute = total * K * per_entry / workers
    print(f"  time per iteration: arithmetic {compute:.0f} s, scheduler {tasks * TASK_SECONDS:.1f} "
          f"s ({tasks:.0f} tasks of 1 ms)")  # fmt: skip
    pool = (1 + 5 * 2 * K) / K
    print(f"  start by k-means||: as {pool:.0f} iterations, {pool * compute / 60:.1f} min; then 20 "
          f"iterations {20 * compute / 60:.1f} min")  # fmt: skip


if __name__ == "__main__":
    main()
