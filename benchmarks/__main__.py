"""Run the benchmark: ``python -m benchmarks --help``."""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path

import joblib

from . import choice, memory, report, scaling
from . import limits as machine_limits
from .compare import compare_all
from .jobs import JOBS
from .rivals import RIVALS, ours

THREAD_SETTINGS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


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
    parser.add_argument("--no-scaling", action="store_true", help="leave the curves out")
    parser.add_argument("--no-choice", action="store_true", help="leave the choice of lam out")
    parser.add_argument("--no-memory", action="store_true", help="leave the peak memory out")
    parser.add_argument("-o", "--out", type=Path, default=Path("benchmark-results"))
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> None:
    options = parse(arguments)
    if options.one_thread and os.environ.get("OMP_NUM_THREADS") != "1":
        # Libraries read these once, when they are loaded: begin again.
        os.environ.update(dict.fromkeys(THREAD_SETTINGS, "1"))
        os.execv(sys.executable, [sys.executable, "-m", "benchmarks", *sys.argv[1:]])
    factor = 20 if options.quick else 1
    jobs = [job for job in JOBS if not options.jobs or job.name in options.jobs]
    rivals = [r for r in RIVALS if r is ours or not options.rivals or r.NAME in options.rivals]
    if not jobs:
        sys.exit(f"No such job; there are: {', '.join(job.name for job in JOBS)}.")
    options.out.mkdir(parents=True, exist_ok=True)

    clock = time.process_time if options.one_thread else time.perf_counter
    threads = 1 if options.one_thread else joblib.cpu_count()
    limits = machine_limits.measure(threads, megabytes=400 // factor + 20)
    print(limits.describe())
    timings = []
    for of_job in compare_all([job.smaller(factor) for job in jobs], rivals, limits,
                              options.repeats, clock):  # fmt: skip
        report.print_job(of_job)
        timings += of_job
    report.write_csv(options.out / "timings.csv", timings)
    report.plot_ratios(options.out / "ratios.png", timings)

    if not options.no_choice:
        print("\n" + "\n".join(choice.describe(options.repeats, clock)))
    peak = None
    if not options.no_memory:
        peak = memory.measure(1_000_000 // factor, 50, 10)
        print(f"\npeak memory beyond the input: {peak[1] / peak[0]:.3f} x the input")
    curves = []
    if not options.no_scaling:
        curves = scaling.curves(factor, options.repeats)
        for curve in curves:
            print(f"time against {curve.size}: slope {curve.slope:.2f}")
        report.plot_curves(options.out / "scaling.png", curves)
    command = "python -m benchmarks " + " ".join(arguments if arguments else sys.argv[1:])
    report.write_markdown(
        options.out / "performance.md", command.strip(), limits, timings, peak, curves,
        {job.name: job.goal for job in jobs},
    )  # fmt: skip
    print(f"\nwritten to {options.out}/")


if __name__ == "__main__":
    main()
