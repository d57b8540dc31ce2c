"""Designs, scores and words that several experiments share."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.cluster import KMeans
from sklearn.metrics import confusion_matrix
from sklearn.utils import Bunch

from ..datasets import make_gaussian_clusters
from ..metrics import center_mse, clustering_error_rate

# Parameter of each mechanism for the missing shares the paper names.
STRENGTHS = {
    "mnar0": {0.1: 50.0, 0.3: 5.0, 0.5: 1.5},
    "mnar1": {0.1: 15.0, 0.3: 1.5, 0.5: 0.1},
    "mnar2": {0.1: 0.1, 0.3: 0.3, 0.5: 0.5},
}
CANDIDATES_SMALL = [0.01, *np.round(np.arange(0.2, 2.01, 0.2), 1).tolist()]
CANDIDATES_WIDE = [0.1, *np.arange(2.0, 20.1, 2.0).tolist()]

LABELS = {
    "kmeans": "k-means, full data",
    "zero": "zero",
    "mean": "mean",
    "mice": "MICE",
    "knn": "KNN",
    "kpod": "k-POD",
    "fwpd": "FWPD",
    "scimpute": "scImpute",
    "proposed": "proposed",
    "auto": 'lam="auto"',
    "cv": "CV",
    "cv_grid": "CV, paper's lams",
    "oracle": "best lam by CER",
}
COLORS = {
    "kmeans": "black",
    "zero": "tab:brown",
    "mean": "purple",
    "mice": "green",
    "knn": "orange",
    "kpod": "blue",
    "fwpd": "gray",
    "scimpute": "teal",
    "proposed": "red",
    "auto": "deeppink",
    "cv": "goldenrod",
    "cv_grid": "darkgoldenrod",
    "oracle": "gray",
}


def nine_settings(**fixed: Any) -> list[dict[str, Any]]:
    """Three mechanisms x 10, 30, 50 % missing."""
    return [
        {**fixed, "mechanism": mechanism, "missing": missing}
        for mechanism, strengths in STRENGTHS.items()
        for missing in strengths
    ]


def gaussian_data(setting: dict[str, Any], rng: np.random.Generator) -> Bunch:
    """Clusters of side 3 (or `side`) in the first two features, gaps by the setting's mechanism."""
    strength = setting.get("strength")
    if strength is None:
        strength = STRENGTHS[setting["mechanism"]][setting["missing"]]
    return make_gaussian_clusters(
        setting["n"],
        setting["p"],
        setting["k"],
        separation=setting.get("side", 3.0),
        mechanism=setting.get("mechanism", "mnar0"),
        strength=strength,
        random_state=rng,
    )


def seed_of(rng: np.random.Generator) -> int:
    return int(rng.integers(2**31 - 1))


def full_kmeans(data: Bunch, k: int, rng: np.random.Generator, n_init: int = 100) -> KMeans:
    """k-means on the rows as they were before anything went missing."""
    return KMeans(k, n_init=n_init, max_iter=100, random_state=seed_of(rng)).fit(data.complete)


def scores(data: Bunch, labels: np.ndarray, centers: np.ndarray) -> dict[str, float]:
    return {
        "cer": clustering_error_rate(data.target, labels),
        "mse": center_mse(data.centers, np.nan_to_num(centers)),
    }


def matched(labels_true: np.ndarray, labels_pred: np.ndarray) -> np.ndarray:
    """`labels_pred` renamed so that as many rows as possible agree with `labels_true`."""
    counts = confusion_matrix(labels_true, labels_pred)
    true, found = linear_sum_assignment(-counts)
    rename = np.empty(len(counts), dtype=int)
    rename[found] = true
    return rename[labels_pred]


def markdown(header: Iterable[Any], rows: Iterable[Iterable[Any]]) -> str:
    """A Markdown table; numbers with three decimals."""

    def cell(value: Any) -> str:
        return f"{value:.3f}" if isinstance(value, float | np.floating) else str(value)

    lines = [list(header)]
    lines.append(["---"] * len(lines[0]))
    lines.extend([cell(value) for value in row] for row in rows)
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines) + "\n"


def mean_sd(values: Any) -> str:
    return f"{values.mean():.3f} ({values.std(ddof=1) if len(values) > 1 else 0.0:.3f})"


def median_lam(values: Any) -> str:
    """The median in a cell, empty for methods without a lam."""
    return "" if values.isna().all() else f"{values.median():.3g}"
