"""Time of one iteration over all rows against n, p, k and the observed share, with fitted slopes.

A slope of 1 on doubly logarithmic axes is linear growth.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from pathlib import Path
from unittest import mock

import numpy as np

from .jobs import Job

BASE = Job("scaling", 200_000, 32, 20)
CSR_BASE = Job("scaling, CSR", 20_000, 1000, 10, sparse=True, missing=0.9)


@dataclass
class Curve:
    """Seconds per iteration at some values of one size."""

    size: str
    values: list[float]
    seconds: list[float]

    @property
    def slope(self) -> float:
        return float(np.polyfit(np.log(self.values), np.log(self.seconds), 1)[0])


def _seconds_per_iteration(job: Job, repeats: int) -> float:
    """Difference of a long and a short run, so that fixed costs cancel.

    Without bounds: how many rows they pass over is a matter of the data, not of the size.
    """
    from mnarkmeans import MNARKMeans, _solver

    data = job.make()
    best = {}
    for iterations in (2, 8):
        model = MNARKMeans(
            job.k, lam=0.5, init=data.start, max_iter=iterations, tol=0.0, algorithm="lloyd"
        )
        times = []
        for _ in range(repeats):
            with mock.patch.object(_solver, "FEWEST_FEATURES", 10**9):
                begin = time.perf_counter()
                model.fit(data.X)
                times.append(time.perf_counter() - begin)
        best[iterations] = min(times)
        done = model.n_iter_
    return max(best[8] - best[2], 1e-9) / max(done - 2, 1)


def curves(factor: int = 1, repeats: int = 5) -> list[Curve]:
    """Measure all curves; ``factor`` divides the rows."""
    dense, csr = replace(BASE, n=BASE.n // factor), replace(CSR_BASE, n=CSR_BASE.n // factor)
    plans = {
        "n": [(v, replace(dense, n=v)) for v in np.multiply(dense.n, (1, 2, 4, 8)).tolist()],
        "p": [(v, replace(dense, p=v)) for v in (16, 32, 64, 128)],
        "k": [(v, replace(dense, k=v)) for v in (10, 20, 40, 80)],
        "observed share (CSR)": [(v, replace(csr, missing=1 - v)) for v in (0.05, 0.1, 0.2, 0.4)],
    }
    return [
        Curve(
            size,
            [float(value) for value, _ in plan],
            [_seconds_per_iteration(job, repeats) for _, job in plan],
        )
        for size, plan in plans.items()
    ]


def draw(curves: list[Curve], path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, panels = plt.subplots(
        1, len(curves), figsize=(3 * len(curves), 3), sharey=True, layout="constrained"
    )
    for axes, curve in zip(panels, curves, strict=True):
        axes.loglog(curve.values, np.multiply(curve.seconds, 1e3), "o-")
        axes.set(xlabel=curve.size, title=f"slope {curve.slope:.2f}")
        axes.set_xticks(curve.values, [f"{value:g}" for value in curve.values])
        axes.minorticks_off()
        axes.grid(alpha=0.3)
    panels[0].set_ylabel("ms per iteration")
    figure.savefig(path, dpi=150)
    plt.close(figure)
