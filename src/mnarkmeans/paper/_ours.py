"""The package with its defaults, as a user would run it, for the experiments beyond the paper."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np

from .._kmeans import MNARKMeans
from .._selection import MNARKMeansCV, SelectionWarning

NAMES = ("auto", "cv")


class Found(NamedTuple):
    labels: np.ndarray
    centers: np.ndarray
    lam: float


def by_default(
    X: np.ndarray,
    k: int,
    seed: int,
    *,
    reference: Any = 0.0,
    lams: Any = "auto",
    names: tuple[str, ...] = NAMES,
) -> dict[str, Found]:
    """lam by the likelihood ("auto") and by MNARKMeansCV ("cv"), everything else left alone."""
    common = {"reference": reference, "random_state": seed, "n_jobs": 1}
    models = {
        "auto": lambda: MNARKMeans(k, lam="auto", **common),
        "cv": lambda: MNARKMeansCV(k, lams=lams, **common),
    }
    found = {}
    for name in names:
        with warnings.catch_warnings():
            # The paper's candidates may end where the choice falls; that is what is compared.
            warnings.simplefilter("ignore", SelectionWarning)
            model = models[name]().fit(X)
        found[name] = Found(model.labels_, model.cluster_centers_, float(np.mean(model.lam_)))
    return found
