"""Frames in, the same kind of frame out; names of columns that have none.

pandas is handled by hand, because its column types say how gaps are written (NaN, NA or null);
every other frame through narwhals, which scikit-learn brings along from 1.9. Neither is imported
unless a frame of theirs can be around.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np


def native(X: Any) -> Any:
    """The frame inside a narwhals wrapper; a lazy frame is refused, anything else is left alone."""
    narwhals = _narwhals()
    if narwhals is None:
        return X
    if isinstance(X, narwhals.DataFrame):
        return X.to_native()
    if isinstance(X, narwhals.LazyFrame) or narwhals.dependencies.is_polars_lazyframe(X):
        raise TypeError(
            f"X is a lazy frame ({type(X).__module__}.{type(X).__name__}), which holds a plan and "
            "no values yet. Call .collect() on it first."
        )
    return X


def unnamed(p: int) -> list[str]:
    """V1, V2, ...: what columns are called that have no names."""
    return [f"V{j + 1}" for j in range(p)]


def like_input(values: np.ndarray, like):
    """``values`` (n, p) as a frame with the index, columns and float types of ``like``.

    Columns that held whole numbers become floats: what fills a gap is a mean. A table that is no
    frame gets the array back.
    """
    pandas = sys.modules.get("pandas")
    if pandas is not None and isinstance(like, pandas.DataFrame):
        return _like_pandas(values, like, pandas)
    narwhals = _narwhals()
    if narwhals is None:
        return values
    if isinstance(like, narwhals.DataFrame):
        return narwhals.from_native(like_input(values, like.to_native()))
    if narwhals.dependencies.is_into_dataframe(like):
        return _like_narwhals(values, narwhals.from_native(like), narwhals)
    return values


def _like_pandas(values, like, pandas):
    filled = pandas.DataFrame(values, index=like.index, columns=like.columns)
    if like.columns.is_unique:
        is_float = pandas.api.types.is_float_dtype
        filled = filled.astype({name: kind for name, kind in like.dtypes.items() if is_float(kind)})
    return filled


def _like_narwhals(values, like, narwhals):
    filled = narwhals.from_numpy(values, like.columns, backend=like.implementation)
    kept = [narwhals.col(name).cast(kind) for name, kind in like.schema.items() if kind.is_float()]
    return (filled.with_columns(*kept) if kept else filled).to_native()


def _narwhals():
    """narwhals, if some frame of it or of a library it wraps can be around at all."""
    wrapped = ("narwhals", "polars", "pyarrow", "modin", "cudf")
    if not any(name in sys.modules for name in wrapped):
        return None
    try:
        import narwhals
    except ImportError:
        return None
    return narwhals
