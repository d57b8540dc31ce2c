"""Tables on disk as Dask arrays, a block of rows at a time.

    .npy            rows are mapped from the file
    .parquet        one file or a folder of files; blocks are row groups, numeric columns only
    .h5ad, .zarr    X or a layer of an AnnData, dense or CSR, read by AnnData; as when it is read
                    whole, zeros are missing and features that are not marked as highly variable
                    are left out
    .zarr           a two-dimensional Zarr array, in its own chunks of rows, read by Dask

Nothing is read before it is needed. Every block opens the file itself, so the arrays work on
threads, processes and clusters whose workers see the same path. At the end: what the command line
needs for tables larger than memory.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from .._io import machine_memory, require
from .._solver import slices
from .._validation import unnamed


def row_numbers(start: int, stop: int) -> list[str]:
    return [str(i + 1) for i in range(start, stop)]


@dataclass(frozen=True)
class TableFile:
    """A table on disk, as `open_table` gives it."""

    X: Any  # dask.array (n, p), blocks dense or CSR
    features: list[str]
    n_bytes: int  # of all blocks in memory
    left_out: list[tuple[str, str]] = field(default_factory=list)  # (column, why)
    ids: Callable[[int, int], list[str]] = row_numbers  # names of the rows start..stop

    @property
    def shape(self) -> tuple[int, int]:
        return self.X.shape


def open_table(
    path: str | os.PathLike[str],
    *,
    layer: str | None = None,
    id_column: str | None = None,
    block_bytes: int = 1 << 26,
) -> TableFile:
    """Open a table on disk without reading it.

    Parameters
    ----------
    path : path
        A .npy, .parquet, .h5ad or .zarr, or a folder of .parquet files.
    layer : str, optional
        Layer of an AnnData to use in place of X.
    id_column : str, optional
        Column of a Parquet table that names the rows.
    block_bytes : int, default=64 MiB
        Size of a block of rows in memory, about.

    Returns
    -------
    table : TableFile
        With ``X``, a Dask array for :class:`MNARKMeans`, and ``features``, its column names.

    Examples
    --------
    >>> import numpy as np, pathlib, tempfile
    >>> from mnarkmeans.dask import MNARKMeans, open_table
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "large.npy"
    >>> np.save(path, np.repeat([[0.0, 1.0], [9.0, 8.0]], 50, axis=0))
    >>> table = open_table(path, block_bytes=800)
    >>> table.X.numblocks
    (2, 1)
    >>> MNARKMeans(2, lam=1.0, random_state=0).fit(table.X).inertia_
    0.0
    """
    require("dask.array", "dask")
    path = Path(path)
    kind = kind_of(path)
    if layer is not None and kind not in ("h5ad", "zarr"):
        raise ValueError(f"layer is for .h5ad and .zarr, not {path.name}.")
    if id_column is not None and kind != "parquet":
        raise ValueError(f"id_column is for Parquet tables, not {path.name}.")
    if kind == "npy":
        return _open_npy(path, block_bytes)
    if kind == "parquet":
        return _open_parquet(path, id_column)
    if kind is None:
        raise ValueError(
            f"{path} is no .npy, .parquet, .h5ad or .zarr, and no folder of .parquet files."
        )
    return _open_store(path, layer, block_bytes)


def kind_of(path: Path) -> str | None:
    """npy, parquet, h5ad or zarr by the name; None for anything else."""
    if path.is_dir() and path.suffix != ".zarr":
        is_zarr = any((path / name).exists() for name in ("zarr.json", ".zarray"))
        return "zarr" if is_zarr else "parquet" if _parquet_files(path) else None
    return {".npy": "npy", ".parquet": "parquet", ".pq": "parquet", ".h5ad": "h5ad",
            ".zarr": "zarr"}.get(path.suffix.lower())  # fmt: skip


def _array_of(blocks: list[Any], lengths: list[int], p: int, dtype: Any) -> Any:
    da = require("dask.array", "dask")
    rows = zip(blocks, lengths, strict=True)
    return da.concatenate([da.from_delayed(one, (n, p), dtype) for one, n in rows])


# --- .npy -----------------------------------------------------------------------------------------


def _open_npy(path: Path, block_bytes: int) -> TableFile:
    with open(path, "rb") as file:  # the header alone: nothing is mapped yet
        is_old = np.lib.format.read_magic(file) == (1, 0)
        read_header = getattr(np.lib.format, f"read_array_header_{1 if is_old else 2}_0")
        (shape, by_columns, dtype), offset = read_header(file), file.tell()
    if len(shape) != 2 or dtype.kind not in "fiu":
        raise ValueError(
            f"{path} holds a {len(shape)}-dimensional array of {dtype}; a table needs two "
            "dimensions and numbers."
        )
    n, p = shape
    row_bytes = max(1, p * dtype.itemsize)
    cuts = slices(n, max(1, block_bytes // row_bytes))
    read = require("dask", "dask").delayed(_npy_rows, pure=True)
    blocks = [read(str(path), dtype, p, None if by_columns else offset, *cut) for cut in cuts]
    X = _array_of(blocks, [stop - start for start, stop in cuts], p, dtype)
    return TableFile(X, unnamed(p), n * row_bytes)


def _npy_rows(
    path: str, dtype: np.dtype, p: int, offset: int | None, start: int, stop: int
) -> np.ndarray:
    """Rows of the file, mapped on their own: the address space of a small block is small."""
    if offset is None:  # stored by columns
        return np.array(np.load(path, mmap_mode="r", allow_pickle=False)[start:stop])
    return np.memmap(path, dtype, "r", offset + start * p * dtype.itemsize, (stop - start, p))


# --- Parquet --------------------------------------------------------------------------------------


def _parquet_files(path: Path) -> list[Path]:
    if path.is_file():
        return [path]
    return sorted(file for file in path.rglob("*.parquet") if not file.name.startswith(("_", ".")))


def _open_parquet(path: Path, id_column: str | None) -> TableFile:
    datasets, delayed = require("pyarrow.dataset", "cli"), require("dask", "dask").delayed
    types = require("pyarrow.types", "cli")
    table = datasets.dataset([str(file) for file in _parquet_files(path)], format="parquet")
    if id_column is not None and id_column not in table.schema.names:
        names = ", ".join(table.schema.names)
        raise ValueError(f"{path} has no column {id_column!r}; it has {names}.")
    columns = [
        column for column in table.schema
        if column.name != id_column and not column.name.startswith("__index_level_")
    ]  # fmt: skip
    numeric = [c for c in columns if types.is_floating(c.type) or types.is_integer(c.type)]
    features = [column.name for column in numeric]
    if not features:
        raise ValueError(f"{path} has no numeric column.")
    groups = []
    for file in table.get_fragments():
        absent = [name for name in features if name not in file.physical_schema.names]
        if absent:
            raise ValueError(f"{file.path} has no column {absent[0]!r}, which other files have.")
        groups += file.split_by_row_group()
    lengths = [sum(one.num_rows for one in group.row_groups) for group in groups]
    dtype = np.dtype(np.float32 if all(str(c.type) == "float" for c in numeric) else np.float64)
    blocks = [delayed(_parquet_rows)(group, features, dtype) for group in groups]
    return TableFile(
        _array_of(blocks, lengths, len(features), dtype),
        features,
        sum(lengths) * len(features) * dtype.itemsize,
        [(c.name, f"{c.type}, not a number") for c in columns if c not in numeric],
        partial(_parquet_ids, groups, lengths, id_column) if id_column else row_numbers,
    )


def _parquet_rows(group: Any, features: list[str], dtype: Any) -> np.ndarray:
    columns = group.to_table(columns=features, use_threads=False)
    out = np.empty((columns.num_rows, len(features)), dtype)
    for j, name in enumerate(features):  # missing (null) becomes NaN on the way
        out[:, j] = columns.column(name).to_numpy()
    return out


def _parquet_ids(
    groups: list[Any], lengths: list[int], column: str, start: int, stop: int
) -> list[str]:
    found: list[str] = []
    for group, (first, last) in zip(groups, pairwise(np.cumsum([0, *lengths])), strict=True):
        low, high = max(start, first), min(stop, last)
        if low < high:
            names = group.to_table(columns=[column]).column(0)[low - first : high - first]
            found += [str(name) for name in names.to_pylist()]
    return found


# --- AnnData and Zarr -----------------------------------------------------------------------------


@contextmanager
def _store(path: Path) -> Iterator[Any]:
    """The HDF5 file, or the Zarr group or array."""
    if path.is_dir():
        yield require("zarr", "dask").open(str(path), mode="r")
    else:
        with require("h5py", "anndata").File(path, "r") as file:
            yield file


def _open_store(path: Path, layer: str | None, block_bytes: int) -> TableFile:
    with _store(path) as store:
        if hasattr(store, "shape"):
            X = require("dask.array", "dask").from_zarr(str(path))
            if X.ndim != 2 or layer is not None:
                what = "a table has two" if layer is None else f"there is no layer {layer!r}"
                raise ValueError(f"{path} holds a {X.ndim}-dimensional Zarr array; {what}.")
            return TableFile(X, unnamed(X.shape[1]), int(X.nbytes))
        where = "X" if layer is None else f"layers/{layer}"
        if where not in store:
            raise ValueError(f"{path} has no {where}.")
        stored = store[where]
        kind = stored.attrs.get("encoding-type", "array")
        if kind == "csc_matrix":
            raise ValueError(
                f"{where} of {path} is stored by columns (CSC); store it by rows (CSR) to read it "
                "in blocks."
            )
        if kind == "csr_matrix":
            n, p = (int(size) for size in stored.attrs["shape"])
            n_bytes = stored["data"].nbytes + stored["indices"].nbytes
        else:
            (n, p), n_bytes = stored.shape, stored.nbytes
        rows = max(1, int(block_bytes * n // max(n_bytes, 1)))
        lazily = require("anndata.experimental", "anndata")
        read = getattr(lazily, "read_elem_lazy", None) or lazily.read_elem_as_dask
        X = prepare_blocks(read(stored, chunks=(min(rows, n), p)), 0.0, log1p=False)
        var = require("anndata.io", "anndata").read_elem(store["var"])
    marked = np.asarray(var.get("highly_variable", np.ones(p)), dtype=bool)
    left_out = []
    if marked.any() and not marked.all():
        why = 'not marked in var["highly_variable"]'
        left_out = [(str(name), why) for name in var.index[~marked]]
        X, var = X[:, np.flatnonzero(marked)], var[marked]
    return TableFile(X, [*map(str, var.index)], n_bytes, left_out, partial(_names_of_rows, path))


def _names_of_rows(path: Path, start: int, stop: int) -> list[str]:
    with _store(path) as store:
        names = store["obs"][store["obs"].attrs.get("_index", "_index")]
        if names.attrs.get("encoding-type") == "nullable-string-array":  # text of pandas 3
            names = names["values"]
        return [v.decode() if isinstance(v, bytes) else str(v) for v in names[start:stop]]


# --- for the command line -------------------------------------------------------------------------

SHARE_OF_MEMORY = 0.4  # a table beyond this share is read in blocks: fitting needs room too
SMALL_FILE = 0.02  # files below this share of memory are not looked into


def needs_blocks(path: Path, layer: str | None = None) -> bool:
    """Whether a table comes in parts (a folder, Zarr) or is too large for memory."""
    kind = kind_of(path)
    if kind is None or not path.exists():
        return False
    if path.is_dir():
        return True
    memory = machine_memory()
    if path.stat().st_size < SMALL_FILE * memory:
        return False
    try:
        return open_table(path, layer=layer).n_bytes > SHARE_OF_MEMORY * memory
    except ValueError:  # the reader of whole tables will say what is wrong
        return False


@contextmanager
def connect(address: str | None) -> Iterator[str]:
    """Use the cluster at this address, or threads; yields words about it."""
    if address is None:
        dask = require("dask", "dask")
        with dask.config.set(scheduler="threads"):
            yield "the threads of this machine"
        return
    distributed = require("distributed", "dask")
    try:
        client = distributed.Client(address, timeout="10s")
    except (OSError, TimeoutError, ValueError) as error:
        raise ConnectionError(
            f"no Dask scheduler answers at {address}; check the address and that it runs"
        ) from error
    with client:
        workers = len(client.scheduler_info(n_workers=-1)["workers"])
        if not workers:
            raise ConnectionError(f"the Dask scheduler at {address} has no workers; start some")
        yield f"the Dask cluster at {address} ({workers} worker{'s' * (workers != 1)})"


def prepare_blocks(X: Any, missing_code: float | None, log1p: bool) -> Any:
    """The Dask array with NaN in place of the code, and log(1 + x) of it if ``log1p``."""
    if missing_code is None and not log1p:
        return X
    kind = X.dtype if X.dtype.kind == "f" else np.dtype(np.float64)
    return X.map_blocks(
        _prepare_block, missing_code, log1p, kind, dtype=kind, meta=X._meta.astype(kind)
    )


def _prepare_block(block: Any, missing_code: float | None, log1p: bool, kind: np.dtype[Any]) -> Any:
    block = block.astype(kind)  # a copy: the file may be mapped
    values = block.data if sparse.issparse(block) else block
    if missing_code is not None:
        values[values == kind.type(missing_code)] = np.nan
    if log1p:
        if (values <= -1.0).any():
            raise ValueError(
                f"log(1 + x) is not defined for {np.nanmin(values):g}, the minimum of a block"
            )
        np.log1p(values, out=values)
    return block


def labelled(
    model: Any, X: Any, table: TableFile
) -> Iterator[tuple[list[str], np.ndarray, np.ndarray]]:
    """(names, labels, distances to the own centre) of the rows, some blocks at a time."""
    labels, distances = model.predict(X), model.transform(X).min(axis=1)
    edges = np.cumsum([0, *labels.chunks[0]])
    for start, stop in slices(len(edges) - 1, 8):
        found = require("dask", "dask").compute(
            labels.blocks[start:stop], distances.blocks[start:stop]
        )
        yield table.ids(int(edges[start]), int(edges[stop])), *found


def sample(X: Any, table: TableFile, size: int, seed: int) -> tuple[list[str], Any]:
    """Names and values of at most ``size`` rows drawn at random, in memory."""
    n, names = table.shape[0], []
    rng = np.random.default_rng(seed)
    rows = np.sort(rng.choice(n, size, replace=False)) if n > size else np.arange(n)
    for first, last in pairwise(np.cumsum([0, *X.chunks[0]]).tolist()):
        own = rows[(rows >= first) & (rows < last)]
        ids = table.ids(first, last) if len(own) else []
        names += [ids[i - first] for i in own]
    return names, X[rows].compute()
