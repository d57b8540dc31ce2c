"""User input is validated once, here: every accepted input becomes an ``Observed``, and what looks
wrong (codes such as -999, raw counts, a far reference) is warned about.

Its results can be relied on: the table is a two-dimensional float32 or float64 array or
a canonical CSR matrix, its observed entries are finite, at least one entry is observed, weights are
finite and not negative, the reference has one finite number per feature. Nothing checks again.
Dense float input is used in place, never copied and never written to.
"""

from __future__ import annotations

import math
import sys
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import date
from numbers import Integral, Real
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.validation import _check_sample_weight, check_array, validate_data

from . import _core as core
from ._observed import Observed, Summary, is_observed, summary_of, with_nan, without_mask

# --- from user input to Observed ------------------------------------------------------------------


def observe(
    X: Any, *, estimator: Any = None, fits: bool = True, reset: bool | None = None,
    missing_values: float = math.nan, reference: Any = 0.0, sample_weight: Any = None,
    threads: int = 1,
) -> Observed:  # fmt: skip
    """The whole way: a table as users have it becomes an ``Observed``.

    ``estimator``: whose features X must have, unless it is to be fitted (``fits``): then its user
    is warned of what looks wrong. New rows to predict may be missing altogether. ``reset``: whether
    the estimator learns the features; by default where it is fitted.
    """
    X = check_table(estimator, X, reset=fits if reset is None else reset)
    weights = check_weights(sample_weight, X)
    X, missing, weights, summary = summarise(X, missing_values, weights, threads)
    point = check_summary(X, summary, reference, estimator, fits=fits)
    return Observed(X, missing, weights, summary, point, summary.means(point))


# --- tables ---------------------------------------------------------------------------------------


def check_table(estimator: Any, X: Any, *, reset: bool = True, **options: Any) -> Any:
    """A 2-d float array (not copied if it was one) or a CSR matrix, names and width checked.

    Without an estimator (None) there are none to check; ``options`` are those of `check_array`.
    """
    if type(X).__name__ == "LazyFrame":
        raise TypeError("X is a lazy frame, which holds no values. Call .collect() on it first.")
    X = without_mask(X)
    _refuse_dates(X)
    options = {
        "dtype": [np.float64, np.float32], "accept_sparse": "csr", "ensure_all_finite": False,
    } | options  # fmt: skip
    try:
        with np.errstate(invalid="ignore"):  # R's NA is a NaN of which processors complain
            if estimator is None:
                return check_array(X, **options)
            return validate_data(estimator, X, reset=reset, **options)
    except (TypeError, ValueError) as error:
        text = _first_text(X)
        if text is None:
            raise
        raise ValueError(
            f"The table must hold numbers only: {text}. Encode text columns as numbers or leave "
            "them out; mark missing values as NaN (or None), or pass their code as missing_values."
        ) from error


def values_with_nan(X: Any, missing_values: Any = np.nan) -> Any:
    """A user's table as float64, with NaN where values are missing."""
    values = with_nan(check_table(None, X), check_missing_values(missing_values))
    return values.astype(float, copy=False)


def _refuse_dates(X: Any) -> None:
    """NumPy makes numbers of dates, but nobody means to cluster nanoseconds."""
    kinds = getattr(X, "dtypes", [getattr(X, "dtype", None)])
    for j, kind in enumerate(kinds):
        if getattr(kind, "kind", None) in ("m", "M") or str(kind).startswith(("Date", "Duration")):
            name = X.columns[j] if hasattr(X, "columns") else j
            raise ValueError(
                f"Column {name!r} holds dates or times. Turn them into numbers (days since some "
                "date, say) or leave the column out."
            )


def _first_text(X: Any) -> str | None:
    """The first column of text or dates, and its first entry of that kind."""
    if sparse.issparse(X) or (values := np.asarray(X, dtype=object)).ndim != 2:
        return None
    for name, column in zip(getattr(X, "columns", range(values.shape[1])), values.T, strict=True):
        try:
            column.astype(float)
        except (TypeError, ValueError):
            for entry in column:
                if isinstance(entry, (str, date)):
                    return f"column {name!r} holds {str(entry)[:40]!r}"
    return None


