"""The door: every accepted input becomes an ``Observed``, or a clear error.

What is past this door can be relied on: the table is a two-dimensional float32 or float64 array or
a canonical CSR matrix, its observed entries are finite, at least one entry is observed, weights are
finite and not negative, the reference has one finite number per feature. Nothing behind it checks
again. Dense float input is looked at in place, never copied and never written to.
"""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.utils.validation import _check_sample_weight, validate_data

from . import first_pass
from .frames import native
from .gaps import code_in
from .observed import Observed
from .oddities import WarnFor, warn_about
from .scale import LARGEST_LAM, check_scale

ADVICE_ON_TEXT = (
    "Encode text columns as numbers or leave them out; write gaps as NaN (or None), "
    "or name their code with missing_values."
)


# --- parameters -------------------------------------------------------------------------------


def check_count(name: str, value: Any, least: int = 1) -> int:
    """A whole number >= least."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise TypeError(f"{name} must be a whole number >= {least}; got {value!r}.")
    if value < least:
        raise ValueError(f"{name} must be a whole number >= {least}; got {value}.")
    return int(value)


def check_number(name: str, value: Any, least: float = 0.0) -> float:
    """A finite number >= least."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"{name} must be a number >= {least:g}; got {value!r}.")
    if not math.isfinite(value) or value < least:
        raise ValueError(f"{name} must be a finite number >= {least:g}; got {value}.")
    return float(value)


def check_lam(lam: Any, n_features: int | None = None) -> float | np.ndarray | str:
    """A number >= 0, an array of one per feature (once their number is known), or "auto"."""
    if isinstance(lam, str):
        return check_choice("lam", lam, ("auto",), ", a number >= 0 or an array of them")
    if np.ndim(lam) == 0:
        numbers = np.asarray(check_number("lam", lam))
        _check_largest_lam(numbers)
        return float(numbers)
    try:
        numbers = np.array(lam, dtype=np.float64)
    except (TypeError, ValueError):
        raise TypeError(f"lam must be a number >= 0 or one per feature; got {lam!r}.") from None
    if not (np.isfinite(numbers).all() and (numbers >= 0).all()):
        raise ValueError(f"lam must be finite and >= 0 for every feature; got {lam!r}.")
    _check_largest_lam(numbers)
    if numbers.ndim != 1 or (n_features is not None and len(numbers) != n_features):
        wanted = "" if n_features is None else f" (n_features={n_features})"
        raise ValueError(
            f"lam must be one number or one per feature{wanted}; got shape {numbers.shape}."
        )
    return numbers


def _check_largest_lam(lam: np.ndarray) -> None:
    if lam.max(initial=0.0) > LARGEST_LAM:
        raise ValueError(
            f"lam may be {LARGEST_LAM:g} at most; got {lam.max():g}. Far smaller ones already put "
            "centres at the reference wherever their cluster has a gap."
        )


def check_choice(name: str, value: Any, choices: tuple[str, ...], otherwise: str = "") -> str:
    """One of a few strings; ``otherwise`` ends the list of what would have been accepted."""
    if not isinstance(value, str) or value not in choices:
        wanted = ", ".join(repr(choice) for choice in choices)
        raise ValueError(f"{name} must be {wanted}{otherwise}; got {value!r}.")
    return value


def check_missing_values(missing_values: Any) -> float:
    """NaN or a finite number; None is read as NaN."""
    if missing_values is None:
        return math.nan
    if isinstance(missing_values, bool) or not isinstance(missing_values, Real):
        raise TypeError(f"missing_values must be nan or a number; got {missing_values!r}.")
    if math.isinf(missing_values):
        raise ValueError(f"missing_values must be nan or a finite number; got {missing_values}.")
    return float(missing_values)


# --- tables -----------------------------------------------------------------------------------


def read_table(estimator, X, *, reset: bool):
    """A 2-d float array (not copied if it was one) or a CSR matrix, names and width checked."""
    if _is_plain(X):
        if reset:
            _set_unnamed(estimator, X.shape[1])
        if _is_unnamed(estimator, X.shape[1]):
            return X
    X = native(X)
    try:
        X = validate_data(
            estimator, X, reset=reset, dtype=[np.float64, np.float32], accept_sparse="csr",
            accept_large_sparse=True, ensure_all_finite=False, copy=False,
        )  # fmt: skip
    except ValueError as error:
        if "could not convert string" in str(error):
            raise ValueError(
                f"The table must hold numbers only: {error}. {ADVICE_ON_TEXT}"
            ) from error
        raise
    return X


def _is_plain(X: Any) -> bool:
    """An array of floats in two dimensions with something in it.

    There is nothing to check about it, and for a few rows checking takes longer than the work.
    """
    return (
        type(X) is np.ndarray
        and X.dtype in (np.float64, np.float32)
        and X.ndim == 2
        and X.size > 0
    )  # fmt: skip


