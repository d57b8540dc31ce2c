"""The rows of a Dask collection in blocks, and passes over all of them.

    work(block_0) ... work(block_B)  ->  merge 8 at a time  ->  one result

A chunk of the collection (a ``Delayed`` array, SciPy sparse matrix or frame) becomes a ``Block`` on
its worker: read, validated and counted once. Blocks stay in memory (``persist``) if they fit;
otherwise every pass reads the chunks again. A block can be computed again after its worker died,
moved, or spilled to disk: what it caches between passes only saves time and is never sent anywhere.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from .. import _core as core
from .._io import machine_memory, require
from .._observed import Observed, Summary, merge_summaries, with_nan
from .._validation import check_table, check_weights, summarise

# --- the collection -------------------------------------------------------------------------------

# Chunks of a table in memory. They do not depend on the number of workers: sums are added in the
# order of the chunks, and their last digits depend on the cut.
CHUNK_BYTES = 1 << 24


def is_lazy(X: Any) -> bool:
    """Whether it is a Dask array or dataframe."""
    return hasattr(X, "__dask_graph__") and hasattr(X, "to_delayed")


def is_frame(X: Any) -> bool:
    return is_lazy(X) and hasattr(X, "columns")


def by_rows(X: Any) -> Any:
    """A Dask array in blocks of whole rows; those of a dataframe are frames until they are read."""
    if X.ndim != 2:
        raise ValueError(f"X must have 2 dimensions (rows, features); got {X.ndim}.")
    if is_frame(X):
        kinds = {str(kind).lower() for kind in X.dtypes}
        meta = np.empty((0, len(X.columns)), "float32" if kinds == {"float32"} else "float64")
        return X.map_partitions(lambda frame: frame, meta=meta, enforce_metadata=False)
    if math.isnan(X.shape[1]):
        raise ValueError("The number of features of X is not known; call X.compute_chunk_sizes().")
    return X if X.numblocks[1] == 1 else X.rechunk({1: -1})


def to_dask(values: Any) -> Any:
    """A Dask array of an array or CSR matrix in memory, which ``da.from_array`` would copy."""
    da, delayed = require("dask.array", "dask"), require("dask", "dask").delayed
    n = values.shape[0]
    size = max(1, CHUNK_BYTES * n // max(getattr(values, "data", values).nbytes, 1))
    blocks = (values[start : start + size] for start in range(0, n, size))
    return da.concatenate([
        da.from_delayed(delayed(block, pure=False, traverse=False), block.shape, block.dtype)
        for block in blocks
    ])  # fmt: skip


def with_weights(X: Any, sample_weight: Any) -> list[tuple[Any, Any]]:
    """Every block of rows, as Delayed, and its weights (or None)."""
    chunks = X.to_delayed().ravel()
    if sample_weight is None:
        return [(chunk, None) for chunk in chunks]
    weights = require("dask.array", "dask").asarray(sample_weight)
    if weights.ndim == 1 and not math.isnan(weights.shape[0]):
        X = X.compute_chunk_sizes() if math.isnan(X.shape[0]) else X
        weights = weights.rechunk((X.chunks[0],)) if len(weights) == len(X) else weights
    if weights.ndim != 1 or weights.numblocks[0] != len(chunks):
        raise ValueError(
            "sample_weight must have an entry for each row of X, and its blocks where their sizes "
            f"are not known; got {weights!r:.200}."
        )
    return list(zip(chunks, weights.to_delayed(), strict=True))


# --- one block ------------------------------------------------------------------------------------


@dataclass
class Block:
    """Rows in the form the core reads, with their weights."""

    source: Any  # (b, p): an ndarray with gaps, or a CSR array of the observed entries
    missing: float
    weights: np.ndarray  # (b,) 0 for rows that take no part
    summary: Summary
    cache: dict[str, Any] = field(default_factory=dict)  # of the last pass

    @property
    def n_rows(self) -> int:
        return self.source.shape[0]

    def table(self, first: int) -> core.Table:
        """As the core reads it; ``first`` is the number of the first row in the whole table."""
        if "table" not in self.cache:
            self.cache["table"] = core.Table(
                self.source, self.missing, self.weights, has_gaps=self.summary.has_gaps, first=first
            )
        return self.cache["table"]

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "cache": {}}

    def __sizeof__(self) -> int:  # lets Dask account for, and spill, what is really held
        sizeof = require("dask.sizeof", "dask").sizeof
        return sizeof(self.source) + sizeof(self.weights)


@contextmanager
def of_block(number: int, n_blocks: int) -> Iterator[None]:
    """An error names the block it is about."""
    try:
        yield
    except (TypeError, ValueError) as error:
        where = f"Block {number} of {n_blocks} (the first is 0; rows are its own)"
        raise type(error)(f"{where}: {error}") from error


def read_block(
    chunk: Any, weights: Any, number: int, n_blocks: int, n_features: int, missing_values: float
) -> Block:
    with of_block(number, n_blocks):
        rows = read_rows(chunk, n_features)
        return Block(*summarise(rows, missing_values, read_weights(weights, rows), threads=1))


def read_rows(chunk: Any, n_features: int) -> Any:
    """A float array or CSR matrix (b, p), not copied if it was one."""
    if sparse.issparse(chunk) and not chunk.shape[0]:
        rows = sparse.csr_array(chunk.shape, dtype=np.float64)
    else:
        rows = check_table(None, chunk, ensure_min_samples=0, ensure_min_features=0)
    if rows.shape[1] != n_features:
        raise ValueError(
            f"expected {n_features} features as in the other blocks; got {rows.shape[1]}."
        )
    return rows


def read_weights(weights: Any, rows: Any) -> np.ndarray:
    """(b,) float64; unlike those of a whole table, the weights of a block may all be 0."""
    n_rows, shape = rows.shape[0], np.shape(weights)
    if weights is not None and shape != (n_rows,):
        raise ValueError(
            f"sample_weight has shape {shape} where the block has {n_rows} rows; cut both into "
            "the same blocks."
        )
    return check_weights(weights, rows) if weights is None or np.any(weights) else np.zeros(n_rows)


# --- all blocks -----------------------------------------------------------------------------------

SHARE_OF_MEMORY = 0.6  # blocks that need more than this share are read anew in every pass
SAMPLE_ROWS, SAMPLE_ENTRIES = 50_000, 1 << 24  # whichever is less


@dataclass(frozen=True)
class Blocks:
    """All rows."""

    lazy: list[Any]  # Delayed, each a Block
    firsts: np.ndarray  # (B + 1,) number of the first row of each
    summary: Summary
    is_sparse: bool
    dtype: Any  # float32 if all blocks are
    reference: np.ndarray  # (p,)

    @property
    def n_features(self) -> int:
        return len(self.reference)

    @cached_property
    def means(self) -> np.ndarray:
        return self.summary.means(self.reference)

    def reduce(self, work: Callable[..., Any], merge: Callable[..., Any], *common: Any) -> Any:
        """merge of [work(block, number of its first row, *common) for every block]."""
        delayed = require("dask", "dask").delayed
        # Each travels once, as a task of its own, and not within every task that needs it.
        literals = [delayed(value, pure=False, traverse=False) for value in common]
        parts = [
            delayed(work, pure=False)(block, int(first), *literals)
            for block, first in zip(self.lazy, self.firsts, strict=False)
        ]
        return compute(_tree(parts, delayed(merge, pure=False)))[0]

    def take(self, rows: np.ndarray) -> tuple[Any, np.ndarray]:
        """The rows with these (ascending) numbers, missing values as NaN, and their weights."""
        take = require("dask", "dask").delayed(_take_rows, pure=False)
        owner = np.searchsorted(self.firsts, rows, side="right") - 1
        parts = [take(self.lazy[b], rows[owner == b] - self.firsts[b]) for b in np.unique(owner)]
        values, weights = zip(*compute(*parts), strict=True)
        stack = sparse.vstack(values, format="csr") if self.is_sparse else np.vstack(values)
        return stack, np.concatenate(weights)

    def sample(self, rng: np.random.RandomState) -> Observed:
        """Rows drawn at random, or all if they are few, with the means of all rows."""
        size = max(1000, min(SAMPLE_ROWS, SAMPLE_ENTRIES // self.n_features))
        rows = np.arange(self.summary.n_rows)
        if size < len(rows):
            rows = np.unique(rng.randint(0, len(rows), size))
        source, weights = self.take(rows)
        return Observed(source, math.nan, weights, self.summary, self.reference, self.means)


def _take_rows(block: Block, rows: np.ndarray) -> tuple[Any, np.ndarray]:
    return with_nan(block.source[rows], block.missing), block.weights[rows]


def _tree(parts: list[Any], merge: Callable[..., Any]) -> Any:
    """The sum of all parts, lazy or not, always added in the same order: 8 at a time."""
    while True:
        parts = [merge(parts[start : start + 8]) for start in range(0, len(parts), 8)]
        if len(parts) == 1:
            return parts[0]


@contextmanager
def read_blocks(
    X: Any, sample_weight: Any, missing_values: float, persist: bool | str
) -> Iterator[Blocks]:
    """The first pass: every block is read, validated and counted, and kept if it is to be.

    At the end the workers forget the blocks, even if the traceback of an error refers to them.
    """
    dask = require("dask", "dask")
    read, parts = dask.delayed(read_block, pure=False), with_weights(X, sample_weight)
    lazy = [
        read(chunk, weights, number, len(parts), X.shape[1], missing_values)
        for number, (chunk, weights) in enumerate(parts)
    ]
    keep = persist is True or (persist == "auto" and X.nbytes <= memory_for_blocks())
    if keep:
        lazy = list(dask.persist(*lazy))
    try:
        describe, merge = (dask.delayed(f, pure=False) for f in (_kind_of, merge_summaries))
        summary, *kinds = compute(_tree([b.summary for b in lazy], merge), *map(describe, lazy))
        n_rows, n_bytes, is_sparse, dtypes = map(np.array, zip(*kinds, strict=True))
        stored, dense = is_sparse & (n_rows > 0), ~is_sparse & (n_rows > 0)
        if stored.any() and dense.any():
            raise ValueError(
                f"Block {stored.argmax()} is sparse and block {dense.argmax()} is dense; in a "
                "sparse block what is not stored is missing, so the two do not mix. Convert one."
            )
        if not keep and persist == "auto" and n_bytes.sum() <= memory_for_blocks():
            lazy = list(dask.persist(*lazy))
        firsts = np.append(0, np.cumsum(n_rows))
        dtype = np.result_type(np.float32, *dtypes[n_rows > 0])
        yield Blocks(lazy, firsts, summary, bool(stored.any()), dtype, np.zeros(X.shape[1]))
    finally:
        if current_client() is not None:
            for future in require("distributed", "dask").futures_of(lazy):
                future.release()


def _kind_of(block: Block) -> tuple[int, int, bool, Any]:
    return block.n_rows, block.__sizeof__(), sparse.issparse(block.source), block.source.dtype


# --- the cluster ----------------------------------------------------------------------------------


def compute(*lazy: Any) -> tuple[Any, ...]:
    """Run on Dask's current scheduler."""
    with warnings.catch_warnings():
        # The centres travel inside the graph on purpose: a task whose worker died can be run again.
        warnings.filterwarnings("ignore", "Sending large graph", UserWarning)
        return require("dask", "dask").compute(*lazy)


def current_client() -> Any:
    """The distributed client Dask would use now, or None."""
    scheduler = require("dask.base", "dask").get_scheduler()  # a method of the client, if any
    return getattr(scheduler, "__self__", None)


def memory_for_blocks() -> float:
    """Bytes that blocks may take: of the cluster's workers, or of this machine."""
    client = current_client()
    if client is None:
        return SHARE_OF_MEMORY * machine_memory()
    workers = client.scheduler_info(n_workers=-1)["workers"].values()
    return SHARE_OF_MEMORY * sum(worker.get("memory_limit") or 0 for worker in workers)
