"""The numbers poured into the template, and charts (`displays._chart`) as SVG.

Names come from data and are never trusted: Jinja escapes them in the page and in the embedded JSON,
the script writes them as text only, and the page's own security policy allows exactly one script,
by its hash, and no network. Colours of charts come from the style sheet, light or dark.
"""

from __future__ import annotations

import base64
import hashlib
import math
from collections.abc import Sequence
from importlib.resources import files
from itertools import pairwise
from typing import Any

import numpy as np
from markupsafe import Markup, escape

from .._io import require
from ..displays import FlowDisplay, InstabilityDisplay, MissingnessDisplay
from ..displays._chart import Axis, Chart, Series
from ..displays._style import CLUSTERS, lam_ticks, number, percent, ticks
from ..metrics._verdict import BETWEEN
from ._content import SURE

WIDTH, HEIGHT = 460, 280
LEFT, RIGHT, TOP, BOTTOM = 80, 30, 14, 46


def render(page: dict[str, Any]) -> str:
    """The HTML text of a page made by `page_of`, or of the same read back from report.json."""
    jinja2 = require("jinja2", "report")
    folder = files(__package__)
    script = (folder / "page.js").read_text(encoding="utf-8")
    environment = jinja2.Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    environment.filters.update(number=number, percent=percent)
    environment.policies["json.dumps_kwargs"] = {
        "ensure_ascii": False, "allow_nan": False, "separators": (",", ":"),
    }  # fmt: skip
    template = environment.from_string((folder / "page.html.j2").read_text(encoding="utf-8"))
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    palette = " ".join(f"--c{i}: {tone};" for i, tone in enumerate(CLUSTERS))
    style = f":root {{ {palette} }}\n" + (folder / "page.css").read_text(encoding="utf-8")
    return template.render(
        page=page,
        colors=[_tone(number) for number in range(len(page["clusters"]))],
        charts=_charts(page),
        flows=[FlowDisplay(**stored) for stored in page.get("flow") or []],
        confident=SURE,
        between=BETWEEN,
        from_mean=_one_sided(page["centers"]),
        style=Markup(style),
        script=Markup(script),
        script_hash=f"sha256-{digest}",
        data=page | {"colors": len(CLUSTERS), "flow": []},
    )


def _one_sided(centers: dict[str, Any]) -> bool:
    """Whether nearly all of several centres lie on one side of the reference."""
    apart = np.asarray(centers["centers"], float) - np.asarray(centers["reference"], float)
    above = apart[apart != 0] > 0
    return len(apart) > 1 and above.size > 0 and not 0.1 < above.mean() < 0.9


# --- charts ---------------------------------------------------------------------------------------


def _charts(page: dict[str, Any]) -> dict[str, Markup]:
    charts = {"missing": MissingnessDisplay(**page["missing"]).chart()}
    if "choice" in page:
        charts["choice"] = InstabilityDisplay(**page["choice"]).chart()
    for name, what in (("by_feature", "features"), ("by_row", "rows")):
        charts[name] = _histogram(page["data"][name], what)
    return {name: draw(chart) for name, chart in charts.items()}


def _histogram(counts: Sequence[int], name: str) -> Chart:
    """Bars over shares from 0 to 1."""
    edges = np.linspace(0.0, 1.0, len(counts) + 1).tolist()
    titles = [
        f"{percent(low)} to {percent(high)} missing: {number(count)} {name}"
        for (low, high), count in zip(pairwise(edges), counts, strict=True)
    ]
    bars = Series(edges, counts, "bars", titles=titles)
    axes = Axis("missing share", "share"), Axis(name, "count", from_zero=True)
    return Chart(f"Missing share of {name}", f"largest bar {max(counts):,}", *axes, [bars])


def _tone(color: int | str) -> str:
    """The colour of a cluster, or a named one, as the style sheet has it for either ground."""
    return f"var(--{color})" if isinstance(color, str) else f"var(--c{color % len(CLUSTERS)})"


class Scale:
    """From data to the picture along one axis: places, ticks with their texts, the name."""

    def __init__(self, axis: Axis, values: Sequence[float], begin: float, end: float) -> None:
        self.begin, self.end, self.name = begin, end, axis.name
        self.zero: float | None = None  # the place of lam = 0
        low, high = min(values), max(values)
        text: Any = number
        if axis.scale == "lam":
            logs = [math.log2(v) for v in values if v > 0] or [0.0, 1.0]
            low, high = min(logs), max(logs)
            self.zero = low - max(0.12 * (high - low), 1.0)
            low = self.zero if 0.0 in values else low
            margin = 0.04 * (high - low) or 0.5
            self.low, self.high = low - margin, high + margin
            shown, text = lam_ticks(sorted(set(values))), "{:g}".format
        elif axis.scale == "share":
            self.low, self.high = 0.0, 1.0
            shown, text = [0, 0.25, 0.5, 0.75, 1.0], percent
        elif axis.scale == "whole":
            self.low, self.high = low - 0.4, high + 0.4
            step = max(1, math.ceil((high - low + 1) / 10))
            shown = [*range(math.ceil(low), math.floor(high) + 1, step)]
        else:
            margin = 0.05 * (high - low) or abs(high) * 0.05 or 1.0
            self.low, self.high = (0.0 if axis.from_zero else low - margin), high + margin
            shown = ticks(self.low, self.high)
            if axis.scale == "count":
                shown = [v for v in shown if v == int(v)]
        self.ticks = [(self(value), text(value)) for value in shown]

    def __call__(self, value: float) -> float:
        if self.zero is not None:
            value = math.log2(value) if value > 0 else self.zero
        share = (value - self.low) / ((self.high - self.low) or 1.0)
        return round(self.begin + share * (self.end - self.begin), 2)


