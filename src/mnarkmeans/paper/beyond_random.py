"""Beyond the paper (c): values missing at random (MCAR, MAR), where lam should go towards 0."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ..baselines import BASELINES
from ..datasets import make_gaussian_clusters
from . import _procedure
from ._experiment import Experiment, Frame, Row, Setting
from ._ours import NAMES, by_default
from ._shared import (
    CANDIDATES_SMALL,
    LABELS,
    full_kmeans,
    markdown,
    scores,
    seed_of,
)
from .figure3 import draw_boxes

RIVALS = ["mean", "mice", "knn", "kpod"]
METHODS = ["kmeans", *RIVALS, "proposed", *NAMES]


def settings(quick: bool) -> list[Setting]:
    common = {"n": 120 if quick else 300, "p": 6, "k": 3, "side": 4.0}
    return [
        {**common, "mechanism": mechanism, "missing": missing}
        for mechanism in ("mcar", "mar", "mnar0")
        for missing in ((0.3,) if quick else (0.1, 0.3, 0.5))
    ]


def compute(setting: Setting, rng: np.random.Generator) -> list[Row]:
    k = setting["k"]
    data = make_gaussian_clusters(
        setting["n"],
        setting["p"],
        # the polygon stands away from 0, so that a gap filled with 0 is wrong for every cluster
        _polygon(k, setting["p"], setting["side"]) + 1.0,
        mechanism=setting["mechanism"],
        fraction=setting["missing"],
        random_state=rng,
    )
    full = full_kmeans(data, k, rng)
    rows = [{"method": "kmeans", **scores(data, full.labels_, full.cluster_centers_)}]
    for name in RIVALS:
        model = BASELINES[name](k, random_state=seed_of(rng)).fit(data.data)
        rows.append({"method": name, **scores(data, model.labels_, model.cluster_centers_)})
    lam = _procedure.choose_lam(data.data, k, CANDIDATES_SMALL, rng).lam
    proposed = _procedure.fit(data.data, k, lam, rng)
    rows.append({"method": "proposed", **scores(data, proposed.labels, proposed.centers)})
    rows[-1]["lam"] = lam
    for name, ours in by_default(data.data, k, seed_of(rng)).items():
        rows.append({"method": name, **scores(data, ours.labels, ours.centers), "lam": ours.lam})
    return rows


def _polygon(k: int, p: int, side: float) -> np.ndarray:
    return make_gaussian_clusters(1, p, k, separation=side, mechanism=None).centers


def draw(table: Frame, folder: Path) -> None:
    draw_boxes(table, folder, "beyond_random", METHODS)


def compare(table: Frame) -> str:
    parts = []
    for score in ("cer", "mse"):
        means = table.groupby(["mechanism", "missing", "method"])[score].mean().unstack()
        rows = []
        for (mechanism, missing), row in means.iterrows():
            best = row[METHODS[1:]].idxmin()
            rows.append([mechanism.upper(), f"{missing:.0%}"])
            rows[-1] += [f"**{row[m]:.3f}**" if m == best else f"{row[m]:.3f}" for m in METHODS]
        parts.append(
            f"## {score.upper()}\n\n"
            + markdown(["mechanism", "missing", *(LABELS[m] for m in METHODS)], rows)
        )
    chosen = table.groupby(["mechanism", "missing", "method"]).lam.median().unstack()
    rows = [
        [mechanism.upper(), f"{missing:.0%}", *(row[m] for m in ("proposed", *NAMES))]
        for (mechanism, missing), row in chosen.iterrows()
    ]
    parts.append(
        "## Median lam\n\n"
        + markdown(["mechanism", "missing", "the paper's rule", *(LABELS[m] for m in NAMES)], rows)
    )
    return (
        "Gaps at random carry no news about the value, so penalising the centre is a mistake there "
        "and lam should be small. Bold: the best of the methods that see gaps.\n\n"
        + "\n".join(parts)
    )


EXPERIMENT = Experiment(
    "beyond_random",
    "Beyond the paper: values missing at random",
    30,
    settings,
    compute,
    draw,
    compare,
)
