"""The rows of a Dask collection as pieces, and passes over all of them.

    pass(piece_0) ... pass(piece_B)  ->  merge 8 at a time  ->  one result

A block (a ``Delayed`` array, SciPy sparse matrix or frame) becomes a ``Piece`` on its worker: read,
validated and counted once. Pieces stay where they are (``persist``) if they fit into memory;
otherwise every pass reads the blocks again. A piece is a value: it may be lost and made again,
moved or spilled to disk. What it remembers of earlier passes (``Memo``) only saves time and is
never sent anywhere.
"""

from __future__ import annotations

import concurrent.futures
import sys
import uuid
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.utils import check_array

from .. import _core as core
from .._io import machine_memory, require
from .._observed import code_in, with_nan
from .._solver import InMemory, slices
from .._validation import (
    ADVICE_ON_TEXT,
    TableSummary,
    check_missing_values,
    merge_summaries,
    summarise,
)

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


class Kind(NamedTuple):
    """What sort of rows a block holds."""

    n_rows: int
    is_sparse: bool
    is_single: bool  # float32
    n_bytes: int


class Partition(NamedTuple):
    """Where a pass of Lloyd's loop left the rows of a piece: as in memory, but for the sums."""

    rows: InMemory
    starts: core.Starts


@dataclass
class Memo:
    """Where the passes left a piece; valid on its own, whichever iteration it is from."""

    partition: Partition | None = None
    table: core.Table | None = None
    nearest: np.ndarray | None = None  # (b,) squared distance to the closest candidate
    closest: np.ndarray | None = None  # (b,) its number
    n_candidates: int = 0

    def take_partition(self) -> Partition | None:
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
    def kind(self) -> Kind:
        is_sparse = sparse.issparse(self.source)
        return Kind(self.n_rows, is_sparse, self.source.dtype == np.float32, self.n_bytes)

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
        return 200 + sys.getsizeof(0) + self.n_bytes


def make_piece(
    raw: Any, weights: Any, number: int, n_blocks: int, n_features: int, missing_values: float
) -> Piece:
    """Read block ``number``; an error names it."""
    try:
        return _read_piece(raw, weights, n_features, missing_values)
    except (TypeError, ValueError) as error:
        raise named(error, number, n_blocks) from error


def named(error: Exception, number: int, n_blocks: int) -> Exception:
    """The error, with the block it is about."""
    return type(error)(f"Block {number} of {n_blocks} (the first is 0; rows are its own): {error}")


def _read_piece(raw: Any, weights: Any, n_features: int, missing_values: float) -> Piece:
    source = read_rows(raw, n_features)
    missing = code_in(source.dtype, check_missing_values(missing_values))
    weights = read_weights(weights, source.shape[0])
    source, weights, found = summarise(source, missing, weights, threads=1)
    return Piece(source, missing, weights, found)


def read_rows(raw: Any, n_features: int) -> Any:
    """A float array or CSR matrix (b, p), not copied if it was one."""
    if sparse.issparse(raw) and raw.ndim == 2 and raw.shape[1] == n_features and not raw.shape[0]:
        return sparse.csr_array(raw.shape, dtype=np.float64)
    if np.ndim(raw) != 2:
        raise ValueError(f"expected rows of {n_features} features; got an array of {np.ndim(raw)} "
                         "dimension(s).")  # fmt: skip
    if raw.shape[1] != n_features:
        raise ValueError(
            f"expected {n_features} features as in the other blocks; got {raw.shape[1]}."
        )
    try:
        return check_array(
            raw, dtype=[np.float64, np.float32], accept_sparse="csr", accept_large_sparse=True,
            ensure_all_finite=False, ensure_min_samples=0, ensure_min_features=0,
        )  # fmt: skip
    except ValueError as error:
        if "could not convert string" in str(error):
            raise ValueError(
                f"the table must hold numbers only: {error}. {ADVICE_ON_TEXT}"
            ) from None
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


FAN_IN = 8
SHARE_OF_MEMORY = 0.6  # pieces that need more than this share are read anew in every pass

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

    def release(self) -> None:
        """Let the workers forget the pieces, even if a traceback still refers to them."""
        _release(self.lazy)

    @property
    def n_rows(self) -> int:
        return self.found.n_rows

    def reduce(self, work: Work, merge: Merge, *common: Any) -> Any:
        """merge of [work(piece, number of its first row, *common) for every piece]."""
        delayed = require("dask", "dask").delayed
        literals = [_literal(value) for value in common]
        parts = [
            delayed(work, pure=False)(piece, int(first), *literals)
            for piece, first in zip(self.lazy, self.firsts, strict=False)
        ]
        return compute(_tree(parts, delayed(merge, pure=False)))[0]

    def take(self, rows: np.ndarray) -> tuple[Any, np.ndarray]:
        """The rows with these (ascending) numbers and their weights."""
        delayed = require("dask", "dask").delayed
        owner = np.searchsorted(self.firsts, rows, side="right") - 1
        asked = [
            delayed(take_rows, pure=False)(self.lazy[b], rows[owner == b] - self.firsts[b])
            for b in np.unique(owner)
        ]
        parts = compute(*asked)
        values = [part[0] for part in parts]
        stack = sparse.vstack(values, format="csr") if self.is_sparse else np.vstack(values)
        return stack, np.concatenate([part[1] for part in parts])


