"""Tables with gaps of every kind, for the tests of MNARMixture."""

from __future__ import annotations

import numpy as np
from scipy.special import ndtr


def make(loss: str, n=200, p=3, seed=0, heavy=False) -> tuple[np.ndarray, np.ndarray]:
    """Two overlapping clusters, normal or t, that lose values in one of the five ways."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(2, size=n)
    noise = rng.standard_t(3, size=(n, p)) if heavy else rng.normal(size=(n, p))
    X = np.where(labels[:, None] == 0, -0.5, 2.0) + noise * (1 + 0.3 * labels)[:, None]
    lost = {
        "mcar": np.full(X.shape, 0.3),
        "class": np.where(labels == 0, 0.1, 0.5)[:, None] + np.zeros(p),
        "decay": 0.9 * np.exp(-2.0 * X**2),
        "threshold": (np.abs(X) < 0.5).astype(float),
        "limit": ndtr((-0.3 - X) / 0.4),
    }[loss]
    X[rng.random(X.shape) < lost] = np.nan
    some = ~np.isnan(X).all(axis=1)
    return X[some], labels[some]
