"""Beyond the paper (b): Table 3 with our default choices of lam beside the paper's rule."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ..metrics import clustering_error_rate
from . import _procedure, table3
from ._drawing import draw_table
from ._experiment import Experiment, Frame, Row, Setting
from ._ours import by_default
from ._shared import mean_sd, seed_of
from .beyond_choice import METHODS, NAMES, compare_choices


def compute(setting: Setting, rng: np.random.Generator) -> list[Row]:
    X, _, target = table3.holed_lymphoma(setting, rng)
    lam = _procedure.choose_lam(X, 3, table3.CANDIDATES, rng).lam
    starts = _procedure.draw_starts(X, 3, _procedure.STARTS, rng)
    path = {c: _procedure.fit(X, 3, c, rng, starts=starts).labels for c in table3.CANDIDATES}
    best = min(path, key=lambda c: clustering_error_rate(target, path[c]))
    found = {"proposed": (path[lam], lam), "oracle": (path[best], best)}
    for name, ours in by_default(X, 3, seed_of(rng)).items():
        found[name] = ours.labels, ours.lam
    grid = by_default(X, 3, seed_of(rng), lams=table3.CANDIDATES, names=("cv",))["cv"]
    found["cv_grid"] = grid.labels, grid.lam
    return [
        {"method": name, "cer": clustering_error_rate(target, labels), "lam": used}
        for name, (labels, used) in found.items()
    ]


def draw(table: Frame, folder: Path) -> None:
    groups = list(table.groupby(["mechanism", "missing"]))
    cells = [[mean_sd(panel[panel.method == m].cer) for m in METHODS] for _, panel in groups]
    names = [f"{mechanism.upper()} {missing:.0%}" for (mechanism, missing), _ in groups]
    draw_table(cells, [NAMES[m] for m in METHODS], names, folder, "beyond_lymphoma")


def compare(table: Frame) -> str:
    return compare_choices(table, ["mechanism", "missing"], METHODS, NAMES)


EXPERIMENT = Experiment(
    "beyond_lymphoma",
    "Beyond the paper: our choices of lam on the data of Table 3",
    10,
    table3.settings,
    compute,
    draw,
    compare,
)
