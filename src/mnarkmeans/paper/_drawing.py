"""Figures that need no screen, saved as PNG and SVG."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

import numpy as np

from .._io import require

HEADER_LENGTH = 24  # characters of a line in the header of a table


def new_figure(rows: int, columns: int, *, width: float = 3.2, height: float = 2.6, **options: Any):
    """A figure and its grid of axes (always two-dimensional), apart from pyplot's own state."""
    require("matplotlib", "plot")
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width * columns, height * rows), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(rows, columns, squeeze=False, **options)
    return figure, axes


def save(figure: Any, folder: Path, name: str) -> None:
    import matplotlib as mpl

    folder.mkdir(parents=True, exist_ok=True)
    # Fixed ids and no date: the same results give the same file.
    with mpl.rc_context({"svg.hashsalt": name}):
        figure.savefig(folder / f"{name}.svg", metadata={"Date": None})
    figure.savefig(folder / f"{name}.png", dpi=150)


def draw_table(
    cells: list[list[str]], columns: list[str], rows: list[str], folder: Path, name: str
):
    """A table as a picture, in the paper's form."""
    save(table_figure(cells, columns, rows), folder, name)


def table_figure(cells: list[list[str]], columns: list[str], rows: list[str]):
    """A figure as large as the texts of the table need, long headers broken into lines."""
    headers = [textwrap.fill(c, HEADER_LENGTH, break_long_words=False) for c in columns]
    texts = [["", *headers], *([row, *line] for row, line in zip(rows, cells, strict=True))]
    figure, axes = new_figure(1, 1)
    axes[0, 0].axis("off")
    table = axes[0, 0].table(texts, bbox=(0, 0, 1, 1), cellLoc="center")
    table.auto_set_font_size(False)
    table.set_fontsize(8)
    widths, heights = np.zeros(len(texts[0])), np.zeros(len(texts))
    for (i, j), cell in table.get_celld().items():
        width, height = _inches(figure, cell.get_text())
        widths[j], heights[i] = max(widths[j], width), max(heights[i], height)
    for (i, j), cell in table.get_celld().items():
        cell.set(width=widths[j], height=heights[i])  # the box scales them to the axes
    table[0, 0].set_visible(False)
    figure.set_size_inches(sum(widths), sum(heights))
    return figure


def _inches(figure: Any, text: Any) -> tuple[float, float]:
    """Width and height that a cell needs for its text and some room around it."""
    box = text.get_window_extent(figure.canvas.get_renderer())
    return 1.1 * box.width / figure.dpi + 0.25, box.height / figure.dpi + 0.15
