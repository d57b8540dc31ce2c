"""Figure 1: three clusters in the plane, 30 % missing: k-means on full data, k-POD, lam = 1."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from . import _procedure
from ._runner import Experiment, Row, Setting, task_rng
from ._shared import full_kmeans, gaussian_data, markdown, matched, new_figure, published, save

PUBLISHED = published("figure1", "method").wrong
TITLES = {"kmeans": "k-means", "kpod": "k-POD", "proposed": "Proposed"}


def settings(quick: bool) -> list[Setting]:
    return [{"n": 300, "p": 2, "k": 3, "strength": 1.0}]


def fits(setting: Setting, rng: np.random.Generator):
    """The data, and labels (named as the truth) and centres of each method."""
    data = gaussian_data(setting, rng)
    k = setting["k"]
    full = full_kmeans(data, k, rng)
    kpod = _procedure.fit(data.data, k, 0.0, rng)
    proposed = _procedure.fit(data.data, k, 1.0, rng)
    found = {
        "kmeans": (full.labels_, full.cluster_centers_),
        "kpod": (kpod.labels_, kpod.cluster_centers_),
        "proposed": (proposed.labels_, proposed.cluster_centers_),
    }
    return data, {name: (matched(data.target, z), m) for name, (z, m) in found.items()}


def compute(setting: Setting, rng: np.random.Generator) -> list[Row]:
    data, found = fits(setting, rng)
    return [
        {"method": name, "wrong": int((labels != data.target).sum()), "rows": len(data.target)}
        for name, (labels, _) in found.items()
    ]


def details(quick: bool) -> dict[str, pd.DataFrame]:
    """The points and centres of the first repetition."""
    (setting,) = settings(quick)
    data, found = fits(setting, task_rng(setting, 0))
    points = pd.DataFrame(
        {
            "x": data.complete[:, 0],
            "y": data.complete[:, 1],
            "truth": data.target,
            **{name: labels for name, (labels, _) in found.items()},
        }
    )
    centers = pd.DataFrame(
        [
            {"method": name, "x": x, "y": y}
            for name, (_, centers) in found.items()
            for x, y in centers
        ]
    )
    return {"points.csv": points, "centers.csv": centers}


def draw(table: pd.DataFrame, folder: Path) -> None:
    points = pd.read_csv(folder / "points.csv")
    centers = pd.read_csv(folder / "centers.csv")
    wrong = table[table.repetition == 0].set_index("method").wrong
    figure, axes = new_figure(1, 3, sharex=True, sharey=True)
    for axis, (method, title) in zip(axes[0], TITLES.items(), strict=True):
        for cluster, marker in enumerate("os^"):
            shown = points[points.truth == cluster]
            colors = [("tab:red", "tab:blue", "tab:green")[z] for z in shown[method]]
            axis.scatter(shown.x, shown.y, c=colors, marker=marker, s=12, alpha=0.7)
        own = centers[centers.method == method]
        axis.scatter(own.x, own.y, c="black", s=50)
        axis.set_title(f"{title}: {wrong[method]} wrong")
    save(figure, folder, "figure1")


def compare(table: pd.DataFrame) -> str:
    rows = []
    for method, number in PUBLISHED.items():
        wrong = table[table.method == method].wrong
        rows.append(
            [
                TITLES[method],
                f"{wrong.mean():.1f} ({wrong.min()} to {wrong.max()})",
                number,
                f"{wrong.mean() - number:+.1f}",
            ]
        )
    return (
        "Points with a wrong label of 300 (the paper shows one sample; ours is the mean over the "
        "repetitions, and the figure shows the first).\n\n"
        + markdown(["method", "ours: mean (range)", "paper", "difference"], rows)
    )


EXPERIMENT = Experiment(
    "figure1",
    "Figure 1: what goes wrong with k-POD when small values are missing",
    30,
    settings,
    compute,
    draw,
    compare,
    details,
)