def take_rows(piece: Piece, rows: np.ndarray) -> tuple[Any, np.ndarray]:
    """Some rows with their gaps as NaN (or not stored), and their weights."""
    return with_nan(piece.source[rows], piece.missing), piece.weights[rows]


def _literal(value: Any) -> Any:
    """A value that travels once, as a task of its own, and not within every task that needs it."""
    delayed = require("dask", "dask").delayed
    return delayed(value, name=f"mnarkmeans-{uuid.uuid4().hex}", traverse=False)


def _tree(parts: list[Any], merge: Merge) -> Any:
    """The sum of all parts, lazy or not, always added in the same order."""
    while True:
        parts = [merge(parts[start:stop]) for start, stop in slices(len(parts), FAN_IN)]
        if len(parts) == 1:
            return parts[0]


def compute(*lazy: Any) -> tuple[Any, ...]:
    """Run on Dask's current scheduler; a cluster that is lost is answered in plain words."""
    dask = require("dask", "dask")
    with warnings.catch_warnings():
        # The centres travel inside the graph on purpose: a task whose worker died can be run again.
        warnings.filterwarnings("ignore", "Sending large graph", UserWarning)
        try:
            return dask.compute(*lazy)
        except Exception as error:
            if _is_loss(error):
                raise ClusterLostError(
                    f"the Dask cluster stopped working on the fit ({type(error).__name__}: {error})"
                ) from error
            raise


def _is_loss(error: Exception) -> bool:
    """Whether an error is the cluster's and not that of the data or the program."""
    if isinstance(error, concurrent.futures.CancelledError):
        return True
    names = {kind.__name__ for kind in type(error).__mro__}
    return bool(
        names
        & {"KilledWorker", "CommClosedError", "FutureCancelledError", "NoValidWorkerError",
           "CancelledError", "SchedulerRestartedError", "ClosedClientError"}
    )  # fmt: skip


def gather_pieces(
    table: LazyTable, sample_weight: Any, missing_values: float, persist: bool | str
) -> Pieces:
    """The first pass: every block is read, judged and counted, and kept if it is to be."""
    dask = require("dask", "dask")
    delayed, n_blocks = dask.delayed, len(table.blocks)
    weights = lazy_weights(sample_weight, table, lambda: count_rows(table))
    make = delayed(make_piece, pure=False)
    lazy = [
        make(block, weight, number, n_blocks, table.n_features, missing_values)
        for number, (block, weight) in enumerate(zip(table.blocks, weights, strict=True))
    ]
    keep = persist is True or (persist == "auto" and table.n_bytes <= memory_for_pieces())
    if keep:
        lazy = list(dask.persist(*lazy))
    try:
        total, *kinds = compute(
            _tree([delayed(_found)(piece) for piece in lazy], delayed(merge_summaries, pure=False)),
            *(delayed(_kind)(piece) for piece in lazy),
        )
        is_sparse, dtype = _common_kind(kinds)
    except BaseException:
        _release(lazy)
        raise
    n_bytes = sum(kind.n_bytes for kind in kinds)
    if not keep and persist == "auto" and n_bytes <= memory_for_pieces():
        lazy = list(dask.persist(*lazy))
    firsts = np.concatenate([[0], np.cumsum([kind.n_rows for kind in kinds])])
    return Pieces(lazy, firsts, total, is_sparse, dtype)


def _release(lazy: list[Any]) -> None:
    if current_client() is not None:
        for future in require("distributed", "dask").futures_of(lazy):
            future.release()


def count_rows(table: LazyTable) -> list[int]:
    """The lengths of the blocks, where they are not known."""
    delayed = require("dask", "dask").delayed
    return list(compute(*(delayed(_n_rows)(block) for block in table.blocks)))


def _n_rows(block: Any) -> int:
    return block.shape[0]


def _found(piece: Piece) -> TableSummary:
    return piece.found


def _kind(piece: Piece) -> Kind:
    return piece.kind


def _common_kind(kinds: list[Kind]) -> tuple[bool, Any]:
    """Whether the blocks are sparse, and the type of their values; empty ones do not count."""
    known = {
        kind.is_sparse: number for number, kind in reversed([*enumerate(kinds)]) if kind.n_rows
    }
    if len(known) > 1:
        raise ValueError(
            f"Block {known[True]} is sparse and block {known[False]} is dense; "
            "in a sparse block what is not stored is missing, so the two do not mix. "
            "Convert one kind."
        )
    single = all(kind.is_single for kind in kinds if kind.n_rows)
    return True in known, np.dtype(np.float32 if single and known else np.float64)


def current_client() -> Any:
    """The distributed client Dask would use now, or None."""
    dask = require("dask", "dask")
    try:
        from distributed import get_client
    except ImportError:
        return None
    if dask.config.get("scheduler", None) not in (None, "distributed", "dask.distributed"):
        return None
    try:
        return get_client()
    except ValueError:
        return None


def memory_for_pieces() -> float:
    """Bytes that pieces may take: of the cluster's workers, or of this machine."""
    client = current_client()
    if client is not None:
        workers = client.scheduler_info(n_workers=-1)["workers"].values()
        limits = [worker.get("memory_limit") or 0 for worker in workers]
        return SHARE_OF_MEMORY * sum(limits)
    return SHARE_OF_MEMORY * machine_memory()
