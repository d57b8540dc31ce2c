"""Gaussian mixtures that know gaps, by StepMix (the extra `rivals`).

gmm       normal clusters over the observed entries: gaps say nothing
gmm_mask  the same, and every cluster loses a feature at a rate of its own: the 0/1 pattern of gaps
          as further binary columns
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.utils import check_random_state

from .._io import require
from ._table import with_gaps


class StepMixClusters(ClusterMixin, BaseEstimator):
    """StepMix's diagonal Gaussian mixture with gaps.

    Parameters
    ----------
    n_clusters : int
    mask : bool
        Whether the pattern of gaps is part of the model.
    n_init, max_iter : int
    random_state : int, RandomState or None

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
    probabilities_ : ndarray of shape (n_samples, n_clusters)
    cluster_centers_ : ndarray of shape (n_clusters, n_features), observed means by probability

    Examples
    --------
    >>> from mnarkmeans.baselines import StepMixClusters
    >>> StepMixClusters(2, mask=True).fit_predict(X)  # doctest: +SKIP
    """

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        mask: bool = False,
        n_init: int = 5,
        max_iter: int = 1000,
        random_state: Any = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.mask = mask
        self.n_init = n_init
        self.max_iter = max_iter
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> StepMixClusters:
        """Fit by StepMix's own EM."""
        stepmix = require("stepmix", "rivals")
        X = with_gaps(X)
        p = X.shape[1]
        parts: dict[str, Any] = {"values": {"model": "gaussian_diag_nan", "n_columns": p}}
        table = X
        if self.mask:
            parts["mask"] = {"model": "binary", "n_columns": p}
            table = np.hstack([X, np.isnan(X).astype(np.float64)])
        model = stepmix.StepMix(
            n_components=self.n_clusters, measurement=parts, n_init=self.n_init,
            max_iter=self.max_iter, verbose=0, progress_bar=0,
            random_state=check_random_state(self.random_state).randint(2**31 - 1),
        )  # fmt: skip
        model.fit(table)
        self.probabilities_ = np.asarray(model.predict_proba(table))
        self.labels_ = self.probabilities_.argmax(axis=1)
        seen = ~np.isnan(X)
        shares = self.probabilities_.T
        self.cluster_centers_ = (shares @ np.nan_to_num(X)) / np.maximum(shares @ seen, 1e-12)
        self.n_features_in_ = p
        return self
