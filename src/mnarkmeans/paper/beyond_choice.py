"""Beyond the paper (b): Figure 3 with our default choices of lam beside the paper's rule.

The settings are Figure 3's, so the data are too.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from . import _procedure, figure3
from ._experiment import Experiment, Frame, Row, Setting
from ._ours import by_default
from ._shared import (
    CANDIDATES_WIDE,
    LABELS,
    gaussian_data,
    markdown,
    scores,
    seed_of,
)

METHODS = ["proposed", "auto", "cv", "cv_grid", "oracle"]
NAMES = {
    "proposed": "the paper's rule",
    "auto": LABELS["auto"],
    "cv": "MNARKMeansCV",
    "cv_grid": "MNARKMeansCV, paper's candidates",
    "oracle": "best candidate by CER",
}


def compute(setting: Setting, rng: np.random.Generator) -> list[Row]:
    data, k = gaussian_data(setting, rng), setting["k"]
    X = data.data
    lam = _procedure.choose_lam(X, k, CANDIDATES_WIDE, rng).lam
    starts = _procedure.draw_starts(X, k, _procedure.STARTS, rng)
    path = {c: _procedure.fit(X, k, c, rng, starts=starts) for c in CANDIDATES_WIDE}
    found = {"proposed": (path[lam].labels, path[lam].centers, lam)}
    best = min(path, key=lambda c: scores(data, path[c].labels, path[c].centers)["cer"])
    found["oracle"] = (path[best].labels, path[best].centers, best)
    found |= by_default(X, k, seed_of(rng))
    found["cv_grid"] = by_default(X, k, seed_of(rng), lams=CANDIDATES_WIDE, names=("cv",))["cv"]
    return [
        {"method": name, **scores(data, labels, centers), "lam": used}
        for name, (labels, centers, used) in found.items()
    ]


def draw(table: Frame, folder: Path) -> None:
    figure3.draw_boxes(table, folder, "beyond_choice", METHODS)


def compare(table: Frame) -> str:
    return compare_choices(table, ["k", "mechanism", "missing"], METHODS, NAMES)


def compare_choices(
    table: Frame, keys: list[str], methods: list[str], names: dict[str, str]
) -> str:
    means = table.groupby([*keys, "method"])[["cer", "lam"]].mean().unstack()
    rows = [
        [*(f"{part:.0%}" if isinstance(part, float) else str(part).upper() for part in key)]
        + [f"{row['cer'][m]:.3f} (lam {row['lam'][m]:.2g})" for m in methods]
        for key, row in means.iterrows()
    ]
    rows.append(["all", *[""] * (len(keys) - 1)] + [means["cer"][m].mean() for m in methods])
    return "Mean CER (mean lam), the same data for all.\n\n" + markdown(
        [*keys, *(names[m] for m in methods)], rows
    )


EXPERIMENT = Experiment(
    "beyond_choice",
    "Beyond the paper: our choices of lam on the data of Figure 3",
    10,
    figure3.settings,
    compute,
    draw,
    compare,
)
