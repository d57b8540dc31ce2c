"""Table 1: iterations until the loss settles, with lam chosen as in Figure 3."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from . import _procedure
from ._drawing import draw_table
from ._experiment import Experiment, Frame, Row, Setting
from ._shared import (
    CANDIDATES_WIDE,
    gaussian_data,
    markdown,
    mean_sd,
    nine_settings,
)

PUBLISHED = {  # mean, sd
    ("mnar0", 0.1): (6.833, 4.70),
    ("mnar0", 0.3): (5.733, 2.72),
    ("mnar0", 0.5): (5.700, 1.93),
    ("mnar1", 0.1): (5.867, 2.66),
    ("mnar1", 0.3): (5.567, 2.50),
    ("mnar1", 0.5): (6.367, 1.38),
    ("mnar2", 0.1): (6.933, 3.16),
    ("mnar2", 0.3): (6.267, 1.44),
    ("mnar2", 0.5): (6.233, 1.61),
}


def settings(quick: bool) -> list[Setting]:
    if quick:
        return [{"n": 90, "p": 20, "k": 3, "mechanism": "mnar0", "missing": 0.3}]
    return nine_settings(n=300, p=50, k=3)


def compute(setting: Setting, rng: np.random.Generator) -> list[Row]:
    data, k = gaussian_data(setting, rng), setting["k"]
    lam = _procedure.choose_lam(data.data, k, CANDIDATES_WIDE, rng).lam
    return [{"lam": lam, "n_iter": _procedure.fit(data.data, k, lam, rng).n_iter}]


def draw(table: Frame, folder: Path) -> None:
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


def compare(table: Frame) -> str:
    rows, inside = [], 0
    for (mechanism, missing), panel in table.groupby(["mechanism", "missing"]):
        mean, sd = PUBLISHED[mechanism, missing]
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
