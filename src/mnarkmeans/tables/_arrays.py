"""Arrays from files of strangers, checked before NumPy, SciPy or anything compiled uses them.

A damaged or crafted file may declare any shape, type or index. Here, and only here, arrays of
.npy, .npz, .h5ad and .zarr are taken in:

    dense    two dimensions, real numbers, no larger than the memory (and than the file, for .npy)
    CSR/CSC  three vectors; indptr starts at 0, never falls, ends at the number of stored entries
             and has one entry more than there are rows; indices lie within the shape

Whatever does not hold is refused in one sentence.
"""

from __future__ import annotations

import ast
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._io import machine_memory
from ._table import TableError

SPARSE = {"csr": sp.csr_matrix, "csc": sp.csc_matrix}


def load_npy(path: Path) -> np.ndarray:
    """The dense array of an .npy file."""
    with open(path, "rb") as stream:
        return _read_npy(path, stream, path.stat().st_size)


def load_npz(path: Path) -> Any:
    """The one array of an .npz file, or the sparse matrix that `scipy.sparse.save_npz` wrote."""
    with zipfile.ZipFile(path) as archive:
        sizes = {info.filename.removesuffix(".npy"): info for info in archive.infolist()}

        def member(name: str, any_kind: bool = False) -> np.ndarray:
            with archive.open(sizes[name]) as stream:
                return _read_npy(path, stream, sizes[name].file_size, any_kind)

        if "format" not in sizes:
            if len(sizes) != 1:
                raise TableError(
                    f"{path} holds {len(sizes)} arrays ({', '.join(list(sizes)[:4])}); save one, "
                    "or a sparse matrix with scipy.sparse.save_npz"
                )
            return checked_dense(path, member(next(iter(sizes))))
        kind = member("format", any_kind=True)
        name = kind.item() if kind.shape == () else b""
        name = name.decode(errors="replace") if isinstance(name, bytes) else str(name)
        if name == "coo" and {"row", "col", "data", "shape"} <= sizes.keys():
            return checked_coo(path, *map(member, ("data", "row", "col", "shape")))
        if name not in SPARSE or not {"data", "indices", "indptr", "shape"} <= sizes.keys():
            raise TableError(f"{path} holds a sparse matrix of format {name!r}; save it as CSR")
        return checked_sparse(path, name, *map(member, ("data", "indices", "indptr", "shape")))


def _read_npy(path: Path, stream: Any, size: int, any_kind: bool = False) -> np.ndarray:
    """An array from a stream of `size` bytes, whose header must agree with that size."""
    magic = stream.read(8)
    if magic[:6] != b"\x93NUMPY" or magic[6] not in (1, 2, 3):
        raise TableError(f"{path} is not a readable NumPy file; write it again")
    width = 2 if magic[6] == 1 else 4
    length = int.from_bytes(stream.read(width), "little")
    if length > min(size, 1 << 16):
        raise TableError(f"{path} is not a readable NumPy file; write it again")
    try:
        header = ast.literal_eval(stream.read(length).decode("latin1"))
        dtype, shape, fortran = (header[key] for key in ("descr", "shape", "fortran_order"))
        dtype = np.dtype(dtype) if isinstance(dtype, str) else np.dtype(object)
        shape = tuple(shape)
    except (ValueError, SyntaxError, KeyError, TypeError, MemoryError, RecursionError) as error:
        raise TableError(f"{path} is not a readable NumPy file; write it again") from error
    if dtype.hasobject:
        raise TableError(f"{path} holds Python objects, not numbers; save it as floats")
    if any(type(s) is not int or s < 0 for s in shape) or fortran not in (True, False):
        raise TableError(f"{path} is not a readable NumPy file; write it again")
    if dtype.kind not in "fiub" and not any_kind:
        raise TableError(f"{path} holds {dtype} values; a table needs numbers")
    count = 1
    for extent in shape:
        count *= extent
    if count * dtype.itemsize != size - 8 - width - length:
        raise TableError(f"{path} does not hold as many numbers as it declares; write it again")
    _check_memory(path, count * dtype.itemsize)
    data = stream.read(count * dtype.itemsize)
    if len(data) != count * dtype.itemsize:
        raise TableError(f"{path} is cut short; copy or write it again")
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
    n, p = _checked_shape(path, shape)
    for name, vector, types in (("data", data, "fiub"), ("indices", indices, "iu"),
                                ("indptr", indptr, "iu")):  # fmt: skip
        if len(vector.shape) != 1 or vector.dtype.kind not in types:
            raise _damaged(
                path, f"{name} is no vector of {'numbers' if 'f' in types else 'integers'}"
            )
    rows, columns = (n, p) if kind == "csr" else (p, n)
    if indptr.shape[0] != rows + 1 or data.shape != indices.shape:
        raise _damaged(path, "its arrays differ in length")
    _check_memory(path, 16.0 * data.shape[0])
    values, places, ends = (np.asarray(v[:]) for v in (data, indices, indptr))
    if ends[0] != 0 or int(ends[-1]) != len(values) or (ends[1:] < ends[:-1]).any():
        raise _damaged(path, "indptr does not rise from 0 to the number of stored entries")
    if len(places) and not (int(places.min()) >= 0 and int(places.max()) < columns):
        raise _damaged(
            path,
            f"an index lies outside of its {columns:,} {'columns' if kind == 'csr' else 'rows'}",
        )
    values = values.astype(np.float32 if values.dtype == np.float32 else np.float64)
    matrix = SPARSE[kind]((values, places.astype(np.int64), ends.astype(np.int64)), shape=(n, p))
    matrix = sp.csr_matrix(matrix)
    matrix.sum_duplicates()
    return matrix


def checked_coo(path: Path, data: Any, row: Any, col: Any, shape: Any) -> sp.csr_matrix:
    """A COO matrix from its arrays, as CSR."""
    n, p = _checked_shape(path, shape)
    if not data.ndim == row.ndim == col.ndim == 1 or not data.shape == row.shape == col.shape:
        raise _damaged(path, "its arrays differ in length")
    for places, size in ((row, n), (col, p)):
        inside = places.dtype.kind in "iu" and (not len(places) or (
            int(places.min()) >= 0 and int(places.max()) < size))  # fmt: skip
        if not inside:
            raise _damaged(path, "an index lies outside of its shape")
    places = row.astype(np.int64), col.astype(np.int64)
    return sp.csr_matrix((data.astype(np.float64), places), shape=(n, p))


def _checked_shape(path: Path, shape: Any) -> tuple[int, int]:
    extents = np.asarray(shape)
    if extents.shape != (2,) or extents.dtype.kind not in "iu" or (extents < 0).any():
        raise _damaged(path, "its shape is no pair of sizes")
    n, p = map(int, extents)
    _check_memory(path, 8.0 * (n + p))  # the pointers of as many rows and columns
    return n, p


def _damaged(path: Path, what: str) -> TableError:
    return TableError(f"{path} holds a damaged sparse matrix: {what}; write it again")


def _check_memory(path: Path, n_bytes: float) -> None:
    if n_bytes > machine_memory():
        raise TableError(
            f"{path} needs {n_bytes / 1e9:,.0f} GB of memory, more than there is; "
            "mnarkmeans.dask reads .npy, .parquet, .h5ad and .zarr in blocks"
        )