def _set_unnamed(estimator: Any, n_features: int) -> None:
    if hasattr(estimator, "feature_names_in_"):
        del estimator.feature_names_in_
    estimator.n_features_in_ = n_features


def _is_unnamed(estimator: Any, n_features: int) -> bool:
    """Whether it was fitted with so many features, and they had no names."""
    fitted = getattr(estimator, "n_features_in_", -1)
    return n_features == fitted and not hasattr(estimator, "feature_names_in_")


def check_weights(sample_weight, X) -> np.ndarray:
    """(n,) float64, finite, not negative, not all 0."""
    if sample_weight is None:
        return np.ones(X.shape[0])
    weights = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
    if not weights.any():
        raise ValueError("sample_weight is 0 for every row; at least one row must count.")
    return weights


def is_auto(reference) -> bool:
    """Whether it is to be chosen from the table (it may be an array, which equals no word)."""
    return isinstance(reference, str) and reference == "auto"


def check_reference(
    reference, n_features: int, least: np.ndarray, *, allow_auto: bool = False
) -> np.ndarray:
    """(p,) float64 from a number, an array of n_features, or "min" (least observed values).

    "auto" is 0 here: the choice needs fits (``_penalty.reference``).
    """
    if isinstance(reference, str):
        words = ("min", "auto") if allow_auto else ("min",)
        check_choice("reference", reference, words, ", a number or an array of n_features")
        if is_auto(reference):
            return np.zeros(n_features)
        return np.where(np.isfinite(least), least, 0.0)
    try:
        numbers = np.asarray(reference, dtype=np.float64)
    except (TypeError, ValueError):
        raise TypeError(
            f"reference must be a number, an array of n_features={n_features} or 'min'; "
            f"got {reference!r}."
        ) from None
    if numbers.ndim > 1 or (numbers.ndim == 1 and numbers.shape[0] != n_features):
        raise ValueError(
            f"reference must be one number or one per feature (n_features={n_features}); "
            f"got an array of shape {numbers.shape}."
        )
    if not np.isfinite(numbers).all():
        raise ValueError(f"reference must be finite; got {reference!r}.")
    return np.full(n_features, numbers)


def observe(
    X, *, missing_values=math.nan, reference=0.0, sample_weight=None, threads: int = 1,
    allow_all_missing: bool = False, allow_auto: bool = False, warn_for: WarnFor | None = None,
) -> Observed:  # fmt: skip
    """Turn a table that ``read_table`` has let in into an ``Observed``.

    With ``warn_for``, rows and features that nobody observed are reported, and a reference far from
    the values if the penalty would pull centres there. New rows to predict may be missing
    altogether (``allow_all_missing``), data to fit may not.
    """
    missing = code_in(X.dtype, check_missing_values(missing_values))
    weights = check_weights(sample_weight, X)
    X, weights, found = first_pass.look_over(X, missing, weights, threads)
    first_pass.check_found(found, allow_all_missing=allow_all_missing)
    center = check_reference(reference, X.shape[1], found.least, allow_auto=allow_auto)
    check_scale(found.extent, found.weight, 1.0, center, vanishing=not allow_all_missing)
    if warn_for is not None:
        warn_about(found, warn_for, None if isinstance(reference, str) else center)
    return Observed(
        X, missing, weights, found.means(center), center, found.counts, found.has_gaps,
        found.extent,
    )  # fmt: skip


def check_loss(observed: Observed, lam, *points: np.ndarray) -> None:
    """Refuse a penalty or centres (..., p) whose loss on these data would overflow."""
    if observed.extent is not None:
        weight = float(observed.weights.sum())
        check_scale(observed.extent, weight, lam, observed.reference, *points)


def check_enough_rows(observed: Observed, n_clusters: int, name: str = "n_clusters") -> None:
    usable = int(np.count_nonzero(observed.weights))
    first_pass.check_enough_rows(usable, observed.n_rows, n_clusters, name)


def check_numbers(name: str, value) -> np.ndarray:
    """A float64 array of its own."""
    try:
        return np.array(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be an array of numbers; got {value!r:.80}.") from None


def check_init_centers(
    init, n_clusters: int, n_features: int, names: tuple[str, str] = ("init", "n_clusters")
) -> np.ndarray:
    """(k, p) float64, finite; names: of the two parameters."""
    name, number = names
    centers = check_numbers(name, init)
    if centers.shape != (n_clusters, n_features):
        raise ValueError(
            f"{name} must have shape ({number}={n_clusters}, n_features={n_features}); "
            f"got {centers.shape}."
        )
    if not np.isfinite(centers).all():
        raise ValueError(f"{name} must be finite: fill the gaps of the starting centres first.")
    return centers