def like_input(values: np.ndarray, like: Any) -> Any:
    """``values`` (n, p) as a frame of pandas or polars with the index, columns and float types of
    ``like``; the array itself if that is no frame.

    Columns of whole numbers become floats: missing values are filled with means.
    """
    pandas, polars = sys.modules.get("pandas"), sys.modules.get("polars")
    if pandas is not None and isinstance(like, pandas.DataFrame):
        is_float = pandas.api.types.is_float_dtype
        kinds = {name: kind for name, kind in like.dtypes.items() if is_float(kind)}
        filled = pandas.DataFrame(values, index=like.index, columns=like.columns)
        return filled.astype(kinds) if like.columns.is_unique else filled
    if polars is not None and isinstance(like, polars.DataFrame):
        kinds = {name: kind for name, kind in like.schema.items() if kind.is_float()}
        return polars.DataFrame(values, schema=like.columns, orient="row").cast(kinds)
    return values


def check_weights(sample_weight: Any, X: Any) -> np.ndarray:
    """(n,) float64, finite and not negative."""
    if sample_weight is None:
        return np.ones(X.shape[0])
    return _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)


# --- sparse matrices ------------------------------------------------------------------------------

MAX_FEATURES = 2**31 - 1  # of a sparse table, whose indices have 32 bits


def _canonical(X):
    """A CSR matrix with sorted indices of 32 bits, each once; copied only if it has to be."""
    if X.shape[1] > MAX_FEATURES:
        raise ValueError(f"A sparse table may have {MAX_FEATURES} features; got {X.shape[1]}.")
    try:
        # Made from its parts, since a matrix remembers whether it is sorted even if that changed.
        X = sparse.csr_array((X.data, X.indices, X.indptr), shape=X.shape)
        X.check_format(full_check=True)
    except ValueError as error:
        raise ValueError(f"X is not a valid CSR matrix: {error}.") from None
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return X


def _without_gaps(X, missing: float):
    """A CSR matrix without the stored entries that are NaN or ``missing``."""
    keep = is_observed(X.data, missing)
    counts = np.concatenate([[0], np.cumsum(keep)])
    return sparse.csr_array((X.data[keep], X.indices[keep], counts[X.indptr]), shape=X.shape)


# --- the range of numbers -------------------------------------------------------------------------

LARGEST_LOSS = 1e300
LARGEST_LAM = 1e100
LARGEST_WEIGHT = 1e50
SMALLEST_REACH = 1e-140


def check_scale(summary: Summary, lam, *points: np.ndarray, vanishing: bool = False) -> None:
    """Refuse numbers whose loss would overflow; if ``vanishing``, also those whose squares are 0.

    ``lam``: a number or (p,); ``points``: the reference (p,), centres (..., p).
    """
    weight, p = summary.weight, len(summary.lowest)
    rows = [np.reshape(point, (-1, p)) for point in points]
    lowest = np.vstack([summary.lowest, *rows]).min(axis=0)
    highest = np.vstack([summary.highest, *rows]).max(axis=0)
    with np.errstate(over="ignore", invalid="ignore"):
        reach = highest - lowest
        penalised = np.maximum(lam, 1.0) * reach**2
    if weight > LARGEST_WEIGHT:
        raise ValueError(
            f"sample_weight sums to {weight:g}, more than the largest sum allowed, "
            f"{LARGEST_WEIGHT:g}. Divide the weights by a constant."
        )
    if not penalised.sum() <= LARGEST_LOSS / max(weight, 1.0):
        j = int(np.argmax(np.where(np.isnan(penalised), np.inf, penalised)))
        penalty = float(np.broadcast_to(lam, reach.shape)[j])
        smaller = "Use a smaller lam or rescale" if penalty > 1.0 else "Rescale"
        raise ValueError(
            f"The values of column {j} are too large: they span {reach[j]:g} (with the reference "
            f"and the centres), and with lam={penalty:g} the loss overflows. {smaller} the data."
        )
    if vanishing and 0.0 < reach.max() < SMALLEST_REACH:
        raise ValueError(
            f"The values are too small: they span at most {reach.max():g} (with the "
            "reference and the centres), and squares of that underflow. Rescale the data."
        )


# --- one pass over a table ------------------------------------------------------------------------


