"""Rows flowing between the clusters of neighbouring lam, or k: numbers, a sentence, a drawing."""

from __future__ import annotations

from typing import Any

import numpy as np
from markupsafe import Markup, escape

from ..displays._flow import Path, path_of
from ..displays._flow_layout import lay_out
from ..displays._numbers import percent, rounded
from ..displays._palette import brief
from ._svg import svg, tone

HIGH, HEAD, FOOT, BOX = 260, 24, 46, 16
LITTLE, MUCH = 0.05, 0.2  # of the rows that move between neighbours


def flows_of(search: Any, X: Any) -> list[dict[str, Any]]:
    """How the clusters of a fitted MNARKMeansCV change along lam and, if several were tried, k."""
    several = len(np.unique(search.cv_results_["param_n_clusters"])) > 1
    paths = [path_of(search, X, along) for along in ("lam", *(["k"] if several else []))]
    return [as_page(path) for path in paths if len(path.partitions) > 1]


def as_page(path: Path) -> dict[str, Any]:
    """The layout in numbers that JSON can hold."""
    layout = lay_out(path.partitions, path.chosen)
    return {
        "axis_name": path.axis_name,
        "names": path.names,
        "chosen": path.chosen,
        "rows": len(path.partitions[0]),
        "moved": rounded(layout.moved, 3),
        "boxes": [box._asdict() for box in layout.boxes],
        "ribbons": [ribbon._asdict() for ribbon in layout.ribbons],
        "text": _words(path, layout.moved),
    }


def _words(path: Path, moved: list[float]) -> str:
    """Does the choice matter?"""
    beside = moved[max(path.chosen - 1, 0) : path.chosen + 1]
    most, near = percent(max(moved)), percent(max(beside))
    here = path.names[path.chosen]
    if path.axis_name == "number of clusters":
        return (
            f"Next to k = {here}, up to {near} of the rows have to change cluster. A new cluster "
            "that takes its rows from one box is a split; one that takes from many shuffles what "
            "was there."
        )
    if max(moved) <= LITTLE:
        return f"From one lam to the next at most {most} of the rows move: lam hardly matters."
    if max(beside) <= LITTLE:
        return (
            f"Around lam = {here} at most {near} of the rows move, further away up to {most}: the "
            "choice matters, but not to the digit."
        )
    if max(beside) < MUCH:
        return f"Next to lam = {here}, {near} of the rows move: lam matters."
    return (
        f"Next to lam = {here}, {near} of the rows move: the clusters hang on lam. Take those that "
        "stay for the findings, and the others for a question."
    )


def draw(flow: dict[str, Any]) -> Markup:
    """Boxes and ribbons as SVG."""
    columns = len(flow["names"])
    step = max(86, min(150, 640 // max(columns - 1, 1)))
    left, width = 40, 80 + step * (columns - 1)
    parts = []
    for ribbon in flow["ribbons"]:
        x0 = left + step * ribbon["column"] + BOX / 2
        x1 = x0 + step - BOX
        parts.append(
            f'<path d="{_outline(x0, x1, ribbon["left"], ribbon["right"])}" '
            f'style="fill:{tone(ribbon["color"])}" fill-opacity=".35">'
            f"<title>{ribbon['rows']:,} rows: "
            f"cluster {ribbon['source']} to {ribbon['target']}</title></path>"
        )
    for box in flow["boxes"]:
        x, height = left + step * box["column"] - BOX / 2, (box["high"] - box["low"]) * HIGH
        parts.append(
            f'<rect x="{x}" y="{_y(box["low"])}" width="{BOX}" '
            f'height="{max(height, 1):.1f}" style="fill:{tone(box["color"])}">'
            f"<title>cluster {box['cluster']}: {box['rows']:,} rows</title></rect>"
        )
    for c, name in enumerate(flow["names"]):
        bold = ' font-weight="700"' if c == flow["chosen"] else ""
        parts.append(
            f'<text class="name" x="{left + step * c}" y="{HEAD + HIGH + 19}" text-anchor="middle"'
            f"{bold}>{escape(brief(str(name), 12))}</text>"
        )
    for c, moved in enumerate(flow["moved"]):
        parts.append(
            f'<text class="tick" x="{left + step * (c + 0.5)}" y="14" text-anchor="middle">'
            f"{percent(moved)} move</text>"
        )
    parts.append(
        f'<text class="name" x="{left + step * (columns - 1) / 2}" y="{HEAD + HIGH + 40}" '
        f'text-anchor="middle">{escape(flow["axis_name"])}</text>'
    )
    drawn = svg("".join(parts), flow["text"], width, HEAD + HIGH + FOOT)
    size = f'width="{width}" height="{HEAD + HIGH + FOOT}" style="--least:{width}px" '
    return Markup(str(drawn).replace("<svg ", f"<svg {size}", 1))


def _y(level: float) -> str:
    return f"{HEAD + level * HIGH:.1f}"


def _outline(x0: float, x1: float, left, right) -> str:
    middle = (x0 + x1) / 2
    a0, a1, b0, b1 = (_y(v) for v in (*left, *right))
    return (
        f"M{x0},{a0}C{middle},{a0} {middle},{b0} {x1},{b0}"
        f"L{x1},{b1}C{middle},{b1} {middle},{a1} {x0},{a1}Z"
    )
