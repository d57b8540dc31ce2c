"""The rows of a Dask collection as pieces, and passes over all of them.

    pass(piece_0) ... pass(piece_B)  ->  merge 8 at a time  ->  one result

A block (a ``Delayed`` array, SciPy sparse matrix or frame) becomes a ``Piece`` on its worker: read,
validated and counted once. Pieces stay where they are (``persist``) if they fit into memory;
otherwise every pass reads the blocks again. A piece is a value: it may be lost and made again,
moved or spilled to disk. What it remembers of earlier passes (``Memo``) only saves time and is
never sent anywhere.
"""

from __future__ import annotations

import math
import uuid
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils import check_array

from .. import _core as core
from .._io import machine_memory, require
from .._observed import Observed, code_in, with_nan
from .._solver import InMemory, slices
from .._validation import (
    ADVICE_ON_TEXT,
    TableSummary,
    check_missing_values,
    merge_summaries,
    summarise,
)

# --- blocks ---------------------------------------------------------------------------------------

# Of a table in memory. Not by the number of workers: sums are added in the order of the blocks, and
# their last digits depend on the cut.
BYTES_OF_BLOCK = 1 << 24


@dataclass(frozen=True)
class Blocks:
    """Blocks of rows, not read yet."""

    delayed: list[Any]
    n_features: int
    lengths: list[int] | None  # rows of each block, if known
    n_bytes: float  # of all blocks, nan if not known
    dtype: Any  # of what is computed from the rows: float32 if that is what they are


def is_lazy(X: Any) -> bool:
    """Whether it is a Dask array or dataframe."""
    return hasattr(X, "__dask_graph__") and hasattr(X, "to_delayed")


def is_frame(X: Any) -> bool:
    return is_lazy(X) and hasattr(X, "columns")


def blocks_of(X: Any) -> Blocks:
    """The blocks of a Dask collection; columns that were cut apart are put together first."""
    if X.ndim != 2:
        raise ValueError(f"X must have 2 dimensions (rows, features); got {X.ndim}.")
    if is_frame(X):
        try:
            dtype = read_rows(X._meta_nonempty, len(X.columns)).dtype
        except (TypeError, ValueError):  # the first block will say what is wrong
            dtype = np.dtype(np.float64)
        return Blocks(list(X.to_delayed()), len(X.columns), None, math.nan, dtype)
    if math.isnan(X.shape[1]):
        raise ValueError("The number of features of X is not known; call X.compute_chunk_sizes().")
    X = X if X.numblocks[1] == 1 else X.rechunk({1: -1})
    known = not math.isnan(X.shape[0])
    return Blocks(
        list(X.to_delayed().ravel()),
        int(X.shape[1]),
        [int(size) for size in X.chunks[0]] if known else None,
        float(X.nbytes) if known else math.nan,
        np.dtype(np.float32 if X.dtype == np.float32 else np.float64),
    )


