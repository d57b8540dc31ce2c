"""Charts described once: series of points, axes, what is marked. Two renderers draw them.

`draw` here draws a `Chart` with matplotlib for the displays; `_report._svg` draws the same chart as
SVG for the page.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ._numbers import number, percent
from ._palette import ACCENT, INK, MUTED, WARM, color, marker
from ._style import axes, lam_axis
from ._style import title as write_title

Numbers = Sequence[Any] | np.ndarray


class Axis(NamedTuple):
    """What an axis shows: "number", "count", "share" (0 to 1), "whole" (a few whole numbers), "lam"
    (logarithmic, with a place for 0)."""

    name: str
    scale: str = "number"
    from_zero: bool = False


class Series(NamedTuple):
    """Points of one colour, as a "line" with dots, "dots", "dashes", or "bars" between edges x."""

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
    chosen: tuple[float, float] | None = None  # ringed


def missing_curve(
    magnitude: Numbers,
    share: Numbers,
    cells: tuple[Numbers, Numbers] | None = None,
) -> Chart:
    """Missing share against the mean of cluster and feature."""
    titles = [
        f"mean {number(m)}: {percent(s)} missing" for m, s in zip(magnitude, share, strict=True)
    ]
    behind = [] if cells is None else [Series(*cells, mark="dots")]
    return Chart(
        "Missing rate against magnitude",
        "line: pooled" if cells is None else "points: one per cluster and feature; line: pooled",
        Axis("mean of the cluster in the feature"),
        Axis("missing", "share"),
        [*behind, Series(magnitude, share, color="warm", titles=titles)],
    )


def loss_path(path: Numbers, starts: Numbers | None = None) -> Chart:
    """Loss after every iteration, and where all starts ended."""
    n = len(path)
    titles = [f"iteration {i + 1}: loss {number(v)}" for i, v in enumerate(path)]
    series = [Series(range(1, n + 1), path, titles=titles)]
    below = f"best start: {path[-1]:.5g} after {n} iterations"
    if starts is not None and len(starts) > 1:
        series.append(Series([n + max(0.04 * n, 0.3)] * len(starts), starts, "dashes"))
        below += f"; dashes: final loss of all {len(starts)} starts"
    return Chart("Loss path", below, Axis("iteration", "whole"), Axis("penalised loss"), series)


def instability(
    lam: Numbers,
    k: Numbers,
    mean: Numbers,
    std: Numbers | None = None,
    best: int | None = None,
    name: str = "instability",
) -> Chart:
    """Instability against lam, one line per k; against k where all candidates have one lam."""
    lams, ks = np.asarray(lam, dtype=float), np.asarray(k, dtype=int)
    means = np.array(mean, dtype=float)
    spread = None if std is None else np.array(std, dtype=float)
    by_k = len(np.unique(lams)) == 1 and len(np.unique(ks)) > 1
    series = []
    for index, one in enumerate([None] if by_k else np.unique(ks)):
        own = np.flatnonzero(np.isfinite(means) & (by_k | (ks == one)))
        own = own[np.argsort(ks[own] if by_k else lams[own], kind="stable")]
        titles = [f"k = {ks[i]}, lam = {number(lams[i])}: {number(means[i])}" for i in own]
        band = None if spread is None else np.nan_to_num(spread[own]).tolist()
        label = "" if by_k else f"k = {one}"
        at = (ks if by_k else lams)[own].tolist()
        series.append(Series(at, means[own].tolist(), "line", index, label, titles, band))
    chosen, below = None, ""
    if best is not None:
        chosen = float((ks if by_k else lams)[best]), float(np.nan_to_num(means[best]))
        below = f"chosen: lam = {lams[best]:.3g}" + (f", k = {ks[best]}" if ks[best] else "")
    x = Axis("number of clusters", "whole") if by_k else Axis("penalty lam", "lam")
    return Chart(
        "How stable the clusters are", below, x, Axis(name, from_zero=True), series, chosen
    )


def draw(chart: Chart, ax: Any = None, **kwargs: Any) -> tuple[Any, Any, list[Any]]:
    """Draw with matplotlib: the figure, the axes and the lines; keywords go to the lines."""
    figure, ax = axes(ax)
    lines = []
    named = {"accent": ACCENT, "warm": WARM}
    for one in chart.series:
        ink = color(one.color) if isinstance(one.color, int) else named[one.color]
        if one.mark == "dots":
            ax.scatter(one.x, one.y, s=9, color=ink, alpha=0.25, lw=0)
            continue
        if one.mark == "dashes":
            ax.plot(one.x, one.y, "_", color=MUTED, alpha=0.7, markersize=11, clip_on=False)
            continue
        shape = marker(one.color) if isinstance(one.color, int) else "o"
        look = {"color": ink, "marker": shape, "markersize": 4.5, "linewidth": 1.8} | kwargs
        lines.extend(ax.plot(one.x, one.y, label=one.name or None, **look))
        if one.spread is not None:
            low, high = np.maximum(np.subtract(one.y, one.spread), 0), np.add(one.y, one.spread)
            ax.fill_between(one.x, low, high, color=lines[-1].get_color(), alpha=0.12, lw=0)
    if chart.chosen is not None:
        ax.axvline(chart.chosen[0], color=MUTED, lw=0.8, ls=":", zorder=0)
        ax.plot(*chart.chosen, "o", markersize=13, mfc="none", mec=INK, mew=1.6, zorder=5)
    if chart.x.scale == "lam":
        lam_axis(ax, np.concatenate([one.x for one in chart.series]))
    if chart.x.scale == "whole":
        ax.xaxis.get_major_locator().set_params(integer=True)
    if chart.y.scale == "share":
        ax.set_ylim(-0.02, 1.02)
        ax.yaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
    if chart.y.from_zero:
        ax.set_ylim(bottom=0)
    ax.set_xlabel(chart.x.name, color=INK)
    ax.set_ylabel(chart.y.name, color=INK)
    ax.grid(axis="y", color=MUTED, alpha=0.18)
    if sum(bool(one.name) for one in chart.series) > 1:
        ax.legend(frameon=False, fontsize=9)
    write_title(ax, chart.title, chart.below)
    return figure, ax, lines
