"""mnarkmeans.dask: seconds per iteration against workers and rows, and against memory.

    python -m benchmarks.scaling_dask [--rows 1000000] [--clusters 10] [--blocks 4] [--repeats 5]

Workers are processes of one thread each on this machine; their blocks are persisted. Every
iteration is timed by a callback; of each, the best of the repeats counts, and the first two are
left out (they load compiled code). In memory is MNARKMeans with as many threads as there are
workers, from the same start: the best long run less the best short one. "Dask on threads" is the
same fit without a cluster. Other work on the machine hurts two workers more than one, so the load
is printed as well.
"""

from __future__ import annotations

import argparse
import itertools
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


def on_dask(lazy, X: np.ndarray, k: int, repeats: int) -> float:
    """Seconds per iteration."""
    from mnarkmeans.dask import MNARKMeans

    best = np.full(LONG, np.inf)
    for _ in range(repeats + 1):  # the first one loads what is compiled
        seen = []
        MNARKMeans(k, persist=True, callback=seen.append, **settings(X, k)).fit(lazy)
        best = np.minimum(best, [done.seconds for done in seen])
    return float(best[SHORT:].mean())


def blocks(n: int, k: int, n_blocks: int):
    """Made on the workers: no row travels."""
    import dask
    import dask.array as da

    edges = np.linspace(0, n, n_blocks + 1).astype(int)
    parts = [
        da.from_delayed(dask.delayed(_rows)(n, k, a, b), (b - a, P), dtype=float)
        for a, b in itertools.pairwise(edges)
    ]
    return da.concatenate(parts)


def _rows(n: int, k: int, start: int, stop: int) -> np.ndarray:
    return table(n, k)[start:stop].copy()


def on_cluster(X: np.ndarray, k: int, n_workers: int, n_blocks: int, repeats: int) -> float:
    import distributed

    with (
        distributed.LocalCluster(
            n_workers=n_workers, threads_per_worker=1, processes=True, dashboard_address=None,
            silence_logs=50,
        ) as cluster,
        distributed.Client(cluster) as client,
    ):  # fmt: skip
        lazy = client.persist(blocks(len(X), k, n_blocks))
        distributed.wait(lazy)
        return on_dask(lazy, X, k, repeats)


def main() -> None:
    parser = argparse.ArgumentParser("python -m benchmarks.scaling_dask", description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--clusters", type=int, default=10)
    parser.add_argument("--blocks", type=int, default=4)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    n, k, repeats = options.rows, options.clusters, options.repeats
    n_blocks = options.blocks
    import dask
    import dask.array as da

    X = table(n, k)
    print(
        f"{n:,} x {P}, k={k}, {n_blocks} blocks: seconds per iteration, best of {repeats}; "
        f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"
    )
    lazy = da.from_array(X, chunks=(-(-n // n_blocks), P), name=False)
    with dask.config.set(scheduler="threads", num_workers=2):
        threads = on_dask(lazy, X, k, repeats)
    one, two = (in_memory(X, k, number, repeats) for number in (1, 2))
    print(f"  in memory: 1 thread {one:.3f}, 2 threads {two:.3f}; Dask on 2 threads {threads:.3f}",
          flush=True)  # fmt: skip
    found = {}
    for n_workers in (1, 2):
        found[n_workers] = on_cluster(X, k, n_workers, n_blocks, repeats)
        print(f"  cluster of {n_workers}: {found[n_workers]:.3f}", flush=True)
    print(f"2 workers against 1: {found[1] / found[2]:.2f} x; 2 threads against 1 in memory: "
          f"{one / two:.2f} x")  # fmt: skip
    print(f"against memory with as many threads: cluster of 1 {found[1] / one:.2f} x, of 2 "
          f"{found[2] / two:.2f} x, Dask on threads {threads / two:.2f} x")  # fmt: skip
    for rows in (n // 4, n // 2, n):
        part = da.from_array(X[:rows], chunks=(-(-rows // n_blocks), P), name=False)
        with dask.config.set(scheduler="threads", num_workers=2):
            print(f"rows {rows:,}: {on_dask(part, X, k, repeats):.3f} s on threads", flush=True)
    print(f"moved per iteration: {8 * k * P:,} bytes of centres to each worker, "
          f"{8 * (2 * k * P + 2 * k + 1):,} of sums from each block or merge; load now "
          f"{os.getloadavg()[0]:.1f}")  # fmt: skip


if __name__ == "__main__":
    main()
