"""What every rival sees: a float64 array with NaN in the gaps, and no row it cannot use."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils import check_array

from .._observed import without_mask


def with_gaps(X: Any) -> np.ndarray:
    """A float64 copy of `X` with NaN where nothing was observed (not stored, if sparse)."""
    if sp.issparse(X):
        entries = sp.coo_array(X)
        dense = np.full(X.shape, np.nan)
        dense[entries.coords] = entries.data
        X = dense
    return check_array(without_mask(X), dtype=np.float64, ensure_all_finite="allow-nan", copy=True)
