"""The frame of a small chart as SVG; its colours come from the style sheet, light or dark."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup, escape

from ..displays._palette import CLUSTERS

WIDTH, HEIGHT = 460, 280
LEFT, RIGHT, TOP, BOTTOM = 80, 30, 14, 46


def tone(cluster: int) -> str:
    """The colour of a cluster, as the style sheet has it for light and for dark ground."""
    return f"var(--c{cluster % len(CLUSTERS)})"


class Frame:
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


def svg(body: str, description: str, width: float = WIDTH, height: float = HEIGHT) -> Markup:
    return Markup(
        f'<svg viewBox="0 0 {width:g} {height:g}" role="img" '
        f'aria-label="{escape(description)}">{body}</svg>'
    )
