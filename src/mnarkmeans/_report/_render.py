"""The numbers poured into the template, and charts (`displays._chart`) as SVG.

Names come from data and are never trusted: Jinja escapes them in the page, the embedded JSON has no
character that could end its element, the script writes them as text only, and the page's own
security policy allows exactly one script, by its hash, and no network. Colours of charts come from
the style sheet, light or dark.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
from collections.abc import Sequence
from importlib.resources import files
from typing import Any

import numpy as np
from markupsafe import Markup, escape

from .._io import require
from ..displays import FlowDisplay, InstabilityDisplay, LossPathDisplay, MissingnessDisplay
from ..displays._chart import Axis, Chart, Series
from ..displays._flow import WIDE
from ..displays._style import CLUSTERS, brief, lam_ticks, number, percent, ticks
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
    template = environment.from_string((folder / "page.html.j2").read_text(encoding="utf-8"))
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    palette = " ".join(f"--c{i}: {tone};" for i, tone in enumerate(CLUSTERS))
    style = f":root {{ {palette} }}\n" + (folder / "page.css").read_text(encoding="utf-8")
    flows = [FlowDisplay(**stored) for stored in page.get("flow") or []]
    return template.render(
        page=page,
        colors=[_tone(number) for number in range(len(page["clusters"]))],
        charts=_charts(page),
        flows=[(flow, draw_flow(flow)) for flow in flows],
        confident=SURE,
        between=BETWEEN,
        from_mean=_one_sided(page["centers"]),
        style=Markup(style),
        script=Markup(script),
        script_hash=f"sha256-{digest}",
        data=Markup(_json_for_script(page | {"flow": [_flow_table(flow) for flow in flows]})),
    )


def _one_sided(centers: dict[str, Any]) -> bool:
    """Whether nearly all of several centres lie on one side of the reference."""
    apart = np.asarray(centers["centers"], float) - np.asarray(centers["reference"], float)
    above = apart[apart != 0] > 0
    return len(apart) > 1 and above.size > 0 and not 0.1 < above.mean() < 0.9


def _json_for_script(page: dict[str, Any]) -> str:
    """What the script draws or offers for download. Whatever the names in it are, it cannot end its
    script element."""
    shown = page | {"colors": len(CLUSTERS)}
    text = json.dumps(shown, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


# --- charts ---------------------------------------------------------------------------------------

DISPLAYS = {
    "missing": MissingnessDisplay, "loss_path": LossPathDisplay, "choice": InstabilityDisplay,
}  # fmt: skip


def _charts(page: dict[str, Any]) -> dict[str, Markup]:
    stored = page["charts"] | ({"choice": page["choice"]} if "choice" in page else {})
    charts = {name: DISPLAYS[name](**fields).chart() for name, fields in stored.items()}
    for name, what in (("by_feature", "features"), ("by_row", "rows")):
        charts[name] = _histogram(**page["data"][name], name=what)
    return {name: draw(chart) for name, chart in charts.items()}


def _histogram(edges: Sequence[float], counts: Sequence[int], name: str) -> Chart:
    """Bars over shares from 0 to 1."""
    titles = [
        f"{percent(low)} to {percent(high)} missing: {number(count)} {name}"
        for low, high, count in zip(edges[:-1], edges[1:], counts, strict=True)
    ]
    bars = Series(edges, counts, "bars", titles=titles)
    axes = Axis("missing share", "share"), Axis(name, "count", from_zero=True)
    return Chart(f"Missing share of {name}", f"largest bar {max(counts):,}", *axes, [bars])


def _tone(color: int | str) -> str:
    """The colour of a cluster, or a named one, as the style sheet has it for either ground."""
    return f"var(--{color})" if isinstance(color, str) else f"var(--c{color % len(CLUSTERS)})"


def _flow_table(flow: FlowDisplay) -> list[list[Any]]:
    """The ribbons, as the page offers them for download."""
    names, axis = list(flow.names or ()), flow.axis_name
    heads: list[Any] = [axis, "cluster", f"next {axis}", "next cluster", "rows"]
    return [heads] + [
        [names[one.column], one.source, names[one.column + 1], one.target, one.rows]
        for one in flow.layout()[1]
    ]


def draw_flow(flow: FlowDisplay) -> Markup:
    """Boxes and ribbons as SVG, as wide as the columns need."""
    names, (boxes, ribbons) = [brief(name, 12) for name in flow.names or ()], flow.layout()
    step = max(86, min(150, 640 // max(len(names) - 1, 1)))
    width, base, half = 80 + step * (len(names) - 1), HEIGHT - BOTTOM, WIDE / 2

    def x(column: float) -> float:
        return round(40 + step * column, 2)

    def y(height: float) -> float:
        return round(base + (height - 1) * (base - TOP) / 1.06, 2)

    parts = []
    for one in ribbons:
        begin, middle, end = map(x, (one.column + half, one.column + 0.5, one.column + 1 - half))
        a0, a1, b0, b1 = map(y, (*one.left, *one.right))
        parts.append(
            f'<path d="M{begin},{a0}C{middle},{a0} {middle},{b0} {end},{b0}L{end},{b1}'
            f'C{middle},{b1} {middle},{a1} {begin},{a1}Z" '
            f'style="fill:{_tone(one.color)}" fill-opacity=".35">'
            f"<title>{one.rows:,} rows: cluster {one.source} to {one.target}</title></path>"
        )
    for box in boxes:
        low, high = map(y, box.span)
        parts.append(
            f'<rect x="{x(box.column - half)}" width="{step * WIDE:.2f}" y="{low}" '
            f'height="{high - low:.2f}" style="fill:{_tone(box.color)}">'
            f"<title>cluster {box.cluster}: {box.rows:,} rows</title></rect>"
        )
    for column, moved in enumerate(flow.moved_):
        parts.append(_text(x(column + 0.5), y(-0.03), f"{percent(moved)} move"))
    for column, name in enumerate(names):
        look = 'class="tick"' + ' font-weight="700"' * (column == flow.chosen)
        parts.append(_text(x(column), base + 17, name, look=look))
    parts.append(_text(width / 2, HEIGHT - 8, flow.axis_name, look='class="name"'))
    return Markup(
        f'<svg viewBox="0 0 {width} {HEIGHT}" width="{width}" height="{HEIGHT}" role="img" '
        f'style="--least:{width}px" aria-label="Where the rows go; bold: chosen">'
        f"{''.join(parts)}</svg>"
    )


class Scale:
    """From data to the picture along one axis: places, ticks with their texts, the name."""

    def __init__(self, axis: Axis, values: Sequence[float], begin: float, end: float) -> None:
        self.begin, self.end, self.name = begin, end, axis.name
        self.zero: float | None = None  # the place of lam = 0
        self.ticks: list[tuple[float, str]] = []
        low, high = min(values), max(values)
        if axis.scale == "lam":
            logs = [math.log2(v) for v in values if v > 0] or [0.0, 1.0]
            low, high = min(logs), max(logs)
            self.zero = low - max(0.12 * (high - low), 1.0)
            low = self.zero if 0.0 in values else low
            margin = 0.04 * (high - low) or 0.5
            self.low, self.high = low - margin, high + margin
            self.ticks = [(v, f"{v:g}") for v in lam_ticks(sorted(set(values)))]
        elif axis.scale == "share":
            self.low, self.high = 0.0, 1.0
            self.ticks = [(v, percent(v)) for v in (0, 0.25, 0.5, 0.75, 1.0)]
        elif axis.scale == "whole":
            self.low, self.high = low - 0.4, high + 0.4
            step = max(1, math.ceil((high - low + 1) / 10))
            places = range(math.ceil(low), math.floor(high) + 1, step)
            self.ticks = [(v, number(v)) for v in places]
        else:
            margin = 0.05 * (high - low) or abs(high) * 0.05 or 1.0
            self.low, self.high = (0.0 if axis.from_zero else low - margin), high + margin
            self.ticks, self.name = ticks(self.low, self.high, axis.name)
            if axis.scale == "count":
                self.ticks = [(v, text) for v, text in self.ticks if v == int(v)]

    def __call__(self, value: float) -> float:
        if self.zero is not None:
            value = math.log2(value) if value > 0 else self.zero
        share = (value - self.low) / ((self.high - self.low) or 1.0)
        return round(self.begin + share * (self.end - self.begin), 2)


def draw(chart: Chart) -> Markup:
    """The chart as SVG."""
    left, right, base = LEFT, WIDTH - RIGHT, HEIGHT - BOTTOM
    spread = [v + s for one in chart.series for v, s in zip(one.y, one.spread or (), strict=False)]
    ys = [v for one in chart.series for v in one.y] + spread
    ys += [0.0] if any(one.mark == "bars" for one in chart.series) else []
    x = Scale(chart.x, [v for one in chart.series for v in one.x] or [0.0], left, right)
    legend = [one for one in chart.series if one.name]
    step = 26 + 7 * max((len(one.name) for one in legend), default=0)
    in_line = max(1, (right - left) // step)
    legend = legend if len(legend) > 1 else []
    y = Scale(chart.y, ys or [0.0], base, TOP + 16 * math.ceil(len(legend) / in_line))
    parts = _axes(x, y, left, right) + [_series(one, x, y) for one in chart.series]
    if chart.chosen is not None:
        cx, cy = x(chart.chosen[0]), y(chart.chosen[1])
        side, shift = ("end", -6) if cx + 7 * len(chart.below) > WIDTH else ("start", 6)
        parts.append(
            f'<line class="drop" x1="{cx}" x2="{cx}" y1="{TOP + 34}" y2="{base}"/>'
            f'<circle class="ring" cx="{cx}" cy="{cy}" r="8.5"/>'
            + _text(cx + shift, TOP + 44, chart.below, side)
        )
    for index, one in enumerate(legend):
        cx, cy = left + 10 + step * (index % in_line), 8 + 16 * (index // in_line)
        parts.append(
            f'<circle cx="{cx}" cy="{cy}" r="4.5" style="fill:{_tone(one.color)}"/>'
            + _text(cx + 8, cy + 4, one.name, "start")
        )
    described = f"{chart.title}; {chart.below}" if chart.below else chart.title
    return Markup(
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(described)}">'
        f"{''.join(parts)}</svg>"
    )


def _series(one: Series, x: Scale, y: Scale) -> str:
    shade = _tone(one.color)
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
    body = ""
    if one.mark == "line":
        line = " ".join(f"{a},{b}" for a, b in points)
        body = f'<polyline class="line" style="stroke:{shade}" points="{line}"/>'
    if one.spread is not None:
        ends = list(zip(one.x, one.y, one.spread, strict=True))
        band = [f"{x(a)},{y(b + s)}" for a, b, s in ends]
        band += [f"{x(a)},{y(max(b - s, 0))}" for a, b, s in reversed(ends)]
        shape = f'points="{" ".join(band)}" style="fill:{shade}" fill-opacity=".12"'
        body = f"<polygon {shape}/>{body}"
    look = 'r="2.5" fill-opacity=".4"' if one.mark == "dots" else 'r="3.5"'
    for (a, b), title in zip(points, one.titles or [""] * len(points), strict=True):
        body += (
            f'<circle class="dot" style="fill:{shade}" cx="{a}" cy="{b}" {look}>'
            f"<title>{escape(title)}</title></circle>"
        )
    return body


def _text(x: float, y: float, text: str, anchor: str = "middle", look: str = 'class="tick"') -> str:
    return f'<text {look} x="{x}" y="{y}" text-anchor="{anchor}">{escape(text)}</text>'


def _axes(x: Scale, y: Scale, left: int, right: int) -> list[str]:
    base = HEIGHT - BOTTOM
    parts = [f'<line class="axis" x1="{left}" x2="{right}" y1="{base}" y2="{base}"/>']
    for at, text in ((y(value), text) for value, text in y.ticks):
        parts.append(f'<line class="grid" x1="{left}" x2="{right}" y1="{at}" y2="{at}"/>')
        parts.append(_text(left - 7, at + 4, text, "end"))
    for value, text in x.ticks:
        at = x(value)
        parts.append(f'<line class="axis" x1="{at}" x2="{at}" y1="{base}" y2="{base + 4}"/>')
        parts.append(_text(at, base + 17, text))
    up = (TOP + base) / 2
    parts.append(_text((left + right) / 2, HEIGHT - 8, x.name, look='class="name"'))
    parts.append(_text(13, up, y.name, look=f'class="name" transform="rotate(-90 13 {up})"'))
    return parts
