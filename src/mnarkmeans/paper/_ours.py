"""The package with its defaults, as a user would run it, for the experiments beyond the paper."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from mnarkmeans._estimator import MNARKMeans

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
) -> dict[str, Found]:
    """lam by the likelihood ("auto") and by MNARKMeansCV ("cv"), everything else left alone."""
    from mnarkmeans._selection import MNARKMeansCV

    models = {
        "auto": MNARKMeans(k, lam="auto", reference=reference, random_state=seed, n_jobs=1),
        "cv": MNARKMeansCV(k, lams=lams, reference=reference, random_state=seed, n_jobs=1),
    }
    return {
        name: Found(model.fit(X).labels_, model.cluster_centers_, float(model.lam_))
        for name, model in models.items()
    }
