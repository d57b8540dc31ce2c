"""Tables on disk as Dask arrays, a block of rows at a time.

    .npy            rows are mapped from the file
    .parquet        one file or a folder of files; blocks are row groups, numeric columns only
    .h5ad           X or a layer of a backed AnnData, dense or CSR
    .zarr           a two-dimensional Zarr array, in its own chunks of rows

Nothing is read before it is needed. Every block opens the file itself, so the arrays work on
threads, processes and clusters whose workers see the same path. At the end: what the command line
needs for tables larger than memory.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from .._io import machine_memory, require
from .._solver import slices
from .._validation import unnamed
from ._predict import Model, labels_and_distances

BYTES_READ_AT_ONCE = 1 << 26  # of a file: fewer and larger pieces than of a table in memory


@dataclass(frozen=True)
class TableFile:
    """A table on disk, as `open_table` gives it.

    Examples
    --------
    >>> import dask.array as da
    >>> from mnarkmeans.dask import TableFile
    >>> table = TableFile(da.ones((4, 2)), features=["a", "b"], n_bytes=64)
    >>> table.shape, table.ids(0, 2)
    ((4, 2), ['1', '2'])
    """

    X: Any  # dask.array (n, p), blocks dense or CSR
    features: list[str]
    n_bytes: int  # of all blocks in memory
    left_out: list[tuple[str, str]] = field(default_factory=list)  # (column, why)
    read_ids: Callable[[int, int], list[str]] | None = None  # names of the rows start..stop

    @property
    def shape(self) -> tuple[int, int]:
        return self.X.shape

    def ids(self, start: int, stop: int) -> list[str]:
        """Names of the rows; their numbers from 1 if the file has none."""
        if self.read_ids is not None:
            return self.read_ids(start, stop)
        return [str(i + 1) for i in range(start, stop)]


def open_table(
    path: str | os.PathLike[str],
    *,
    layer: str | None = None,
    id_column: str | None = None,
    block_bytes: int = BYTES_READ_AT_ONCE,
) -> TableFile:
    """Open a table on disk without reading it.

    Parameters
    ----------
    path : path
        A .npy, .parquet, .h5ad or .zarr, or a folder of .parquet files.
    layer : str, optional
        Layer of an .h5ad to use in place of X.
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
    if kind is None:
        raise ValueError(
            f"{path} is no .npy, .parquet, .h5ad or .zarr, and no folder of .parquet files."
        )
    if layer is not None and kind != "h5ad":
        raise ValueError(f"layer is for .h5ad files, not {path.name}.")
    if id_column is not None and kind != "parquet":
        raise ValueError(f"id_column is for Parquet tables, not {path.name}.")
    if kind == "npy":
        return _from_npy(path, block_bytes)
    if kind == "parquet":
        return _from_parquet(path, id_column)
    if kind == "h5ad":
        return _from_h5ad(path, layer, block_bytes)
    return _from_zarr(path)


def kind_of(path: Path) -> str | None:
    """npy, parquet, h5ad or zarr by the name; None for anything else."""
    if path.is_dir() and path.suffix != ".zarr":
        is_zarr = any((path / name).exists() for name in ("zarr.json", ".zarray"))
        return "zarr" if is_zarr else "parquet" if _parquet_files(path) else None
    return {".npy": "npy", ".parquet": "parquet", ".pq": "parquet", ".h5ad": "h5ad",
            ".zarr": "zarr"}.get(path.suffix.lower())  # fmt: skip


def _array_of(blocks: list[Any], lengths: list[int], p: int, meta: Any) -> Any:
    da = require("dask.array", "dask")
    rows = [
        da.from_delayed(block, (length, p), meta=meta)
        for block, length in zip(blocks, lengths, strict=True)
    ]
    return da.concatenate(rows)


def _lazy_blocks(
    read: Callable[..., Any], n: int, rows: int, *args: Any
) -> tuple[list[Any], list[int]]:
    delayed = require("dask", "dask").delayed
    cuts = slices(n, max(1, rows))
    return (
        [delayed(read, pure=True)(*args, start, stop) for start, stop in cuts],
        [stop - start for start, stop in cuts],
    )


# --- .npy -------------------------------------------------------------------------------------


def _from_npy(path: Path, block_bytes: int) -> TableFile:
    shape, by_columns, dtype, offset = _npy_header(path)
    if len(shape) != 2 or dtype.kind not in "fiu":
        raise ValueError(
            f"{path} holds a {len(shape)}-dimensional array of {dtype}; a table needs two "
            "dimensions and numbers."
        )
    (n, p), width = shape, dtype.itemsize
    blocks, lengths = _lazy_blocks(
        _npy_rows, n, block_bytes // max(1, p * width), str(path), dtype.str, p,
        -1 if by_columns else offset,
    )  # fmt: skip
    X = _array_of(blocks, lengths, p, np.empty((0, 0), dtype))
    return TableFile(X, unnamed(p), n * p * width)


