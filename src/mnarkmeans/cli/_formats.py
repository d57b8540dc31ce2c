"""Every file format becomes a `Table`.

.csv .tsv .txt (+ .gz), .xlsx, .parquet, .npy, .npz (scipy.sparse, or one dense array), .h5ad.
In dense formats NaN is missing; in sparse ones what is not stored is missing. Nothing that could
execute code is loaded: pickled arrays are refused.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._io import require
from .._observed import with_nan
from .._validation import unnamed
from ._errors import UserError, unknown_name
from ._excel import read_sheet
from ._frames import (
    ColumnChoice,
    Words,
    set_aside,
    table_from_frame,
)
from ._layout import DELIMITERS
from ._numbering import may_name_rows
from ._options import Reading, Rereading, as_number
from ._table import Origin, Table, check_finite, transposed
from ._text import read_text

TEXT_SUFFIXES = {".csv", ".tsv", ".txt", ".tab", ".gct", ".cdt"}
FORMATS = "CSV, TSV (also .gz), .xlsx, .parquet, .npy, .npz or .h5ad"


def read_file(
    path: str | Path,
    reading: Rereading | None = None,
    *,
    labels: Sequence[str] = (),
    only: Sequence[str] = (),
    keep: bool = False,
) -> Table:
    """Read a table from any supported file.

    Parameters
    ----------
    path : path
        The file; its ending tells the format.
    reading : Reading, optional
        Codes for missing, what to do with which columns, and how a text file is written where it
        should not be guessed.
    labels : names of columns
        Kept aside, never clustered.
    only : names of features, optional
        Nothing but these, as far as they are there.
    keep : bool
        Keep the whole file with the table, so that it can be written again.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "small.csv"
    >>> _ = file.write_text("id,a,b,note\\nr1,1,NA,x\\nr2,2,3,x\\n")
    >>> table = read_file(file)
    >>> table.features, list(table.ids), table.left_out
    (['a', 'b'], ['r1', 'r2'], [('note', "text, such as 'x'")])
    """
    path, reading = Path(path), reading or Reading()
    kind = kind_of(path)
    _check_options(path, kind, reading)
    choice = ColumnChoice.of(reading, labels, only, keep)
    try:
        table = READERS[kind](path, reading, choice)
    except PermissionError as error:
        raise UserError(f"{path} may not be read: permission denied") from error
    except MemoryError as error:
        raise UserError(f"{path} does not fit into memory") from error
    table = _codes_to_gaps(table, reading.codes)
    check_finite(table)
    _check_not_empty(path, table)
    table.source.update(file=path.name, format=kind, missing_codes=list(reading.codes))
    return table


def read_frame(path: Path) -> tuple[Any, str]:
    """A file of columns as a frame of text (or what its format holds), and its decimal sign."""
    kind = kind_of(path)
    if kind == "text":
        frame, layout, _ = read_text(path, Reading(), lambda name: True)
        return frame, layout.decimal
    if kind == "xlsx":
        sheet = read_sheet(path, None)
        return sheet.frame, sheet.decimal
    if kind == "parquet":
        return _parquet_frame(path), "."
    raise UserError(f"{path} has no columns with names; give a CSV, TSV, .xlsx or .parquet file")


def _check_options(path: Path, kind: str, reading: Rereading) -> None:
    """Options that say something about another format are refused, not passed over."""
    layout = (reading.encoding, reading.delimiter, reading.header)
    if kind != "text" and any(given is not None for given in layout):
        raise UserError(f"--encoding, --delimiter and --header are for text files, not {path.name}")
    if kind not in ("text", "xlsx") and reading.decimal is not None:
        raise UserError(f"--decimal is for text files and .xlsx files, not {path.name}")
    if kind != "h5ad" and reading.layer:
        raise UserError(f"--layer is for .h5ad files, not {path.name}")
    if kind != "xlsx" and reading.sheet:
        raise UserError(f"--sheet is for .xlsx files, not {path.name}")


def _check_file(path: Path) -> None:
    if path.is_dir():
        raise UserError(f"{path} is a folder; name the table inside it")
    if not path.exists():
        raise UserError(f"there is no file {path}")
    if path.stat().st_size == 0:
        raise UserError(f"{path} is empty")


def kind_of(path: Path) -> str:
    """The format of a file that is there, by its ending."""
    _check_file(path)
    suffixes = [s.lower() for s in path.suffixes]
    last = suffixes[-1] if suffixes else ""
    if last == ".gz":
        last = suffixes[-2] if len(suffixes) > 1 else ""
        if last in TEXT_SUFFIXES:
            return "text"
    elif last in TEXT_SUFFIXES:
        return "text"
    elif last in (".parquet", ".pq"):
        return "parquet"
    elif last in (".npy", ".npz", ".h5ad", ".xlsx"):
        return last[1:]
    elif last in (".xls", ".xlsb", ".xlsm", ".ods"):
        raise UserError(f"{path} is a spreadsheet of another kind; save it as .xlsx or CSV (UTF-8)")
    raise UserError(f"{path} does not end in a known format; a table is {FORMATS}")


def _from_text(path: Path, reading: Rereading, choice: ColumnChoice) -> Table:
    frame, layout, texts = read_text(
        path,
        # What is to be written again is kept as it is; codes are made gaps further on.
        replace(reading, missing_codes=None) if choice.keep_origin else reading,
        lambda name: name == choice.id_column or may_name_rows(name),
    )
    words = Words(reading.codes, layout.decimal)
    table = table_from_frame(frame, choice, words, texts if choice.keep_origin else None)
    table.source.update(
        delimiter=DELIMITERS.get(layout.delimiter, layout.delimiter),
        encoding=layout.encoding.removesuffix("-sig"),
        decimal=layout.decimal,
        header=layout.header is not None,
    )
    table.notes.extend(layout.told)
    if layout.header is None:
        table.notes.append("the first line holds numbers, so columns are called V1, V2, ...")
    return table


def _from_excel(path: Path, reading: Rereading, choice: ColumnChoice) -> Table:
    sheet = read_sheet(path, reading.sheet, reading.decimal)
    words = Words(reading.codes, sheet.decimal, in_sheet=True)
    table = table_from_frame(sheet.frame, choice, words)
    table.notes.extend(sheet.notes)
    table.source.update(sheet=sheet.name)
    if sheet.decimal == ",":
        table.source.update(decimal=",")  # new sheets are read so, be their commas as clear or not
    return table


def _from_parquet(path: Path, reading: Rereading, choice: ColumnChoice) -> Table:
    return table_from_frame(_parquet_frame(path), choice, Words(reading.codes))


def _parquet_frame(path: Path) -> Any:
    pandas, arrow = require("pandas", "cli"), require("pyarrow", "cli")
    try:
        frame = pandas.read_parquet(path)
    except (arrow.ArrowException, ValueError, OSError) as error:
        raise UserError(f"{path} is not a readable Parquet file; write it again") from error
    if not isinstance(frame.index, pandas.RangeIndex):
        name = frame.index.name or "id"
        frame = frame.reset_index(names=name) if name not in frame.columns else frame
    repeated = [n for n, times in Counter(frame.columns).items() if times > 1]
    if repeated:
        raise UserError(f"{path} has more than one column called {repeated[0]!r}; rename them")
    return frame


def _from_numpy(path: Path, reading: Rereading, choice: ColumnChoice) -> Table:
    kind = path.suffix.lower()[1:]
    try:
        values = _load_npz(path) if kind == "npz" else _load_npy(path)
    except (UserError, MemoryError, PermissionError):
        raise
    except Exception as error:  # numpy, scipy, zipfile and zlib raise many kinds for one cause
        with open(path, "rb") as stream:
            is_array = stream.read(6) in (
                b"\x93NUMPY",
                b"PK\x03\x04\x2d\x00",
                b"PK\x03\x04\x14\x00",
            )
        if is_array and "object" in str(error).lower():
            raise UserError(
                f"{path} holds Python objects, not numbers; save it as floats"
            ) from None
        raise UserError(f"{path} is not a readable .{kind} file; write it again") from error
    if not sp.issparse(values):
        if values.ndim != 2:
            raise UserError(f"{path} holds a {values.ndim}-dimensional array; a table has two")
        if values.dtype.kind not in "fiu":
            raise UserError(f"{path} holds {values.dtype} values; a table needs numbers")
    n, p = values.shape
    ids = np.array([str(i + 1) for i in range(n)], dtype=object)
    return _from_matrix(values, ids, unnamed(p), choice, None)


def _load_npy(path: Path) -> np.ndarray:
    with open(path, "rb") as stream:  # np.load would take an archive or a pickle by this name too
        return np.lib.format.read_array(stream, allow_pickle=False)


def _load_npz(path: Path) -> Any:
    # Opened here: numpy forgets to close a file that turns out to be damaged.
    with open(path, "rb") as stream, np.load(stream, allow_pickle=False) as archive:
        names = archive.files
        if "format" not in names:
            if len(names) != 1:
                raise UserError(
                    f"{path} holds {len(names)} arrays ({', '.join(names[:4])}); save one, or a "
                    "sparse matrix with scipy.sparse.save_npz"
                )
            return archive[names[0]]
    return sp.load_npz(path)


def _from_h5ad(path: Path, reading: Rereading, choice: ColumnChoice) -> Table:
    layer = reading.layer
    anndata = require("anndata", "anndata")
    try:
        adata = anndata.read_h5ad(path)
    except Exception as error:  # h5py and anndata raise many kinds for one cause
        raise UserError(f"{path} is not a readable .h5ad file; write it again") from error
    if layer is not None and layer not in adata.layers:
        raise unknown_name("layer", layer, adata.layers.keys())
    values = adata.X if layer is None else adata.layers[layer]
    if values is None:
        raise unknown_name("layer", "X", adata.layers.keys())
    for name in choice.labels:
        if name not in adata.obs:
            raise unknown_name("column of obs", name, adata.obs.columns)
    ids = adata.obs_names.to_numpy(dtype=object)
    table = _from_matrix(values, ids, [str(v) for v in adata.var_names], choice, adata.obs)
    if layer is None and len(adata.layers):
        others = ", ".join(map(repr, adata.layers.keys()))
        table.notes.append(f"X was read; --layer takes one of {others} instead")
    return table


def _from_matrix(
    values: Any, ids: np.ndarray, features: list[str], choice: ColumnChoice, obs: Any
) -> Table:
    """A table from an array without a header, or from AnnData, whose obs describes the rows."""
    if choice.id_column is not None:
        raise UserError("--id-column is for tables with columns; this file names its rows itself")
    if sp.issparse(values):
        # A copy: repeated entries are summed and gaps taken out in place below.
        values = sp.csr_matrix(values, dtype=_float_type(values.dtype), copy=True)
        values.sum_duplicates()
    else:
        values = np.asarray(values, dtype=_float_type(values.dtype))
    columns = [] if obs is None else [str(name) for name in obs.columns]
    rows, told = choice.kept_rows(columns, lambda name: obs[name], len(ids))
    origin = _origin_of(values, ids, features, rows) if choice.keep_origin else None
    if len(rows) < len(ids):
        values, ids = values[rows], ids[rows]
    labels = {name: obs[name].to_numpy()[rows] for name in choice.labels} if columns else {}
    table = Table(values, np.asarray(ids, dtype=object), features, notes=told, labels=labels,
                  origin=origin)  # fmt: skip
    reasons = set_aside(features, replace(choice, labels=()))
    keep = np.array([reason is None for reason in reasons])
    table.left_out += [(n, r) for n, r in zip(features, reasons, strict=True) if r is not None]
    if not keep.all():
        table = table.with_features(keep)
    repeated = [name for name, times in Counter(features).items() if times > 1]
    if repeated and not choice.transpose:
        raise UserError(f"there is more than one feature called {repeated[0]!r}; rename them")
    if sp.issparse(values):
        table.notes.append("entries that are not stored count as missing")
    return transposed(table) if choice.transpose else table


def _origin_of(values: Any, ids: np.ndarray, features: list[str], rows: np.ndarray) -> Origin:
    """An array as the frame it would be written as, its rows named in the first column."""
    names = "id" if "id" not in features else "row id"
    frame = require("pandas", "cli").DataFrame(Table(values, ids, features).dense())
    frame.columns = features
    frame.insert(0, names, ids)
    return Origin(frame, {}, rows, names)


def _float_type(dtype: np.dtype) -> type:
    return np.float32 if dtype == np.float32 else np.float64


def _codes_to_gaps(table: Table, codes: tuple[str, ...]) -> Table:
    """Numbers that were declared to mean missing become gaps; stored NaN as well."""
    values = table.values
    numbers = [number for code in codes if (number := as_number(code)) is not None]
    for number in numbers:
        values = with_nan(values, number)
    if sp.issparse(values) and np.isnan(values.data).any():
        stored = values.tocoo()
        seen = ~np.isnan(stored.data)
        places = stored.row[seen], stored.col[seen]
        values = sp.csr_matrix((stored.data[seen], places), shape=values.shape)
    table.values = values
    return table


def _check_not_empty(path: Path, table: Table) -> None:
    n, p = table.shape
    if n == 0 or p == 0:
        raise UserError(f"{path} has {n} rows and {p} numeric columns; nothing to cluster")
    if table.missing_share() == 1.0:
        raise UserError(f"every entry of {path} is missing; check --missing-value and the columns")


READERS: dict[str, Callable[[Path, Rereading, ColumnChoice], Table]] = {
    "text": _from_text,
    "xlsx": _from_excel,
    "parquet": _from_parquet,
    "npy": _from_numpy,
    "npz": _from_numpy,
    "h5ad": _from_h5ad,
}
