"""mnarkmeans.dask: seconds per iteration against workers and rows, and against memory.

    python -m benchmarks.scaling_dask [--rows 1000000] [--clusters 10] [--blocks 4] [--repeats 5]

Workers are processes of one thread each on this machine; their blocks are persisted. Every
iteration is timed by a callback; of each, the best of the repeats counts, and the first two are
left out (most rows change cluster). In memory is MNARKMeans with as many threads as there are
workers, from the same start: the best long run less the best short one. "Dask on threads" is the
same fit without a cluster. Clusters of one worker and of two are up at the same time and take
turns, so that other work on the machine hurts both; it hurts two workers more than one, so the
load is printed as well.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import logging
import os
import time

import numpy as np

P, LAM, SHORT, LONG = 50, 0.5, 2, 8


def table(n: int, k: int) -> np.ndarray:
    rng = np.random.default_rng(0)
    X = rng.normal(scale=0.3, size=(k, P))[rng.integers(k, size=n)]
    for start in range(0, n, 50_000):
        rows = X[start : start + 50_000]
        rows += rng.normal(size=rows.shape)
        rows[rng.random(rows.shape) < 0.3] = np.nan
    return X


def settings(X: np.ndarray, k: int) -> dict:
    return dict(lam=LAM, init=np.nan_to_num(X[:k]), max_iter=LONG, tol=0.0)


def in_memory(X: np.ndarray, k: int, threads: int, repeats: int) -> float:
    """Seconds per iteration."""
    from mnarkmeans import MNARKMeans

    best = {SHORT: np.inf, LONG: np.inf}
    for _, iterations in itertools.product(range(repeats), best):
        options = settings(X, k) | {"max_iter": iterations}
        began = time.perf_counter()
        MNARKMeans(k, algorithm="lloyd", n_jobs=threads, **options).fit(X)
        best[iterations] = min(best[iterations], time.perf_counter() - began)
    return (best[LONG] - best[SHORT]) / (LONG - SHORT)


def one_fit(lazy, X: np.ndarray, k: int, iterations: int = LONG) -> np.ndarray:
    """Seconds of every iteration."""
    from mnarkmeans.dask import MNARKMeans

    options = settings(X, k) | {"max_iter": iterations}
    ends = [time.perf_counter()]
    watch = logging.Handler()
    watch.emit = lambda _: ends.append(time.perf_counter())  # a line per iteration
    logger = logging.getLogger("mnarkmeans")
    logger.setLevel(logging.INFO)
    logger.addHandler(watch)
    MNARKMeans(k, persist=True, **options).fit(lazy)
    logger.removeHandler(watch)
    return np.diff(ends)


def on_threads(X: np.ndarray, k: int, n_blocks: int, repeats: int) -> float:
    """Seconds per iteration."""
    import dask
    import dask.array as da

    lazy = da.from_array(X, chunks=(-(-len(X) // n_blocks), P), name=False)
    with dask.config.set(scheduler="threads", num_workers=2):
        fits = [one_fit(lazy, X, k) for _ in range(repeats)]
    return float(np.min(fits, axis=0)[SHORT:].mean())


def blocks(client, n: int, k: int, n_blocks: int):
    """Made on the workers, as many on each: no row travels."""
    import dask
    import dask.array as da
    import distributed

    workers = list(client.scheduler_info()["workers"])
    edges = np.linspace(0, n, n_blocks + 1).astype(int)
    made = [
        client.submit(_rows, n, k, a, b, workers=workers[i % len(workers)], pure=False)
        for i, (a, b) in enumerate(itertools.pairwise(edges.tolist()))
    ]
    distributed.wait(made)
    lengths = np.diff(edges).tolist()
    return da.concatenate(
        [
            da.from_delayed(dask.delayed(block), (length, P), dtype=float)
            for block, length in zip(made, lengths, strict=True)
        ]
    )


def _rows(n: int, k: int, start: int, stop: int) -> np.ndarray:
    return table(n, k)[start:stop].copy()


class Cluster:
    """A cluster with its own blocks, and what its fits took."""

    def __init__(self, stack, n_workers: int, X: np.ndarray, k: int, n_blocks: int):
        import distributed

        cluster = distributed.LocalCluster(
            n_workers=n_workers, threads_per_worker=1, processes=True, silence_logs=50,
            dashboard_address="127.0.0.1:0",
        )  # fmt: skip
        stack.enter_context(cluster)
        self.client = stack.enter_context(distributed.Client(cluster, set_as_default=False))
        self.X, self.k = X, k
        with self.client.as_current():
            self.lazy = blocks(self.client, len(X), k, n_blocks)
        self.best = np.full(LONG, np.inf)
        # Processor time of a fit: of client and scheduler (this process), of the busiest worker.
        self.busy = {SHORT: np.full(2, np.inf), LONG: np.full(2, np.inf)}

    def fit(self, iterations: int) -> None:
        mine, before = time.process_time(), self.client.run(time.process_time)
        with self.client.as_current():
            taken = one_fit(self.lazy, self.X, self.k, iterations)
        after, mine = self.client.run(time.process_time), time.process_time() - mine
        busiest = max(after[name] - before[name] for name in before)
        self.busy[iterations] = np.minimum(self.busy[iterations], [mine, busiest])
        if iterations == LONG:
            self.best = np.minimum(self.best, taken)

    @property
    def seconds(self) -> float:
        """Per iteration."""
        return float(self.best[SHORT:].mean())

    @property
    def processor(self) -> np.ndarray:
        """Processor time per iteration: of client and scheduler, of the busiest worker.

        Together what an iteration takes if nobody else works here and messages take no time.
        """
        return (self.busy[LONG] - self.busy[SHORT]) / (LONG - SHORT)


def main() -> None:
    parser = argparse.ArgumentParser("python -m benchmarks.scaling_dask", description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--clusters", type=int, default=10)
    parser.add_argument("--blocks", type=int, default=4)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    n, k, repeats = options.rows, options.clusters, options.repeats
    n_blocks = options.blocks
    X = table(n, k)
    print(
        f"{n:,} x {P}, k={k}, {n_blocks} blocks: seconds per iteration, best of {repeats}; "
        f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"
    )
    threads = on_threads(X, k, n_blocks, repeats)
    one, two = (in_memory(X, k, number, repeats) for number in (1, 2))
    print(f"  in memory: 1 thread {one:.3f}, 2 threads {two:.3f}; Dask on 2 threads {threads:.3f}",
          flush=True)  # fmt: skip
    with contextlib.ExitStack() as stack:
        clusters = [Cluster(stack, n_workers, X, k, n_blocks) for n_workers in (1, 2)]
        for _, cluster, iterations in itertools.product(range(repeats), clusters, (SHORT, LONG)):
            cluster.fit(iterations)
    single, pair = clusters
    print(f"  cluster of 1: {single.seconds:.3f}, of 2: {pair.seconds:.3f}")
    print(f"2 workers against 1: {single.seconds / pair.seconds:.2f} x; 2 threads against 1 in "
          f"memory: {one / two:.2f} x")  # fmt: skip
    alone, both = single.processor, pair.processor
    print(f"processor time per iteration: busiest worker {alone[1]:.4f} of 1, {both[1]:.4f} of 2; "
          f"client and scheduler {alone[0]:.4f} and {both[0]:.4f}; together "
          f"{alone.sum() / both.sum():.2f} x")  # fmt: skip
    print(f"against memory with as many threads: cluster of 1 {single.seconds / one:.2f} x, of 2 "
          f"{pair.seconds / two:.2f} x, Dask on threads {threads / two:.2f} x")  # fmt: skip
    for rows in (n // 4, n // 2, n):
        taken = on_threads(X[:rows], k, n_blocks, repeats)
        print(f"rows {rows:,}: {taken:.3f} s on threads", flush=True)
    print(f"moved per iteration: {8 * k * P:,} bytes of centres to each worker, "
          f"{8 * (2 * k * P + 2 * k + 1):,} of sums from each block or merge; load now "
          f"{os.getloadavg()[0]:.1f}")  # fmt: skip


if __name__ == "__main__":
    main()
