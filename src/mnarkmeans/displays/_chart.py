"""Charts described once: series of points, axes, what is marked.

The displays make them; `draw` draws one with matplotlib, `_report._render` as SVG for the page.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from .._io import require
from ._style import ACCENT, INK, MUTED, WARM, color, lam_ticks, marker

Numbers = Sequence[Any] | np.ndarray


class Axis(NamedTuple):
    """What an axis shows: "number", "count", "share" (0 to 1), "whole" (a few whole numbers), "lam"
    (logarithmic, with a place for 0), "names" (of places 0, 1, 2, ...) or "none"."""

    name: str
    scale: str = "number"
    from_zero: bool = False
    names: Sequence[str] = ()


class Series(NamedTuple):
    """Points of one colour, as a "line" with dots, "dots", "dashes", "bars" between edges x, or a
    "ribbon" or "box" from x[0] to x[1] whose ends reach from y[0] to y[1] and y[2] to y[3]."""

    x: Numbers
    y: Numbers
    mark: str = "line"
    color: int | str = "accent"  # of a cluster, "accent" or "warm"
    name: str = ""
    titles: Sequence[str] = ()  # what a pointer at each point is told
    spread: Numbers | None = None  # half the height of a band around a line


class Chart(NamedTuple):
    title: str
    below: str  # the title: what one sees
    x: Axis
    y: Axis
    series: list[Series]
    chosen: tuple[float, float] | None = None  # ringed; of names, the bold one
    texts: Sequence[tuple[float, float, str]] = ()


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
    """The figure, the axes and the lines or ribbons, which the keywords go to."""
    columns = len(chart.x.names)
    figure, ax = axes(ax, (2.2 + 1.05 * columns, 4.4) if columns else (6.4, 4.2))
    drawn = []
    named = {"accent": ACCENT, "warm": WARM}
    for one in chart.series:
        ink = color(one.color) if isinstance(one.color, int) else named[one.color]
        if one.mark == "dots":
            ax.scatter(one.x, one.y, s=9, color=ink, alpha=0.35, lw=0)
        elif one.mark == "dashes":
            ax.plot(one.x, one.y, "_", color=MUTED, alpha=0.7, markersize=11, clip_on=False)
        elif one.mark == "ribbon":
            drawn.append(_area(ax, one, {"facecolor": ink, "alpha": 0.35, "lw": 0} | kwargs))
        elif one.mark == "box":
            _area(ax, one, {"facecolor": ink, "lw": 0})
        else:
            shape = marker(one.color) if isinstance(one.color, int) else "o"
            look = {"color": ink, "marker": shape, "markersize": 4.5, "linewidth": 1.8} | kwargs
            drawn.extend(ax.plot(one.x, one.y, label=one.name or None, **look))
        if one.spread is not None:
            low, high = np.maximum(np.subtract(one.y, one.spread), 0), np.add(one.y, one.spread)
            ax.fill_between(one.x, low, high, color=drawn[-1].get_color(), alpha=0.12, lw=0)
    for x, y, text in chart.texts:
        ax.text(x, y, text, ha="center", va="bottom", fontsize=8, color=MUTED)
    _dress(chart, ax)
    write_title(ax, chart.title, chart.below)
    return figure, ax, drawn


def _dress(chart: Chart, ax: Any) -> None:
    ax.set_xlabel(chart.x.name, color=INK)
    ax.set_ylabel(chart.y.name, color=INK)
    if chart.x.scale == "names":
        # Names come from the data: a dollar sign in them is a dollar sign, not mathematics.
        ax.set_xticks(range(len(chart.x.names)), chart.x.names, parse_math=False)
        ax.set_xlim(-0.3, len(chart.x.names) - 0.7)
        ax.set_ylim(1.02, -0.1)
        ax.set_yticks([])
        ax.spines[["left", "bottom"]].set_visible(False)
        ax.tick_params(length=0)
        if chart.chosen is not None:
            ax.get_xticklabels()[int(chart.chosen[0])].set_fontweight("bold")
        return
    if chart.chosen is not None:
        ax.axvline(chart.chosen[0], color=MUTED, lw=0.8, ls=":", zorder=0)
        ax.plot(*chart.chosen, "o", markersize=13, mfc="none", mec=INK, mew=1.6, zorder=5)
    if chart.x.scale == "lam":
        lams = np.unique(np.concatenate([one.x for one in chart.series]))
        positive = lams[lams > 0]
        if positive.size > 1 and positive[-1] / positive[0] > 20:
            if lams[0] > 0:
                ax.set_xscale("log")
            else:
                ax.set_xscale("symlog", linthresh=positive[0])
            shown = lam_ticks(lams.tolist())
            ax.set_xticks(shown, [f"{value:g}" for value in shown])
            ax.minorticks_off()
    if chart.x.scale == "whole":
        ax.xaxis.get_major_locator().set_params(integer=True)
    if chart.y.scale == "share":
        ax.set_ylim(-0.02, 1.02)
        ax.yaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
    if chart.y.from_zero:
        ax.set_ylim(bottom=0)
    ax.grid(axis="y", color=MUTED, alpha=0.18)
    if sum(bool(one.name) for one in chart.series) > 1:
        ax.legend(frameon=False, fontsize=9)


def _area(ax: Any, one: Series, look: dict[str, Any]) -> Any:
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    (begin, end), (a0, a1, b0, b1) = one.x, one.y
    middle = (begin + end) / 2
    corners = [
        (begin, a0), (middle, a0), (middle, b0), (end, b0),
        (end, b1), (middle, b1), (middle, a1), (begin, a1), (begin, a0),
    ]  # fmt: skip
    codes = [Path.MOVETO, *[Path.CURVE4] * 3, Path.LINETO, *[Path.CURVE4] * 3, Path.CLOSEPOLY]
    return ax.add_patch(PathPatch(Path(corners, codes), **look))
