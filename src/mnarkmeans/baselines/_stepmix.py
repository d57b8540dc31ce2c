"""Gaussian mixtures for data with missing values, by StepMix (the extra `rivals`).

gmm       normal clusters over the observed entries; missing values are taken as missing at random
gmm_mask  the same, and every cluster misses a feature at a rate of its own: the 0/1 pattern of
          missing values as further binary columns
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .._io import require
from ._imputed import Baseline


class StepMixClusters(Baseline):
    """StepMix's diagonal Gaussian mixture with missing values, 5 starts.

    ``probabilities_`` has the posterior probabilities; centres are observed means weighted by them.
    """

    mask = False

    def _cluster(self, X: np.ndarray, rng: Any) -> tuple[np.ndarray, np.ndarray]:
        stepmix = require("stepmix", "rivals")
        p = X.shape[1]
        parts: dict[str, Any] = {"values": {"model": "gaussian_diag_nan", "n_columns": p}}
        table = X
        if self.mask:
            parts["mask"] = {"model": "binary", "n_columns": p}
            table = np.hstack([X, np.isnan(X).astype(np.float64)])
        model = stepmix.StepMix(
            n_components=self.n_clusters, measurement=parts, n_init=self.n_init,
            max_iter=self.max_iter, verbose=0, progress_bar=0,
            random_state=rng.randint(2**31 - 1),
        )  # fmt: skip
        model.fit(table)
        self.probabilities_ = np.asarray(model.predict_proba(table))
        shares = self.probabilities_.T
        centers = (shares @ np.nan_to_num(X)) / np.maximum(shares @ ~np.isnan(X), 1e-12)
        return self.probabilities_.argmax(axis=1), centers


class StepMixMaskClusters(StepMixClusters):
    """The same with the pattern of missing values."""

    mask = True
