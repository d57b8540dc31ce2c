"""A table without gaps: each is filled from the centre of its row, observed values stay."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _core as core
from .observed import Observed

ROWS = 4096  # of a block, where `out` does not keep its rows in one piece


def check_out(out, observed: Observed) -> np.ndarray:
    """An array that ``fill_gaps`` can write to."""
    wanted = f"a writeable {observed.dtype} array of shape {observed.source.shape}"
    if not isinstance(out, np.ndarray):
        raise TypeError(f"out must be {wanted}; got {type(out).__name__}.")
    if out.dtype != observed.dtype or out.shape != observed.source.shape:
        raise ValueError(f"out must be {wanted}; got {out.dtype} of shape {out.shape}.")
    if not out.flags.writeable:
        raise ValueError(f"out must be {wanted}; it is read-only.")
    is_source = isinstance(observed.source, np.ndarray) and _is_same(out, observed.source)
    if not is_source and _overlap(out, _values(observed)):
        raise ValueError("out must be X itself or share no memory with it.")
    return out


def fill_gaps(
    observed: Observed, centers: np.ndarray, labels: np.ndarray, threads: int,
    out: np.ndarray | None = None,
) -> np.ndarray:  # fmt: skip
    """(n, p) of the table's type; written to ``out`` if given, which may be the table itself."""
    mu = np.ascontiguousarray(centers, dtype=np.float64)
    if out is None:
        out = np.empty(observed.source.shape, observed.dtype)
    if out.strides[-1] == out.itemsize and out.strides[0] >= 0 and out.flags.aligned:
        core.impute(observed.table, mu, labels, out, threads)
        return out
    for start in range(0, observed.n_rows, ROWS):
        rows = slice(start, start + ROWS)
        block = core.Table(observed.source[rows], observed.missing, observed.weights[rows])
        filled = np.empty(block.source.shape, observed.dtype)
        core.impute(block, mu, labels[rows], filled, threads)
        out[rows] = filled
    return out


def _values(observed: Observed) -> np.ndarray:
    return observed.source.data if observed.is_sparse else observed.source


def _overlap(one: np.ndarray, two: np.ndarray) -> bool:
    try:
        work: Any = 10**6  # NumPy's annotations know only two special values
        return bool(np.shares_memory(one, two, max_work=work))
    except np.exceptions.TooHardError:
        return True


def _is_same(one: np.ndarray, two: np.ndarray) -> bool:
    same = one.ctypes.data == two.ctypes.data and one.strides == two.strides
    return same and one.shape == two.shape
