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

from .._data.first_pass import survey
from .._data.observed import Csr, Dense
from .._data.validation import ADVICE_ON_TEXT, _canonical_csr, check_missing_values
from .._kernels import fill_row


class Found(NamedTuple):
    """What the first look at a block told."""

    n_rows: int
    n_usable: int  # rows with a weight and an observed value
    n_unseen: int  # rows without an observed value
    n_entries: int  # observed entries
    counts: np.ndarray  # (p,) weight of the rows that observe the feature
    sums: np.ndarray  # (p,) weighted sum of the observed values
    least: np.ndarray  # (p,) least observed value, inf if none
    whole_weights: bool
    single: bool  # float32
    is_sparse: bool
    n_bytes: int


@dataclass
class Memo:
    """Where the passes left a piece; valid on its own, whichever iteration it is from."""

    partition: tuple[np.ndarray, Any, Any] | None = None  # labels (R, b), their Stats, Bounds
    nearest: np.ndarray | None = None  # (b,) squared distance to the closest candidate
    closest: np.ndarray | None = None  # (b,) its number
    n_candidates: int = 0

    def take_partition(self) -> tuple[np.ndarray, Any, Any] | None:
        """Taken away, in one stroke, to be changed: no other pass may find it half done."""
        return self.__dict__.pop("partition", None)


@dataclass
class Piece:
    """Rows of one block in the form the kernels take, with their weights."""

    source: np.ndarray | sparse.csr_array
    missing: float
    weights: np.ndarray  # (b,) 0 for rows that take no part
    found: Found
    memo: Memo = field(default_factory=Memo)

    @property
    def n_rows(self) -> int:
        return self.source.shape[0]

    def block(self) -> Dense | Csr:
        return as_block(self.source, self.missing)

    def __getstate__(self):
        return {**self.__dict__, "memo": Memo()}

    def __sizeof__(self) -> int:  # lets Dask account for, and spill, what is really held
        return 200 + self.found.n_bytes


def as_block(source, missing: float) -> Dense | Csr:
    if sparse.issparse(source):
        return Csr(source.data, source.indices, source.indptr)
    return Dense(np.ascontiguousarray(source), missing)


def filled_rows(block: Dense | Csr, rows: np.ndarray, fill: np.ndarray) -> np.ndarray:
    """Some rows of a block, their gaps filled from ``fill`` (p,)."""
    out = np.empty((len(rows), len(fill)))
    for place, row in enumerate(rows):
        fill_row(block, row, np.zeros_like(fill), fill, out[place])
    return out


def make_piece(raw, weights, number: int, n_blocks: int, n_features: int, missing_values) -> Piece:
    """Read block ``number``; an error names it."""
    try:
        return _read_piece(raw, weights, n_features, missing_values)
    except (TypeError, ValueError) as error:
        raise type(error)(f"Block {number} of {n_blocks} (the first is 0): {error}") from error


def _read_piece(raw, weights, n_features: int, missing_values) -> Piece:
    source = read_rows(raw, n_features)
    missing = check_missing_values(missing_values)
    if sparse.issparse(source):
        source = _canonical_csr(source, missing)
    missing = float(source.dtype.type(missing))
    n, p = source.shape
    weights = _read_weights(weights, n)
    counts, sums, least = np.zeros(p), np.zeros(p), np.full(p, np.inf)
    seen = np.empty(n, np.int32)
    infinite = survey(as_block(source, missing), weights, counts, sums, least, seen)
    if infinite >= 0:
        _refuse_infinite(source, infinite)
    used = np.where(seen == 0, 0.0, weights)
    found = Found(
        n,
        int(np.sum(used > 0.0)),
        int(np.sum(seen == 0)),
        int(np.sum(seen)),
        counts,
        sums,
        least,
        bool(np.all(weights == np.floor(weights))),
        source.dtype == np.float32,
        sparse.issparse(source),
        _bytes_of(source) + used.nbytes,
    )
    return Piece(source, missing, used, found)


def read_rows(raw, n_features: int):
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


def _read_weights(weights, n_rows: int) -> np.ndarray:
    if weights is None:
        return np.ones(n_rows)
    weights = np.asarray(weights, dtype=np.float64)
    if weights.shape != (n_rows,):
        raise ValueError(
            f"sample_weight has shape {weights.shape} where the block has {n_rows} rows; "
            "cut both into the same blocks."
        )
    if not np.isfinite(weights).all() or (weights < 0.0).any():
        raise ValueError("sample_weight must be finite and not negative.")
    return weights


def _refuse_infinite(source, row: int):
    values = source[[row]].toarray() if sparse.issparse(source) else source[[row]]
    column = int(np.flatnonzero(np.isinf(values[0]))[0])
    raise ValueError(
        f"it contains infinity: {values[0, column]} in its row {row}, column {column}. "
        "Mark values that are not known as NaN, and cap or remove the others."
    )


def _bytes_of(source) -> int:
    if sparse.issparse(source):
        return source.data.nbytes + source.indices.nbytes + source.indptr.nbytes
    return sys.getsizeof(0) + source.nbytes


def merge_found(parts: list[Found]) -> Found:
    """One ``Found`` for several blocks; the kinds were checked to agree where they must."""
    return Found(
        sum(p.n_rows for p in parts),
        sum(p.n_usable for p in parts),
        sum(p.n_unseen for p in parts),
        sum(p.n_entries for p in parts),
        np.sum([p.counts for p in parts], axis=0),
        np.sum([p.sums for p in parts], axis=0),
        np.min([p.least for p in parts], axis=0),
        all(p.whole_weights for p in parts),
        all(p.single for p in parts),
        parts[0].is_sparse,
        sum(p.n_bytes for p in parts),
    )
