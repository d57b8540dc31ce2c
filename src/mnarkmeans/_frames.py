"""Give a table back in the kind it came in."""

from __future__ import annotations

import sys

import numpy as np


def like_input(values: np.ndarray, like):
    """``values`` (n, p) as a frame with the index and columns of ``like``, if that is one."""
    pandas = sys.modules.get("pandas")
    if pandas is not None and isinstance(like, pandas.DataFrame):
        return pandas.DataFrame(values, index=like.index, columns=like.columns)
    polars = sys.modules.get("polars")
    if polars is not None and isinstance(like, polars.DataFrame):
        return polars.DataFrame(values, schema=like.columns)
    return values
