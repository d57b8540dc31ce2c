"""MiniBatchMNARKMeans beside the full fit: loss and time on the same table, in one run.

    python -m benchmarks.minibatch [--rows 1000000] [--repeats 3]

The full fit is MNARKMeans with one start, made by k-means++ as usual; "given start" is the same fit
without the time of making the start.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from mnarkmeans import MiniBatchMNARKMeans, MNARKMeans

P, K, LAM = 50, 10, 0.5


def table(n: int, spread: float) -> np.ndarray:
    rng = np.random.default_rng(0)
    X = rng.normal(scale=spread, size=(K, P))[rng.integers(K, size=n)]
    for start in range(0, n, 50_000):
        rows = X[start : start + 50_000]
        rows += rng.normal(size=rows.shape)
        rows[rng.random(rows.shape) < 0.3] = np.nan
    return X


def timed(model, X):
    began = time.perf_counter()
    model.fit(X)
    return time.perf_counter() - began, model.inertia_


def main() -> None:
    parser = argparse.ArgumentParser("python -m benchmarks.minibatch", description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    for spread in (1.0, 0.3):
        X = table(options.rows, spread)
        for seed in range(options.repeats):
            common = dict(lam=LAM, random_state=seed)
            full, loss = timed(MNARKMeans(K, n_init=1, algorithm="lloyd", **common), X)
            start = np.nan_to_num(X[seed * K : (seed + 1) * K])
            given, _ = timed(MNARKMeans(K, init=start, algorithm="lloyd", **common), X)
            mini, mini_loss = timed(MiniBatchMNARKMeans(K, **common), X)
            print(
                f"{options.rows:,} x {P}, k={K}, centres {spread:g} apart, seed {seed}: "
                f"full {full:.2f} s, given start {given:.2f} s, batches {mini:.2f} s; "
                f"batches / full: loss {mini_loss / loss:.4f}, time {mini / full:.3f} "
                f"(given start {mini / given:.3f})",
                flush=True,
            )


if __name__ == "__main__":
    main()
