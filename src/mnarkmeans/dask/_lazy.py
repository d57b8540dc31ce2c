"""Fitted centres on rows that come later: labels, distances and filled tables, block by block.

Nothing is computed here; what comes back is a Dask collection cut as the input was.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .._data.validation import observe
from .._io.optional import require
from .._solver.solvers import finish, row_distances
from ._blocks import is_array, lazy_table, whole_rows
from ._pieces import read_rows


@dataclass(frozen=True)
class Centers:
    """All that a worker needs of a fitted model."""

    centers: np.ndarray
    lam: float
    reference: np.ndarray
    missing_values: float

    def observe(self, raw):
        return observe(
            read_rows(raw, self.centers.shape[1]),
            missing_values=self.missing_values,
            reference=self.reference,
            allow_all_missing=True,
        )


def labels_of(raw, model: Centers) -> np.ndarray:
    return _or_empty(raw, lambda: finish(model.observe(raw), model.centers, model.lam)[0],
                     (0,), np.int32)  # fmt: skip


def distances_of(raw, model: Centers) -> np.ndarray:
    def work():
        return np.sqrt(row_distances(model.observe(raw), model.centers, model.lam))

    return _or_empty(raw, work, (0, len(model.centers)), model.centers.dtype)


def filled(raw, model: Centers) -> np.ndarray:
    def work():
        observed = model.observe(raw)
        labels = finish(observed, model.centers, model.lam)[0]
        values, gaps = observed.filled_and_gaps()
        return np.where(gaps, model.centers[labels], values)

    return _or_empty(raw, work, (0, model.centers.shape[1]), model.centers.dtype)


def loss_of(raw, weights, model: Centers) -> float:
    if not raw.shape[0]:
        return 0.0
    observed = model.observe(raw)
    if weights is not None:
        usable = np.where(observed.weights > 0.0, np.asarray(weights, np.float64), 0.0)
        observed = replace(observed, weights=usable)
    return finish(observed, model.centers, model.lam)[1]


def filled_frame(frame, model: Centers):
    return type(frame)(filled(frame, model), index=frame.index, columns=frame.columns)


def _or_empty(raw, work, shape, dtype):
    return work() if raw.shape[0] else np.empty(shape, dtype)


def _numbered(raw, work, model: Centers, number: int, n_blocks: int):
    try:
        return work(raw, model)
    except (TypeError, ValueError) as error:
        raise type(error)(f"Block {number} of {n_blocks} (the first is 0): {error}") from error


def lazy_rows(X: Any, work, model: Centers, width: int | None, dtype, lengths=None):
    """``work`` on every block, as a Dask array (n,) or (n, width)."""
    da, delayed = require("dask.array", "dask"), require("dask", "dask").delayed
    table = lazy_table(X)
    lengths = lengths or table.lengths or [np.nan] * len(table.blocks)
    shared = delayed(model, traverse=False)
    run = delayed(_numbered, pure=False)
    tail = () if width is None else (width,)
    arrays = [
        da.from_delayed(
            run(block, work, shared, number, len(table.blocks)), (length, *tail),
            meta=np.empty((0,) * (1 + len(tail)), dtype),
        )
        for number, (block, length) in enumerate(zip(table.blocks, lengths, strict=True))
    ]  # fmt: skip
    return da.concatenate(arrays, allow_unknown_chunksizes=True)


def lazy_filled(X: Any, model: Centers):
    """The table without gaps, of the kind and cut of X (sparse blocks become dense)."""
    dtype = model.centers.dtype
    if is_array(X):
        kind = getattr(whole_rows(X), "dtype", dtype)
        dtype = np.result_type(kind, dtype) if np.issubdtype(kind, np.floating) else dtype
        return lazy_rows(X, filled, model, model.centers.shape[1], dtype)
    meta = X._meta.astype(dtype)
    return X.map_partitions(filled_frame, model, meta=meta)


__all__ = ["Centers", "distances_of", "labels_of", "lazy_filled", "lazy_rows", "loss_of"]
