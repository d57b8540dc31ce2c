"""Charts described once: series of points, axes, what is marked.

The displays make them; `draw` draws one with matplotlib, the script of the report as SVG.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from .._io import require
from ._style import ACCENT, INK, MUTED, WARM, color, rounded

Numbers = Sequence[Any] | np.ndarray
NAMED = {"accent": ACCENT, "warm": WARM}


class Axis(NamedTuple):
    """What an axis shows: "number", "count", "share" (0 to 1), "whole" (a few whole numbers) or
    "lam" (logarithmic, with a place for 0)."""

    name: str
    scale: str = "number"
    from_zero: bool = False
    ticks: Sequence[float] = ()  # of an axis of lam


class Series(NamedTuple):
    """Points of one colour, as a "line" with dots, "dots" or "bars" between edges x."""

    x: Numbers
    y: Numbers
    mark: str = "line"
    color: int | str = "accent"  # of a cluster, "accent" or "warm"
    name: str = ""
    titles: Sequence[str] = ()  # shown where the pointer is at a point
    spread: Numbers | None = None  # half the height of a band around a line


class Chart(NamedTuple):
    title: str
    below: str  # the title: what one sees
    x: Axis
    y: Axis
    series: list[Series]
    chosen: tuple[float, float] | None = None  # ringed

    def to_dict(self) -> dict[str, Any]:
        """As the report stores it: numbers with seven digits."""
        lines = [series._asdict() for series in self.series]
        for line in lines:
            for name in ("x", "y", "spread"):
                line[name] = None if line[name] is None else rounded(line[name], 7)
        return self._asdict() | {"x": self.x._asdict(), "y": self.y._asdict(), "series": lines}


def axes(ax: Any = None, size: tuple[float, float] = (6.4, 4.2)) -> tuple[Any, Any]:
    """The figure and axes to draw on, dressed the same way everywhere."""
    plt = require("matplotlib.pyplot", "plot")
    if ax is None:
        _, ax = plt.subplots(figsize=size, layout="constrained")
    ax.spines[["top", "right"]].set_visible(False)
    ax.spines[["left", "bottom"]].set_color(MUTED)
    ax.tick_params(colors=INK, labelsize=9)
    ax.set_axisbelow(True)
    return ax.figure, ax


def write_title(ax: Any, text: str, below: str = "") -> None:
    """A title on the left, and what one sees in smaller grey letters below it."""
    ax.set_title(
        text, loc="left", fontsize=11.5, fontweight="bold", color=INK, pad=20 if below else 8
    )
    if below:
        ax.text(0, 1.02, below, transform=ax.transAxes, fontsize=9, color=MUTED, va="bottom")


def draw(chart: Chart, ax: Any = None, **kwargs: Any) -> tuple[Any, Any, list[Any]]:
    """The figure, the axes and the lines, which the keywords go to."""
    figure, ax = axes(ax)
    drawn = []
    for series in chart.series:
        ink = color(series.color) if isinstance(series.color, int) else NAMED[series.color]
        if series.mark == "dots":
            ax.scatter(series.x, series.y, s=9, color=ink, alpha=0.35, lw=0)
            continue
        style = {"color": ink, "marker": "o", "markersize": 4.5, "linewidth": 1.8} | kwargs
        drawn += ax.plot(series.x, series.y, label=series.name or None, **style)
        if series.spread is not None:
            y, ink = np.asarray(series.y), drawn[-1].get_color()
            band = np.maximum(y - series.spread, 0), y + series.spread
            ax.fill_between(series.x, *band, color=ink, alpha=0.12, lw=0)
    ax.set_xlabel(chart.x.name, color=INK)
    ax.set_ylabel(chart.y.name, color=INK)
    if chart.chosen is not None:
        ax.axvline(chart.chosen[0], color=MUTED, lw=0.8, ls=":", zorder=0)
        ax.plot(*chart.chosen, "o", markersize=13, mfc="none", mec=INK, mew=1.6, zorder=5)
    if chart.x.scale == "lam":
        lams = np.unique(np.concatenate([series.x for series in chart.series]))
        positive = lams[lams > 0]
        if positive.size > 1 and positive[-1] / positive[0] > 20:
            if lams[0] > 0:
                ax.set_xscale("log")
            else:
                ax.set_xscale("symlog", linthresh=positive[0])
            ax.set_xticks(chart.x.ticks, [f"{lam:g}" for lam in chart.x.ticks])
            ax.minorticks_off()
    if chart.x.scale == "whole":
        ax.xaxis.get_major_locator().set_params(integer=True)
    if chart.y.scale == "share":
        ax.set_ylim(-0.02, 1.02)
        ax.yaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
    if chart.y.from_zero:
        ax.set_ylim(bottom=0)
    ax.grid(axis="y", color=MUTED, alpha=0.18)
    if sum(bool(series.name) for series in chart.series) > 1:
        ax.legend(frameon=False, fontsize=9)
    write_title(ax, chart.title, chart.below)
    return figure, ax, drawn
