"""Arrays from untrusted files, checked before NumPy, SciPy or anything compiled uses them.

A damaged or crafted file may declare any shape, type or index. Here, and only here, arrays of
.npy, .npz, .h5ad and .zarr are taken in:

    dense    two dimensions, real numbers, no larger than the memory (and than the file, for .npy)
    CSR/CSC  three vectors; indptr starts at 0, never falls, ends at the number of stored entries
             and has one entry more than there are rows; indices lie within the shape

Whatever does not hold is refused in one sentence.
"""

from __future__ import annotations

import math
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._io import machine_memory
from ._table import TableError

SPARSE = {"csr": sp.csr_matrix, "csc": sp.csc_matrix}


def load_numpy(path: Path) -> Any:
    """The dense array of an .npy or .npz file, or the matrix `scipy.sparse.save_npz` wrote."""
    if path.suffix.lower() == ".npy":
        with open(path, "rb") as stream:
            return checked_dense(path, _read_npy(path, stream, path.stat().st_size))
    with zipfile.ZipFile(path) as archive:
        sizes = {info.filename.removesuffix(".npy"): info for info in archive.infolist()}

        def member(name: str, kinds: str = "fiub") -> np.ndarray:
            with archive.open(sizes[name]) as stream:
                return _read_npy(path, stream, sizes[name].file_size, kinds)

        if "format" in sizes:
            kind = member("format", "SU")
            name = str(np.char.decode(kind, "latin1") if kind.dtype.kind == "S" else kind)
            if name not in SPARSE or not {"data", "indices", "indptr", "shape"} <= sizes.keys():
                raise TableError(f"{path} holds a sparse matrix of format {name!r}; save it as CSR")
            return checked_sparse(path, name, *map(member, ("data", "indices", "indptr", "shape")))
        if len(sizes) != 1:
            raise TableError(
                f"{path} holds {len(sizes)} arrays ({', '.join(list(sizes)[:4])}); save one, or a "
                "sparse matrix with scipy.sparse.save_npz"
            )
        return checked_dense(path, member(next(iter(sizes))))


def _read_npy(path: Path, stream: Any, size: int, kinds: str = "fiub") -> np.ndarray:
    """An array from a stream of `size` bytes, whose header must agree with that size."""
    try:
        version = np.lib.format.read_magic(stream)
        number = str(version[0]) if version in ((1, 0), (2, 0)) else ""
        shape, fortran, dtype = getattr(np.lib.format, f"read_array_header_{number}_0")(stream)
    except (ValueError, AttributeError, TypeError, MemoryError, RecursionError) as error:
        raise TableError(f"{path} is not a readable NumPy file; write it again") from error
    if dtype.hasobject:
        raise TableError(f"{path} holds Python objects, not numbers; save it as floats")
    if dtype.kind not in kinds:
        raise TableError(f"{path} holds {dtype} values; a table needs numbers")
    n_bytes = math.prod(shape) * dtype.itemsize
    if min((*shape, 0)) < 0 or n_bytes > size:
        raise TableError(f"{path} does not hold as many numbers as it declares; write it again")
    _check_memory(path, n_bytes)
    data = stream.read(n_bytes)
    if len(data) != n_bytes or stream.read(1):
        raise TableError(f"{path} does not hold as many numbers as it declares; write it again")
    return np.frombuffer(data, dtype).reshape(shape, order="F" if fortran else "C").copy()


def checked_dense(path: Path, values: Any) -> Any:
    """An array (or dataset of HDF5 or Zarr, not read yet) that can be a table."""
    if len(values.shape) != 2:
        raise TableError(f"{path} holds a {len(values.shape)}-dimensional array; a table has two")
    if values.dtype.kind not in "fiu":
        raise TableError(f"{path} holds {values.dtype} values; a table needs numbers")
    _check_memory(path, 8.0 * values.shape[0] * values.shape[1])
    return values


def checked_sparse(
    path: Path, kind: str, data: Any, indices: Any, indptr: Any, shape: Any
) -> sp.csr_matrix:
    """A CSR or CSC matrix from its three arrays (or datasets), as CSR."""
    extents = np.asarray(shape)
    if extents.shape != (2,) or extents.dtype.kind not in "iu" or (extents < 0).any():
        raise _damaged(path, "its shape is no pair of sizes")
    n, p = map(int, extents)
    _check_memory(path, 8.0 * (n + p))  # the pointers of as many rows and columns
    for name, vector, types in (("data", data, "fiub"), ("indices", indices, "iu"),
                                ("indptr", indptr, "iu")):  # fmt: skip
        if len(vector.shape) != 1 or vector.dtype.kind not in types:
            raise _damaged(path, f"{name} is no vector of numbers of the right kind")
    rows, columns = (n, p) if kind == "csr" else (p, n)
    if indptr.shape[0] != rows + 1 or data.shape != indices.shape:
        raise _damaged(path, "its arrays differ in length")
    _check_memory(path, 16.0 * data.shape[0])
    values, places, ends = (np.asarray(v[:]) for v in (data, indices, indptr))
    if ends[0] != 0 or int(ends[-1]) != len(values) or (ends[1:] < ends[:-1]).any():
        raise _damaged(path, "indptr does not rise from 0 to the number of stored entries")
    if len(places) and not (int(places.min()) >= 0 and int(places.max()) < columns):
        raise _damaged(path, f"an index lies outside of its shape, {n:,} x {p:,}")
    values = values.astype(np.float32 if values.dtype == np.float32 else np.float64)
    matrix = SPARSE[kind]((values, places.astype(np.int64), ends.astype(np.int64)), shape=(n, p))
    matrix = sp.csr_matrix(matrix)
    matrix.sum_duplicates()
    return matrix


def _damaged(path: Path, what: str) -> TableError:
    return TableError(f"{path} holds a damaged sparse matrix: {what}; write it again")


def _check_memory(path: Path, n_bytes: float) -> None:
    if n_bytes > machine_memory():
        raise TableError(
            f"{path} needs {n_bytes / 1e9:,.0f} GB of memory, more than there is; "
            "mnarkmeans.dask reads .npy, .parquet, .h5ad and .zarr in blocks"
        )