def draw(chart: Chart) -> Markup:
    """The chart as SVG."""
    left, right, base = LEFT, WIDTH - RIGHT, HEIGHT - BOTTOM
    ys = [v for series in chart.series for v in series.y]
    ys += [v for series in chart.series if series.spread for v in series.band[1].tolist()]
    x = Scale(chart.x, [v for series in chart.series for v in series.x] or [0.0], left, right)
    legend = [series for series in chart.series if series.name]
    step = 26 + 7 * max((len(series.name) for series in legend), default=0)
    in_line = max(1, (right - left) // step)
    legend = legend if len(legend) > 1 else []
    y = Scale(chart.y, ys or [0.0], base, TOP + 16 * math.ceil(len(legend) / in_line))
    parts = _axes(x, y, left, right) + [_series(series, x, y) for series in chart.series]
    if chart.chosen is not None:
        cx, cy = x(chart.chosen[0]), y(chart.chosen[1])
        side, shift = ("end", -6) if cx + 7 * len(chart.below) > WIDTH else ("start", 6)
        parts.append(
            f'<line class="drop" x1="{cx}" x2="{cx}" y1="{TOP + 34}" y2="{base}"/>'
            f'<circle class="ring" cx="{cx}" cy="{cy}" r="8.5"/>'
            + _text(cx + shift, TOP + 44, chart.below, side)
        )
    for index, series in enumerate(legend):
        cx, cy = left + 10 + step * (index % in_line), 8 + 16 * (index // in_line)
        parts.append(
            f'<circle cx="{cx}" cy="{cy}" r="4.5" style="fill:{_tone(series.color)}"/>'
            + _text(cx + 8, cy + 4, series.name, "start")
        )
    described = f"{chart.title}; {chart.below}" if chart.below else chart.title
    return Markup(
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(described)}">'
        f"{''.join(parts)}</svg>"
    )


def _series(series: Series, x: Scale, y: Scale) -> str:
    shade = _tone(series.color)
    if series.mark == "bars":
        bars = zip(pairwise(series.x), series.y, series.titles, strict=True)
        return "".join(
            f'<rect class="bar" x="{x(low) + 1}" y="{y(height)}" '
            f'width="{max(x(high) - x(low) - 2, 1):.2f}" height="{y(0) - y(height):.2f}">'
            f"<title>{escape(title)}</title></rect>"
            for (low, high), height, title in bars
            if height
        )
    points = [(x(a), y(b)) for a, b in zip(series.x, series.y, strict=True)]
    body = ""
    if series.spread is not None:
        low, high = (list(zip(series.x, edge, strict=True)) for edge in series.band)
        corners = " ".join(f"{x(a)},{y(b)}" for a, b in [*high, *reversed(low)])
        body = f'<polygon points="{corners}" style="fill:{shade}" fill-opacity=".12"/>'
    if series.mark == "line":
        line = " ".join(f"{a},{b}" for a, b in points)
        body += f'<polyline class="line" style="stroke:{shade}" points="{line}"/>'
    look = 'r="2.5" fill-opacity=".4"' if series.mark == "dots" else 'r="3.5"'
    return body + "".join(
        f'<circle class="dot" style="fill:{shade}" cx="{a}" cy="{b}" {look}>'
        f"<title>{escape(title)}</title></circle>"
        for (a, b), title in zip(points, series.titles, strict=True)
    )


def _text(x: float, y: float, text: str, anchor: str = "middle", look: str = 'class="tick"') -> str:
    return f'<text {look} x="{x:g}" y="{y:g}" text-anchor="{anchor}">{escape(text)}</text>'


def _axes(x: Scale, y: Scale, left: int, right: int) -> list[str]:
    base = HEIGHT - BOTTOM
    parts = [f'<line class="axis" x1="{left}" x2="{right}" y1="{base}" y2="{base}"/>']
    for at, text in y.ticks:
        parts.append(f'<line class="grid" x1="{left}" x2="{right}" y1="{at}" y2="{at}"/>')
        parts.append(_text(left - 7, at + 4, text, "end"))
    for at, text in x.ticks:
        parts.append(f'<line class="axis" x1="{at}" x2="{at}" y1="{base}" y2="{base + 4}"/>')
        parts.append(_text(at, base + 17, text))
    up = (TOP + base) / 2
    parts.append(_text((left + right) / 2, HEIGHT - 8, x.name, look='class="name"'))
    parts.append(_text(13, up, y.name, look=f'class="name" transform="rotate(-90 13 {up})"'))
    return parts
