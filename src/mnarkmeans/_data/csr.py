"""CSR matrices as the core takes them: features rise within a row, what is stored is observed."""

from __future__ import annotations

import math

import numpy as np
from scipy import sparse

from .gaps import seen_in

MOST = 2**31 - 1


def narrowed(X):
    """With indices of 32 bits, made once here where they were wider; values are not copied."""
    if X.shape[1] > MOST:
        raise ValueError(f"A sparse table may have {MOST} features at most; got {X.shape[1]}.")
    if X.indices.dtype == np.int32 or X.nnz > MOST:
        return X
    _check_range(X)
    indices, starts = X.indices.astype(np.int32), X.indptr.astype(np.int32)
    return sparse.csr_array((X.data, indices, starts), shape=X.shape)


def mended(X):
    """A copy in canonical form."""
    starts = X.indptr
    if starts[0] < 0 or starts[-1] > len(X.indices) or (np.diff(starts) < 0).any():
        raise ValueError("X is no CSR matrix: the beginnings of its rows (indptr) do not rise.")
    _check_range(X)
    # Made from its parts, since a matrix remembers whether it is sorted even if that has changed.
    X = sparse.csr_array((X.data.copy(), X.indices.copy(), starts.copy()), shape=X.shape)
    X.sum_duplicates()
    return X


def _check_range(X) -> None:
    used = X.indices[X.indptr[0] : X.indptr[-1]]
    if len(used) and not (used.min() >= 0 and used.max() < X.shape[1]):
        wrong = used[(used < 0) | (used >= X.shape[1])][0]
        raise ValueError(
            f"X is no CSR matrix of {X.shape[1]} features: it has an entry in feature {wrong}."
        )


def stores_gaps(X, missing: float, sums: np.ndarray) -> bool:
    """Whether entries are stored that mark gaps. ``sums`` (p,): of each feature; NaN if one is."""
    coded = not math.isnan(missing) and bool((X.data == missing).any())
    return coded or bool(np.isnan(sums).any())


def without_gaps(X, missing: float):
    """Without the stored entries that are NaN or ``missing``."""
    keep = seen_in(X.data, missing)
    counts = np.concatenate([[0], np.cumsum(keep)])
    return sparse.csr_array((X.data[keep], X.indices[keep], counts[X.indptr]), shape=X.shape)