def _npy_header(path: Path) -> tuple[tuple[int, ...], bool, np.dtype[Any], int]:
    """Shape, whether stored by columns, type, and where the numbers begin; nothing is mapped."""
    with open(path, "rb") as file:
        version = np.lib.format.read_magic(file)
        if version == (1, 0):
            header = np.lib.format.read_array_header_1_0(file)
        else:
            header = np.lib.format.read_array_header_2_0(file)
        return *header, file.tell()


def _npy_rows(path: str, dtype: str, p: int, offset: int, start: int, stop: int) -> np.ndarray:
    """Rows of the file, mapped on their own: the address space of a small block is small."""
    if offset < 0:  # stored by columns
        return np.array(np.load(path, mmap_mode="r", allow_pickle=False)[start:stop])
    kind = np.dtype(dtype)
    begin = offset + start * p * kind.itemsize
    return np.memmap(path, kind, "r", begin, (stop - start, p))


# --- Parquet ----------------------------------------------------------------------------------


def _parquet_files(path: Path) -> list[Path]:
    if path.is_file():
        return [path]
    return sorted(file for file in path.rglob("*.parquet") if not file.name.startswith(("_", ".")))


def _from_parquet(path: Path, id_column: str | None) -> TableFile:
    parquet = require("pyarrow.parquet", "cli")
    delayed = require("dask", "dask").delayed
    files = _parquet_files(path)
    schema = parquet.read_schema(files[0])
    if id_column is not None and id_column not in schema.names:
        raise ValueError(f"{path} has no column {id_column!r}; it has {', '.join(schema.names)}.")
    features, left_out = _numeric_columns(schema, id_column)
    if not features:
        raise ValueError(f"{path} has no numeric column.")
    blocks, lengths, places = [], [], []
    for file in files:
        with parquet.ParquetFile(file) as opened:
            absent = [name for name in features if name not in opened.schema_arrow.names]
            if absent:
                raise ValueError(f"{file} has no column {absent[0]!r}, which {files[0]} has.")
            for group in range(opened.num_row_groups):
                rows = opened.metadata.row_group(group).num_rows
                blocks.append(delayed(_parquet_rows)(str(file), group, features))
                lengths.append(rows)
                places.append((str(file), group))
    single = all(str(schema.field(name).type) == "float" for name in features)
    kind = np.float32 if single else np.float64
    X = _array_of(blocks, lengths, len(features), np.empty((0, 0), kind))
    read_ids = None if id_column is None else _ParquetIds(places, lengths, id_column)
    n_bytes = sum(lengths) * len(features) * np.dtype(kind).itemsize
    return TableFile(X, features, n_bytes, left_out, read_ids)


def _numeric_columns(schema: Any, id_column: str | None) -> tuple[list[str], list[tuple[str, str]]]:
    types = require("pyarrow.types", "cli")
    features, left_out = [], []
    for column in schema:
        if column.name == id_column or column.name.startswith("__index_level_"):
            continue
        if types.is_floating(column.type) or types.is_integer(column.type):
            features.append(column.name)
        else:
            left_out.append((column.name, f"{column.type}, not a number"))
    return features, left_out


def _parquet_rows(file: str, group: int, features: list[str]) -> np.ndarray:
    parquet = require("pyarrow.parquet", "cli")
    with parquet.ParquetFile(file) as opened:
        columns = opened.read_row_group(group, columns=features, use_threads=False)
    kind = np.float32 if all(str(c.type) == "float" for c in columns.itercolumns()) else np.float64
    out = np.empty((columns.num_rows, len(features)), kind)
    for j, name in enumerate(features):  # missing (null) becomes NaN on the way
        out[:, j] = columns.column(name).to_numpy()
    return out


@dataclass(frozen=True)
class _ParquetIds:
    places: list[tuple[str, int]]
    lengths: list[int]
    column: str

    def __call__(self, start: int, stop: int) -> list[str]:
        parquet = require("pyarrow.parquet", "cli")
        found: list[str] = []
        first = 0
        for (file, group), length in zip(self.places, self.lengths, strict=True):
            low, high = max(start, first), min(stop, first + length)
            if low < high:
                with parquet.ParquetFile(file) as opened:
                    names = opened.read_row_group(group, columns=[self.column]).column(0)
                found += [str(name) for name in names[low - first : high - first].to_pylist()]
            first += length
        return found


# --- AnnData ----------------------------------------------------------------------------------


