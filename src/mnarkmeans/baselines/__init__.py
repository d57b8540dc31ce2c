"""Other methods, all alike: `fit_predict`, `labels_`, `cluster_centers_` in data units.

_imputed   missing values filled first, then k-means (zero, mean, knn, mice, qrilc, minprob, pca)
_mice      the sampler of chained equations
_rkpod     k-POD that shrinks features which separate nothing
_fwpd      k-means with a distance that charges for missing values
_scimpute  scImpute, for dropouts of single cells
_stepmix   Gaussian mixtures, with or without the pattern of missing values

`BASELINES` maps a name to a function of (n_clusters, random_state) that makes one:

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
from ._fwpd import FWPDKMeans
from ._imputed import (
    Baseline,
    KNNKMeans,
    MeanKMeans,
    MICEKMeans,
    MinProbKMeans,
    PCAKMeans,
    QRILCKMeans,
    ZeroKMeans,
)
from ._rkpod import RegularizedKPOD
from ._scimpute import ScImputeKMeans
from ._stepmix import StepMixClusters, StepMixMaskClusters

__all__ = ["BASELINES", "Baseline"]


def _make(kind: type, n_clusters: int, random_state: Any = None, **settings: Any) -> Any:
    return kind(n_clusters, random_state=random_state, **settings)


BASELINES: dict[str, Callable[..., Any]] = {
    "zero": partial(_make, ZeroKMeans),
    "mean": partial(_make, MeanKMeans),
    "knn": partial(_make, KNNKMeans),
    "mice": partial(_make, MICEKMeans),
    # k-POD (Chi, Chi and Baraniuk 2016): the loss over observed entries only.
    "kpod": partial(_make, MNARKMeans, lam=0.0, n_init=100, max_iter=100),
    "fwpd": partial(_make, FWPDKMeans),
    "scimpute": partial(_make, ScImputeKMeans),
    "qrilc": partial(_make, QRILCKMeans),
    "minprob": partial(_make, MinProbKMeans),
    "rkpod": partial(_make, RegularizedKPOD),
    "pca": partial(_make, PCAKMeans, max_iter=300),
    "gmm": partial(_make, StepMixClusters, n_init=5, max_iter=1000),
    "gmm_mask": partial(_make, StepMixMaskClusters, n_init=5, max_iter=1000),
}
