"""Table 2: how far the final loss per row spreads over 100 starts."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from . import _procedure
from ._runner import Experiment, Row, Setting
from ._shared import draw_table, gaussian_data, markdown, nine_settings, published

PUBLISHED = published("table2", "mechanism", "missing")
SCORES = ["sd", "range", "quartiles", "decrease"]
NAMES = ["sd", "max - min", "3rd - 1st quartile", "decrease from first loss"]


def settings(quick: bool) -> list[Setting]:
    if quick:
        return [{"n": 90, "p": 20, "k": 3, "mechanism": "mnar0", "missing": 0.3}]
    return nine_settings(n=300, p=50, k=3)


def compute(setting: Setting, rng: np.random.Generator) -> list[Row]:
    data = gaussian_data(setting, rng)
    lam = PUBLISHED.lam[setting["mechanism"], setting["missing"]]
    found = _procedure.fit(data.data, setting["k"], lam, rng)
    losses = found.start_losses_ / setting["n"]
    first, third = np.quantile(losses, [0.25, 0.75])
    return [
        {
            "lam": lam,
            "sd": losses.std(ddof=1),
            "range": losses.max() - losses.min(),
            "quartiles": third - first,
            "decrease": (found.loss_path_[0] - found.loss_path_[-1]) / setting["n"],
        }
    ]


def draw(table: pd.DataFrame, folder: Path) -> None:
    groups = table.groupby(["mechanism", "missing"])[SCORES].mean()
    cells = [[f"{value:.3f}" for value in row] for row in groups.to_numpy()]
    names = [f"{mechanism.upper()} {missing:.0%}" for mechanism, missing in groups.index]
    draw_table(cells, NAMES, names, folder, "table2")


def compare(table: pd.DataFrame) -> str:
    rows, near = [], 0
    for (mechanism, missing), ours in (
        table.groupby(["mechanism", "missing"])[SCORES].mean().iterrows()
    ):
        theirs = PUBLISHED.loc[(mechanism, missing)]
        ratio = ours["sd"] / theirs["sd"]
        near += 0.5 <= ratio <= 2
        rows.append(
            [mechanism.upper(), f"{missing:.0%}", f"{theirs['lam']:g}"]
            + [f"{ours[s]:.3f} / {theirs[s]:.3f}" for s in SCORES]
            + [f"{ratio:.2f}"]
        )
    return (
        "Loss per row over 100 starts, mean over the repetitions, ours / paper. The sd is within "
        f"a factor of 2 of the published one in {near} of {len(rows)} cells.\n\n"
        + markdown(["mechanism", "missing", "lam", *NAMES, "ratio of sd"], rows)
    )


EXPERIMENT = Experiment(
    "table2",
    "Table 2: spread of the final loss over starts",
    30,
    settings,
    compute,
    draw,
    compare,
)
