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
from collections.abc import Iterator

from .measured import Measured

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
    import mnarkmeans

    from .tasks import quietly, tasks

    work = tasks()[task]()
    quietly(work)
    print(json.dumps(os.path.dirname(mnarkmeans.__file__)), flush=True)
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
    from .tasks import tasks

    for task in tasks():
        if not names or task in names:
            yield compare(python, task, repeats)


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
