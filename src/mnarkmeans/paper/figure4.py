"""Figure 4: time of the choice of lam and of the fit, against n and against p.

Processor time of one thread, so that other work on the machine does not count.
"""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np

from . import _procedure
from ._drawing import new_figure, save
from ._experiment import Experiment, Frame, Row, Setting
from ._shared import CANDIDATES_WIDE, gaussian_data, markdown

PARTS = {"choice_seconds": "choice of lam", "fit_seconds": "fit, 100 starts"}


def settings(quick: bool) -> list[Setting]:
    ns, ps = ([90, 180], [10, 20]) if quick else ([300, 600, 900, 1200, 1500], [10, 20, 30, 40, 50])
    common = {"k": 3, "strength": 1.0}
    return [{"varied": "n", "n": n, "p": 10, **common} for n in ns] + [
        {"varied": "p", "n": ns[0], "p": p, **common} for p in ps
    ]


def compute(setting: Setting, rng: np.random.Generator) -> list[Row]:
    data, k = gaussian_data(setting, rng), setting["k"]
    _procedure.fit(data.data[:20], k, 1.0, rng, n_starts=2)  # warmed up before the clock starts
    began = time.process_time()
    lam = _procedure.choose_lam(data.data, k, CANDIDATES_WIDE, rng).lam
    chosen = time.process_time()
    _procedure.fit(data.data, k, lam, rng)
    return [
        {
            "lam": lam,
            "choice_seconds": chosen - began,
            "fit_seconds": time.process_time() - chosen,
        }
    ]


def draw(table: Frame, folder: Path) -> None:
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


def compare(table: Frame) -> str:
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
