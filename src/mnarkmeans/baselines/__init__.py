"""Other methods to compare with: `fit_predict`, `labels_`, `cluster_centers_` in data units.

_imputation  missing values filled first, then k-means
_direct      clustering of the observed values: regularised k-POD, FWPD, Gaussian mixtures
_scimpute    scImpute, for dropouts of single cells

`BASELINES` maps a name to a function of (n_clusters, random_state) that makes one (k-POD is
`MNARKMeans` with ``lam=0``):

>>> from mnarkmeans.baselines import BASELINES
>>> " ".join(sorted(BASELINES))
'fwpd gmm gmm_mask knn kpod mean mice minprob pca qrilc rkpod scimpute zero'

`gmm` and `gmm_mask` need StepMix (`pip install "mnarkmeans[rivals]"`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.utils import check_random_state

from .._kmeans import MNARKMeans
from .._validation import check_count, check_enough_rows, check_table, observe
from ._direct import fwpd_kmeans, regularised_kpod, stepmix_clusters
from ._imputation import FILLS, imputed_kmeans, pca_kmeans
from ._scimpute import scimpute_kmeans

__all__ = ["BASELINES", "Baseline"]


@dataclass(repr=False, eq=False)
class Baseline(ClusterMixin, BaseEstimator):
    """A method to compare with, as `BASELINES` makes it.

    Parameters
    ----------
    n_clusters : int
    random_state : int, RandomState or None
    method : callable
        Clusters a table with NaN where values are missing: ``method(X, baseline, seed)`` returns
        the attributes below by name.
    n_init, max_iter : int
        Starts and iterations.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
    cluster_centers_ : ndarray of shape (n_clusters, n_features), in data units
    inertia_, n_iter_ : of methods that have a loss and iterations
    imputed_ : ndarray of shape (n_samples, n_features), of methods that impute
    probabilities_ : ndarray of shape (n_samples, n_clusters), of mixtures

    Examples
    --------
    >>> import numpy as np
    >>> from mnarkmeans.baselines import BASELINES
    >>> X = np.array([[0.0, 0.1], [0.2, np.nan], [5.0, 5.1], [np.nan, 5.0]])
    >>> labels = BASELINES["mean"](2, random_state=0).fit_predict(X)
    >>> bool(labels[0] == labels[1]), bool(labels[0] == labels[2])
    (True, False)
    """

    n_clusters: int = 8
    random_state: Any = None
    _: KW_ONLY
    method: Callable[[np.ndarray, Baseline, int], dict[str, Any]]
    n_init: int = 100
    max_iter: int = 100

    def fit(self, X: Any, y: Any = None) -> Self:
        """Cluster `X`, whose missing values are NaN (not stored, if sparse)."""
        check_count("n_clusters", self.n_clusters)
        observed = observe(check_table(self, X))
        check_enough_rows(observed.summary, self.n_clusters)
        filled, gaps = observed.filled_and_gaps()
        table = np.where(gaps, np.nan, filled).astype(float)
        seed = check_random_state(self.random_state).randint(2**31 - 1)
        for name, value in self.method(table, self, seed).items():
            setattr(self, name, value)
        return self


def _kpod(n_clusters: int, random_state: Any = None) -> MNARKMeans:
    """k-POD (Chi, Chi and Baraniuk 2016): the loss over observed entries only."""
    return MNARKMeans(n_clusters, lam=0.0, n_init=100, max_iter=100, random_state=random_state)


mixture = partial(Baseline, n_init=5, max_iter=1000)
BASELINES: dict[str, Callable[..., Any]] = {
    **{name: partial(Baseline, method=partial(imputed_kmeans, name)) for name in FILLS},
    "pca": partial(Baseline, method=pca_kmeans, max_iter=300),
    "kpod": _kpod,
    "rkpod": partial(Baseline, method=regularised_kpod),
    "fwpd": partial(Baseline, method=fwpd_kmeans),
    "scimpute": partial(Baseline, method=scimpute_kmeans),
    "gmm": partial(mixture, method=stepmix_clusters),
    "gmm_mask": partial(mixture, method=partial(stepmix_clusters, mask=True)),
}