def summarise(
    X: Any, missing_values: Any, weights: np.ndarray, threads: int
) -> tuple[Any, float, np.ndarray, Summary]:
    """The table (a CSR matrix in canonical form, without stored gaps), the code of its gaps, its
    weights (0 for rows without an observed value), and its summary."""
    missing = float(X.dtype.type(check_missing_values(missing_values)))

    def first_pass(X):
        return core.first_pass(core.Table(X, missing, weights), threads)

    is_sparse = sparse.issparse(X)
    X = _canonical(X) if is_sparse and X.indices.dtype != np.int32 else X
    first = first_pass(X)
    if first.malformed >= 0:
        X = _canonical(X)
        first = first_pass(X)
    if first.infinite >= 0:
        _refuse_infinite(X, first.infinite)
    coded = not math.isnan(missing)
    if is_sparse and (np.isnan(first.sums).any() or (coded and missing in X.data)):
        X = _without_gaps(X, missing)
        first = first_pass(X)
    return X, missing, *summary_of(X, missing, weights, threads, first)


def check_summary(
    X: Any, summary: Summary, reference: Any, estimator: Any = None, *, fits: bool = True
) -> np.ndarray:
    """The reference (p,). Tables with nothing to cluster or too large values are refused.

    ``fits``: the table is one to fit to; the estimator's user is warned of what looks wrong in
    rows X.
    """
    if fits and not summary.observed.any():
        raise ValueError(
            f"All {summary.n_rows} x {len(summary.counts)} values are missing; there is nothing to "
            "cluster. Check missing_values and how the table was read."
        )
    if fits and not summary.n_usable:
        raise ValueError(
            "sample_weight is zero for every row that has an observed value; at least one row must "
            "count."
        )
    if not np.isfinite(summary.sums).all():
        raise ValueError(
            f"The values of column {int(np.flatnonzero(~np.isfinite(summary.sums))[0])} are too "
            "large: their sum overflows. Rescale the data."
        )
    names = getattr(estimator, "feature_names_in_", None)
    point = check_reference(reference, len(summary.counts), summary.minimum, names)
    check_scale(summary, 1.0, point, vanishing=fits)
    if fits and estimator is not None:
        given = None if isinstance(reference, str) else point
        for message in _data_warnings(X, summary, estimator, given):
            warn(message, MissingDataWarning)
    return point


def check_enough_rows(summary: Summary, n_clusters: int, name="n_clusters") -> None:
    if summary.n_usable < n_clusters:
        raise ValueError(
            f"n_samples={summary.n_usable} usable rows (with a weight and an observed value, of "
            f"{summary.n_rows}) should be >= {name}={n_clusters}. Ask for fewer clusters."
        )


def _refuse_infinite(X, row: int):
    values = X[[row]]
    values = values if isinstance(values, np.ndarray) else values.toarray()
    column = int(np.flatnonzero(np.isinf(values[0]))[0])
    raise ValueError(
        f"Input X contains infinity: {values[0, column]} in row {row}, column {column}. "
        "Mark values that are not known as NaN, and cap or remove the others."
    )


# --- warnings -------------------------------------------------------------------------------------

# What programs write for a missing number; the last is R's NA among its whole numbers.
CODES = (-99, -999, -9999, -99999, 999, 9999, 99999, -2147483648)
MAX_CODED = 20  # features that are checked for each code
SMALL_COUNT, VERY_SKEWED = 100, 10  # counts above both 100 and 10 times their mean
ENTRIES_TO_INSPECT = 100_000  # whether all are whole numbers
FEWEST_VALUES = 10  # of a feature, for its spread to be known


class MissingDataWarning(UserWarning):
    """A table looks wrong: nothing observed, codes read as values, raw counts, a far reference."""


def warn(message: str, category: type[Warning]) -> None:
    """Warn the first caller outside this package and scikit-learn."""
    inside, frame, stacklevel = ("mnarkmeans.", "sklearn."), sys._getframe().f_back, 2
    while frame is not None and frame.f_globals.get("__name__", "").startswith(inside):
        frame, stacklevel = frame.f_back, stacklevel + 1
    warnings.warn(message, category, stacklevel=stacklevel)


