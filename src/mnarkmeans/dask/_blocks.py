"""From Dask collections, and tables in memory, to lists of lazy blocks, one per run of rows.

A block is a ``Delayed`` of a dense array, a SciPy sparse matrix or a pandas frame. Sizes need not
be known: the first pass counts the rows.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._io.optional import require
from .._solver.threads import slices
from ._pieces import read_rows

# Of a table in memory. Not by the number of workers: sums are added in the order of the blocks, and
# their last digits know the cut.
BYTES_OF_BLOCK = 1 << 24


@dataclass(frozen=True)
class LazyTable:
    """Blocks of rows, not read yet."""

    blocks: list[Any]  # of Delayed
    n_features: int
    lengths: list[int] | None  # rows of each block, if known
    n_bytes: float  # of the blocks, nan if not known
    dtype: Any  # of what is computed from the rows: float32 if that is what they are


def is_array(X: Any) -> bool:
    return _is_dask(X) and hasattr(X, "rechunk") and hasattr(X, "chunks")


def is_frame(X: Any) -> bool:
    return _is_dask(X) and hasattr(X, "npartitions") and hasattr(X, "columns")


def _is_dask(X: Any) -> bool:
    return hasattr(X, "__dask_graph__") or hasattr(X, "dask")


def is_lazy(X: Any) -> bool:
    return is_array(X) or is_frame(X)


def lazy_table(X: Any) -> LazyTable:
    """The blocks of a Dask collection; columns that were cut apart are put together first."""
    return _from_array(X) if is_array(X) else _from_frame(X)


def held_table(values: Any) -> LazyTable:
    """The blocks of an array or CSR matrix in memory."""
    delayed = require("dask", "dask").delayed
    n, p = values.shape
    n_bytes = (values if isinstance(values, np.ndarray) else values.data).nbytes
    cuts = slices(n, max(1, BYTES_OF_BLOCK * n // max(n_bytes, 1)))
    blocks = [
        delayed(values[start:stop], name=f"mnarkmeans-{uuid.uuid4().hex}", traverse=False)
        for start, stop in cuts
    ]
    lengths = [stop - start for start, stop in cuts]
    return LazyTable(blocks, p, lengths, float(n_bytes), values.dtype)


def whole_rows(X: Any) -> Any:
    """The Dask array with all columns in one block."""
    if X.ndim != 2:
        raise ValueError(f"X must have 2 dimensions (rows, features); got {X.ndim}.")
    if np.isnan(X.shape[1]):
        raise ValueError("The number of features of X is not known; call X.compute_chunk_sizes().")
    return X if X.numblocks[1] == 1 else X.rechunk({1: -1})


def _from_array(X: Any) -> LazyTable:
    X = whole_rows(X)
    known = not any(np.isnan(size) for size in X.chunks[0])
    return LazyTable(
        list(X.to_delayed().ravel()),
        int(X.shape[1]),
        [int(size) for size in X.chunks[0]] if known else None,
        float(X.nbytes) if known else np.nan,
        np.dtype(np.float32 if X.dtype == np.float32 else np.float64),
    )


def _from_frame(X: Any) -> LazyTable:
    try:
        dtype = read_rows(X._meta_nonempty, len(X.columns)).dtype
    except (TypeError, ValueError):  # the first block will say what is wrong
        dtype = np.dtype(np.float64)
    return LazyTable(list(X.to_delayed()), len(X.columns), None, np.nan, dtype)


def lazy_weights(
    sample_weight: Any, table: LazyTable, count_rows: Callable[[], list[int]]
) -> list[Any]:
    """The weights of each block (None where there are none), cut as the blocks are.

    ``count_rows()`` gives the lengths of the blocks; it is called only where they are needed.
    """
    n_blocks = len(table.blocks)
    if sample_weight is None:
        return [None] * n_blocks
    if is_array(sample_weight):
        if sample_weight.ndim != 1:
            raise ValueError(f"sample_weight must have 1 dimension; got {sample_weight.ndim}.")
        known = not any(np.isnan(size) for size in sample_weight.chunks[0])
        if known:
            lengths = table.lengths or count_rows()
            _check_total(int(sample_weight.shape[0]), sum(lengths))
            sample_weight = sample_weight.rechunk((tuple(lengths),))
        return _same_number(list(sample_weight.to_delayed().ravel()), n_blocks)
    if _is_dask(sample_weight) and hasattr(sample_weight, "npartitions"):
        return _same_number(list(sample_weight.to_delayed()), n_blocks)
    values = np.asarray(sample_weight, dtype=np.float64)
    if values.ndim != 1:
        raise ValueError(f"sample_weight must have 1 dimension; got {values.ndim}.")
    lengths = table.lengths or count_rows()
    _check_total(len(values), sum(lengths))
    delayed = require("dask", "dask").delayed
    pieces = np.split(values, np.cumsum(lengths)[:-1])
    return [delayed(piece, traverse=False) for piece in pieces]


def _check_total(found: int, n_rows: int) -> None:
    if found != n_rows:
        raise ValueError(f"sample_weight has {found} entries where X has {n_rows} rows.")


def _same_number(blocks: list[Any], n_blocks: int) -> list[Any]:
    if len(blocks) != n_blocks:
        raise ValueError(
            f"sample_weight has {len(blocks)} blocks where X has {n_blocks}; "
            "cut both into the same blocks."
        )
    return blocks
