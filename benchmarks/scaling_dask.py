"""mnarkmeans.dask: seconds per iteration on one worker, on two, and in memory.

    python -m benchmarks.scaling_dask [--rows 1000000] [--clusters 10] [--blocks 4] [--repeats 5]

Workers are processes of one thread each on this machine; their blocks are persisted. Every
iteration is timed by its line in the log; of each, the best of the repeats counts, and the first
two are left out (most rows change cluster). In memory is MNARKMeans with as many threads as there
are workers, from the same start: the best long run less the best short one. Clusters of one worker
and of two are up at the same time and take turns, so that other work on the machine hurts both; it
hurts two workers more than one, so the load is printed as well.
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
        options = settings(X, k)
        began = time.perf_counter()
        MNARKMeans(k, algorithm="lloyd", n_jobs=threads, **options).fit(X)
        best[iterations] = min(best[iterations], time.perf_counter() - began)
    return (best[LONG] - best[SHORT]) / (LONG - SHORT)


def one_fit(lazy, X: np.ndarray, k: int) -> np.ndarray:
    """Seconds of every iteration."""
    from mnarkmeans.dask import MNARKMeans

    options = settings(X, k)
    ends = [time.perf_counter()]
    watch = logging.Handler()
    watch.emit = lambda _: ends.append(time.perf_counter())  # a line per iteration
    logger = logging.getLogger("mnarkmeans")
    logger.setLevel(logging.INFO)
    logger.addHandler(watch)
    MNARKMeans(k, persist=True, **options).fit(lazy)
    logger.removeHandler(watch)
    return np.diff(ends)


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
    """A cluster with its own blocks, and the least seconds of every iteration."""

    def __init__(self, stack, n_workers: int, X: np.ndarray, k: int, n_blocks: int):
        import distributed

        cluster = distributed.LocalCluster(
            n_workers=n_workers, threads_per_worker=1, processes=True, silence_logs=50,
            dashboard_address="127.0.0.1:0",
        )  # fmt: skip
        stack.enter_context(cluster)
        self.client = stack.enter_context(distributed.Client(cluster, set_as_default=False))
        self.X, self.k, self.best = X, k, np.full(LONG, np.inf)
        with self.client.as_current():
            self.lazy = blocks(self.client, len(X), k, n_blocks)

    def fit(self) -> None:
        with self.client.as_current():
            self.best = np.minimum(self.best, one_fit(self.lazy, self.X, self.k))

    @property
    def seconds(self) -> float:
        """Per iteration."""
        return float(self.best[SHORT:].mean())


def main() -> None:
    parser = argparse.ArgumentParser("python -m benchmarks.scaling_dask", description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--clusters", type=int, default=10)
    parser.add_argument("--blocks", type=int, default=4)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    n, k, repeats = options.rows, options.clusters, options.repeats
    X = table(n, k)
    print(
        f"{n:,} x {P}, k={k}, {options.blocks} blocks: seconds per iteration, best of {repeats}; "
        f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"
    )
    one, two = (in_memory(X, k, threads, repeats) for threads in (1, 2))
    print(f"  in memory: 1 thread {one:.3f}, 2 threads {two:.3f}", flush=True)
    with contextlib.ExitStack() as stack:
        clusters = [Cluster(stack, n_workers, X, k, options.blocks) for n_workers in (1, 2)]
        for _, cluster in itertools.product(range(repeats), clusters):
            cluster.fit()
    single, pair = (cluster.seconds for cluster in clusters)
    print(f"  cluster of 1: {single:.3f} ({single / one:.2f} x memory on 1 thread), "
          f"of 2: {pair:.3f} ({pair / two:.2f} x memory on 2)")  # fmt: skip
    print(f"2 workers against 1: {single / pair:.2f} x; 2 threads against 1: {one / two:.2f} x")


if __name__ == "__main__":
    main()
