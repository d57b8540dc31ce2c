"""The rivals, all with the same face: `fit_predict`, `labels_`, centres in data units.

_imputed   gaps filled first, then k-means; k-means on principal components
_left      fillings for values below a detection limit: QRILC, MinProb
_mice      filling by chained equations
_rkpod     k-POD that shrinks features which separate nothing
_fwpd      k-means with a distance that charges for gaps
_scimpute  scImpute, for dropouts of single cells
_stepmix   Gaussian mixtures, with or without the pattern of gaps
_table     the table as all of them see it

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
from ._imputed import ImputedKMeans, PCAKMeans
from ._rkpod import RegularizedKPOD
from ._scimpute import ScImputeKMeans
from ._stepmix import StepMixClusters

__all__ = [
    "BASELINES",
    "FWPDKMeans",
    "ImputedKMeans",
    "PCAKMeans",
    "RegularizedKPOD",
    "ScImputeKMeans",
    "StepMixClusters",
]


def _make(kind: type, n_clusters: int, random_state: Any = None, **settings: Any) -> Any:
    return kind(n_clusters, random_state=random_state, **settings)


BASELINES: dict[str, Callable[..., Any]] = {
    "zero": partial(_make, ImputedKMeans, imputation="zero"),
    "mean": partial(_make, ImputedKMeans, imputation="mean"),
    "knn": partial(_make, ImputedKMeans, imputation="knn"),
    "mice": partial(_make, ImputedKMeans, imputation="mice"),
    # k-POD (Chi, Chi and Baraniuk 2016): the loss over observed entries only.
    "kpod": partial(_make, MNARKMeans, lam=0.0, n_init=100, max_iter=100),
    "fwpd": partial(_make, FWPDKMeans),
    "scimpute": partial(_make, ScImputeKMeans),
    "qrilc": partial(_make, ImputedKMeans, imputation="qrilc"),
    "minprob": partial(_make, ImputedKMeans, imputation="minprob"),
    "rkpod": partial(_make, RegularizedKPOD),
    "pca": partial(_make, PCAKMeans),
    "gmm": partial(_make, StepMixClusters, mask=False),
    "gmm_mask": partial(_make, StepMixClusters, mask=True),
}
