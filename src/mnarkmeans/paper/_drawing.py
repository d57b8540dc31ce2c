"""Figures that need no screen, saved as PNG and SVG."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mnarkmeans._extras import require


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
    figure, axes = new_figure(1, 1, width=1.6 * (len(columns) + 1), height=0.34 * (len(rows) + 2))
    axes[0, 0].axis("off")
    table = axes[0, 0].table(
        cells, colLabels=columns, rowLabels=rows, loc="center", cellLoc="center"
    )
    table.auto_set_font_size(False)
    table.set_fontsize(8)
    table.scale(1, 1.3)
    save(figure, folder, name)
