"""Beyond the paper: its two real tables, the methods of this package, rows in the wrong group.

Usoskin as log(1 + x), 0 kept as "not expressed"; Lymphoma with values lost around zero (MNAR0).
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.cluster import KMeans

from .._estimators.mixture import MNARMixture
from .._io import require
from ..baselines import BASELINES
from ..baselines._scimpute import scimpute
from ..datasets import load_usoskin
from ..metrics import clustering_error_rate
from . import table3
from ._experiment import Experiment, Frame, Row, Setting
from ._ours import by_default
from ._shared import markdown, matched, mean_sd, seed_of

TITLES = {
    "mean": "k-means, gaps filled with means",
    "knn": "k-means, gaps filled from neighbours",
    "zero": "k-means, gaps filled with 0",
    "qrilc": "k-means, QRILC",
    "minprob": "k-means, MinProb",
    "pca": "k-means on 50 principal components",
    "scimpute": "k-means, scImpute",
    "kpod": "k-POD",
    "rkpod": "regularised k-POD",
    "fwpd": "FWPD",
    "mixture": "MNARMixture",
    "auto": "MNARKMeans",
    "cv": "MNARKMeansCV",
}
OURS = ("mixture", "auto", "cv")
IMPUTED = ("mean", "knn", "zero", "qrilc", "minprob", "pca", "kpod", "rkpod", "fwpd")
PANELS = {"usoskin log1p": "Usoskin: mouse neurons, 4 kinds", "lymphoma": "Lymphoma, 3 kinds"}


def settings(quick: bool) -> list[Setting]:
    return [
        {"data": "usoskin log1p", "cells": 150 if quick else 622},
        {"data": "lymphoma", "genes": 300 if quick else 4026, "mechanism": "mnar0",
         "missing": 0.3},
    ]  # fmt: skip


def compute(setting: Setting, rng: np.random.Generator) -> list[Row]:
    if setting["data"] == "lymphoma":
        X, _, target = table3.holed_lymphoma(setting, rng)
        found: dict[str, np.ndarray] = {}
    else:
        X, target, found = _usoskin(setting, rng)
    k = len(np.unique(target))
    found |= _rivals(X, k, rng) | _ours(X, k, rng)
    return [
        {
            "method": name,
            "rows": len(target),
            "cer": clustering_error_rate(target, found[name]),
            "wrong": int((matched(target, found[name]) != target).sum()),
        }
        for name in TITLES
        if name in found
    ]


def _usoskin(setting: Setting, rng: np.random.Generator) -> tuple[Any, Any, dict[str, np.ndarray]]:
    """The cells, their kinds, and scImpute's labels, which need the counts."""
    logged = load_usoskin(preparation="log1p")
    counts = load_usoskin(preparation="counts", max_missing=None)
    keep = slice(None, None, max(1, 622 // setting["cells"]))
    X = logged.data[keep]
    seen = ~np.isnan(X).all(axis=0)
    imputed, _ = scimpute(counts.data[keep], 4, random_state=seed_of(rng))
    shown = np.isin(counts.feature_names, np.array(logged.feature_names)[seen])
    kmeans = KMeans(4, n_init=100, max_iter=100, random_state=seed_of(rng))
    labels = kmeans.fit_predict(np.log1p(imputed[:, shown]))
    return X[:, seen], logged.target[keep], {"scimpute": labels}


def _rivals(X: np.ndarray, k: int, rng: np.random.Generator) -> dict[str, np.ndarray]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a rival that does not settle is scored as it is
        return {
            name: BASELINES[name](k, random_state=seed_of(rng)).fit_predict(X) for name in IMPUTED
        }


def _ours(X: np.ndarray, k: int, rng: np.random.Generator) -> dict[str, np.ndarray]:
    found = {name: ours.labels for name, ours in by_default(X, k, seed_of(rng)).items()}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mixture = MNARMixture(k, random_state=seed_of(rng)).fit(X)
    return found | {"mixture": mixture.predict(X)}


def _panels(table: Frame) -> list[tuple[str, Frame]]:
    return [(data, table[table.data == data]) for data in PANELS if (table.data == data).any()]


def draw(table: Frame, folder: Path) -> None:
    plt = require("matplotlib.pyplot", "paper")
    panels = _panels(table)
    figure, axes = plt.subplots(
        1, len(panels), figsize=(12, 4.9), sharey=True, squeeze=False, layout="constrained"
    )
    names = list(TITLES)
    for ax, (data, panel) in zip(axes[0], panels, strict=True):
        rows = int(panel.rows.iloc[0])
        for place, name in enumerate(names):
            own = panel[panel.method == name].wrong
            if not len(own):
                ax.text(0.01 * rows, place, "not run", va="center", fontsize=8, color="0.55")
                continue
            color = "#D55E00" if name in OURS else "#9aa7b4"
            ax.barh(place, own.mean(), height=0.72, color=color)
            ax.text(own.mean() + 0.008 * rows, place, f"{own.mean():.0f}", va="center", fontsize=9)
        ax.set_title(PANELS[data], loc="left", fontweight="bold", fontsize=11)
        ax.set_xlabel(f"in the wrong group, of {rows} (mean of {panel.repetition.nunique()} runs)")
        ax.set_yticks(range(len(names)), [TITLES[name] for name in names])
        ax.invert_yaxis() if ax is axes[0][0] else None
        ax.spines[["top", "right", "left"]].set_visible(False)
        ax.tick_params(axis="y", length=0)
        ax.margins(x=0.1)
    for suffix in ("png", "svg"):
        figure.savefig(folder / f"beyond_real.{suffix}", dpi=130)
    plt.close(figure)


def compare(table: Frame) -> str:
    panels = _panels(table)
    rows = []
    for name, title in TITLES.items():
        cells = []
        for _, panel in panels:
            own = panel[panel.method == name]
            cells += [f"{own.wrong.mean():.1f}", mean_sd(own.cer)] if len(own) else ["", ""]
        rows.append([title, *cells])
    header = ["method"]
    for data, panel in panels:
        header += [f"{data}: wrong of {int(panel.rows.iloc[0])}", "CER, mean (sd)"]
    return (
        "The two real tables of the paper and the methods of this package with their defaults, "
        "told the number of groups. Usoskin: log(1 + x), 389 genes, zeros are gaps. Lymphoma: gene "
        "expression, 30 % of the values lost around zero (MNAR0), anew in every repetition. "
        "scImpute needs counts. Not run: MICE and StepMix's mixtures, which are slow on so many "
        "features.\n\n" + markdown(header, rows)
    )


EXPERIMENT = Experiment(
    "beyond_real",
    "Beyond the paper: two real tables, method by method",
    5,
    settings,
    compute,
    draw,
    compare,
)
