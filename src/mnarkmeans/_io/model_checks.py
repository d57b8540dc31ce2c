"""Every field of a model file is looked at before it is used; a ValueError names the field.

A file can be whole and its checksum right, and its numbers nonsense all the same: edited by a
script, or by somebody who means harm.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np

from .._data.validation import check_missing_values
from .._estimators.kmeans import MNARKMeans

MOST = 2**31 - 1  # of anything that is counted


def checked_names(names: Any) -> list[str]:
    """Names of the features: words, each once."""
    if not isinstance(names, list) or not names or not all(isinstance(n, str) for n in names):
        raise ValueError(f"feature_names must be a list of words, found {names!r:.40}")
    repeated = [name for name, times in Counter(names).items() if times > 1]
    if repeated:
        raise ValueError(f"feature_names has {repeated[0]!r:.40} more than once")
    return names


def checked_model(kind: Any, params: Any, fitted: Any, p: int) -> MNARKMeans:
    """A fitted estimator from its parameters and results, for p features."""
    if kind != "MNARKMeans":
        raise ValueError(f"estimator must be 'MNARKMeans', found {kind!r:.40}")
    for name, found in (("params", params), ("fitted", fitted)):
        if not isinstance(found, dict):
            raise ValueError(f"{name} must be an object, found {found!r:.40}")
    estimator: MNARKMeans = with_parameters(MNARKMeans, params, p)
    if not isinstance(estimator.init, str):
        _centers("params/init", estimator.init, p)
    for name, check in FITTED.items():
        if name not in fitted:
            raise ValueError(f"fitted lacks {name}")
        setattr(estimator, name, check(name, fitted[name], p))
    k = len(estimator.cluster_centers_)
    if estimator.n_clusters != k:
        raise ValueError(f"n_clusters is {estimator.n_clusters}, but cluster_centers_ has {k} rows")
    estimator.n_features_in_ = p
    return estimator


COUNTS = ("n_clusters", "n_components", "n_init", "max_iter", "random_state", "n_jobs", "verbose")


def with_parameters(kind: type, params: dict[str, Any], p: int) -> Any:
    """An estimator of this kind that is not fitted yet, for p features."""
    known = kind().get_params(deep=False)
    unknown = sorted(set(params) - set(known))
    if unknown:
        raise ValueError(f"params has the unknown parameter {unknown[0]!r:.40}")
    for name in COUNTS:
        _check_whole(f"params/{name}", params.get(name))
    for name in ("lam", "reference", "init"):
        if not isinstance(params.get(name, ""), (str, int, float, np.ndarray)):
            raise ValueError(f"params/{name} must be a word, a number or an array")
    estimator = kind(**params)
    try:
        estimator._check_parameters()
        check_missing_values(estimator.missing_values)
    except (TypeError, ValueError) as error:
        raise ValueError(f"params: {str(error).rstrip('.')}") from error
    if not isinstance(estimator.reference, str):
        _per_feature("params/reference", estimator.reference, p)
    return estimator


def _check_whole(name: str, value: Any) -> None:
    if value is not None and (not isinstance(value, int) or abs(value) > 2 * MOST + 1):
        raise ValueError(f"{name} must be a whole number that is not huge, found {value!r:.40}")


def _centers(name: str, value: Any, p: int) -> np.ndarray:
    value = _numbers(name, value, 2)
    if value.shape[0] < 1 or value.shape[1] != p:
        raise ValueError(f"{name} has the shape {value.shape} for {p} columns")
    return value


def _per_feature(name: str, value: Any, p: int) -> Any:
    """A number, or one for each feature."""
    if not isinstance(value, np.ndarray):
        return _number(name, value)
    if value.ndim == 0:
        return _number(name, value.item())
    value = _numbers(name, value, 1)
    if len(value) != p:
        raise ValueError(f"{name} has {len(value)} numbers for {p} columns")
    return value


def _penalty(name: str, value: Any, p: int) -> Any:
    value = _per_feature(name, value, p)
    if np.min(value) < 0:
        raise ValueError(f"{name} must not be negative, found {np.min(value):g}")
    return value


def _reference(name: str, value: Any, p: int) -> Any:
    value = _per_feature(name, value, p)
    return np.asarray(value) if np.ndim(value) else np.full(p, value)


def _losses(name: str, value: Any, p: int) -> np.ndarray:
    return _numbers(name, value, 1)


def _loss(name: str, value: Any, p: int) -> float:
    number = _number(name, value)
    if number < 0:
        raise ValueError(f"{name} must not be negative, found {number:g}")
    return number


def _count(name: str, value: Any, p: int) -> int:
    if type(value) is not int or not 0 <= value <= MOST:
        raise ValueError(f"{name} must be a whole number from 0 to {MOST}, found {value!r:.40}")
    return value


def _number(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise ValueError(f"{name} must be a finite number, found {value!r:.40}")
    return float(value)


def _numbers(name: str, value: Any, dimensions: int) -> np.ndarray:
    if not isinstance(value, np.ndarray) or value.dtype.kind != "f" or value.ndim != dimensions:
        raise ValueError(f"{name} must be a {dimensions}-dimensional array of numbers")
    if not np.isfinite(value).all():
        raise ValueError(f"{name} has entries that are not finite numbers")
    return value


FITTED: dict[str, Callable[[str, Any, int], Any]] = {
    "cluster_centers_": _centers,
    "reference_": _reference,
    "lam_": _penalty,
    "loss_path_": _losses,
    "start_losses_": _losses,
    "inertia_": _loss,
    "n_iter_": _count,
}
