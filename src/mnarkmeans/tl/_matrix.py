"""Find the matrix in an AnnData object: which one, which columns, in memory."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy import sparse

from .._data.oddities import MissingDataWarning

# Rows read from a backed file at a time.
BACKED_ROWS = 4096


def copied(adata: Any) -> Any:
    if adata.isbacked:
        raise ValueError(
            "copy=True cannot copy an AnnData that is backed by a file. "
            "Call adata.to_memory() first, or leave copy=False."
        )
    return adata.copy()


def matrix_of(
    adata: Any, layer: str | None, use_rep: str | None, use_highly_variable: bool | None
) -> tuple[Any, np.ndarray]:
    """The matrix asked for, and the mask of its columns to use."""
    if layer is not None and use_rep is not None:
        raise ValueError(
            f"layer={layer!r} and use_rep={use_rep!r} were both given; choose one of them."
        )
    if use_rep is not None:
        if use_highly_variable:
            raise ValueError(
                f"use_highly_variable=True chooses genes, and use_rep={use_rep!r} has none. "
                "Leave one of them out."
            )
        matrix = _entry(adata.obsm, use_rep, "obsm")
        matrix = matrix.to_numpy() if hasattr(matrix, "to_numpy") else matrix
        return matrix, np.ones(matrix.shape[1], bool)
    matrix = adata.X if layer is None else _entry(adata.layers, layer, "layers")
    if matrix is None:
        raise ValueError("adata.X is empty; name the layer= or use_rep= to cluster on.")
    return matrix, _marked_genes(adata, use_highly_variable)


def _entry(mapping: Mapping[str, Any], key: str, where: str) -> Any:
    if key not in mapping:
        found = ", ".join(map(repr, mapping.keys())) or "none"
        raise KeyError(f"{key!r} is not in adata.{where}; there are: {found}.")
    return mapping[key]


def _marked_genes(adata: Any, use_highly_variable: bool | None) -> np.ndarray:
    marked = "highly_variable" in adata.var
    if use_highly_variable and not marked:
        raise KeyError(
            "use_highly_variable=True, but adata.var has no column 'highly_variable'. "
            "Run scanpy.pp.highly_variable_genes first."
        )
    if not marked or use_highly_variable is False:
        return np.ones(adata.n_vars, bool)
    return adata.var["highly_variable"].to_numpy(dtype=bool)


def usable(matrix: Any, columns: np.ndarray, zero_is_missing: bool) -> tuple[Any, np.ndarray]:
    """The columns used, in memory, and their mask: asked for, and observed at least once."""
    if type(matrix).__module__.startswith("dask"):
        raise TypeError(
            "The matrix is a Dask array. Call .compute() on it, or use mnarkmeans.dask.MNARKMeans."
        )
    X = in_memory(matrix, columns)
    if sparse.issparse(X) and not zero_is_missing:
        X = X.toarray()
    if not np.issubdtype(X.dtype, np.floating):
        X = X.astype(np.float64)
    observed = _observed_columns(X, zero_is_missing)
    if not observed.any():
        raise ValueError(
            f"None of the {X.shape[0]} x {X.shape[1]} values is observed; there is nothing to "
            "cluster. Check layer=, use_highly_variable= and zero_is_missing=."
        )
    used = columns.copy()
    used[used] = observed
    return (X if observed.all() else X[:, observed]), used


def in_memory(matrix: Any, columns: np.ndarray) -> Any:
    everything = bool(columns.all())
    if isinstance(matrix, np.ndarray) or sparse.issparse(matrix):
        X = matrix if everything else matrix[:, columns]
    elif hasattr(matrix, "to_memory") and matrix.format == "csc":
        X = matrix.to_memory()[:, columns]  # by rows it would be read once per slice
    else:
        parts = [
            matrix[start : start + BACKED_ROWS][:, columns]
            for start in range(0, matrix.shape[0], BACKED_ROWS)
        ]
        X = sparse.vstack(parts) if sparse.issparse(parts[0]) else np.concatenate(parts)
    return X.tocsr() if sparse.issparse(X) else np.asarray(X)


def _observed_columns(X: Any, zero_is_missing: bool) -> np.ndarray:
    if sparse.issparse(X):
        seen = ~np.isnan(X.data) & (X.data != 0)
        return np.bincount(X.indices[seen], minlength=X.shape[1]) > 0
    seen = ~np.isnan(X)
    if zero_is_missing:
        seen &= X != 0
    return seen.any(axis=0)


def warn_if_centred(X: Any, zero_is_missing: bool) -> None:
    values = X.data if sparse.issparse(X) else X
    if zero_is_missing and values.size and np.nanmin(values) < 0:
        warnings.warn(
            "The matrix holds negative values, so it was probably scaled or centred, and zero no "
            "longer means 'not seen'. Use log-normalised expression (layer=), or say "
            "zero_is_missing=False.",
            MissingDataWarning,
            stacklevel=4,
        )


def reference_of(reference: Any, used: np.ndarray, n_columns: int) -> Any:
    """One number per column used, from one per column of the matrix."""
    if isinstance(reference, str) or np.ndim(reference) == 0:
        return reference
    if np.shape(reference) != (n_columns,):
        raise ValueError(
            f"reference must be one number or one per column ({n_columns}); "
            f"got an array of shape {np.shape(reference)}."
        )
    return np.asarray(reference)[used]


def seed_of(rng: Any) -> Any:
    """MNARKMeans takes an integer or a RandomState; a Generator gives one integer."""
    return int(rng.integers(2**31 - 1)) if isinstance(rng, np.random.Generator) else rng
