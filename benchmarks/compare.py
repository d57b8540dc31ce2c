"""Time every program on every job: warmed up, taking turns, best of several."""

from __future__ import annotations

import csv
import math
import time
import warnings
from dataclasses import dataclass
from pathlib import Path

from .jobs import Job
from .measured import Measured
from .rivals import OURS, mnarkmeans, programs

PAUSE = 0.3  # seconds: idle threads of the previous program spin for up to 0.2 s


@dataclass
class Timing:
    """The best run of one program on one job."""

    job: Job
    program: str
    seconds: float
    iterations: int
    loss: float  # mean per row of the zero-filled table, computed by the benchmark
    ratio: float = math.nan  # its time divided by ours


def compare(job: Job, names: list[str] | None, repeats: int, clock) -> list[Timing]:
    """All programs on one job. They take turns, so that other work on the machine hits them all."""
    data = job.make()
    data.filled  # noqa: B018  filled beforehand: it costs the others nothing
    _, done = mnarkmeans(data, None)
    iterations = None if job.starts else done
    best: dict[str, Timing] = {}
    slow: set[str] = set()
    for turn in range(repeats + 1):  # the first turn warms up, unless it is too slow to repeat
        for name, fit in programs(data, names).items():
            if name in slow:
                continue
            timing = _time(job, name, fit, data, iterations, clock)
            if timing.seconds > 20.0:
                slow.add(name)
            elif turn == 0:
                continue
            if name not in best or timing.seconds < best[name].seconds:
                best[name] = timing
    for timing in best.values():
        timing.ratio = timing.seconds / best[OURS].seconds
    return list(best.values())


def _time(job: Job, name: str, fit, data, iterations: int | None, clock) -> Timing:
    time.sleep(PAUSE)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # max_iter reached, on purpose
        seconds, spent = math.inf, 0.0
        while spent < PAUSE:  # short fits are repeated
            begin = clock()
            centers, done = fit(data, iterations)
            taken = clock() - begin
            seconds, spent = min(seconds, taken), spent + taken
    return Timing(job, name, seconds, int(done), data.loss(centers))


def figures(timings: list[Timing]) -> list[Measured]:
    """Ours against the best of the others, and against the one that the job's goal names."""
    job = timings[0].job
    others = {t.program: t.seconds for t in timings if t.program != OURS}
    (ours,) = (t.seconds for t in timings if t.program == OURS)
    if not others:
        return []
    best = min(others, key=lambda name: others[name])
    return [
        Measured(
            job.name, ours, others[name], name,
            goal=job.goal if name == (job.goal_rival or best) else None, faster=True,
        )
        for name in dict.fromkeys([job.goal_rival, best])
        if name in others
    ]  # fmt: skip


def show(timings: list[Timing]) -> None:
    job = timings[0].job
    print(f"\n{job.name}: {job.shape}, k={job.k}")
    for t in timings:
        print(
            f"  {t.program:22s} {1e3 * t.seconds:10.1f} ms {t.iterations:4d} iterations"
            f"  {t.ratio:7.2f} x ours  loss {t.loss:.6g}",
            flush=True,
        )


def write_table(path: Path, timings: list[Timing]) -> None:
    """The table of docs/performance.md: milliseconds, in brackets the multiple of our time."""
    jobs = {t.job.name: t.job for t in timings}
    names = list(dict.fromkeys(t.program for t in timings))
    found = {(t.job.name, t.program): t for t in timings}
    with path.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["job", "size", "k", *names])
        for name, job in jobs.items():
            cells = []
            for program in names:
                t = found.get((name, program))
                shown = "" if t is None else f"{1e3 * t.seconds:.{1 if t.seconds < 0.1 else 0}f}"
                if t is not None and program != OURS:
                    shown += f" ({t.ratio:.1f})"
                cells.append(shown)
            writer.writerow([name, job.shape, job.k, *cells])


def draw_table(table: Path, path: Path) -> None:
    """The ratios of such a table as a picture."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    with table.open(newline="") as file:
        rows = list(csv.DictReader(file))
    others = [name for name in rows[0] if name not in ("job", "size", "k", OURS)]
    figure, axes = plt.subplots(figsize=(6, 0.42 * len(rows) + 1.2), layout="constrained")
    for name, marker in zip(others, "osD^", strict=False):
        shown = [(y, row[name]) for y, row in enumerate(rows) if row[name]]
        ratios = [float(text.partition("(")[2].rstrip(")")) for _, text in shown]
        axes.plot(ratios, [y for y, _ in shown], marker, label=name, alpha=0.85, markersize=8)
    axes.axvline(1.0, color="0.4", lw=1)
    axes.set(xscale="log", xlabel="times longer than mnarkmeans")
    axes.set_xticks([1, 2, 5, 10, 20], ["1", "2", "5", "10", "20"])
    axes.minorticks_off()
    axes.set_yticks(range(len(rows)), [f"{row['job']}\n{row['size']}" for row in rows], fontsize=8)
    axes.invert_yaxis()
    axes.grid(axis="x", alpha=0.3)
    figure.legend(loc="outside lower center", ncols=2, frameon=False)
    figure.savefig(path, dpi=150)
    plt.close(figure)
