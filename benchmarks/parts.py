"""Where the time of a fit goes: ``python -m benchmarks.parts [JOB ...]``.

Prints milliseconds of the first look at the data, the starts, every pass over the rows (also
without bounds, ``_solver.py``) and the last look; the best of several fits for each part.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections import defaultdict
from unittest import mock

import numpy as np

from mnarkmeans import MNARKMeans, _core, _kmeans, _solver
from mnarkmeans._solver import Bounds

from .jobs import JOBS, Data


class Clock:
    """Seconds of every call of some functions, the least over the fits."""

    def __init__(self):
        self.best: dict[str, np.ndarray] = {}
        self.now: dict[str, list[float]] = defaultdict(list)

    def watch(self, name: str, function):
        def timed(*args, **kwargs):
            begin = time.perf_counter()
            result = function(*args, **kwargs)
            self.now[name].append(time.perf_counter() - begin)
            return result

        return timed

    def end_of_fit(self) -> None:
        for name, seconds in self.now.items():
            new = np.array(seconds)
            self.best[name] = np.minimum(self.best.get(name, new), new)
        self.now.clear()


def parts(
    data: Data, threads: int, repeats: int, bounds: bool, lam: float
) -> dict[str, np.ndarray]:
    clock, job = Clock(), data.job
    options = {"init": data.start} if not job.starts else {"n_init": job.starts}
    model = MNARKMeans(job.k, lam=lam, algorithm="lloyd", random_state=0, n_jobs=threads, **options)
    patches = [
        mock.patch.object(_kmeans, "observe", clock.watch("first look", _kmeans.observe)),
        mock.patch.object(MNARKMeans, "_starts", clock.watch("starts", MNARKMeans._starts)),
        mock.patch.object(_kmeans, "run_starts", clock.watch("solver", _kmeans.run_starts)),
        mock.patch.object(_core, "lloyd", clock.watch("in one call", _core.lloyd)),
        mock.patch.object(_core, "pass_", clock.watch("passes", _core.pass_)),
        mock.patch.object(_core, "update", clock.watch("new centres", _core.update)),
        mock.patch.object(_solver, "finish", clock.watch("last look", _solver.finish)),
    ]
    if not bounds:
        patches.append(mock.patch.object(Bounds, "for_table", return_value=None))
    fit = clock.watch("whole fit", model.fit)
    model.fit(data.X)  # warms up, before anything is replaced
    for patch in patches:
        patch.start()
    try:
        for _ in range(repeats):
            fit(data.X)
            clock.end_of_fit()
    finally:
        mock.patch.stopall()
    return clock.best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("jobs", nargs="*", default=["dense", "100 starts"])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--lam", type=float, default=1.0)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    for job in (job for job in JOBS if job.name in args.jobs):
        data = job.make()
        for bounds in (True, False) if not job.starts else (True,):
            how = (
                f"{args.threads} thread(s), lam={args.lam:g}{'' if bounds else ', without bounds'}"
            )
            print(f"{job.name}, {how}: ms")
            for name, seconds in parts(data, args.threads, args.repeats, bounds, args.lam).items():
                print(f"  {name:12s}", *(f"{1e3 * s:.1f}" for s in seconds))


if __name__ == "__main__":
    main()
