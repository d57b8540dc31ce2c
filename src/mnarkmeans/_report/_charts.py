"""The charts of the page: histograms, missing rate, loss, instability, BIC and ICL."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from markupsafe import Markup, escape

from ..displays._style import lam_ticks
from ._numbers import labelled, number, percent, short, ticks
from ._svg import BOTTOM, HEIGHT, LEFT, TOP, Frame, svg, tone


def histogram(edges: Sequence[float], counts: Sequence[int], x_name: str, y_name: str) -> Markup:
    """Bars over shares from 0 to 1."""
    top = max(max(counts), 1)
    frame = Frame((edges[0], edges[-1]), (0, top * 1.05))
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
    return svg(frame.axes(x_ticks, y_ticks, x_name, y_name) + "".join(bars), described)


def rate_curve(magnitude: Sequence[float], share: Sequence[float]) -> Markup:
    """Missing share against the mean of cluster and feature."""
    margin = 0.03 * (max(magnitude) - min(magnitude)) or 1.0
    frame = Frame((min(magnitude) - margin, max(magnitude) + margin), (0, 1))
    points = [frame.at(x, y) for x, y in zip(magnitude, share, strict=True)]
    dots = "".join(
        f'<circle class="dot warm" cx="{x}" cy="{y}" r="4"><title>mean {number(m)}: '
        f"{percent(s)} missing</title></circle>"
        for (x, y), m, s in zip(points, magnitude, share, strict=True)
    )
    path = " ".join(f"{x},{y}" for x, y in points)
    x_ticks, name = labelled(*frame.x, "mean of the cluster in the feature")
    y_ticks = [(v, percent(v)) for v in (0, 0.25, 0.5, 0.75, 1.0)]
    body = frame.axes(x_ticks, y_ticks, name, "missing")
    body += f'<polyline class="line warm" points="{path}"/>{dots}'
    described = (
        f"Missing share against the mean of cluster and feature: {percent(share[0])} where it is "
        f"lowest, {percent(share[-1])} where it is highest."
    )
    return svg(body, described)


def loss_path(path: Sequence[float], starts: Sequence[float]) -> Markup:
    """Loss after every iteration, and where all starts ended."""
    values = [*path, *starts]
    low, high = min(values), max(values)
    margin = (high - low) * 0.06 or abs(high) * 0.05 or 1.0
    frame = Frame((0.6, len(path) * 1.08 + 0.4), (low - margin, high + margin))
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
    y_ticks, name = labelled(*frame.y, "penalised loss", 4)
    body = frame.axes(x_ticks, y_ticks, "iteration", name)
    body += f'<polyline class="line" points="{line}"/>{dots}{ends}'
    described = (
        f"Loss path: from {number(path[0])} to {number(path[-1])} in {len(path)} iterations."
    )
    return svg(body, described)


def instability(choice: dict[str, Any]) -> Markup:
    """Mean instability against lam, one line per k; lam is logarithmic, with a place for 0."""
    if len(set(choice["lam"])) == 1 and len(set(choice["k"])) > 1:
        return _by_k(choice)
    positive = [lam for lam in choice["lam"] if lam > 0]
    low = math.log2(min(positive)) if positive else 0.0
    high = math.log2(max(positive)) if positive else 1.0
    zero = low - max(0.12 * (high - low), 1.0)

    def place(lam: float) -> float:
        return math.log2(lam) if lam > 0 else zero

    means = [m for m in choice["mean"] if m is not None]
    stds = [s or 0.0 for s in choice["std"]]
    top = max([m + s for m, s in zip(means, stds, strict=False)] or [1.0]) * 1.05 or 1.0
    begin = zero if 0.0 in choice["lam"] else low
    margin = 0.04 * (high - begin) or 0.5
    frame = Frame((begin - margin, high + margin), (0, top))
    body, names = _lines(choice, place, frame)
    best = choice["best_index"]
    x, y = frame.at(place(choice["lam"][best]), choice["mean"][best] or 0.0)
    anchor = "end" if x > 330 else "start"
    body += (
        f'<line class="drop" x1="{x}" x2="{x}" y1="{TOP + 34}" y2="{HEIGHT - BOTTOM}"/>'
        f'<circle class="ring" cx="{x}" cy="{y}" r="8.5"/>'
        f'<text class="tick" x="{x + (-6 if anchor == "end" else 6)}" y="{TOP + 44}" '
        f'text-anchor="{anchor}">chosen: {choice["lam"][best]:.3g}</text>'
    )
    x_ticks = [(place(v), f"{v:g}") for v in lam_ticks(sorted(set(choice["lam"])))]
    y_ticks = [(v, number(v)) for v in ticks(0, top, 4)]
    body = frame.axes(x_ticks, y_ticks, "penalty lam", "instability") + body + _legend(names)
    described = (
        f"Instability of {len(choice['lam'])} candidates; chosen lam {number(choice['lam'][best])} "
        f"with k = {choice['k'][best]}."
    )
    return svg(body, described)


def _by_k(choice: dict[str, Any]) -> Markup:
    """Mean instability against k, where all candidates share one lam."""
    known = [i for i in range(len(choice["k"])) if choice["mean"][i] is not None]
    ks = [choice["k"][i] for i in known]
    top = max([choice["mean"][i] for i in known] or [1.0]) * 1.15 or 1.0
    frame = Frame((min(choice["k"]) - 0.4, max(choice["k"]) + 0.4), (0, top))
    points = [frame.at(choice["k"][i], choice["mean"][i]) for i in known]
    line = " ".join(f"{x},{y}" for x, y in points)
    body = f'<polyline class="line" points="{line}"/>'
    for (x, y), i in zip(points, known, strict=True):
        body += (
            f'<circle class="dot" cx="{x}" cy="{y}" r="3.5"><title>k = {choice["k"][i]}: '
            f"{number(choice['mean'][i])}</title></circle>"
        )
        body += f'<circle class="ring" cx="{x}" cy="{y}" r="8.5"/>' * (i == choice["best_index"])
    step = max(1, math.ceil(len(ks) / 10))
    y_ticks = [(v, number(v)) for v in ticks(0, top, 4)]
    axes = frame.axes([(float(k), str(k)) for k in ks[::step]], y_ticks, "number of clusters",
                      "instability")  # fmt: skip
    chosen = choice["k"][choice["best_index"]]
    return svg(axes + body, f"Instability against the number of clusters; chosen k = {chosen}.")


def _lines(choice: dict[str, Any], place: Any, frame: Frame) -> tuple[str, list[tuple[str, str]]]:
    body, names = "", []
    for index, k in enumerate(sorted(set(choice["k"]))):
        own = [i for i, other in enumerate(choice["k"]) if other == k]
        own = [i for i in own if choice["mean"][i] is not None]
        own.sort(key=lambda i: choice["lam"][i])
        points = [frame.at(place(choice["lam"][i]), choice["mean"][i]) for i in own]
        line = " ".join(f"{x},{y}" for x, y in points)
        body += f'<polyline class="line" style="stroke:{tone(index)}" points="{line}"/>'
        for (x, y), i in zip(points, own, strict=True):
            body += (
                f'<circle class="dot" style="fill:{tone(index)}" cx="{x}" cy="{y}" r="3.5"><title>'
                f"k = {k}, lam = {number(choice['lam'][i])}: {number(choice['mean'][i])}"
                f"</title></circle>"
            )
        names.append((f"k = {k}", tone(index)))
    return body, names


def _legend(names: list[tuple[str, str]]) -> str:
    body = ""
    for index, (name, shade) in enumerate(names if len(names) > 1 else []):
        x, y = LEFT + 10 + 62 * (index % 6), TOP + 6 + 16 * (index // 6)
        body += f'<circle cx="{x}" cy="{y}" r="4.5" style="fill:{shade}"/>'
        body += f'<text class="tick" x="{x + 8}" y="{y + 4}">{escape(name)}</text>'
    return body


def information(mixture: list[dict[str, Any]], chosen: int) -> Markup:
    """BIC and ICL of the mixture against k; the least of each is ringed, the k taken is marked."""
    ks = [one["k"] for one in mixture]
    values = [one[name] for one in mixture for name in ("bic", "icl")]
    low, high = min(values), max(values)
    margin = (high - low) * 0.08 or abs(high) * 0.05 or 1.0
    frame = Frame((min(ks) - 0.4, max(ks) + 0.4), (low - margin, high + 2.5 * margin))
    body, names = "", []
    if min(ks) <= chosen <= max(ks):
        x, _ = frame.at(chosen, low)
        body += f'<line class="drop" x1="{x}" x2="{x}" y1="{TOP + 26}" y2="{HEIGHT - BOTTOM}"/>'
    for index, name in enumerate(("bic", "icl")):
        points = [frame.at(one["k"], one[name]) for one in mixture]
        line = " ".join(f"{x},{y}" for x, y in points)
        body += f'<polyline class="line" style="stroke:{tone(index)}" points="{line}"/>'
        least = min(range(len(mixture)), key=lambda i: mixture[i][name])
        for i, (x, y) in enumerate(points):
            body += (
                f'<circle class="dot" style="fill:{tone(index)}" cx="{x}" cy="{y}" r="3.5"><title>'
                f"k = {ks[i]}: {name.upper()} {number(mixture[i][name])}</title></circle>"
            )
            body += f'<circle class="ring" cx="{x}" cy="{y}" r="7.5"/>' if i == least else ""
        names.append((name.upper(), tone(index)))
    step = max(1, math.ceil(len(ks) / 10))
    x_ticks = [(float(k), str(k)) for k in ks[::step]]
    y_ticks, name = labelled(*frame.y, "smaller is better", 4)
    axes = frame.axes(x_ticks, y_ticks, "number of clusters", name)
    described = "BIC and ICL of a mixture for each number of clusters; the least of each is ringed."
    return svg(axes + body + _legend(names), described)
