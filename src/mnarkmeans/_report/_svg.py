"""A chart as SVG for the page; its colours come from the style sheet, light or dark."""

from __future__ import annotations

import math
from collections.abc import Sequence

from markupsafe import Markup, escape

from ..displays._chart import Axis, Chart, Series
from ..displays._numbers import labelled, number, percent, short
from ..displays._palette import CLUSTERS
from ..displays._style import lam_ticks

WIDTH, HEIGHT = 460, 280
LEFT, RIGHT, TOP, BOTTOM = 80, 30, 14, 46


def tone(color: int | str) -> str:
    """The colour of a cluster, or a named one, as the style sheet has it for either ground."""
    return f"var(--{color})" if isinstance(color, str) else f"var(--c{color % len(CLUSTERS)})"


def svg(body: str, description: str, width: float = WIDTH, height: float = HEIGHT) -> Markup:
    return Markup(
        f'<svg viewBox="0 0 {width:g} {height:g}" role="img" '
        f'aria-label="{escape(description)}">{body}</svg>'
    )


class Scale:
    """From data to the picture along one axis: places, ticks with their texts, the name."""

    def __init__(self, axis: Axis, values: Sequence[float], begin: float, end: float) -> None:
        self.begin, self.end, self.name = begin, end, axis.name
        self.zero: float | None = None  # the place of lam = 0
        if axis.scale == "lam":
            logs = [math.log2(v) for v in values if v > 0] or [0.0, 1.0]
            low, high = min(logs), max(logs)
            self.zero = low - max(0.12 * (high - low), 1.0)
            low = self.zero if 0.0 in values else low
            margin = 0.04 * (high - low) or 0.5
            self.low, self.high = low - margin, high + margin
            self.ticks = [(v, f"{v:g}") for v in lam_ticks(sorted(set(values)))]
            return
        low, high = min(values), max(values)
        if axis.scale == "share":
            self.low, self.high = 0.0, 1.0
            self.ticks = [(v, percent(v)) for v in (0, 0.25, 0.5, 0.75, 1.0)]
        elif axis.scale == "whole":
            self.low, self.high = low - 0.4, high + 0.4
            step = max(1, math.ceil((high - low + 1) / 10))
            first = math.ceil(low)
            self.ticks = [(v, short(v)) for v in range(first, math.floor(high) + 1, step)]
        else:
            margin = 0.05 * (high - low) or abs(high) * 0.05 or 1.0
            self.low, self.high = (0.0 if axis.from_zero else low - margin), high + margin
            self.ticks, self.name = labelled(self.low, self.high, axis.name, 4)
            if axis.scale == "count":
                self.ticks = [(v, text) for v, text in self.ticks if v == int(v)]

    def __call__(self, value: float) -> float:
        if self.zero is not None:
            value = math.log2(value) if value > 0 else self.zero
        share = (value - self.low) / ((self.high - self.low) or 1.0)
        return round(self.begin + share * (self.end - self.begin), 2)


