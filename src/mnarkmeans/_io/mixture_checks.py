"""The fields of a saved MNARMixture, looked at as those of MNARKMeans are (`model_checks`)."""

from __future__ import annotations

import math
from collections.abc import Callable
from operator import attrgetter
from typing import Any

import numpy as np

from .._estimators.mixture import MixtureMissingness, MNARMixture
from .._penalty.heavy import LEAST_FREEDOM, MOST_FREEDOM
from .._penalty.mechanisms import MECHANISMS, Parameter, mechanism_of
from .model_checks import _number, _numbers, _reference, with_parameters

FITTED: dict[str, Callable[[MNARMixture], Any]] = {
    "weights_": attrgetter("weights_"),
    "means_": attrgetter("means_"),
    "covariances_": attrgetter("covariances_"),
    "reference_": attrgetter("reference_"),
    "freedom": lambda mixture: mixture._state().freedom,
    "temper_": attrgetter("temper_"),
    "lower_bounds_": lambda mixture: np.array(mixture.lower_bounds_),
    "converged_": lambda mixture: bool(mixture.converged_),
    "has_gaps": attrgetter("_mechanism.has_gaps"),
    "missingness_": lambda mixture: mixture.missingness_._asdict(),
}


def fitted_mixture(estimator: MNARMixture) -> dict[str, Any]:
    """All that a fitted mixture needs to go on."""
    return {name: read(estimator) for name, read in FITTED.items()}


def checked_mixture(params: dict[str, Any], fitted: dict[str, Any], p: int) -> MNARMixture:
    """A fitted mixture from its parameters and results, for p features."""
    estimator = _with_parameters(params, p)
    lacking = [name for name in FITTED if name not in fitted]
    if lacking:
        raise ValueError(f"fitted lacks {lacking[0]}")
    k = estimator.n_components
    estimator.weights_ = _positive("weights_", _shaped("weights_", fitted["weights_"], (k,)), 0.0)
    estimator.means_ = _shaped("means_", fitted["means_"], (k, p))
    shape = (k,) if estimator.covariance_type == "spherical" else (k, p)
    estimator.covariances_ = _positive(
        "covariances_", _shaped("covariances_", fitted["covariances_"], shape)
    )
    estimator.reference_ = _reference("reference_", fitted["reference_"], p)
    freedom = _number("freedom", fitted["freedom"])
    if freedom != 0 and not LEAST_FREEDOM <= freedom <= MOST_FREEDOM:
        bounds = f"{LEAST_FREEDOM:g} to {MOST_FREEDOM:g}"
        raise ValueError(f"freedom must be 0 or {bounds}, found {freedom:g}")
    estimator.degrees_of_freedom_ = freedom if freedom > 0 else math.inf
    estimator.tails_ = "t" if freedom > 0 else "normal"
    estimator.temper_ = _number("temper_", fitted["temper_"])
    if estimator.temper_ < 0:
        raise ValueError(f"temper_ must not be negative, found {estimator.temper_:g}")
    bounds = _numbers("lower_bounds_", fitted["lower_bounds_"], 1).tolist()
    if not bounds:
        raise ValueError("lower_bounds_ must have a number for each round")
    estimator.lower_bounds_, estimator.lower_bound_ = bounds, bounds[-1]
    estimator.n_iter_ = len(bounds)
    estimator.converged_ = bool(fitted["converged_"])
    estimator.missingness_ = _missingness(fitted["missingness_"], k, p)
    estimator.mechanism_ = estimator.missingness_.mechanism
    has_gaps = fitted["has_gaps"]
    if not isinstance(has_gaps, np.ndarray) or has_gaps.dtype != bool or has_gaps.shape != (p,):
        raise ValueError(f"has_gaps must be {p} times true or false")
    estimator._mechanism = mechanism_of(
        estimator.mechanism_, estimator.missingness_.parameters, has_gaps
    )
    estimator.n_features_in_ = p
    return estimator


def _with_parameters(params: dict[str, Any], p: int) -> MNARMixture:
    for name in ("weights_init", "means_init"):
        if not isinstance(params.get(name), (type(None), np.ndarray)):
            raise ValueError(f"params/{name} must be an array")
    estimator: MNARMixture = with_parameters(MNARMixture, params, p)
    if estimator.means_init is not None:
        _shaped("params/means_init", estimator.means_init, (estimator.n_components, p))
    return estimator


def _shaped(name: str, value: Any, shape: tuple[int, ...]) -> np.ndarray:
    value = _numbers(name, value, len(shape))
    if value.shape != shape:
        raise ValueError(f"{name} has the shape {value.shape} instead of {shape}")
    return value


def _positive(name: str, value: np.ndarray, least: float = 1e-300) -> np.ndarray:
    if np.min(value) < least:
        raise ValueError(f"{name} must be positive, found {np.min(value):g}")
    return value


def _parameter(name: str, value: Any, rule: Parameter, k: int, p: int) -> Any:
    sizes = {"k": k, "p": p, "1": 1}
    shape = tuple(sizes[letter] for letter in rule.shape)
    value = _shaped(name, value, shape) if shape else _number(name, value)
    if not rule.least <= np.min(value) <= np.max(value) <= rule.most:
        kind = "a probability" if rule.most == 1.0 else "positive"
        raise ValueError(f"missingness_/{name} must be {kind}")
    return value


def _missingness(found: Any, k: int, p: int) -> MixtureMissingness:
    if not isinstance(found, dict) or set(found) != set(MixtureMissingness._fields):
        raise ValueError(f"missingness_ must have {', '.join(MixtureMissingness._fields)}")
    name = found["mechanism"]
    if name not in MECHANISMS:
        raise ValueError(f"missingness_ has the unknown mechanism {name!r:.40}")
    told, wanted = found["parameters"], MECHANISMS[name].own_parameters
    if not isinstance(told, dict) or set(told) != set(wanted):
        raise ValueError(f"missingness_ of {name} must have {', '.join(wanted)}")
    parameters = {own: _parameter(own, told[own], rule, k, p) for own, rule in wanted.items()}
    numbers = {}
    for field in ("log_likelihoods", "scores"):
        if not isinstance(found[field], dict) or set(found[field]) - set(MECHANISMS):
            raise ValueError(f"missingness_/{field} must have a number for each mechanism")
        numbers[field] = {one: _number(one, value) for one, value in found[field].items()}
    return MixtureMissingness(name, parameters, **numbers)
