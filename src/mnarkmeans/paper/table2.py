"""Table 2: how far the final loss per row spreads over 100 starts."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from . import _procedure
from ._drawing import draw_table
from ._experiment import Experiment, Frame, Row, Setting
from ._shared import gaussian_data, markdown, nine_settings

PUBLISHED = {  # lam; sd, max - min, quartile range, decrease from the first loss
    ("mnar0", 0.1): (12.0, (0.034, 0.302, 0.002, 0.292)),
    ("mnar0", 0.3): (18.0, (0.088, 0.648, 0.001, 0.907)),
    ("mnar0", 0.5): (16.0, (0.320, 1.238, 0.154, 2.105)),
    ("mnar1", 0.1): (18.0, (0.016, 0.127, 0.002, 0.510)),
    ("mnar1", 0.3): (16.0, (0.043, 0.319, 0.001, 0.597)),
    ("mnar1", 0.5): (4.0, (0.026, 0.144, 0.001, 0.919)),
    ("mnar2", 0.1): (18.0, (0.051, 0.421, 0.001, 0.487)),
    ("mnar2", 0.3): (14.0, (0.282, 1.145, 0.300, 2.197)),
    ("mnar2", 0.5): (6.0, (0.828, 2.650, 1.191, 3.526)),
}
SCORES = ["sd", "range", "quartiles", "decrease"]
NAMES = ["sd", "max - min", "3rd - 1st quartile", "decrease from first loss"]


def settings(quick: bool) -> list[Setting]:
    if quick:
        return [{"n": 90, "p": 20, "k": 3, "mechanism": "mnar0", "missing": 0.3}]
    return nine_settings(n=300, p=50, k=3)


def compute(setting: Setting, rng: np.random.Generator) -> list[Row]:
    data = gaussian_data(setting, rng)
    lam, _ = PUBLISHED[setting["mechanism"], setting["missing"]]
    found = _procedure.fit(data.data, setting["k"], lam, rng)
    losses = found.start_losses / setting["n"]
    first, third = np.quantile(losses, [0.25, 0.75])
    return [
        {
            "lam": lam,
            "sd": losses.std(ddof=1),
            "range": losses.max() - losses.min(),
            "quartiles": third - first,
            "decrease": (found.path[0] - found.path[-1]) / setting["n"],
        }
    ]


def draw(table: Frame, folder: Path) -> None:
    groups = table.groupby(["mechanism", "missing"])[SCORES].mean()
    cells = [[f"{value:.3f}" for value in row] for row in groups.to_numpy()]
    names = [f"{mechanism.upper()} {missing:.0%}" for mechanism, missing in groups.index]
    draw_table(cells, NAMES, names, folder, "table2")


def compare(table: Frame) -> str:
    rows, near = [], 0
    for (mechanism, missing), ours in (
        table.groupby(["mechanism", "missing"])[SCORES].mean().iterrows()
    ):
        lam, published = PUBLISHED[mechanism, missing]
        near += 0.5 <= ours["sd"] / published[0] <= 2
        rows.append(
            [mechanism.upper(), f"{missing:.0%}", f"{lam:g}"]
            + [f"{ours[s]:.3f} / {p:.3f}" for s, p in zip(SCORES, published, strict=True)]
            + [f"{ours['sd'] / published[0]:.2f}"]
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
