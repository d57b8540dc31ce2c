"""Regularised k-POD: features that separate nothing are shrunk to the mean.

    sum_{observed} (x_ij - mu_{z_i} j)^2 + n lam sum_j w_j |mu_.j|

with standardised features, |mu_.j| the length of the j-th column of centres and w_j one over what
k-POD found for it. Gaps are filled with the centre of the row (k-POD), and the penalty is majorised
by a parabola, which shrinks a mean by N_l / (N_l + lam_j) with lam_j = n lam w_j / (2 |mu_.j|).

arXiv 2507.11884.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .._kmeans import MNARKMeans
from ._imputed import Baseline


class RegularizedKPOD(Baseline):
    """k-POD with a group penalty on each feature's centres.

    Examples
    --------
    >>> import numpy as np
    >>> from mnarkmeans.baselines import RegularizedKPOD
    >>> nan = np.nan
    >>> X = [[5.0, nan], [5.2, 0.9], [4.8, nan], [nan, 5.1], [0.8, 4.9], [nan, 5.0]]
    >>> labels = RegularizedKPOD(2, n_init=5, random_state=0).fit_predict(X)
    >>> bool(labels[0] == labels[1]), bool(labels[1] == labels[4])
    (True, False)
    """

    lam = 0.1  # strength of the penalty; 0 is k-POD

    def _cluster(self, X: np.ndarray, rng: Any) -> tuple[np.ndarray, np.ndarray]:
        """From k-POD's centres on, until the labels repeat."""
        gaps = np.isnan(X)
        seen = np.maximum((~gaps).sum(axis=0), 1)
        mean = np.nan_to_num(X).sum(axis=0) / seen
        sd = np.sqrt(np.where(gaps, 0.0, (X - mean) ** 2).sum(axis=0) / seen)
        sd[sd == 0] = 1.0
        Z = (X - mean) / sd
        start = MNARKMeans(self.n_clusters, lam=0.0, n_init=self.n_init, random_state=rng).fit(Z)
        M, labels = start.cluster_centers_, start.labels_
        weight = 1.0 / np.maximum(np.linalg.norm(M, axis=0), 1e-8)
        for n_iter in range(1, self.max_iter + 1):
            filled = np.where(gaps, M[labels], Z)
            sizes = np.bincount(labels, minlength=len(M))[:, None]
            sums = np.zeros_like(M)
            np.add.at(sums, labels, filled)
            length = np.maximum(np.linalg.norm(M, axis=0), 1e-8)
            pull = len(Z) * self.lam * weight / (2.0 * length)
            M = np.where(sizes > 0, sums / np.maximum(sizes + pull, 1e-12), M)
            cost = [np.where(gaps, 0.0, (Z - center) ** 2).sum(axis=1) for center in M]
            new = np.argmin(cost, axis=0)
            if n_iter > 10 and np.array_equal(new, labels):
                break
            labels = new
        self.n_iter_ = n_iter
        return labels, mean + sd * M
