"""What one block becomes on its worker: a ``Piece``, read, judged and counted once.

Everything here runs where the block is. A piece behaves like a value: it may be lost and made
again, moved or written to disk. What it remembers of earlier passes (``Memo``) saves work as long
as it stays in place and is worth nothing elsewhere, so it is never shipped.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.utils import check_array

from .. import _core as core
from .._data.first_pass import Found, look_over
from .._data.gaps import code_in
from .._data.validation import ADVICE_ON_TEXT, check_missing_values
from .._solver.lloyd import InMemory


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
    found: Found
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
    source, weights, found = look_over(source, missing, weights, threads=1)
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