def cut_into_blocks(values: Any) -> Any:
    """A Dask array of an array or CSR matrix in memory."""
    n, p = values.shape
    n_bytes = max(values.nbytes if isinstance(values, np.ndarray) else values.data.nbytes, 1)
    rows = max(1, BYTES_OF_BLOCK * n // n_bytes)
    da = require("dask.array", "dask")
    return da.from_array(values, chunks=(rows, p), name=False, asarray=False)


def weights_of(sample_weight: Any, blocks: Blocks) -> list[Any]:
    """The weights of each block (None where there are none), cut as the blocks are."""
    if sample_weight is None:
        return [None] * len(blocks.delayed)
    if not is_lazy(sample_weight):
        da = require("dask.array", "dask")
        sample_weight = da.from_array(np.asarray(sample_weight, dtype=np.float64), name=False)
    if sample_weight.ndim != 1:
        raise ValueError(f"sample_weight must have 1 dimension; got {sample_weight.ndim}.")
    if hasattr(sample_weight, "chunks") and not math.isnan(sample_weight.shape[0]):
        shape = require("dask", "dask").delayed(np.shape)
        lengths = blocks.lengths or [
            n for n, _ in compute(*(shape(block) for block in blocks.delayed))
        ]
        if len(sample_weight) != sum(lengths):
            raise ValueError(
                f"sample_weight has {len(sample_weight)} entries where X has {sum(lengths)} rows."
            )
        sample_weight = sample_weight.rechunk((tuple(lengths),))
    parts = [*sample_weight.to_delayed()]
    if len(parts) != len(blocks.delayed):
        raise ValueError(
            f"sample_weight has {len(parts)} blocks where X has {len(blocks.delayed)}; "
            "cut both into the same blocks."
        )
    return parts


# --- pieces ---------------------------------------------------------------------------------------


@dataclass
class Memo:
    """What a piece remembers of the last pass of Lloyd's loop and of k-means||."""

    partition: tuple[InMemory, core.Starts] | None = None
    table: core.Table | None = None
    # Squared distance to, and number of, the closest candidate; and how many candidates there were.
    nearest: tuple[tuple[np.ndarray, np.ndarray], int] | None = None

    def take_partition(self) -> tuple[InMemory, core.Starts] | None:
        """Taken away, in one stroke, to be changed: no other pass may find it half done."""
        return self.__dict__.pop("partition", None)


@dataclass
class Piece:
    """Rows of one block in the form the core takes, with their weights."""

    source: Any  # (b, p): an ndarray with gaps, or a CSR array of the observed entries
    missing: float
    weights: np.ndarray  # (b,) 0 for rows that take no part
    found: TableSummary
    memo: Memo = field(default_factory=Memo)

    @property
    def n_rows(self) -> int:
        return self.source.shape[0]

    @property
    def n_bytes(self) -> int:
        arrays = [self.source, self.weights]
        if sparse.issparse(self.source):
            arrays[:1] = [self.source.data, self.source.indices, self.source.indptr]
        return sum(array.nbytes for array in arrays)

    def table(self, first: int) -> core.Table:
        """As the core reads it; ``first`` is the number of the first row in the whole table."""
        if self.memo.table is None:
            self.memo.table = core.Table(
                self.source, self.missing, self.weights, has_gaps=self.found.has_gaps, first=first
            )
        return self.memo.table

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "memo": Memo()}

    def __sizeof__(self) -> int:  # lets Dask account for, and spill, what is really held
        return 200 + self.n_bytes


def make_piece(
    raw: Any, weights: Any, number: int, n_blocks: int, n_features: int, missing_values: float
) -> Piece:
    """Read block ``number``; an error names it."""
    try:
        source = read_rows(raw, n_features)
        missing = code_in(source.dtype, check_missing_values(missing_values))
        weights = read_weights(weights, source.shape[0])
        source, weights, found = summarise(source, missing, weights, threads=1)
        return Piece(source, missing, weights, found)
    except (TypeError, ValueError) as error:
        raise named(error, number, n_blocks) from error


def named(error: Exception, number: int, n_blocks: int) -> Exception:
    """The error, with the block it is about."""
    return type(error)(f"Block {number} of {n_blocks} (the first is 0; rows are its own): {error}")


def read_rows(raw: Any, n_features: int) -> Any:
    """A float array or CSR matrix (b, p), not copied if it was one."""
    if np.ndim(raw) != 2:
        raise ValueError(
            f"expected rows of {n_features} features; got an array of {np.ndim(raw)} dimension(s)."
        )
    if raw.shape[1] != n_features:
        raise ValueError(
            f"expected {n_features} features as in the other blocks; got {raw.shape[1]}."
        )
    if sparse.issparse(raw) and not raw.shape[0]:
        return sparse.csr_array(raw.shape, dtype=np.float64)
    try:
        return check_array(
            raw, dtype=[np.float64, np.float32], accept_sparse="csr", accept_large_sparse=True,
            ensure_all_finite=False, ensure_min_samples=0, ensure_min_features=0,
        )  # fmt: skip
    except ValueError as error:
        if "could not convert string" in str(error):
            message = f"the table must hold numbers only: {error}. {ADVICE_ON_TEXT}"
            raise ValueError(message) from None
        raise


