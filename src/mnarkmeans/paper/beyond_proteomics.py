"""Beyond the paper (d): log2 intensities around 25, lost below a detection limit.

A protein's level is N(25, 2), a tenth of the proteins differ between the groups by N(0, 1), a
measurement adds N(0, 1); it is lost when it falls below the limit, blurred by N(0, 0.5), or at
random (2 or 20 % of all). The limit is set so that the share wanted falls below it.
"""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
from sklearn.cluster import KMeans

from .._kmeans import MNARKMeans
from .._validation import MissingDataWarning
from ..baselines import BASELINES
from ..metrics import clustering_error_rate
from ._drawing import new_figure, save
from ._experiment import Experiment, Frame, Row, Setting
from ._ours import by_default
from ._shared import markdown, mean_sd, median_lam, seed_of

TITLES = {
    "kmeans": "k-means, full data",
    "zero": "zero",
    "mean": "mean",
    "min": "minimum (down-shift)",
    "knn": "KNN",
    "kpod": "k-POD",
    "auto": 'lam="auto", reference="min"',
    "cv": 'MNARKMeansCV, reference="min"',
    "auto0": 'lam="auto", reference=0',
}


def settings(quick: bool) -> list[Setting]:
    n, p = (45, 60) if quick else (90, 300)
    shares = (0.3,) if quick else (0.1, 0.3, 0.5)
    return [
        {"n": n, "p": p, "k": 3, "censored": censored, "random": random}
        for random in (0.02, 0.2)
        for censored in shares
    ]


def intensities(setting: Setting, rng: np.random.Generator):
    """The table with gaps, without them, and the groups; proteins never seen are left out."""
    n, p, k = setting["n"], setting["p"], setting["k"]
    group = rng.integers(k, size=n)
    level = rng.normal(25, 2, size=p)
    shift = rng.normal(0, 1, size=(k, p)) * (rng.random(p) < 0.1)
    complete = level + shift[group] + rng.normal(0, 1, size=(n, p))
    blurred = complete + rng.normal(0, 0.5, size=(n, p))
    lost = blurred < np.quantile(blurred, setting["censored"])
    lost |= rng.random((n, p)) < setting["random"]
    seen = (~lost).sum(axis=0) >= 3
    return np.where(lost, np.nan, complete)[:, seen], complete[:, seen], group


def compute(setting: Setting, rng: np.random.Generator) -> list[Row]:
    X, complete, group = intensities(setting, rng)
    k = setting["k"]
    full = KMeans(k, n_init=100, random_state=seed_of(rng)).fit(complete)
    found = {"kmeans": (full.labels_, np.nan)}
    for name in ("zero", "mean", "knn", "kpod"):
        found[name] = BASELINES[name](k, random_state=seed_of(rng)).fit_predict(X), np.nan
    shifted = MNARKMeans(k, lam=1.0, reference="min", n_init=100, random_state=seed_of(rng))
    found["min"] = shifted.fit_predict(X), 1.0
    for name, ours in by_default(X, k, seed_of(rng), reference="min").items():
        found[name] = ours.labels, ours.lam
    with warnings.catch_warnings():  # the wrong reference is what is to be shown
        warnings.simplefilter("ignore", MissingDataWarning)
        plain = by_default(X, k, seed_of(rng), names=("auto",))["auto"]
    found["auto0"] = plain.labels, plain.lam
    return [
        {"method": name, "cer": clustering_error_rate(group, labels), "lam": lam}
        for name, (labels, lam) in found.items()
    ]


def draw(table: Frame, folder: Path) -> None:
    groups = list(table.groupby(["random", "censored"]))
    columns = table.censored.nunique()
    figure, axes = new_figure(len(groups) // columns, columns, height=2.8, sharey=True, sharex=True)
    places = range(len(TITLES))
    for axis, ((random, censored), panel) in zip(axes.ravel(), groups, strict=True):
        scores = panel.groupby("method").cer
        mean, spread = scores.mean()[list(TITLES)], scores.std()[list(TITLES)]
        axis.errorbar(mean, places, xerr=spread, fmt="o", color="black", capsize=2)
        axis.set_yticks(places, TITLES.values())
        axis.set_title(f"{censored:.0%} below the limit, {random:.0%} at random", fontsize=9)
    axes[0, 0].invert_yaxis()
    for axis in axes[-1]:
        axis.set_xlabel("CER")
    save(figure, folder, "beyond_proteomics")


def compare(table: Frame) -> str:
    rows = []
    for method, title in TITLES.items():
        groups = table[table.method == method].groupby(["random", "censored"])
        cells = []
        for _, panel in groups:
            lam = median_lam(panel.lam)
            cells.append(f"{mean_sd(panel.cer)}{', lam ' + lam if lam else ''}")
        rows.append([title, *cells])
    header = [
        f"{censored:.0%} below, {random:.0%} random"
        for random, censored in table.groupby(["random", "censored"]).groups
    ]
    return (
        "Filling gaps with the feature's minimum is what this field does by default; it is right "
        "for values below the limit and wrong for values lost at random. CER, mean (sd), and the "
        "median lam.\n\n" + markdown(["method", *header], rows)
    )


EXPERIMENT = Experiment(
    "beyond_proteomics",
    "Beyond the paper: intensities lost below a detection limit",
    30,
    settings,
    compute,
    draw,
    compare,
)
