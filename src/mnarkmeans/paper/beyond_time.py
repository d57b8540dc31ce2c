"""Beyond the paper (e): processor time of every method on the same data, one thread."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from .._kmeans import MNARKMeans
from .._selection import MNARKMeansCV
from ..baselines import BASELINES
from . import _procedure
from ._drawing import new_figure, save
from ._experiment import Experiment, Frame, Row, Setting
from ._shared import CANDIDATES_WIDE, gaussian_data, markdown, seed_of

TITLES = {
    "zero": "zero + k-means, 100 starts",
    "mean": "mean + k-means, 100 starts",
    "knn": "KNN + k-means, 100 starts",
    "mice": "MICE + k-means, 100 starts",
    "fwpd": "FWPD, 100 starts",
    "scimpute": "scImpute + k-means, 100 starts",
    "kpod": "k-POD, 100 starts",
    "fixed": "MNARKMeans, lam given, 100 starts",
    "auto": 'MNARKMeans, lam="auto"',
    "cv": "MNARKMeansCV",
    "paper": "the paper's choice of lam and fit",
}


def settings(quick: bool) -> list[Setting]:
    sizes = [(90, 10)] if quick else [(300, 50), (2000, 50)]
    return [{"n": n, "p": p, "k": 3, "mechanism": "mnar0", "missing": 0.3} for n, p in sizes]


def jobs(X: np.ndarray, k: int, rng: np.random.Generator) -> dict[str, Callable[[], Any]]:
    """Every method as something to call; scImpute gets counts of the same shape and gaps."""
    seed = seed_of(rng)
    counts = np.round(np.abs(X) * 100)
    ours: dict[str, Any] = {"random_state": seed, "n_jobs": 1}

    def rival(name: str) -> Callable[[], Any]:
        table = counts if name == "scimpute" else X
        return lambda: BASELINES[name](k, random_state=seed).fit(table)

    def paper() -> None:
        lam = _procedure.choose_lam(X, k, CANDIDATES_WIDE, rng).lam
        _procedure.fit(X, k, lam, rng)

    rivals = [name for name in BASELINES if name in TITLES]
    return {name: rival(name) for name in rivals} | {
        "fixed": lambda: MNARKMeans(k, lam=1.0, n_init=100, **ours).fit(X),
        "auto": lambda: MNARKMeans(k, lam="auto", **ours).fit(X),
        "cv": lambda: MNARKMeansCV(k, **ours).fit(X),
        "paper": paper,
    }


def compute(setting: Setting, rng: np.random.Generator) -> list[Row]:
    X, k = gaussian_data(setting, rng).data, setting["k"]
    for job in jobs(X[:60, :5], k, rng).values():
        job()  # imported before the clock starts
    rows = []
    for name, job in jobs(X, k, rng).items():
        began = time.process_time()
        job()
        rows.append({"method": name, "seconds": time.process_time() - began})
    return rows


def draw(table: Frame, folder: Path) -> None:
    sizes = list(table.groupby(["n", "p"]).groups)
    figure, axes = new_figure(1, len(sizes), width=4.2, height=3.6, sharey=True)
    for axis, (n, p) in zip(axes[0], sizes, strict=True):
        panel = table[(table.n == n) & (table.p == p)].groupby("method").seconds.mean()
        axis.barh(range(len(TITLES)), panel[list(TITLES)], color="steelblue")
        axis.set_yticks(range(len(TITLES)), TITLES.values())
        axis.set_xscale("log")
        axis.set_xlabel("seconds")
        axis.set_title(f"{n} x {p}")
    axes[0, 0].invert_yaxis()
    save(figure, folder, "beyond_time")


def compare(table: Frame) -> str:
    means = table.groupby(["method", "n", "p"]).seconds.mean().unstack(["n", "p"])
    header = [f"{n} x {p}" for n, p in means.columns]
    rows = [[title, *means.loc[name]] for name, title in TITLES.items()]
    return "Mean seconds of processor time, one thread, k = 3, 30 % missing.\n\n" + markdown(
        ["method", *header], rows
    )


EXPERIMENT = Experiment(
    "beyond_time",
    "Beyond the paper: time of every method",
    5,
    settings,
    compute,
    draw,
    compare,
    alone=True,
)
