"""Which entries of a table are gaps: those that are NaN, and those that equal the code of a gap.

    observed(x)  =  not isnan(x)  and  x != missing

(``Dense::is_gap`` in ``src/core/rows.h`` is the same for the core.)
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np


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
