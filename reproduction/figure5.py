"""Figure 5: CER and instability against lam."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from mnarkmeans.metrics import clustering_error_rate

from . import _procedure
from ._runner import Experiment, Row, Setting
from ._shared import CANDIDATES_SMALL, gaussian_data, markdown, new_figure, save

LAMS = [*CANDIDATES_SMALL, 4.0, 6.0, 8.0, 10.0]


def settings(quick: bool) -> list[Setting]:
    return [{"n": 300, "p": 2, "k": 3, "strength": 1.0}]


def compute(setting: Setting, rng: np.random.Generator) -> list[Row]:
    data, k = gaussian_data(setting, rng), setting["k"]
    starts = _procedure.draw_starts(data.data, k, _procedure.STARTS, rng)
    rows = []
    for lam in LAMS:
        found = _procedure.fit(data.data, k, lam, rng, starts=starts)
        rows.append(
            {
                "lam": lam,
                "cer": clustering_error_rate(data.target, found.labels_),
                "instability": _procedure.instability(data.data, k, lam, rng).mean(),
            }
        )
    return rows


def draw(table: pd.DataFrame, folder: Path) -> None:
    groups = table.groupby("lam")
    figure, axes = new_figure(1, 1, width=4.6, height=3.4)
    axis, places = axes[0, 0], range(len(groups))
    for score, color in (("cer", "red"), ("instability", "blue")):
        axis.errorbar(
            places,
            groups[score].mean(),
            groups[score].std(),
            color=color,
            marker="o",
            capsize=2,
            label=score.upper() if score == "cer" else score,
        )
    lams = list(groups.groups)
    axis.axvline(lams.index(1.0), color="gray", ls=":")
    axis.set_xticks(places, [f"{lam:g}" for lam in lams], rotation=60)
    axis.set_xlabel("lam")
    axis.legend()
    save(figure, folder, "figure5")


def compare(table: pd.DataFrame) -> str:
    means = table.groupby("lam")[["cer", "instability"]].mean()
    return (
        "The paper: lam = 1 has the smallest CER and the smallest instability. Here the smallest "
        f"mean CER is at lam = {means.cer.idxmin():g} ({means.cer.min():.4f}; at lam = 1 "
        f"{means.cer[1.0]:.4f}), the smallest mean instability at lam = "
        f"{means.instability.idxmin():g} ({means.instability.min():.4f}; at lam = 1 "
        f"{means.instability[1.0]:.4f}).\n\n"
        + markdown(
            ["lam", "CER", "instability"], ([f"{lam:g}", *row] for lam, row in means.iterrows())
        )
    )


EXPERIMENT = Experiment(
    "figure5", "Figure 5: the choice of lam", 30, settings, compute, draw, compare
)
