"""Designs, scores, tables and figures that several experiments share."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from scipy.optimize import linear_sum_assignment
from sklearn.cluster import KMeans
from sklearn.metrics import confusion_matrix
from sklearn.utils import Bunch

from mnarkmeans.datasets import make_gaussian_clusters
from mnarkmeans.metrics import center_mse, clustering_error_rate

# Parameter of each mechanism for the missing shares the paper names.
STRENGTHS = {
    "mnar0": {0.1: 50.0, 0.3: 5.0, 0.5: 1.5},
    "mnar1": {0.1: 15.0, 0.3: 1.5, 0.5: 0.1},
    "mnar2": {0.1: 0.1, 0.3: 0.3, 0.5: 0.5},
}
CANDIDATES_SMALL = [0.01, *np.round(np.arange(0.2, 2.01, 0.2), 1).tolist()]
CANDIDATES_WIDE = [0.1, *np.arange(2.0, 20.1, 2.0).tolist()]

LABELS = {
    "kmeans": "k-means, full data",
    "zero": "zero",
    "mean": "mean",
    "mice": "MICE",
    "knn": "KNN",
    "kpod": "k-POD",
    "fwpd": "FWPD",
    "scimpute": "scImpute",
    "proposed": "proposed",
}
COLORS = {
    "kmeans": "black",
    "zero": "tab:brown",
    "mean": "purple",
    "mice": "green",
    "knn": "orange",
    "kpod": "blue",
    "fwpd": "gray",
    "scimpute": "teal",
    "proposed": "red",
}


def nine_settings(**fixed: Any) -> list[dict[str, Any]]:
    """Three mechanisms x 10, 30, 50 % missing."""
    return [
        {**fixed, "mechanism": mechanism, "missing": missing}
        for mechanism, strengths in STRENGTHS.items()
        for missing in strengths
    ]


def gaussian_data(setting: dict[str, Any], rng: np.random.Generator) -> Bunch:
    """Clusters of side 3 (or `side`) in the first two features, gaps by the setting's mechanism."""
    strength = setting.get("strength")
    if strength is None:
        strength = STRENGTHS[setting["mechanism"]][setting["missing"]]
    return make_gaussian_clusters(
        setting["n"],
        setting["p"],
        setting["k"],
        separation=setting.get("side", 3.0),
        mechanism=setting.get("mechanism", "mnar0"),
        strength=strength,
        random_state=rng,
    )


def seed_of(rng: np.random.Generator) -> int:
    return int(rng.integers(2**31 - 1))


def full_kmeans(data: Bunch, k: int, rng: np.random.Generator, n_init: int = 100) -> KMeans:
    """k-means on the rows as they were before anything went missing."""
    return KMeans(k, n_init=n_init, max_iter=100, random_state=seed_of(rng)).fit(data.complete)


def scores(data: Bunch, labels: np.ndarray, centers: np.ndarray) -> dict[str, float]:
    return {
        "cer": clustering_error_rate(data.target, labels),
        "mse": center_mse(data.centers, np.nan_to_num(centers)),
    }


def matched(labels_true: np.ndarray, labels_pred: np.ndarray) -> np.ndarray:
    """`labels_pred` renamed so that as many rows as possible agree with `labels_true`."""
    counts = confusion_matrix(labels_true, labels_pred)
    true, found = linear_sum_assignment(-counts)
    rename = np.empty(len(counts), dtype=int)
    rename[found] = true
    return rename[labels_pred]


def markdown(header: Iterable[Any], rows: Iterable[Iterable[Any]]) -> str:
    """A Markdown table; numbers with three decimals."""

    def cell(value: Any) -> str:
        return f"{value:.3f}" if isinstance(value, float | np.floating) else str(value)

    lines = [list(header)]
    lines.append(["---"] * len(lines[0]))
    lines.extend([cell(value) for value in row] for row in rows)
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines) + "\n"


def mean_sd(values: Any) -> str:
    return f"{values.mean():.3f} ({values.std(ddof=1) if len(values) > 1 else 0.0:.3f})"


def published(name: str, *keys: str) -> pd.DataFrame:
    """The numbers printed in the paper, by `keys`."""
    table = pd.read_csv(Path(__file__).parent / "published" / f"{name}.csv")
    return table.set_index(list(keys))


def new_figure(
    rows: int, columns: int, *, width: float = 3.2, height: float = 2.6, **options: Any
) -> tuple[Figure, np.ndarray]:
    """A figure and its grid of axes (always two-dimensional), without pyplot's global state."""
    figure = Figure(figsize=(width * columns, height * rows), layout="constrained")
    FigureCanvasAgg(figure)
    return figure, figure.subplots(rows, columns, squeeze=False, **options)


def save(figure: Figure, folder: Path, name: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    # Fixed ids and no date: the same results give the same file.
    with mpl.rc_context({"svg.hashsalt": name}):
        figure.savefig(folder / f"{name}.svg", metadata={"Date": None})
    figure.savefig(folder / f"{name}.png", dpi=150)


def draw_table(
    cells: list[list[str]], columns: list[str], rows: list[str], folder: Path, name: str
) -> None:
    """A table as a picture as large as its texts need, long headers broken into lines."""
    headers = [textwrap.fill(column, 24, break_long_words=False) for column in columns]
    texts = [["", *headers], *([row, *line] for row, line in zip(rows, cells, strict=True))]
    figure, axes = new_figure(1, 1)
    axes[0, 0].axis("off")
    table = axes[0, 0].table(texts, bbox=(0, 0, 1, 1), cellLoc="center")
    table.auto_set_font_size(False)
    table.set_fontsize(8)
    widths, heights = np.zeros(len(texts[0])), np.zeros(len(texts))
    for (i, j), cell in table.get_celld().items():
        box = cell.get_text().get_window_extent(figure.canvas.get_renderer())
        widths[j] = max(widths[j], 1.1 * box.width / figure.dpi + 0.25)
        heights[i] = max(heights[i], box.height / figure.dpi + 0.15)
    for (i, j), cell in table.get_celld().items():
        cell.set(width=widths[j], height=heights[i])
    table[0, 0].set_visible(False)
    figure.set_size_inches(sum(widths), sum(heights))
    save(figure, folder, name)
