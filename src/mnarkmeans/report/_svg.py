"""Small charts as SVG. Colours come from the page's style sheet, so they follow light and dark."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from markupsafe import Markup, escape

from ..displays._palette import color

WIDTH, HEIGHT = 460, 280
LEFT, RIGHT, TOP, BOTTOM = 56, 22, 14, 46


def number(value: float | None) -> str:
    """A number for people: four significant digits, thousands apart."""
    if value is None:
        return "\u2013"
    if value == int(value) and abs(value) < 1e9:
        return f"{int(value):,}"
    return f"{value:,.1f}" if abs(value) >= 1000 else f"{value:.4g}"


def percent(share: float | None) -> str:
    """A share in percent, with a digit more where it is small."""
    if share is None:
        return "\u2013"
    return f"{share:.1%}" if 0 < share < 0.1 or 0.9 < share < 1 else f"{share:.0%}"


def short(value: float) -> str:
    """A number for an axis, where room is scarce."""
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= 10 * size or (size > 1e3 and abs(value) >= size):
            return f"{value / size:.4g}{letter}"
    return number(value)


def ticks(low: float, high: float, count: int = 5) -> list[float]:
    """Round numbers between low and high."""
    if not high > low:
        return [low]
    raw = (high - low) / count
    base = 10.0 ** math.floor(math.log10(raw))
    step = next(m * base for m in (1, 2, 2.5, 5, 10) if m * base >= raw * 0.999)
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return [round(i * step, 12) for i in range(first, last + 1)]


class _Frame:
    """The mapping from data to picture, and the axes."""

    def __init__(self, x: tuple[float, float], y: tuple[float, float]) -> None:
        self.x, self.y = x, y

    def at(self, x: float, y: float) -> tuple[float, float]:
        across = (x - self.x[0]) / ((self.x[1] - self.x[0]) or 1.0)
        up = (y - self.y[0]) / ((self.y[1] - self.y[0]) or 1.0)
        return (
            round(LEFT + across * (WIDTH - LEFT - RIGHT), 2),
            round(HEIGHT - BOTTOM - up * (HEIGHT - TOP - BOTTOM), 2),
        )

    def axes(
        self,
        x_ticks: Sequence[tuple[float, str]],
        y_ticks: Sequence[tuple[float, str]],
        x_name: str,
        y_name: str,
    ) -> str:
        parts = []
        for value, text in y_ticks:
            _, y = self.at(self.x[0], value)
            parts.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y}" y2="{y}"/>')
            parts.append(
                f'<text class="tick" x="{LEFT - 7}" y="{y + 4}" text-anchor="end">{text}</text>'
            )
        for value, text in x_ticks:
            x, y = self.at(value, self.y[0])
            parts.append(f'<line class="axis" x1="{x}" x2="{x}" y1="{y}" y2="{y + 4}"/>')
            parts.append(
                f'<text class="tick" x="{x}" y="{y + 17}" text-anchor="middle">{text}</text>'
            )
        base = HEIGHT - BOTTOM
        parts.append(
            f'<line class="axis" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{base}" y2="{base}"/>'
        )
        middle = (LEFT + WIDTH - RIGHT) / 2
        parts.append(
            f'<text class="name" x="{middle}" y="{HEIGHT - 8}" text-anchor="middle">'
            f"{escape(x_name)}</text>"
        )
        height = (TOP + HEIGHT - BOTTOM) / 2
        parts.append(
            f'<text class="name" transform="rotate(-90 13 {height})" x="13" y="{height}" '
            f'text-anchor="middle">{escape(y_name)}</text>'
        )
        return "".join(parts)


def _svg(body: str, description: str, width: float = WIDTH, height: float = HEIGHT) -> Markup:
    return Markup(
        f'<svg viewBox="0 0 {width:g} {height:g}" role="img" '
        f'aria-label="{escape(description)}">{body}</svg>'
    )


def histogram(edges: Sequence[float], counts: Sequence[int], x_name: str, y_name: str) -> Markup:
    """Bars over shares from 0 to 1."""
    top = max(max(counts), 1)
    frame = _Frame((edges[0], edges[-1]), (0, top * 1.05))
    bars = []
    for low, high, count in zip(edges[:-1], edges[1:], counts, strict=True):
        if count:
            (x0, y0), (x1, y1) = frame.at(low, 0), frame.at(high, count)
            bars.append(
                f'<rect class="bar" x="{x0 + 1}" y="{y1}" width="{max(x1 - x0 - 2, 1):.2f}" '
                f'height="{y0 - y1:.2f}"><title>{percent(low)} to {percent(high)} missing: '
                f"{count:,} {escape(y_name)}</title></rect>"
            )
    x_ticks = [(v, percent(v)) for v in (0, 0.25, 0.5, 0.75, 1.0)]
    y_ticks = [(v, short(v)) for v in ticks(0, top, 4) if v == int(v)]
    described = f"Histogram: {y_name} by {x_name}. Largest bar {top:,}."
    return _svg(frame.axes(x_ticks, y_ticks, x_name, y_name) + "".join(bars), described)


def rate_curve(magnitude: Sequence[float], share: Sequence[float]) -> Markup:
    """Missing share against distance from the reference."""
    frame = _Frame((0, max(magnitude) * 1.03 or 1.0), (0, 1))
    points = [frame.at(x, y) for x, y in zip(magnitude, share, strict=True)]
    dots = "".join(
        f'<circle class="dot warm" cx="{x}" cy="{y}" r="4"><title>distance {number(m)}: '
        f"{percent(s)} missing</title></circle>"
        for (x, y), m, s in zip(points, magnitude, share, strict=True)
    )
    path = " ".join(f"{x},{y}" for x, y in points)
    x_ticks = [(v, number(v)) for v in ticks(*frame.x)]
    y_ticks = [(v, percent(v)) for v in (0, 0.25, 0.5, 0.75, 1.0)]
    body = frame.axes(x_ticks, y_ticks, "distance of the centre from the reference", "missing")
    body += f'<polyline class="line warm" points="{path}"/>{dots}'
    described = (
        f"Missing share against distance from the reference: {percent(share[0])} nearest to it, "
        f"{percent(share[-1])} furthest from it."
    )
    return _svg(body, described)


def loss_path(path: Sequence[float], starts: Sequence[float]) -> Markup:
    """Loss after every iteration, and where all starts ended."""
    values = [*path, *starts]
    low, high = min(values), max(values)
    margin = (high - low) * 0.06 or abs(high) * 0.05 or 1.0
    frame = _Frame((0.6, len(path) * 1.08 + 0.4), (low - margin, high + margin))
    points = [frame.at(i + 1, v) for i, v in enumerate(path)]
    line = " ".join(f"{x},{y}" for x, y in points)
    dots = "".join(
        f'<circle class="dot" cx="{x}" cy="{y}" r="3.5"><title>iteration {i + 1}: loss '
        f"{number(v)}</title></circle>"
        for i, ((x, y), v) in enumerate(zip(points, path, strict=True))
    )
    ends = ""
    for value in starts:
        x, y = frame.at(len(path) * 1.08 + 0.2, value)
        ends += f'<line class="end" x1="{x - 8}" x2="{x + 4}" y1="{y}" y2="{y}"/>'
    x_ticks = [(v, number(v)) for v in ticks(1, len(path)) if v == int(v) and v >= 1]
    y_ticks = [(v, short(v)) for v in ticks(*frame.y, count=4)]
    body = frame.axes(x_ticks, y_ticks, "iteration", "penalised loss")
    body += f'<polyline class="line" points="{line}"/>{dots}{ends}'
    described = (
        f"Loss path: from {number(path[0])} to {number(path[-1])} in {len(path)} iterations."
    )
    return _svg(body, described)


def instability(choice: dict[str, Any]) -> Markup:
    """Mean instability against lam, one line per k; candidates are spaced evenly."""
    lams = sorted(set(choice["lam"]))
    place = {lam: i for i, lam in enumerate(lams)}
    means = [m for m in choice["mean"] if m is not None]
    stds = [s or 0.0 for s in choice["std"]]
    top = max([m + s for m, s in zip(means, stds, strict=False)] or [1.0]) * 1.05 or 1.0
    frame = _Frame((-0.3, len(lams) - 0.7), (0, top))
    body, names = "", []
    for index, k in enumerate(sorted(set(choice["k"]))):
        own = [i for i, other in enumerate(choice["k"]) if other == k]
        own = sorted(
            (i for i in own if choice["mean"][i] is not None), key=lambda i: choice["lam"][i]
        )
        points = [frame.at(place[choice["lam"][i]], choice["mean"][i]) for i in own]
        line = " ".join(f"{x},{y}" for x, y in points)
        body += f'<polyline class="line" style="stroke:{color(index)}" points="{line}"/>'
        for (x, y), i in zip(points, own, strict=True):
            body += (
                f'<circle class="dot" style="fill:{color(index)}" cx="{x}" cy="{y}" r="3.5"><title>'
                f"k = {k}, lam = {number(choice['lam'][i])}: {number(choice['mean'][i])}"
                f"</title></circle>"
            )
        names.append((f"k = {k}", color(index)))
    best = choice["best_index"]
    x, y = frame.at(place[choice["lam"][best]], choice["mean"][best] or 0.0)
    body += f'<circle class="ring" cx="{x}" cy="{y}" r="8.5"/>'
    step = max(1, math.ceil(len(lams) / 8))
    x_ticks = [(place[v], f"{v:.3g}") for v in lams[::step]]
    y_ticks = [(v, number(v)) for v in ticks(0, top, 4)]
    body = frame.axes(x_ticks, y_ticks, "penalty lam", "instability") + body
    for index, (name, shade) in enumerate(names if len(names) > 1 else []):
        x, y = LEFT + 10 + 62 * (index % 6), TOP + 6 + 16 * (index // 6)
        body += f'<circle cx="{x}" cy="{y}" r="4.5" fill="{shade}"/>'
        body += f'<text class="tick" x="{x + 8}" y="{y + 4}">{name}</text>'
    described = (
        f"Instability of {len(choice['lam'])} candidates; chosen lam {number(choice['lam'][best])} "
        f"with k = {choice['k'][best]}."
    )
    return _svg(body, described)


def heatmaps(centers: dict[str, Any]) -> list[Markup]:
    """Centres minus reference; the hatched part of a cell is its missing share.

    Long lists of features are split in two panels that stand side by side where there is room.
    """
    reference = centers["reference"]
    distance = [[c - r for c, r in zip(row, reference, strict=True)] for row in centers["centers"]]
    top = max((abs(v) for row in distance for v in row), default=1.0) or 1.0
    p = len(centers["features"])
    half = p if p <= 24 else (p + 1) // 2
    return [_panel(centers, distance, top, range(i, min(i + half, p))) for i in range(0, p, half)]


def _panel(centers: dict[str, Any], distance: list, top: float, shown: range) -> Markup:
    k, names = len(centers["centers"]), centers["features"]
    label, cell, row, head = 140, max(26, min(66, 330 // k)), 19, 40
    width, height = label + k * cell + 4, head + row * len(shown) + 4
    parts = [
        '<defs><pattern id="gap" width="5" height="5" patternUnits="userSpaceOnUse" '
        'patternTransform="rotate(45)"><rect class="gapback" width="5" height="5"/>'
        '<line class="gapline" x1="0" y1="0" x2="0" y2="5"/></pattern></defs>'
    ]
    for i, size in enumerate(centers["sizes"]):
        x = label + i * cell + cell / 2
        parts.append(f'<text class="name" x="{x}" y="16" text-anchor="middle">{i}</text>')
        parts.append(f'<text class="tick" x="{x}" y="31" text-anchor="middle">{short(size)}</text>')
    for position, j in enumerate(shown):
        y, name = head + position * row, names[j]
        brief = name if len(name) <= 19 else name[:18] + "…"
        parts.append(
            f'<text class="tick" x="{label - 8}" y="{y + 13}" text-anchor="end">{escape(brief)}'
            f"<title>{escape(name)}</title></text>"
        )
        for i in range(k):
            gap = centers["missing"][i][j]
            gap = 1.0 if gap is None else gap
            x, inner = label + i * cell, cell - 2
            seen = inner * (1 - gap)
            parts.append(
                f"<g><title>{escape(name)}, cluster {i}: centre "
                f"{number(centers['centers'][i][j])}, {percent(gap)} missing</title>"
                f'<rect x="{x}" y="{y}" width="{seen:.1f}" height="{row - 2}" '
                f'fill="{_shade(distance[i][j] / top)}"/>'
                f'<rect x="{x + seen:.1f}" y="{y}" width="{inner - seen:.1f}" height="{row - 2}" '
                f'fill="url(#gap)"/></g>'
            )
    described = (
        f"Heatmap of {len(shown)} features by {k} clusters: centre minus reference, from "
        f"{number(-top)} to {number(top)}; the hatched part of a cell is missing."
    )
    svg = _svg("".join(parts), described, width, height)
    size = f'width="{width}" height="{height}" style="--least:{label + 26 * k}px" '
    return Markup(str(svg).replace("<svg ", f"<svg {size}", 1))


def _shade(level: float) -> str:
    """Blue below, red above, near-white at the reference."""
    level = max(-1.0, min(1.0, level))
    ends = ((33, 102, 172), (247, 247, 247), (178, 24, 43))
    a, b, t = (ends[1], ends[2], level) if level >= 0 else (ends[1], ends[0], -level)
    t = t**0.8
    return "#" + "".join(f"{round(u + (v - u) * t):02x}" for u, v in zip(a, b, strict=True))
