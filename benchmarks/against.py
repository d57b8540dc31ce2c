"""Two builds side by side: ``python -m benchmarks --against PYTHON``.

PYTHON is the interpreter of an environment with another build of the package. Each build runs in a
process of its own; they take turns, and the least processor time (of all threads) counts, so that
other work on the machine does not.

    python -m benchmarks.against PYTHON [--tasks NAME ...] [--repeats 5]
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from mnarkmeans import MiniBatchMNARKMeans, MNARKMeans, MNARKMeansCV

from .choice import SHAPES, papers_choice, papers_table, table
from .jobs import JOBS, Job
from .measured import Measured
from .rivals import mnarkmeans

SLOWEST = 1.1  # x the other build, on every task


def path_of_other(environment: dict[str, str]) -> dict[str, str]:
    """The other build is the one that is installed there."""
    return {name: value for name, value in environment.items() if name != "PYTHONPATH"}


class Build:
    """A process of one build that prepares a task, and does it as often as it is asked."""

    def __init__(self, python: str, task: str, here: bool):
        environment = dict(os.environ)
        if not here:
            environment = path_of_other(environment)
        self._process = subprocess.Popen(
            [python, "-W", "ignore", "-m", "benchmarks.against", "--serve", task],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment,
        )  # fmt: skip
        self.where = self._answer()

    def _answer(self):
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError("a build failed; its message is above")
        return json.loads(line)

    def run(self) -> float:
        self._process.stdin.write("go\n")
        self._process.stdin.flush()
        return self._answer()

    def close(self) -> None:
        self._process.communicate()  # nothing more to do: it ends


def serve(task: str) -> None:
    """The other end: one line of JSON per answer."""
    import mnarkmeans as package

    work = tasks()[task]()
    quietly(work)
    print(json.dumps(os.path.dirname(package.__file__)), flush=True)
    for _ in sys.stdin:
        begin = time.process_time()
        quietly(work)
        print(json.dumps(time.process_time() - begin), flush=True)


def compare(python: str, task: str, repeats: int, seconds: float = 6.0) -> Measured:
    """At least ``repeats`` turns, and more of short tasks."""
    builds = Build(sys.executable, task, here=True), Build(python, task, here=False)
    try:
        if builds[0].where == builds[1].where:
            raise SystemExit(f"both are the build in {builds[0].where}")
        best, begin, turns = [float("inf")] * 2, time.perf_counter(), 0
        while turns < repeats or (turns < 20 * repeats and time.perf_counter() - begin < seconds):
            best = [min(b, build.run()) for b, build in zip(best, builds, strict=True)]
            turns += 1
    finally:
        for build in builds:
            build.close()
    return Measured(task, best[0], best[1], "the other build", SLOWEST)


def compare_all(python: str, names: list[str] | None, repeats: int) -> Iterator[Measured]:
    for task in tasks():
        if not names or task in names:
            yield compare(python, task, repeats)


# Rows of the large tables: enough for their ways of work, few enough for a busy machine.
ROWS = {"tall and thin": 2_000_000, "k=1000": 20_000}
LARGE = 400_000


def _fit(job: Job) -> Callable[[], object]:
    data = job.make()
    iterations = None if job.starts else mnarkmeans(data, None)[1]
    return lambda: mnarkmeans(data, iterations)


def _with_penalty(job: Job) -> Callable[[], object]:
    """The gaps count for something between nothing and the reference observed."""
    data = job.make()
    model = MNARKMeans(job.k, lam=0.5, init=data.start, max_iter=8, tol=0.0, algorithm="lloyd")
    return lambda: model.fit(data.X)


def _use(verb: str, job: Job) -> Callable[[], object]:
    data = job.make()
    model = MNARKMeans(job.k, lam=0.5, init=data.start, max_iter=2).fit(data.X)
    return lambda: getattr(model, verb)(data.X)


def _choice(how: str, n: int, p: int, k: int) -> Callable[[], object]:
    if how == "paper":
        X = papers_table()
        return lambda: papers_choice(X)
    X = table(n, p, k)
    model = {
        "fixed": MNARKMeans(k, lam=0.5, random_state=0),
        "auto": MNARKMeans(k, random_state=0),
        "search": MNARKMeansCV(k, random_state=0),
    }[how]
    return lambda: model.fit(X)


def _batches(n: int) -> Callable[[], object]:
    """A stream of twenty batches of n x 50, k=10."""
    X = Job("batches", 20 * n, 50, 10, spread=2.0).make().X
    batches = [X[first : first + n] for first in range(0, len(X), n)]

    def work() -> None:
        model = MiniBatchMNARKMeans(10, lam=0.5, n_init=1, random_state=0)
        for batch in batches:
            model.partial_fit(batch)

    return work


def tasks() -> dict[str, Callable[[], Callable[[], object]]]:
    smaller = {job.name: job.smaller(max(1, job.n // ROWS.get(job.name, LARGE))) for job in JOBS}
    found: dict = {name: partial(_fit, job) for name, job in smaller.items()}
    for name in ("dense", "k=100", "CSR"):
        found[f"{name}, lam=0.5"] = partial(_with_penalty, smaller[name])
    for verb in ("predict", "impute", "transform"):
        found[verb] = partial(_use, verb, smaller["dense"])
    for n, p, k in SHAPES:
        for how in ("fixed", "auto", "search"):
            found[f"{how}, {n:,} x {p:,}"] = partial(_choice, how, n, p, k)
    for n in (100, 1000, 4096):
        found[f"partial_fit, {n:,} x 50"] = partial(_batches, n)
    found["the paper's choice"] = partial(_choice, "paper", 0, 0, 0)
    return found


def quietly(work: Callable[[], object]) -> None:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        work()


def main() -> None:
    parser = argparse.ArgumentParser("python -m benchmarks.against", description=__doc__)
    parser.add_argument("python", nargs="?", help="of the other build's environment")
    parser.add_argument("--tasks", nargs="+", metavar="NAME")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--serve", metavar="TASK", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        return serve(options.serve)
    if not options.python:
        parser.error("name the interpreter of the other build")
    for figure in compare_all(options.python, options.tasks, options.repeats):
        print(figure.line(), flush=True)


if __name__ == "__main__":
    main()