def draw(chart: Chart) -> Markup:
    """The chart as SVG."""
    base, right = HEIGHT - BOTTOM, WIDTH - RIGHT
    heights = [v + s for one in chart.series
               for v, s in zip(one.y, one.spread or [0.0] * len(one.y), strict=True)]  # fmt: skip
    lows = [0.0] if any(one.mark == "bars" for one in chart.series) else []
    lows += [v for one in chart.series for v in one.y]
    x = Scale(chart.x, [v for one in chart.series for v in one.x] or [0.0], LEFT, right)
    y = Scale(chart.y, [*lows, *heights] or [0.0], base, TOP)
    parts = _axes(x, y)
    parts += [_series(one, x, y) for one in chart.series]
    if chart.chosen is not None:
        cx, cy = x(chart.chosen[0]), y(chart.chosen[1])
        side, shift = ("end", -6) if cx > 330 else ("start", 6)
        parts.append(
            f'<line class="drop" x1="{cx}" x2="{cx}" y1="{TOP + 34}" y2="{base}"/>'
            f'<circle class="ring" cx="{cx}" cy="{cy}" r="8.5"/>'
            f'<text class="tick" x="{cx + shift}" y="{TOP + 44}" text-anchor="{side}">'
            f"{escape(chart.below)}</text>"
        )
    names = [one for one in chart.series if one.name]
    for index, one in enumerate(names if len(names) > 1 else []):
        cx, cy = LEFT + 10 + 62 * (index % 6), TOP + 6 + 16 * (index // 6)
        parts.append(
            f'<circle cx="{cx}" cy="{cy}" r="4.5" style="fill:{tone(one.color)}"/>'
            f'<text class="tick" x="{cx + 8}" y="{cy + 4}">{escape(one.name)}</text>'
        )
    return svg("".join(parts), f"{chart.title}; {chart.below}" if chart.below else chart.title)


def _series(one: Series, x: Scale, y: Scale) -> str:
    if one.mark == "bars":
        bars = zip(one.x[:-1], one.x[1:], one.y, one.titles, strict=True)
        return "".join(
            f'<rect class="bar" x="{x(low) + 1}" y="{y(height)}" '
            f'width="{max(x(high) - x(low) - 2, 1):.2f}" height="{y(0) - y(height):.2f}">'
            f"<title>{escape(title)}</title></rect>"
            for low, high, height, title in bars
            if height
        )
    points = [(x(a), y(b)) for a, b in zip(one.x, one.y, strict=True)]
    if one.mark == "dashes":
        return "".join(
            f'<line class="end" x1="{a - 6}" x2="{a + 6}" y1="{b}" y2="{b}"/>' for a, b in points
        )
    shade = tone(one.color)
    line = " ".join(f"{a},{b}" for a, b in points)
    body = ""
    if one.mark == "line":
        body = f'<polyline class="line" style="stroke:{shade}" points="{line}"/>'
    if one.spread is not None:
        ends = list(zip(one.x, one.y, one.spread, strict=True))
        band = [f"{x(a)},{y(b + s)}" for a, b, s in ends]
        band += [f"{x(a)},{y(max(b - s, 0))}" for a, b, s in reversed(ends)]
        shape = f'points="{" ".join(band)}" style="fill:{shade}" fill-opacity=".12"'
        body = f"<polygon {shape}/>{body}"
    for (a, b), title in zip(points, one.titles or [""] * len(points), strict=True):
        body += (
            f'<circle class="dot" style="fill:{shade}" cx="{a}" cy="{b}" r="3.5">'
            f"<title>{escape(title)}</title></circle>"
        )
    return body


def _axes(x: Scale, y: Scale) -> list[str]:
    base, right = HEIGHT - BOTTOM, WIDTH - RIGHT
    parts = []
    for value, text in y.ticks:
        at = y(value)
        parts.append(
            f'<line class="grid" x1="{LEFT}" x2="{right}" y1="{at}" y2="{at}"/>'
            f'<text class="tick" x="{LEFT - 7}" y="{at + 4}" text-anchor="end">{text}</text>'
        )
    for value, text in x.ticks:
        at = x(value)
        parts.append(
            f'<line class="axis" x1="{at}" x2="{at}" y1="{base}" y2="{base + 4}"/>'
            f'<text class="tick" x="{at}" y="{base + 17}" text-anchor="middle">{text}</text>'
        )
    across, up = (LEFT + right) / 2, (TOP + base) / 2
    parts.append(
        f'<line class="axis" x1="{LEFT}" x2="{right}" y1="{base}" y2="{base}"/>'
        f'<text class="name" x="{across}" y="{HEIGHT - 8}" text-anchor="middle">{escape(x.name)}'
        f'</text><text class="name" transform="rotate(-90 13 {up})" x="13" y="{up}" '
        f'text-anchor="middle">{escape(y.name)}</text>'
    )
    return parts


def histogram(edges: Sequence[float], counts: Sequence[int], name: str) -> Markup:
    """Bars over shares from 0 to 1."""
    titles = [
        f"{percent(low)} to {percent(high)} missing: {number(count)} {name}"
        for low, high, count in zip(edges[:-1], edges[1:], counts, strict=True)
    ]
    return draw(
        Chart(
            f"Missing share of {name}",
            f"largest bar {max(counts):,}",
            Axis("missing share", "share"),
            Axis(name, "count", from_zero=True),
            [Series(edges, counts, "bars", titles=titles)],
        )
    )
