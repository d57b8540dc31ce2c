"""Speed and memory beside other programs, and what the goals say: python -m benchmarks --help"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path

import joblib

from . import against, choice, compare, fresh, memory, mixture, scaling
from .jobs import JOBS
from .measured import Measured, append_history

THREAD_SETTINGS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
PARTS = ("jobs", "fresh", "choice", "mixture", "memory", "scaling")


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser("python -m benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a twentieth of the rows")
    parser.add_argument("--jobs", nargs="+", metavar="NAME", help="names of jobs (default: all)")
    parser.add_argument("--rivals", nargs="+", metavar="NAME", help="names of other programs")
    parser.add_argument("--repeats", type=int, default=5, help="best of so many (default 5)")
    parser.add_argument(
        "--one-thread", action="store_true",
        help="everything on one thread, in processor time: for machines that do other work",
    )  # fmt: skip
    parser.add_argument(
        "--only", nargs="+", choices=PARTS, default=PARTS, metavar="PART",
        help=f"some of: {', '.join(PARTS)} (default: all)",
    )  # fmt: skip
    parser.add_argument(
        "--against", metavar="PYTHON",
        help="only compare with another build: the interpreter it is installed for",
    )  # fmt: skip
    parser.add_argument("--history", action="store_true", help="add the figures to history.csv")
    parser.add_argument("-o", "--out", type=Path, default=Path("benchmark-results"))
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> None:
    options = parse(arguments)
    if options.one_thread and os.environ.get("OMP_NUM_THREADS") != "1":
        # Libraries read these once, when they are loaded: start again.
        os.environ.update(dict.fromkeys(THREAD_SETTINGS, "1"))
        os.execv(sys.executable, [sys.executable, "-m", "benchmarks", *sys.argv[1:]])
    clock = time.process_time if options.one_thread else time.perf_counter
    options.out.mkdir(parents=True, exist_ok=True)
    figures = []
    for figure in measure(options, clock):
        print(figure.line(), flush=True)
        figures.append(figure)
    if options.history:
        append_history(figures, 1 if options.one_thread else joblib.cpu_count())


def measure(options: argparse.Namespace, clock):
    """Yield the figures of the parts asked for; tables and pictures are written on the way."""
    if options.against:
        yield from against.compare_all(options.against, options.jobs, options.repeats)
        return
    if "jobs" in options.only:
        yield from run_jobs(options, clock)
    repeats = 1 if options.quick else options.repeats
    if "fresh" in options.only:
        yield from fresh.measure(repeats, clock.__name__)
    if "choice" in options.only:
        yield from choice.measure_papers(options.repeats, clock)
        yield from choice.measure(
            repeats, clock, choice.SHAPES[:1] if options.quick else choice.SHAPES
        )
    if "mixture" in options.only:
        yield from mixture.measure(repeats, clock, n=5_000 if options.quick else 100_000)
    if "memory" in options.only and memory.STATUS.exists():
        for verb in memory.VERBS:
            yield memory.measure(verb, 50_000 if options.quick else 1_000_000, 50, 10)
    if "scaling" in options.only:
        curves = scaling.curves(20 if options.quick else 1, options.repeats)
        for curve in curves:
            print(f"  time against {curve.size}: slope {curve.slope:.2f} (1 is linear)")
        scaling.draw(curves, options.out / "scaling.png")


def run_jobs(options: argparse.Namespace, clock) -> list[Measured]:
    jobs = [job for job in JOBS if not options.jobs or job.name in options.jobs]
    if not jobs:
        sys.exit(f"No such job; there are: {', '.join(job.name for job in JOBS)}.")
    timings, figures = [], []
    for job in jobs:
        smaller = job.smaller(20) if options.quick else job
        of_job = compare.compare(smaller, options.rivals, options.repeats, clock)
        compare.show(of_job)
        timings += of_job
        figures += compare.figures(of_job)
    compare.write_table(options.out / "performance.csv", timings)
    compare.draw_table(options.out / "performance.csv", options.out / "performance.png")
    return figures


if __name__ == "__main__":
    main()
