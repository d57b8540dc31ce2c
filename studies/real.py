"""python -m studies real [--seeds ...] [--methods ...] [--folder docs]

All methods on the real tables: real_tables.csv (one row per table, seed and method,
kept and continued) and real_tables.png, the picture of the front page.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import pandas as pd

from mnarkmeans.baselines import BASELINES
from studies.choice import run

NAMES = {
    "default": "MNARKMeans",
    "cv": "MNARKMeansCV",
    "mixture": "MNARMixture",
    "kpod": "k-POD",
    "rkpod": "regularised k-POD",
    "fwpd": "FWPD",
    "zero": "k-means, zeros",
    "mean": "k-means, means",
    "knn": "k-means, KNN",
    "mice": "k-means, MICE",
    "qrilc": "k-means, QRILC",
    "minprob": "k-means, MinProb",
    "scimpute": "k-means, scImpute",
    "pca": "k-means, PCA",
    "gmm": "StepMix",
    "gmm_mask": "StepMix, missingness",
}
OURS = ("default", "cv", "mixture")
METHODS = [*OURS, *(name for name in BASELINES if name != "scimpute")]  # which needs counts
BLUE, GREY = "#0b5c8a", "#8a8f98"


def draw(rows: pd.DataFrame, path: Path) -> None:
    """A line per method, best first: its mean over the tables, and every table as a small mark."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    by_table = rows.groupby(["method", "design"]).ari.mean()
    means = by_table.groupby("method").mean().sort_values(ascending=False)
    plt.rcParams["font.size"] = 12
    figure, axes = plt.subplots(figsize=(5.6, 0.4 * len(means) + 1.3), layout="constrained")
    for place, (method, mean) in enumerate(means.items()):
        color = BLUE if method in OURS else "#3d434b"
        values = by_table[method]
        axes.plot(
            values, [place] * len(values), "|", color=GREY, markersize=11, markeredgewidth=1.4
        )
        axes.plot(mean, place, "o", color=color, markersize=10)
        axes.text(1.04, place, f"{mean:.2f}", color=color, va="center")
    axes.set_yticks(range(len(means)), [NAMES[method] for method in means.index])
    for label, method in zip(axes.get_yticklabels(), means.index, strict=True):
        if method in OURS:
            label.set(color=BLUE, fontweight="bold")
    axes.set(xlim=(-0.05, 1.18), xticks=[0, 0.5, 1], xlabel="adjusted Rand index")
    axes.invert_yaxis()
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="x", alpha=0.3)
    figure.savefig(path, dpi=160)
    plt.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser("python -m studies real", description=__doc__)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--methods", nargs="+", choices=NAMES, default=METHODS)
    parser.add_argument("--folder", type=Path, default=Path("."))
    options = parser.parse_args()
    table = options.folder / "real_tables.csv"
    for method in options.methods:  # the file is written after each
        rows = run(["real"], options.seeds, [method], file=table)
    draw(rows, options.folder / "real_tables.png")
    by_table = rows.groupby(["design", "method"]).ari.mean().unstack()
    print(by_table.round(2).to_string())


if __name__ == "__main__":
    main()
