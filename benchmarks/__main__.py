"""Run the benchmark: ``python -m benchmarks --help``."""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path

import joblib

from . import against, choice, fresh, history, memory, mixture, report, scaling
from . import limits as machine_limits
from .compare import compare_all
from .jobs import JOBS
from .measured import Measured
from .rivals import RIVALS, ours

THREAD_SETTINGS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
PARTS = ("jobs", "fresh", "choice", "mixture", "memory", "scaling")


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser("python -m benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a twentieth of the rows")
    parser.add_argument("--jobs", nargs="+", help="names of jobs (default: all)", metavar="NAME")
    parser.add_argument("--rivals", nargs="+", help="names of rivals", metavar="NAME")
    parser.add_argument("--repeats", type=int, default=5, help="best of so many (default 5)")
    parser.add_argument(
        "--one-thread", action="store_true",
        help="everybody on one thread, in processor time: for machines that are busy otherwise",
    )  # fmt: skip
    parser.add_argument(
        "--only", nargs="+", choices=PARTS, default=PARTS, metavar="PART",
        help=f"some of: {', '.join(PARTS)} (default: all)",
    )  # fmt: skip
    parser.add_argument(
        "--against", metavar="PYTHON",
        help="nothing but this build beside another one: the interpreter it is installed for",
    )  # fmt: skip
    parser.add_argument(
        "--history", action="store_true", help=f"add the figures to {history.FILE.name}"
    )
    parser.add_argument("-o", "--out", type=Path, default=Path("benchmark-results"))
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> None:
    options = parse(arguments)
    if options.one_thread and os.environ.get("OMP_NUM_THREADS") != "1":
        # Libraries read these once, when they are loaded: begin again.
        os.environ.update(dict.fromkeys(THREAD_SETTINGS, "1"))
        os.execv(sys.executable, [sys.executable, "-m", "benchmarks", *sys.argv[1:]])
    options.out.mkdir(parents=True, exist_ok=True)
    threads = 1 if options.one_thread else joblib.cpu_count()
    megabytes = 20 if options.quick else 400
    limits = machine_limits.measure(threads, megabytes, clock=clock(options))
    print(limits.describe())

    timings, curves = [], []
    if options.against:
        figures = shown(against.compare_all(options.against, options.jobs, options.repeats))
    else:
        timings, figures = run_jobs(options, limits) if "jobs" in options.only else ([], [])
        figures += shown(run_figures(options))
        if "scaling" in options.only:
            curves = run_curves(options)
    command = "python -m benchmarks " + " ".join(arguments if arguments else sys.argv[1:])
    report.write_markdown(
        options.out / "performance.md", command.strip(), limits, timings, figures, curves
    )
    if options.history:
        history.append(figures, report.processor(), threads)
    print(f"\nwritten to {options.out}/")


def shown(figures) -> list[Measured]:
    """The figures, each printed as soon as it is known."""
    found = []
    for figure in figures:
        print(figure.line(), flush=True)
        found.append(figure)
    return found


def run_jobs(options, limits) -> tuple[list, list[Measured]]:
    """Everybody on every job."""
    jobs = [job for job in JOBS if not options.jobs or job.name in options.jobs]
    rivals = [r for r in RIVALS if r is ours or not options.rivals or r.NAME in options.rivals]
    if not jobs:
        sys.exit(f"No such job; there are: {', '.join(job.name for job in JOBS)}.")
    jobs = [job.smaller(20 if options.quick else 1) for job in jobs]
    timings, figures = [], []
    for of_job, its_figures in compare_all(jobs, rivals, limits, options.repeats, clock(options)):
        report.print_job(of_job)
        timings += of_job
        figures += its_figures
    report.write_csv(options.out / "timings.csv", timings)
    report.plot_ratios(options.out / "ratios.png", timings)
    return timings, figures


def run_figures(options):
    """A new user's first minute, the choice of lam, mixtures, memory."""
    few = 1 if options.quick else options.repeats
    if "fresh" in options.only:
        yield from fresh.measure(few, clock(options).__name__)
    if "choice" in options.only:
        yield from choice.measure_papers(options.repeats, clock(options))
        shapes = choice.SHAPES[:1] if options.quick else choice.SHAPES
        yield from choice.measure(few, clock(options), shapes)
    if "mixture" in options.only:
        yield from mixture.measure(few, clock(options), n=5_000 if options.quick else 100_000)
    if "memory" in options.only and memory.STATUS.exists():
        for verb in memory.VERBS:
            yield memory.measure(verb, 50_000 if options.quick else 1_000_000, 50, 10)


def run_curves(options) -> list[scaling.Curve]:
    curves = scaling.curves(20 if options.quick else 1, options.repeats)
    for curve in curves:
        print(f"time against {curve.size}: slope {curve.slope:.2f}")
    report.plot_curves(options.out / "scaling.png", curves)
    return curves


def clock(options):
    return time.process_time if options.one_thread else time.perf_counter


if __name__ == "__main__":
    main()
