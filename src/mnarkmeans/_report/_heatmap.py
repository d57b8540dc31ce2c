"""The centres as a heatmap in which gaps stay visible.

Every cell has two colours, from the reference and from the overall mean; the page shows one.
"""

from __future__ import annotations

from typing import Any

from markupsafe import Markup, escape

from ..displays._numbers import number, percent, short
from ..displays._palette import brief
from ._svg import svg

LONGEST = 20  # letters of a name
ONE_SIDED = 0.9  # share of cells above (or below) the reference, from which the mean tells more


def one_sided(centers: dict[str, Any]) -> bool:
    """Whether nearly all centres lie on one side of the reference."""
    signs = [d > 0 for row in _minus(centers, "reference") for d in row if d]
    share = sum(signs) / len(signs) if signs else 0.5
    return len(centers["centers"]) > 1 and not 1 - ONE_SIDED < share < ONE_SIDED


def _minus(centers: dict[str, Any], what: str) -> list[list[float]]:
    return [[c - r for c, r in zip(row, centers[what], strict=True)] for row in centers["centers"]]


def heatmaps(centers: dict[str, Any]) -> list[Markup]:
    """Panels of cells; the hatched part of a cell is its missing share.

    Long lists of features are split in two panels that stand side by side where there is room.
    """
    shades = []
    for what in ("reference", "mean"):
        distance = _minus(centers, what)
        top = max((abs(v) for row in distance for v in row), default=1.0) or 1.0
        shades.append([[_shade(v / top) for v in row] for row in distance])
    p = len(centers["features"])
    half = p if p <= 24 else (p + 1) // 2
    return [_panel(centers, shades, range(i, min(i + half, p))) for i in range(0, p, half)]


def _panel(centers: dict[str, Any], shades: list, shown: range) -> Markup:
    k = len(centers["centers"])
    longest = max((len(brief(centers["features"][j], LONGEST)) for j in shown), default=0)
    label, cell, row, head = 12 + 8 * longest, max(26, min(66, 330 // k)), 19, 40
    width, height = label + k * cell + 4, head + row * len(shown) + 4
    parts = [
        '<defs><pattern id="gap" width="5" height="5" patternUnits="userSpaceOnUse" '
        'patternTransform="rotate(45)"><rect class="gapback" width="5" height="5"/>'
        '<line class="gapline" x1="0" y1="0" x2="0" y2="5"/></pattern></defs>'
    ]
    for i, size in enumerate(centers["sizes"]):
        x = label + i * cell + cell / 2
        parts.append(f'<text class="name" x="{x}" y="16" text-anchor="middle">{i}</text>')
        if k <= 12:  # beyond, the sizes would run into each other
            parts.append(
                f'<text class="tick" x="{x}" y="31" text-anchor="middle">{short(size)}</text>'
            )
    for position, j in enumerate(shown):
        y, name = head + position * row, centers["features"][j]
        parts.append(
            f'<text class="tick" x="{label - 8}" y="{y + 13}" text-anchor="end">'
            f"{escape(brief(name, LONGEST))}<title>{escape(name)}</title></text>"
        )
        for i in range(k):
            x = label + i * cell
            parts.append(_cell(centers, (shades[0][i][j], shades[1][i][j]), (i, j), (x, y, cell)))
    described = (
        f"Heatmap of the centres of {len(shown)} features in {k} clusters; the hatched part of a "
        "cell is missing."
    )
    drawn = svg("".join(parts), described, width, height)
    size = f'width="{width}" height="{height}" style="--least:{label + min(cell, 36) * k}px" '
    return Markup(str(drawn).replace("<svg ", f"<svg {size}", 1))


def _cell(centers: dict[str, Any], shades: tuple[str, str], at, where, row: int = 19) -> str:
    (i, j), (x, y, cell) = at, where
    gap = centers["missing"][i][j]
    gap = 1.0 if gap is None else gap
    inner = cell - 2
    seen = inner * (1 - gap)
    return (
        f"<g><title>{escape(centers['features'][j])}, cluster {i}: centre "
        f"{number(centers['centers'][i][j])}, {percent(gap)} missing</title>"
        f'<rect class="cell" x="{x}" y="{y}" width="{seen:.1f}" height="{row - 2}" '
        f'style="--r:{shades[0]};--m:{shades[1]}"/>'
        f'<rect x="{x + seen:.1f}" y="{y}" width="{inner - seen:.1f}" height="{row - 2}" '
        f'fill="url(#gap)"/></g>'
    )


def _shade(level: float) -> str:
    """Blue below, red above, near-white at the reference."""
    level = max(-1.0, min(1.0, level))
    ends = ((33, 102, 172), (247, 247, 247), (178, 24, 43))
    a, b, t = (ends[1], ends[2], level) if level >= 0 else (ends[1], ends[0], -level)
    t = t**0.8
    return "#" + "".join(f"{round(u + (v - u) * t):02x}" for u, v in zip(a, b, strict=True))
