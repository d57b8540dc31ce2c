"""What was measured, as a printed table, CSV, Markdown and plots. Nothing is computed here."""

from __future__ import annotations

import csv
import platform
from datetime import date
from pathlib import Path

import numpy as np

from .compare import Timing
from .limits import Limits
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


def machine() -> str:
    """The processor and what runs on it, without names of hosts or users."""
    import numba
    import sklearn

    model = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        names = [x for x in info.read_text().splitlines() if x.startswith("model name")]
        model = names[0].split(":", 1)[1].strip() if names else model
    return (
        f"{model}; Python {platform.python_version()}, NumPy {np.__version__}, "
        f"numba {numba.__version__}, scikit-learn {sklearn.__version__}; {date.today()}"
    )


def write_markdown(path, command, limits: Limits, timings, memory, curves, goals) -> None:
    """One page for the documentation: the machine, ratios per job, memory, slopes."""
    rivals = list(dict.fromkeys(t.rival for t in timings if t.rival != ours.NAME))
    jobs = list(dict.fromkeys(t.job for t in timings))
    cell = {(t.job, t.rival): t for t in timings}
    lines = [
        f"Made by `{command}`.",
        "",
        f"Machine: {machine()}. Measured limits, {limits.describe()}.",
        "",
        "Milliseconds for the whole fit; in brackets how many times longer than ours.",
        "",
        "| job | size | k | iterations | mnarkmeans | share of limit | "
        + " | ".join(rivals)
        + " | goal |",
        "|" + "---|" * (len(rivals) + 7),
    ]
    for job in jobs:
        mine = cell[job, ours.NAME]
        share = "" if np.isnan(mine.limit_share) else f"{mine.limit_share:.0%}"
        row = [job, mine.shape, mine.k, mine.iterations, f"**{1e3 * mine.seconds:.1f}**", share]
        for rival in rivals:
            t = cell.get((job, rival))
            row.append("" if t is None else f"{1e3 * t.seconds:.0f} ({t.ratio:.1f} x)")
        lines.append("| " + " | ".join(str(x) for x in [*row, goals.get(job, "")]) + " |")
    if memory:
        table, peak = memory
        lines += [
            "",
            f"Peak memory beyond a table of {table / 1e6:.0f} MB: {peak / 1e6:.0f} MB, "
            f"{peak / table:.2f} x the input.",
        ]
    if curves:
        slopes = ", ".join(f"{c.size} {c.slope:.2f}" for c in curves)
        lines += ["", f"Slopes of log time against log size (1 is linear): {slopes}."]
    path.write_text("\n".join(lines) + "\n")


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
