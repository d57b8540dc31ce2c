"""Fitted centres on rows that come later: labels, distances and filled tables, block by block.

Nothing is computed here; what comes back is a Dask collection cut as the input was, and of its
type of numbers. What a row gets depends on the row and the model alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .. import _core as core
from .._io import require
from .._observed import Observed, fill_gaps
from .._solver import assign_rows, finish, model_centers
from .._validation import check_loss, like_input, observe
from ._pieces import LazyTable, is_array, lazy_table, named, read_rows, read_weights


@dataclass(frozen=True)
class Model:
    """All that a worker needs of a fitted model."""

    centers: np.ndarray  # (k, p)
    lam: Any  # a number, or one per feature
    reference: np.ndarray  # (p,)
    missing_values: float

    @classmethod
    def of(cls, estimator: Any) -> Model:
        return cls(
            estimator.cluster_centers_, estimator.lam_, estimator.reference_,
            estimator.missing_values,
        )  # fmt: skip

    def observe(self, raw: Any, weights: Any = None) -> Observed:
        observed = observe(
            read_rows(raw, self.centers.shape[1]),
            missing_values=self.missing_values,
            reference=self.reference,
            allow_all_missing=True,
        )
        check_loss(observed, self.lam, self.centers)
        if weights is None:
            return observed
        weights = read_weights(weights, observed.n_rows)
        return replace(observed, weights=np.where(observed.weights > 0.0, weights, 0.0))


Rows = Callable[[Any, Model, Any], np.ndarray]  # (block, model, dtype) -> (b,) or (b, width)


def labels_of(raw: Any, model: Model, dtype: Any = np.int32) -> np.ndarray:
    if not raw.shape[0]:
        return np.empty(0, dtype)
    return assign_rows(model.observe(raw), model.centers[None], model.lam)[:, 0].astype(dtype)


def distances_of(raw: Any, model: Model, dtype: Any) -> np.ndarray:
    if not raw.shape[0]:
        return np.empty((0, len(model.centers)), dtype)
    observed = model.observe(raw)
    centers = model_centers(observed, model.centers[None], model.lam)
    return core.distances(observed.table, centers, dtype, threads=1, roots=True)


def labels_and_distances(raw: Any, model: Model) -> tuple[np.ndarray, np.ndarray]:
    """Labels, and distances to the own centre."""
    if not raw.shape[0]:
        return np.empty(0, np.int32), np.empty(0)
    observed, costs = model.observe(raw), np.empty(raw.shape[0])
    centers = model_centers(observed, model.centers[None], model.lam)
    labels = core.assign(observed.table, centers, threads=1)[0]
    core.loss_of(observed.table, centers, labels, threads=1, each=costs)
    return labels, np.sqrt(costs)


def filled(raw: Any, model: Model, dtype: Any) -> np.ndarray:
    if not raw.shape[0]:
        return np.empty((0, model.centers.shape[1]), dtype)
    observed = model.observe(raw)
    labels = assign_rows(observed, model.centers[None], model.lam)[:, 0]
    return fill_gaps(observed, model.centers, labels, 1).astype(dtype, copy=False)


def filled_frame(frame: Any, model: Model, dtype: Any) -> Any:
    return like_input(filled(frame, model, dtype), frame)


def loss_of(raw: Any, weights: Any, model: Model) -> float:
    if not raw.shape[0]:
        return 0.0
    return finish(model.observe(raw, weights), model.centers, model.lam)[1]


def _numbered(
    raw: Any, work: Rows, model: Model, dtype: Any, number: int, n_blocks: int
) -> np.ndarray:
    try:
        return work(raw, model, dtype)
    except (TypeError, ValueError) as error:
        raise named(error, number, n_blocks) from error


def lazy_rows(
    table: LazyTable, work: Rows, model: Model, width: int | None, dtype: Any = None
) -> Any:
    """``work`` on every block, as a Dask array (n,) or (n, width)."""
    da, delayed = require("dask.array", "dask"), require("dask", "dask").delayed
    dtype = table.dtype if dtype is None else dtype
    lengths: list[Any] = table.lengths or [np.nan] * len(table.blocks)
    shared = delayed(model, traverse=False)
    run = delayed(_numbered, pure=False)
    tail = () if width is None else (width,)
    arrays = [
        da.from_delayed(
            run(block, work, shared, dtype, number, len(table.blocks)), (length, *tail),
            meta=np.empty((0,) * (1 + len(tail)), dtype),
        )
        for number, (block, length) in enumerate(zip(table.blocks, lengths, strict=True))
    ]  # fmt: skip
    return da.concatenate(arrays, allow_unknown_chunksizes=True)


def lazy_filled(X: Any, model: Model) -> Any:
    """The table without gaps, of the kind and cut of X (sparse blocks become dense)."""
    table = lazy_table(X)
    if is_array(X):
        return lazy_rows(table, filled, model, model.centers.shape[1])
    meta = like_input(np.empty((0, table.n_features), table.dtype), X._meta)
    return X.map_partitions(filled_frame, model, table.dtype, meta=meta)
