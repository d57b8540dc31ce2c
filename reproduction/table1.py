"""Table 1: iterations until the loss settles, with lam chosen as in Figure 3."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from . import _procedure
from ._runner import Experiment, Row, Setting
from ._shared import (
    CANDIDATES_WIDE,
    draw_table,
    gaussian_data,
    markdown,
    mean_sd,
    nine_settings,
    published,
)

PUBLISHED = published("table1", "mechanism", "missing")


def settings(quick: bool) -> list[Setting]:
    if quick:
        return [{"n": 90, "p": 20, "k": 3, "mechanism": "mnar0", "missing": 0.3}]
    return nine_settings(n=300, p=50, k=3)


def compute(setting: Setting, rng: np.random.Generator) -> list[Row]:
    data, k = gaussian_data(setting, rng), setting["k"]
    lam = _procedure.choose_lam(data.data, k, CANDIDATES_WIDE, rng)
    return [{"lam": lam, "n_iter": _procedure.fit(data.data, k, lam, rng).n_iter_}]


def draw(table: pd.DataFrame, folder: Path) -> None:
    mechanisms, shares = list(table.mechanism.unique()), sorted(table.missing.unique())
    cells = [
        [
            mean_sd(table[(table.mechanism == mechanism) & (table.missing == missing)].n_iter)
            for mechanism in mechanisms
        ]
        for missing in shares
    ]
    draw_table(
        cells,
        [m.upper() for m in mechanisms],
        [f"{s:.0%}" for s in shares],
        folder,
        "table1",
    )


def compare(table: pd.DataFrame) -> str:
    rows, inside = [], 0
    for (mechanism, missing), panel in table.groupby(["mechanism", "missing"]):
        mean, sd = PUBLISHED.loc[(mechanism, missing)]
        ours = panel.n_iter.mean()
        near = abs(ours - mean) <= 2 * sd
        inside += near
        rows.append(
            [
                mechanism.upper(),
                f"{missing:.0%}",
                mean_sd(panel.n_iter),
                f"{mean:.3f} ({sd:.2f})",
                f"{ours - mean:+.3f}",
                "yes" if near else "no",
                f"{panel.lam.median():g}",
            ]
        )
    return (
        f"Iterations of the best start: mean (sd). {inside} of {len(rows)} cells lie within two "
        "published sd of the published mean.\n\n"
        + markdown(
            ["mechanism", "missing", "ours", "paper", "difference", "within 2 sd", "median lam"],
            rows,
        )
    )


EXPERIMENT = Experiment(
    "table1", "Table 1: number of iterations", 30, settings, compute, draw, compare
)