def _data_warnings(
    X: Any, summary: Summary, estimator: Any, reference: np.ndarray | None
) -> Iterator[str]:
    """What looks wrong in a table to fit to; ``reference`` (p,) if it was given in numbers."""
    if summary.n_unobserved:
        label = "the centre nearest to the reference"
        if hasattr(estimator, "mechanism"):
            label = "the cluster most likely to have all values missing"
        yield (
            f"{summary.n_unobserved} row(s) have no observed value. They do not affect the "
            f"centres; their label is that of {label}."
        )
    empty = np.flatnonzero(summary.counts == 0)
    if len(empty):
        yield (
            f"{len(empty)} feature(s) have no observed value ({_listed(empty, estimator)}). "
            "Their centres are the reference."
        )
    if reference is not None:
        yield from _far_reference(summary, estimator, reference)
    for code in CODES:  # of missing values, that were taken for values
        coded = np.flatnonzero((summary.lowest == code) | (summary.highest == code))
        coded = np.array([j for j in coded[:MAX_CODED] if _is_code(X, j, code)], int)
        if len(coded):
            yield (
                f"{code} is far from all other values of {_listed(coded, estimator)}: it looks "
                f"like a code for missing values. Pass missing_values={code}, or mark them as NaN."
            )
    mean, largest = summary.sums.sum() / max(summary.counts.sum(), 1.0), summary.highest.max()
    skewed = summary.lowest.min() >= 0 and largest >= max(SMALL_COUNT, VERY_SKEWED * mean)
    if skewed and np.all(summary.sums == np.floor(summary.sums)) and _is_whole(X):
        yield (
            f"All values are whole numbers up to {largest:g}, {largest / mean:.0f} times their "
            "mean, like raw counts: the largest would dominate the clusters. Take logarithms first "
            "(np.log1p), and before that scale rows to equal totals if the totals mean nothing."
        )


def _far_reference(summary: Summary, estimator: Any, reference: np.ndarray) -> Iterator[str]:
    """A warning if the reference lies far outside the values of features with missing values."""
    if hasattr(estimator, "mechanism"):
        why = "'decay' and 'threshold' describe values missing near it, where there are none"
        instead = "another mechanism"
        uses_reference = estimator.mechanism in ("auto", "decay", "threshold")
    else:
        why, instead = "a penalty would pull their centres to where there are no values", "lam=0"
        lam = getattr(estimator, "lam", "auto")
        lam = check_lam(lam, len(reference), getattr(estimator, "feature_names_in_", None))
        uses_reference = isinstance(lam, str) or bool(np.any(lam > 0))
    checked = summary.has_gaps & (summary.observed >= FEWEST_VALUES)
    far = np.flatnonzero(checked & far_from(reference, summary.lowest, summary.highest))
    if uses_reference and len(far):
        yield (
            f"The reference lies far outside the observed values of {len(far)} of {checked.sum()} "
            f"feature(s) with missing values ({_listed(far, estimator)}): {why}. "
            "Use reference='min' if values are missing below a detection limit, reference='auto' "
            f"to choose it from the data, or {instead}."
        )


def _listed(features: np.ndarray, estimator: Any) -> str:
    """The first five features by name, or by number."""
    names = getattr(estimator, "feature_names_in_", None)
    shown = ", ".join(str(j if names is None else names[j]) for j in features[:5])
    return shown + (", ..." if len(features) > 5 else "")


def _is_code(X: Any, j: int, code: float) -> bool:
    """Whether the other values of feature j lie further from a code than from each other."""
    values = X[:, [j]].data if sparse.issparse(X) else X[:, j]
    others = values[(values != code) & ~np.isnan(values)]
    return len(others) > 0 and bool(far_from(code, others.min(), others.max()))


def _is_whole(X: Any) -> bool:
    n_rows = ENTRIES_TO_INSPECT // X.shape[1] + 1
    values = X.data[:ENTRIES_TO_INSPECT] if sparse.issparse(X) else X[:n_rows]
    return bool(np.all((values == np.floor(values)) | np.isnan(values)))


