"""Lloyd or Hartigan? Loss reached and time taken from the same starts, over sizes of tables.

    python -m benchmarks.algorithms

The excess is the mean over seeds of (loss / best loss known of the table - 1). This table is where
the limit for ``algorithm="auto"`` comes from.
"""

from __future__ import annotations

import time

import numpy as np

from mnarkmeans import MNARKMeans
from mnarkmeans.missingness import ampute

SEEDS = range(5)
SHAPES = [  # n, p, k, distance of the centres from the origin
    (62, 4026, 3, 0.15),
    (300, 50, 3, 0.6),
    (600, 400, 4, 0.2),
    (3_000, 20, 8, 0.8),
    (10_000, 10, 10, 1.0),
    (20_000, 50, 10, 0.5),
    (100_000, 20, 10, 0.8),
]


def table(n: int, p: int, k: int, spread: float) -> np.ndarray:
    rng = np.random.default_rng(n)
    complete = rng.normal(scale=spread, size=(k, p))[rng.integers(k, size=n)]
    complete += rng.normal(size=(n, p))
    X = ampute(complete, "mnar0", fraction=0.3, rng=rng)
    return X[~np.isnan(X).all(axis=1)]


def measure(X: np.ndarray, k: int, algorithm: str, n_init: int) -> tuple[list[float], float]:
    """Losses of a few seeds, and the least time of a fit."""
    losses, seconds = [], []
    for seed in SEEDS:
        model = MNARKMeans(k, lam=0.5, algorithm=algorithm, n_init=n_init, random_state=seed)
        began = time.perf_counter()
        losses.append(model.fit(X).inertia_)
        seconds.append(time.perf_counter() - began)
    return losses, min(seconds)


def main() -> None:
    print(f"{'n':>7} {'p':>5} {'k':>3} {'work':>9}   " + "".join(
        f"{name + ' x' + str(n):>24}" for name, n in CONTENDERS))  # fmt: skip
    for n, p, k, spread in SHAPES:
        X = table(n, p, k, spread)
        results = [measure(X, k, name, n_init) for name, n_init in CONTENDERS]
        best = min(min(losses) for losses, _ in results)
        cells = [
            f"{np.mean(losses) / best - 1:14.2e} {1e3 * seconds:6.0f} ms"
            for losses, seconds in results
        ]
        print(f"{n:7} {p:5} {k:3} {n * p * k:9.1e}   " + "".join(cells))


CONTENDERS = [("lloyd", 10), ("hartigan", 10), ("lloyd", 30)]

if __name__ == "__main__":
    main()
