"""Other methods to compare with: `fit_predict`, `labels_`, `cluster_centers_` in data units.

_baseline    the class behind all of them
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
from functools import partial
from typing import Any

from .._kmeans import MNARKMeans
from ._baseline import Baseline
from ._direct import fwpd_kmeans, regularised_kpod, stepmix_clusters
from ._imputation import FILLS, imputed_kmeans, pca_kmeans
from ._scimpute import scimpute_kmeans

__all__ = ["BASELINES", "Baseline"]


def _make(n_clusters: int, random_state: Any = None, kind: Any = Baseline, **settings: Any) -> Any:
    return kind(n_clusters, random_state=random_state, **settings)


BASELINES: dict[str, Callable[..., Any]] = {
    **{name: partial(_make, method=partial(imputed_kmeans, name)) for name in FILLS},
    "pca": partial(_make, method=pca_kmeans, max_iter=300),
    # k-POD (Chi, Chi and Baraniuk 2016): the loss over observed entries only.
    "kpod": partial(_make, kind=MNARKMeans, lam=0.0, n_init=100, max_iter=100),
    "rkpod": partial(_make, method=regularised_kpod),
    "fwpd": partial(_make, method=fwpd_kmeans),
    "scimpute": partial(_make, method=scimpute_kmeans),
    "gmm": partial(_make, method=stepmix_clusters, n_init=5, max_iter=1000),
    "gmm_mask": partial(
        _make, method=partial(stepmix_clusters, mask=True), n_init=5, max_iter=1000
    ),
}
