"""The rivals, all with the same face: `fit_predict`, `labels_`, centres in data units.

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

from mnarkmeans._estimators.kmeans import MNARKMeans
from mnarkmeans.baselines._fwpd import FWPDKMeans
from mnarkmeans.baselines._imputed import ImputedKMeans, PCAKMeans
from mnarkmeans.baselines._rkpod import RegularizedKPOD
from mnarkmeans.baselines._scimpute import ScImputeKMeans
from mnarkmeans.baselines._stepmix import StepMixClusters

__all__ = [
    "BASELINES",
    "FWPDKMeans",
    "ImputedKMeans",
    "PCAKMeans",
    "RegularizedKPOD",
    "ScImputeKMeans",
    "StepMixClusters",
]


def _imputed(n_clusters: int, random_state: Any = None, *, imputation: str) -> ImputedKMeans:
    return ImputedKMeans(n_clusters, imputation=imputation, random_state=random_state)


def _kpod(n_clusters: int, random_state: Any = None) -> MNARKMeans:
    """k-POD (Chi, Chi and Baraniuk 2016): the loss over observed entries only, lam = 0."""
    return MNARKMeans(n_clusters, lam=0.0, n_init=100, max_iter=100, random_state=random_state)


def _fwpd(n_clusters: int, random_state: Any = None) -> FWPDKMeans:
    return FWPDKMeans(n_clusters, random_state=random_state)


def _scimpute(n_clusters: int, random_state: Any = None) -> ScImputeKMeans:
    return ScImputeKMeans(n_clusters, random_state=random_state)


def _stepmix(n_clusters: int, random_state: Any = None, *, mask: bool) -> StepMixClusters:
    return StepMixClusters(n_clusters, mask=mask, random_state=random_state)


def _rkpod(n_clusters: int, random_state: Any = None) -> RegularizedKPOD:
    return RegularizedKPOD(n_clusters, random_state=random_state)


def _pca(n_clusters: int, random_state: Any = None) -> PCAKMeans:
    return PCAKMeans(n_clusters, random_state=random_state)


BASELINES: dict[str, Callable[..., Any]] = {
    "zero": partial(_imputed, imputation="zero"),
    "mean": partial(_imputed, imputation="mean"),
    "knn": partial(_imputed, imputation="knn"),
    "mice": partial(_imputed, imputation="mice"),
    "kpod": _kpod,
    "fwpd": _fwpd,
    "scimpute": _scimpute,
    "qrilc": partial(_imputed, imputation="qrilc"),
    "minprob": partial(_imputed, imputation="minprob"),
    "rkpod": _rkpod,
    "pca": _pca,
    "gmm": partial(_stepmix, mask=False),
    "gmm_mask": partial(_stepmix, mask=True),
}
