"""What was measured, as a printed table, CSV, Markdown and plots. Nothing is computed here."""

from __future__ import annotations

import csv
import platform
from datetime import date
from pathlib import Path

import numpy as np

from mnarkmeans._core import level
from mnarkmeans._versions import versions

from .compare import Timing
from .limits import Limits
from .measured import Measured
from .rivals import ours
from .scaling import Curve


def print_job(timings: list[Timing]) -> None:
    first = timings[0]
    print(f"\n{first.job}: {first.shape}, k={first.k}")
    for t in timings:
        share = "" if np.isnan(t.limit_share) else f"  {t.limit_share:4.0%} of the limit"
        print(
            f"  {t.rival:22s} {1e3 * t.seconds:10.1f} ms {t.iterations:4d} iterations"
            f"  {t.ratio:7.2f} x ours  loss {t.loss:.6g}{share}",
            flush=True,
        )


def write_csv(path: Path, timings: list[Timing]) -> None:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(timings[0].row()))
        writer.writeheader()
        writer.writerows(t.row() for t in timings)


def processor() -> str:
    """Its name, without names of hosts or users."""
    info = Path("/proc/cpuinfo")
    if info.exists():
        names = [x for x in info.read_text().splitlines() if x.startswith("model name")]
        if names:
            return names[0].split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def machine() -> str:
    """The processor and what runs on it."""
    found = versions()
    return (
        f"{processor()}, {level()}; Python {found['python']}, NumPy {found['numpy']}, "
        f"scikit-learn {found['scikit-learn']}; {date.today()}"
    )


def write_markdown(path, command, limits: Limits, timings, figures: list[Measured], curves) -> None:
    """One page for the documentation: the machine, ratios per job, goals, slopes."""
    lines = [
        f"Made by `{command}`.",
        "",
        f"Machine: {machine()}. Measured limits, {limits.describe()}.",
    ]
    if timings:
        lines += ["", *_table_of_rivals(timings)]
    if figures:
        lines += ["", *table_of_figures(figures)]
    if curves:
        slopes = ", ".join(f"{c.size} {c.slope:.2f}" for c in curves)
        lines += ["", f"Slopes of log time against log size (1 is linear): {slopes}."]
    path.write_text("\n".join(lines) + "\n")


def _table_of_rivals(timings: list[Timing]) -> list[str]:
    rivals = list(dict.fromkeys(t.rival for t in timings if t.rival != ours.NAME))
    cell = {(t.job, t.rival): t for t in timings}
    head = ["job", "size", "k", "iterations", "mnarkmeans", "share of limit", *rivals]
    lines = [
        "Milliseconds for the whole fit; in brackets how many times longer than ours.",
        "",
        "| " + " | ".join(head) + " |",
        "|" + "---|" * len(head),
    ]
    for job in dict.fromkeys(t.job for t in timings):
        mine = cell[job, ours.NAME]
        share = "" if np.isnan(mine.limit_share) else f"{mine.limit_share:.0%}"
        row = [job, mine.shape, mine.k, mine.iterations, f"**{1e3 * mine.seconds:.1f}**", share]
        for rival in rivals:
            t = cell.get((job, rival))
            row.append("" if t is None else f"{1e3 * t.seconds:.0f} ({t.ratio:.1f} x)")
        lines.append("| " + " | ".join(map(str, row)) + " |")
    return lines


def table_of_figures(figures: list[Measured]) -> list[str]:
    """What was measured against what, with the goals."""
    words = {None: "", True: "reached", False: "**missed**"}
    rows = [
        (f.name, f.size(f.ours), f"{f.against}: {f.size(f.theirs)}", f"{f.ratio:.3g} x",
         f.goal_text, words[f.reached])
        for f in figures
    ]  # fmt: skip
    head = ["| | ours | against | ratio | goal | |", "|---|---|---|---|---|---|"]
    return head + ["| " + " | ".join(row) + " |" for row in rows]


def plot_ratios(path: Path, timings: list[Timing]) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    from matplotlib.ticker import LogLocator

    others = [t for t in timings if t.rival != ours.NAME]
    jobs = list(dict.fromkeys(t.job for t in timings))
    rivals = list(dict.fromkeys(t.rival for t in others))
    figure, axes = plt.subplots(figsize=(8, 0.5 * len(jobs) + 1.5), layout="constrained")
    markers = dict(zip(rivals, "osD^vPX*", strict=False))
    for rival in rivals:
        points = [(t.ratio, jobs.index(t.job)) for t in others if t.rival == rival]
        axes.plot(*zip(*points, strict=True), markers[rival], label=rival, alpha=0.8)
    axes.axvline(1.0, color="0.5", lw=1)
    axes.set(xscale="log", xlabel="time of the rival / time of mnarkmeans")
    _label_plainly(axes.xaxis, LogLocator(subs=(1, 2, 5)))
    axes.set_yticks(range(len(jobs)), jobs)
    axes.invert_yaxis()
    axes.grid(axis="x", alpha=0.3, which="both")
    figure.legend(loc="outside lower center", ncols=3, frameon=False)
    figure.savefig(path, dpi=150)
    plt.close(figure)


def plot_curves(path: Path, curves: list[Curve]) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    from matplotlib.ticker import FixedLocator, LogLocator, NullLocator

    times = [t for curve in curves for t in curve.seconds]
    few_decades = max(times) < 1000 * min(times)
    figure, panels = plt.subplots(1, len(curves), figsize=(3 * len(curves), 3), sharey=True,
                                  layout="constrained")  # fmt: skip
    for axes, curve in zip(panels, curves, strict=True):
        axes.loglog(curve.values, np.multiply(curve.seconds, 1e3), "o-")
        axes.set(xlabel=curve.size, title=f"slope {curve.slope:.2f}")
        _label_plainly(axes.xaxis, FixedLocator(curve.values))
        axes.xaxis.set_minor_locator(NullLocator())
        _label_plainly(axes.yaxis, LogLocator(subs=(1, 2, 5) if few_decades else (1,)))
        axes.grid(alpha=0.3, which="both")
    panels[0].set_ylabel("ms per iteration")
    figure.savefig(path, dpi=150)
    plt.close(figure)


def _label_plainly(axis, ticks) -> None:
    """Labels such as 0.05, 20 and 1.6M at ``ticks`` only: those of minor ticks would overlap."""
    from matplotlib.ticker import FuncFormatter, NullFormatter

    axis.set_major_locator(ticks)
    axis.set_major_formatter(FuncFormatter(lambda value, _: short_number(value)))
    axis.set_minor_formatter(NullFormatter())


def short_number(value: float) -> str:
    """
    >>> [short_number(x) for x in (0.05, 20, 200_000, 1_600_000)]
    ['0.05', '20', '200k', '1.6M']
    """
    for unit, letter in ((1e6, "M"), (1e3, "k")):
        if value >= unit:
            return f"{value / unit:.3g}{letter}"
    return f"{value:.3g}"
