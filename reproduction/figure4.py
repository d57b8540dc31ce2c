"""Figure 4: time of the choice of lam and of the fit, against n and against p.

The package's own choice by the paper's criterion and its own fit with 100 starts; processor time of
one thread, so that other work on the machine does not count.
"""

from __future__ import annotations

import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd

from mnarkmeans import MNARKMeans, MNARKMeansCV, SelectionWarning

from ._runner import Experiment, Row, Setting
from ._shared import CANDIDATES_WIDE, gaussian_data, markdown, new_figure, save, seed_of

PARTS = {"choice_seconds": "choice of lam", "fit_seconds": "fit, 100 starts"}


def settings(quick: bool) -> list[Setting]:
    ns, ps = ([90, 180], [10, 20]) if quick else ([300, 600, 900, 1200, 1500], [10, 20, 30, 40, 50])
    common = {"k": 3, "strength": 1.0}
    return [{"varied": "n", "n": n, "p": 10, **common} for n in ns] + [
        {"varied": "p", "n": ns[0], "p": p, **common} for p in ps
    ]


def compute(setting: Setting, rng: np.random.Generator) -> list[Row]:
    data, k = gaussian_data(setting, rng), setting["k"]
    seed = {"random_state": seed_of(rng), "n_jobs": 1}
    began = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SelectionWarning)  # the candidates are the paper's
        choice = MNARKMeansCV(k, lams=CANDIDATES_WIDE, criterion="paper", **seed).fit(data.data)
    chosen = time.process_time()
    MNARKMeans(k, lam=choice.lam_, n_init=100, **seed).fit(data.data)
    return [
        {
            "lam": choice.lam_,
            "choice_seconds": chosen - began,
            "fit_seconds": time.process_time() - chosen,
        }
    ]


def draw(table: pd.DataFrame, folder: Path) -> None:
    figure, axes = new_figure(2, 2, sharex="col")
    for column, varied in enumerate(("n", "p")):
        panel = table[table.varied == varied].groupby(varied)
        for row, (part, title) in enumerate(PARTS.items()):
            axis = axes[row, column]
            axis.errorbar(
                panel[part].mean().index,
                panel[part].mean(),
                panel[part].std(),
                marker="o",
                color="black",
                capsize=3,
            )
            axis.set_ylim(bottom=0)
            axis.set_ylabel(f"{title} (s)")
        axes[1, column].set_xlabel(varied)
    save(figure, folder, "figure4")


def compare(table: pd.DataFrame) -> str:
    words, rows = [], []
    for varied in ("n", "p"):
        panel = table[table.varied == varied].groupby(varied)[list(PARTS)].mean()
        for value, row in panel.iterrows():
            rows.append([f"{varied} = {value}", *row])
        size = panel.index.to_numpy(dtype=float)
        for part, title in PARTS.items():
            r2 = np.corrcoef(size, panel[part])[0, 1] ** 2
            growth = np.polyfit(np.log(size), np.log(panel[part]), 1)[0]
            words.append(
                f"{title} against {varied}: R^2 of a straight line {r2:.3f}, grows as "
                f"{varied}^{growth:.2f}"
            )
    return (
        "The paper finds linear growth (a fit of up to about a second in its R/C++ code). "
        "Here:\n\n- "
        + "\n- ".join(words)
        + "\n\nMean seconds of processor time, one thread:\n\n"
        + markdown(["size", *PARTS.values()], rows)
    )


EXPERIMENT = Experiment(
    "figure4",
    "Figure 4: computing time",
    30,
    settings,
    compute,
    draw,
    compare,
    alone=True,
)
