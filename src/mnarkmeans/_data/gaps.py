"""Which entries of a table are gaps: those that are NaN, and those that equal the code of a gap.

    observed(x)  =  not isnan(x)  and  x != missing

(``Dense::is_gap`` in ``src/core/rows.h`` is the same for the core.)
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy import sparse


def code_in(dtype: np.dtype, missing: float) -> float:
    """The code of a gap as it reads in the precision of a table; NaN if there is none."""
    return float(dtype.type(missing))


def seen_in(values: np.ndarray, missing: float) -> np.ndarray:
    """Where values are observed."""
    seen = ~np.isnan(values)
    if not math.isnan(missing):
        seen &= values != missing
    return seen


def with_nan(X: Any, missing: float) -> Any:
    """An array or sparse matrix with NaN in every gap that has an entry; X itself if it is so."""
    missing = code_in(X.dtype, missing)
    if math.isnan(missing):
        return X
    if isinstance(X, np.ndarray):
        return np.where(seen_in(X, missing), X, X.dtype.type(np.nan))
    X = X.tocsr(copy=True)
    X.data = with_nan(X.data, missing)
    return X


def values_with_nan(X: Any, missing_values: Any = np.nan) -> Any:
    """An array, frame or sparse matrix as floats with NaN in the gaps; None codes no gap.

    For what describes a table; what fits one goes through the door (`validation`).
    """
    to_numpy = getattr(X, "to_numpy", None)
    values = X if sparse.issparse(X) else np.asarray(to_numpy() if to_numpy is not None else X)
    if values.dtype != np.float32:  # in which the code of a gap is another number
        values = values.astype(float, copy=False)
    values = with_nan(values, np.nan if missing_values is None else missing_values)
    return values.astype(float, copy=False)