def _from_h5ad(path: Path, layer: str | None, block_bytes: int) -> TableFile:
    h5py = require("h5py", "anndata")
    where = "X" if layer is None else f"layers/{layer}"
    with h5py.File(path, "r") as file:
        if where not in file:
            raise ValueError(f"{path} has no {where}.")
        stored = file[where]
        kind = stored.attrs.get("encoding-type", "array")
        if kind == "csc_matrix":
            raise ValueError(
                f"{where} of {path} is stored by columns (CSC); store it by rows (CSR) to read it "
                "in blocks."
            )
        is_csr = kind == "csr_matrix"
        n, p = (int(size) for size in (stored.attrs["shape"] if is_csr else stored.shape))
        if is_csr:
            entries = stored["data"].shape[0]
            width = stored["data"].dtype.itemsize + stored["indices"].dtype.itemsize
            n_bytes = entries * width
            dtype = stored["data"].dtype
        else:
            n_bytes, dtype = n * p * stored.dtype.itemsize, stored.dtype
        features = _index_of(file, "var", 0, p)
    rows = max(1, int(block_bytes * n // max(n_bytes, 1)))
    blocks, lengths = _lazy_blocks(_h5ad_rows, n, rows, str(path), where)
    meta = sparse.csr_array((0, 0), dtype=dtype) if is_csr else np.empty((0, 0), dtype)
    X = _array_of(blocks, lengths, p, meta)

    def read_ids(start: int, stop: int) -> list[str]:
        with h5py.File(path, "r") as file:
            return _index_of(file, "obs", start, stop)

    return TableFile(X, features, n_bytes, [], read_ids)


def _h5ad_rows(path: str, where: str, start: int, stop: int) -> Any:
    h5py = require("h5py", "anndata")
    with h5py.File(path, "r") as file:
        stored = file[where]
        if stored.attrs.get("encoding-type") != "csr_matrix":
            return stored[start:stop]
        indptr = stored["indptr"][start : stop + 1].astype(np.int64)
        entries = slice(int(indptr[0]), int(indptr[-1]))
        shape = (stop - start, int(stored.attrs["shape"][1]))
        return sparse.csr_array(
            (stored["data"][entries], stored["indices"][entries], indptr - indptr[0]), shape=shape
        )


def _index_of(file: Any, table: str, start: int, stop: int) -> list[str]:
    group = file[table]
    names = group[group.attrs.get("_index", "_index")]
    if names.attrs.get("encoding-type") == "nullable-string-array":  # text of pandas 3
        names = names["values"]
    return [v.decode() if isinstance(v, bytes) else str(v) for v in names[start:stop]]


# --- Zarr -------------------------------------------------------------------------------------


def _from_zarr(path: Path) -> TableFile:
    da = require("dask.array", "dask")
    require("zarr", "dask")
    X = da.from_zarr(str(path))
    if X.ndim != 2:
        raise ValueError(f"{path} holds a {X.ndim}-dimensional Zarr array; a table has two.")
    return TableFile(X, unnamed(X.shape[1]), int(X.nbytes))


def row_blocks(table: TableFile) -> Iterator[tuple[int, int]]:
    """(start, stop) of every block."""
    first = 0
    for length in table.X.chunks[0]:
        yield first, first + int(length)
        first += int(length)


SHARE_OF_MEMORY = 0.4  # a table beyond this share is read in blocks: fitting needs room too
SMALL_FILE = 0.02  # files below this share of memory are not looked into
BLOCKS_AT_ONCE = 8


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
        yield f"the Dask cluster at {address} ({workers} workers)"


def prepare_blocks(X: Any, missing_code: float | None, log1p: bool) -> Any:
    """The Dask array with the code turned into gaps, and log(1 + x) taken if asked for."""
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
                f"log(1 + x) is not defined for {np.nanmin(values):g}, the least value of a block"
            )
        np.log1p(values, out=values)
    return block


def labelled(
    model: Any, X: Any, table: TableFile
) -> Iterator[tuple[list[str], np.ndarray, np.ndarray]]:
    """(names, labels, distances to the own centre) of the rows, some blocks at a time."""
    dask = require("dask", "dask")
    fitted = dask.delayed(Model.of(model), traverse=False)
    blocks, edges = list(X.to_delayed().ravel()), list(row_blocks(table))
    for start, stop in slices(len(blocks), BLOCKS_AT_ONCE):
        found = dask.compute(
            *(dask.delayed(labels_and_distances)(block, fitted) for block in blocks[start:stop])
        )
        for (first, last), (labels, own) in zip(edges[start:stop], found, strict=True):
            yield table.ids(first, last), labels, own


def sample(X: Any, table: TableFile, size: int, seed: int) -> tuple[list[str], Any]:
    """Names and values of at most ``size`` rows drawn at random, in memory."""
    dask = require("dask", "dask")
    n = table.shape[0]
    rng = np.random.default_rng(seed)
    rows = np.sort(rng.choice(n, size, replace=False)) if n > size else np.arange(n)
    names, parts = [], []
    for (first, last), block in zip(row_blocks(table), X.to_delayed().ravel(), strict=True):
        own = rows[(rows >= first) & (rows < last)] - first
        if len(own):
            parts.append(dask.delayed(_take)(block, own))
            ids = table.ids(first, last)
            names += [ids[i] for i in own]
    values = dask.compute(*parts)
    return names, sparse.vstack(values, "csr") if sparse.issparse(values[0]) else np.vstack(values)


def _take(block: Any, rows: np.ndarray) -> Any:
    return block[rows]