def read_weights(weights: Any, n_rows: int) -> np.ndarray:
    """(b,) float64; unlike those of a whole table, the weights of a block may all be 0."""
    if weights is None:
        return np.ones(n_rows)
    weights = np.ascontiguousarray(weights, dtype=np.float64)
    if weights.shape != (n_rows,):
        raise ValueError(
            f"sample_weight has shape {weights.shape} where the block has {n_rows} rows; "
            "cut both into the same blocks."
        )
    if not np.isfinite(weights).all() or (weights < 0.0).any():
        raise ValueError("sample_weight must be finite and not negative.")
    return weights


# --- all of them ----------------------------------------------------------------------------------

SHARE_OF_MEMORY = 0.6  # pieces that need more than this share are read anew in every pass
ROWS_OF_SAMPLE, ENTRIES_OF_SAMPLE = 50_000, 1 << 24  # whichever is less

Work = Callable[..., Any]  # (piece, number of its first row, *common) -> part
Merge = Callable[[list[Any]], Any]  # parts, or promises of them, -> one of their kind


class ClusterLostError(RuntimeError):
    """The Dask cluster went away, or cancelled the work, in the middle of a fit."""


@dataclass(frozen=True)
class Pieces:
    """All rows: lazy pieces, the number of the first row of each, and the totals."""

    lazy: list[Any]  # of Delayed, each a Piece
    firsts: np.ndarray  # (B + 1,)
    found: TableSummary
    is_sparse: bool
    dtype: Any  # float32 if all blocks are
    reference: np.ndarray  # (p,)

    @property
    def n_rows(self) -> int:
        return self.found.n_rows

    @cached_property
    def means(self) -> np.ndarray:
        return self.found.means(self.reference)

    def reduce(self, work: Work, merge: Merge, *common: Any) -> Any:
        """merge of [work(piece, number of its first row, *common) for every piece]."""
        delayed = require("dask", "dask").delayed
        # Each travels once, as a task of its own, and not within every task that needs it.
        names = (f"mnarkmeans-{uuid.uuid4().hex}" for _ in common)
        literals = [
            delayed(value, name=name, traverse=False)
            for value, name in zip(common, names, strict=True)
        ]
        parts = [
            delayed(work, pure=False)(piece, int(first), *literals)
            for piece, first in zip(self.lazy, self.firsts, strict=False)
        ]
        return compute(_tree(parts, delayed(merge, pure=False)))[0]

    def take(self, rows: np.ndarray) -> tuple[Any, np.ndarray]:
        """The rows with these (ascending) numbers, gaps as NaN, and their weights."""
        delayed = require("dask", "dask").delayed
        owner = np.searchsorted(self.firsts, rows, side="right") - 1
        parts = compute(
            *(
                delayed(_take_rows, pure=False)(self.lazy[b], rows[owner == b] - self.firsts[b])
                for b in np.unique(owner)
            )
        )
        values = [part[0] for part in parts]
        stack = sparse.vstack(values, format="csr") if self.is_sparse else np.vstack(values)
        return stack, np.concatenate([part[1] for part in parts])

    def sample(self, rng: np.random.RandomState) -> Observed:
        """Rows drawn at random, or all if they are few, with the means of all rows."""
        size = max(1000, min(ROWS_OF_SAMPLE, ENTRIES_OF_SAMPLE // len(self.means)))
        rows = np.arange(self.n_rows)
        if size < self.n_rows:
            rows = np.unique(rng.randint(0, self.n_rows, size))
        source, weights = self.take(rows)
        return Observed(
            source, math.nan, weights, self.means, self.reference, self.found.counts,
            self.found.has_gaps,
        )  # fmt: skip

    def release(self) -> None:
        """Let the workers forget the pieces, even if a traceback still refers to them."""
        _release(self.lazy)


def _take_rows(piece: Piece, rows: np.ndarray) -> tuple[Any, np.ndarray]:
    return with_nan(piece.source[rows], piece.missing), piece.weights[rows]


def _tree(parts: list[Any], merge: Merge) -> Any:
    """The sum of all parts, lazy or not, always added in the same order."""
    while True:
        parts = [merge(parts[start:stop]) for start, stop in slices(len(parts), 8)]
        if len(parts) == 1:
            return parts[0]


def compute(*lazy: Any) -> tuple[Any, ...]:
    """Run on Dask's current scheduler; a lost cluster raises ClusterLostError."""
    dask = require("dask", "dask")
    with warnings.catch_warnings():
        # The centres travel inside the graph on purpose: a task whose worker died can be run again.
        warnings.filterwarnings("ignore", "Sending large graph", UserWarning)
        try:
            return dask.compute(*lazy)
        except Exception as error:
            if _is_loss(error):
                raise ClusterLostError(
                    f"The Dask cluster stopped working ({type(error).__name__}: {error}). Connect "
                    "to a running cluster and fit again."
                ) from error
            raise


def _is_loss(error: Exception) -> bool:
    """Whether an error is the cluster's and not that of the data or the program."""
    lost = {"KilledWorker", "CommClosedError", "FutureCancelledError", "NoValidWorkerError",
            "CancelledError", "SchedulerRestartedError", "ClosedClientError"}  # fmt: skip
    return any(kind.__name__ in lost for kind in type(error).__mro__)


def gather_pieces(
    blocks: Blocks, sample_weight: Any, missing_values: float, persist: bool | str
) -> Pieces:
    """The first pass: every block is read, validated and counted, and kept if it is to be."""
    dask = require("dask", "dask")
    delayed, n_blocks = dask.delayed, len(blocks.delayed)
    make = delayed(make_piece, pure=False)
    lazy = [
        make(block, weight, number, n_blocks, blocks.n_features, missing_values)
        for number, (block, weight) in enumerate(
            zip(blocks.delayed, weights_of(sample_weight, blocks), strict=True)
        )
    ]
    keep = persist is True or (persist == "auto" and blocks.n_bytes <= memory_for_pieces())
    if keep:
        lazy = list(dask.persist(*lazy))
    try:
        total, *kinds = compute(
            _tree([delayed(_found)(piece) for piece in lazy], delayed(merge_summaries, pure=False)),
            *(delayed(_kind)(piece) for piece in lazy),
        )
        n_rows, n_bytes = ([kind[i] for kind in kinds] for i in (0, 1))
        is_sparse, dtype = _common_kind(kinds)
    except BaseException:
        _release(lazy)
        raise
    if not keep and persist == "auto" and sum(n_bytes) <= memory_for_pieces():
        lazy = list(dask.persist(*lazy))
    firsts = np.concatenate([[0], np.cumsum(n_rows)])
    return Pieces(lazy, firsts, total, is_sparse, dtype, np.zeros(blocks.n_features))


def _found(piece: Piece) -> TableSummary:
    return piece.found


def _kind(piece: Piece) -> tuple[int, int, bool, Any]:
    """Rows, bytes, whether it is sparse, and the type of its values."""
    return piece.n_rows, piece.n_bytes, sparse.issparse(piece.source), piece.source.dtype


def _common_kind(kinds: list[Any]) -> tuple[bool, Any]:
    """Whether the blocks are sparse, and the type of their values; empty ones do not count."""
    some = [(number, *kind[2:]) for number, kind in enumerate(kinds) if kind[0]]
    first = {is_sparse: number for number, is_sparse, _ in reversed(some)}
    if len(first) > 1:
        raise ValueError(
            f"Block {first[True]} is sparse and block {first[False]} is dense; "
            "in a sparse block what is not stored is missing, so the two do not mix. "
            "Convert one kind."
        )
    return True in first, np.result_type(*(dtype for *_, dtype in some)) if some else np.float64


def _release(lazy: list[Any]) -> None:
    if current_client() is not None:
        for future in require("distributed", "dask").futures_of(lazy):
            future.release()


def current_client() -> Any:
    """The distributed client Dask would use now, or None."""
    dask = require("dask", "dask")
    if dask.config.get("scheduler", None) not in (None, "distributed", "dask.distributed"):
        return None
    try:
        return require("distributed", "dask").get_client()
    except (ImportError, ValueError):
        return None


def memory_for_pieces() -> float:
    """Bytes that pieces may take: of the cluster's workers, or of this machine."""
    client = current_client()
    if client is None:
        return SHARE_OF_MEMORY * machine_memory()
    workers = client.scheduler_info(n_workers=-1)["workers"].values()
    return SHARE_OF_MEMORY * sum(worker.get("memory_limit") or 0 for worker in workers)