def far_from(point: Any, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """(p,) features whose values lie further from a point than they do from each other."""
    span = high - low
    return (span > 0) & (np.maximum(low - point, point - high) > span)


# --- parameters -----------------------------------------------------------------------------------


def check_count(name: str, value: Any, minimum: int = 1) -> int:
    wanted = f"{name} must be a whole number >= {minimum}; got {value!r}."
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise TypeError(wanted)
    if value < minimum:
        raise ValueError(wanted)
    return int(value)


def check_number(name: str, value: Any) -> float:
    """A finite number >= 0."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"{name} must be a number >= 0; got {value!r}.")
    if not math.isfinite(value) or value < 0:
        raise ValueError(f"{name} must be a finite number >= 0; got {value}.")
    return float(value)


def is_named(value: Any) -> bool:
    """Whether it has a number for each feature by name: a dict, or a pandas Series."""
    return isinstance(value, Mapping) or (hasattr(value, "index") and hasattr(value, "to_dict"))


def by_position(name: str, value: Any, features: Any) -> Any:
    """Numbers by name as an array (p,) in the order of the features; anything else as it is."""
    return _per_feature(name, value, len(features), features) if is_named(value) else value


def _per_feature(name: str, value: Any, n_features: int, features: Any) -> np.ndarray:
    """() or (p,) float64, finite: one number, or one per feature (also by name).

    Features without names are called 0, 1, ...
    """
    if is_named(value):
        keys, names = list(value.keys()), list(range(n_features) if features is None else features)
        for wrong, problem in (
            (set(keys) - set(names), "is not a column of X"), (set(names) - set(keys), "has none"),
            ({key for key, times in Counter(keys).items() if times > 1}, "appears twice"),
        ):  # fmt: skip
            if wrong:
                raise ValueError(
                    f"{name} must have one number for each column of X: "
                    f"{min(wrong, key=str)!r} {problem}."
                )
        value = [value[key] for key in names]
    try:
        numbers = np.array(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise TypeError(f"{name} must be a number or one per feature; got {value!r}.") from None
    if numbers.shape not in ((), (n_features,)):
        raise ValueError(
            f"{name} must be one number or one per feature (n_features={n_features}); "
            f"got an array of shape {numbers.shape}."
        )
    if not np.isfinite(numbers).all():
        raise ValueError(f"{name} must be finite; got {value!r}.")
    return numbers


def check_lam(lam: Any, n_features: int, features: Any = None) -> float | np.ndarray | str:
    """A number >= 0, one per feature (also by name), or "auto"."""
    if isinstance(lam, str):
        return check_choice("lam", lam, ("auto",), ", a number >= 0 or an array of them")
    if np.ndim(lam) == 0 and not is_named(lam):
        check_number("lam", lam)
    numbers = _per_feature("lam", lam, n_features, features)
    if (numbers < 0).any():
        raise ValueError(f"lam must be >= 0 for every feature; got {lam!r}.")
    if numbers.max() > LARGEST_LAM:
        raise ValueError(
            f"lam may be {LARGEST_LAM:g} at most; got {numbers.max():g}. Much smaller values "
            "already put a centre at the reference wherever its cluster has a missing value."
        )
    return numbers if numbers.ndim else float(numbers)


def check_choice(name: str, value: Any, choices: tuple[str, ...], otherwise: str = "") -> str:
    """One of a few strings; ``otherwise`` ends the list of what would have been accepted."""
    if not isinstance(value, str) or value not in choices:
        wanted = ", ".join(repr(choice) for choice in choices)
        raise ValueError(f"{name} must be {wanted}{otherwise}; got {value!r}.")
    return value


def check_missing_values(missing_values: Any) -> float:
    """NaN or a finite number."""
    if isinstance(missing_values, bool) or not isinstance(missing_values, Real):
        raise TypeError(f"missing_values must be nan or a number; got {missing_values!r}.")
    if math.isinf(missing_values):
        raise ValueError(f"missing_values must be nan or a finite number; got {missing_values}.")
    return float(missing_values)


def is_auto(value) -> bool:
    """Whether a parameter is "auto"; it may be an array, which equals no word."""
    return isinstance(value, str) and value == "auto"


def check_reference(
    reference, n_features: int, minimum: np.ndarray, features: Any = None
) -> np.ndarray:
    """(p,) float64 from a number, one per feature (also by name), or "min" (the smallest values).

    "auto" is 0 here: the choice needs fits (``_choice``).
    """
    if not isinstance(reference, str):
        return np.full(n_features, _per_feature("reference", reference, n_features, features))
    otherwise = ", a number or an array of n_features"
    check_choice("reference", reference, ("min", "auto"), otherwise)
    return np.where(np.isfinite(minimum) & (reference == "min"), minimum, 0.0)


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
        wanted = f"({number}={n_clusters}, n_features={n_features})"
        raise ValueError(f"{name} must have shape {wanted}; got {centers.shape}.")
    if not np.isfinite(centers).all():
        raise ValueError(f"{name} must be finite: starting centres may not have missing values.")
    return centers
