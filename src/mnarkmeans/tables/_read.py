"""Any file becomes a `Content`.

.csv .tsv .txt (+ .gz), .xlsx, .parquet, .npy, .npz, .h5ad, .zarr, AnnData objects, pandas frames.
In dense formats NaN is missing, in sparse ones what is not stored. Nothing that could execute code
is loaded, and what a file declares about its arrays is checked before anything compiled uses them.
`_tidy` makes a `Table` of the content, as often as the options change.
"""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from contextlib import closing, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._io import require
from ._cells import find_decimal, may_name_rows, read_cells
from ._table import Content, ReadOptions, TableError, check_memory, check_unique, unknown_name
from ._text import TextFile

TEXT = {".csv", ".tsv", ".txt", ".tab", ".gct", ".cdt"}
BINARY = {".parquet": "parquet", ".pq": "parquet", ".npy": "npy", ".npz": "npz", ".h5ad": "h5ad",
          ".xlsx": "xlsx", ".zarr": "zarr"}  # fmt: skip
OPTIONS_OF_FORMATS = {
    "delimiter": ("text",), "encoding": ("text",), "header": ("text",), "sheet": ("xlsx",),
    "decimal": ("text", "xlsx", "parquet"), "layer": ("h5ad", "zarr"),
}  # fmt: skip


def read_content(source: Any, options: ReadOptions) -> Content:
    """Read a file (or take an AnnData object or a frame) as it is."""
    if hasattr(source, "obs_names"):
        layers = dict(source.layers)
        return _annotated("the AnnData", source.X, layers, source.obs, source.var, options)
    if hasattr(source, "columns"):
        return _from_frame(source, options, "the frame")
    path = Path(source)
    kind = format_of(path)
    for name, kinds in OPTIONS_OF_FORMATS.items():
        if getattr(options, name) is not None and kind not in kinds:
            raise TableError(f"--{name} is for {' and '.join(kinds)} files, not {path.name}")
    try:
        content = READERS[kind](path, options)
        if content.columns.keys() >= DIANN:
            content = _diann_report(content)
    except (TableError, ImportError):
        raise
    except Exception as error:  # libraries have many kinds of error for one cause
        why = " ".join(str(error).split())[:200] or type(error).__name__
        raise TableError(
            f"{path} is not a readable {kind} file ({why}); write it again or check the options"
        ) from error
    content.source |= {"file": path.name, "format": kind}
    return content


def format_of(path: Path) -> str:
    """The format of an existing file, by its ending."""
    before, last = ["", "", *map(str.lower, path.suffixes)][-2:]
    if not path.exists():
        raise TableError(f"there is no file {path}")
    if path.is_dir() and last != ".zarr":
        if any(path.glob("*.parquet")):
            return "parquet"
        raise TableError(f"{path} is a folder; name the table inside it")
    if path.is_file() and path.stat().st_size == 0:
        raise TableError(f"{path} is empty")
    if (before if last == ".gz" else last) in TEXT:
        return "text"
    if last not in BINARY:
        raise TableError(f"{path} does not end in a known format; save it as CSV, TSV (also .gz), "
                         ".xlsx, .parquet, .npy, .npz, .h5ad or .zarr")  # fmt: skip
    return BINARY[last]


# --- columns ----------------------------------------------------------------------------------


def _from_frame(frame: Any, options: ReadOptions, where: str, **more: Any) -> Content:
    """A frame, its row names as the first column if they are no running numbers."""
    import pandas as pd

    frame = frame if isinstance(frame, pd.DataFrame) else frame.to_pandas()  # polars
    if frame.index.nlevels > 1 or frame.columns.nlevels > 1:
        raise TableError(f"{where} has names in several levels; apply frame.reset_index() first")
    frame = frame.set_axis([str(name) for name in frame.columns], axis=1)
    check_unique(where, frame.columns)
    for name in frame.select_dtypes(object):
        if not frame[name].dropna().head(1).map(pd.api.types.is_hashable).all():
            raise TableError(f"{where} has nested values in column {name!r}; leave it out")
    if not isinstance(frame.index, pd.RangeIndex):
        name, names = str(frame.index.name or "id"), frame.index.astype(object)
        frame = frame.reset_index(drop=True)
        frame.insert(0, name if name not in frame.columns else f"{name} (index)", names)
    numeric = [name for name, dtype in frame.dtypes.items() if dtype.kind in "fiu"
               and not may_name_rows(name) and name != options.id_column]  # fmt: skip
    matrix = frame[numeric].to_numpy(dtype=np.float64, na_value=np.nan)
    columns: dict[str, Any] = dict(zip(numeric, matrix.T, strict=True))
    for name, column in frame.drop(columns=numeric).items():
        columns[name] = (column.astype(object) if column.dtype.kind == "f" else column).array
    columns = {name: columns[name] for name in frame}
    return Content(columns, matrix, numeric, decimal=options.decimal or ".", **more)


def _from_excel(path: Path, options: ReadOptions) -> Content:
    """The sheet that was named, or the first with a table; what is wrong with the first one."""
    book = require("openpyxl", "cli").load_workbook(path, read_only=True, data_only=True)
    with closing(book):
        names, wanted = [sheet.title for sheet in book.worksheets], options.sheet
        if wanted and wanted not in names:
            if not (wanted.isdecimal() and 1 <= int(wanted) <= len(names)):
                raise unknown_name("sheet", wanted, names)
            wanted = names[int(wanted) - 1]
        first: TableError | None = None
        for name in [wanted] if wanted else names:
            try:
                content = _sheet(path, book[name], options)
            except TableError as error:
                first = first or error
                continue
            others = [other for other in names if other != name]
            if others and not wanted:
                note = f"sheet {name!r} was read; the workbook also has {others[0]!r}"
                content.notes.insert(0, note + " and others" * bool(others[1:]))
            return content
    raise first or TableError(f"{path} has no sheets")


def _sheet(path: Path, sheet: Any, options: ReadOptions) -> Content:
    """A sheet without its empty lines and columns is written as text, and read as text files are.

    A comma may be the decimal sign of numbers in text cells; all are written with it.
    """
    sheet.reset_dimensions()  # some programs write a size that is not true
    frame = require("pandas", "cli").DataFrame(map(list, sheet.values), dtype=object)
    filled = frame.map(lambda cell: cell is not None and str(cell).strip() != "")
    frame = frame.where(filled, None).dropna(how="all").dropna(axis=1, how="all")
    other = "choose another one with --sheet"
    if frame.empty:
        raise TableError(f"{path} has nothing on this sheet; {other}")
    top = frame[frame.count(axis=1) > 1].iloc[:1, 1:]
    if top.isna().any(axis=None):  # the names of groups may be in merged cells
        _fill_merged_cells(path, sheet.title, frame)
    written = [[cell for cell in row if isinstance(cell, str)] for row in frame.to_numpy()]
    decimal = options.decimal or find_decimal(written, "")

    def as_text(cell: Any) -> str:
        text = "" if cell is None else str(cell)
        return text.replace(".", decimal) if isinstance(cell, float) else text

    text = frame.map(as_text).to_csv(sep="\t", header=False, index=False, lineterminator="\n")
    content = TextFile(path, replace(options, decimal=decimal), text.encode()).read()
    columns = content.columns.values()
    if not any(read_cells(column, sign).n_numbers for column in columns for sign in ".,"):
        raise TableError(f"{path} has no row of numbers on sheet {sheet.title!r}; {other}, or save "
                         "the table alone as CSV")  # fmt: skip
    content.source = {"sheet": sheet.title}
    if decimal == ",":
        content.source["decimal"] = decimal
        content.notes.append("the comma was read as the decimal sign of numbers in text cells")
    return content


def _fill_merged_cells(path: Path, title: str, frame: Any) -> None:
    """Repeat what a merged cell holds in all of its columns, except for a title."""
    sheet = require("openpyxl", "cli").load_workbook(path)[title]
    for cells in sheet.merged_cells.ranges:
        row, covered = cells.min_row - 1, range(cells.min_col - 1, cells.max_col)
        if row in frame.index and covered[0] in frame and frame.loc[row].count() > 1:
            columns = [j for j in frame.columns if j in covered]
            frame.loc[row, columns] = frame.at[row, covered[0]]


def _from_parquet(path: Path, options: ReadOptions) -> Content:
    dataset, types = require("pyarrow.dataset", "cli"), require("pyarrow.types", "cli")
    stored = dataset.dataset(path, format="parquet")  # a file, or the files of a folder
    schema = stored.schema
    check_unique(path, schema.names)
    nested = [column.name for column in schema if types.is_nested(column.type)]
    wanted = set(schema.names).difference(nested)
    if wanted >= DIANN:
        wanted &= DIANN_COLUMNS
    check_memory(path, 8.0 * stored.count_rows() * len(wanted))
    table = stored.to_table(columns=[name for name in schema.names if name in wanted])
    table.validate(full=True)
    notes = [f"left out {name!r}: nested values" for name in nested]
    return _from_frame(table.to_pandas(), options, str(path), notes=notes)


# --- matrices ---------------------------------------------------------------------------------


def _from_numpy(path: Path, options: ReadOptions) -> Content:
    """The array of an .npy or .npz file, or the matrix that `scipy.sparse.save_npz` wrote."""
    if path.suffix.lower() == ".npy":
        return _unnamed(path, np.load(path, mmap_mode="r", allow_pickle=False))
    with zipfile.ZipFile(path) as archive:
        check_memory(path, sum(info.file_size for info in archive.infolist()))
    with np.load(path, allow_pickle=False) as arrays:
        if "format" in arrays:
            _check_parts(arrays)
            return _unnamed(path, sp.load_npz(path))
        if len(arrays) != 1:
            raise TableError(f"{path} holds {len(arrays)} arrays; save one, or a sparse matrix "
                             "with scipy.sparse.save_npz")  # fmt: skip
        return _unnamed(path, *arrays.values())


def _from_store(path: Path, options: ReadOptions) -> Content:
    """An AnnData in HDF5 or Zarr, or a plain Zarr array."""
    read = require("anndata.io", "anndata").read_elem
    if path.suffix.lower() == ".zarr":
        root = require("zarr", "dask").open(str(path), mode="r")
    else:
        root = require("h5py", "anndata").File(path, "r")
    with closing(root) if hasattr(root, "close") else nullcontext():
        if hasattr(root, "shape"):
            return _unnamed(path, root)
        layers = {name: root["layers"][name] for name in (root.get("layers") or ())}
        obs, var = read(root["obs"]), read(root["var"])
        return _annotated(path, root.get("X"), layers, obs, var, options)


def _annotated(
    path: Any, X: Any, layers: dict[str, Any], obs: Any, var: Any, options: ReadOptions
) -> Content:
    """X or a layer (matrices, or not read yet) with frames for its rows and features.

    As for `tl.mnar_kmeans`, genes that are not marked are left out and zeros are missing.
    """
    stored = X if options.layer is None else layers.get(options.layer)
    if stored is None:
        raise unknown_name("layer", options.layer or "X", layers)
    notes, unused = [], {}
    if options.layer is None and layers:
        note = f"X was read; the file also has the layer {next(iter(layers))!r}"
        notes.append(note + " and others" * (len(layers) > 1))
    if not hasattr(stored, "shape"):  # the group of a file
        check_memory(path, 8.0 * sum(stored[name].size for name in stored))
        _check_parts(stored)
        stored = require("anndata.io", "anndata").read_elem(stored)
    values = _numbers(path, stored)
    if sp.issparse(values):
        values.eliminate_zeros()
    elif (values == 0).any():
        values = np.where(values == 0, np.nan, values)
        notes.append("zeros are missing values, as in a sparse matrix")
    if values.shape != (len(obs), len(var)):
        raise TableError(
            f"the matrix of the file is {values.shape[0]:,} x {values.shape[1]:,}, but it names "
            f"{len(obs):,} rows and {len(var):,} features; write it again"
        )
    features = [str(name) for name in var.index]
    if "highly_variable" in var and not options.columns:
        marked = var["highly_variable"].to_numpy(dtype=bool)
        if marked.any() and not marked.all():
            reason = 'not marked in var["highly_variable"]'
            unused = {features[j]: reason for j in np.flatnonzero(~marked)}
            notes.append(f'the {marked.sum():,} features marked in var["highly_variable"] of '
                         f"{len(marked):,} are used")  # fmt: skip
    ids = np.array([str(name) for name in obs.index], dtype=object)
    return Content({str(name): obs[name].array for name in obs}, values, features, ids,
                   unused=unused, notes=notes, source={"layer": options.layer})  # fmt: skip


def _unnamed(path: Path, stored: Any) -> Content:
    values = _numbers(path, stored)
    n, p = values.shape
    ids = np.array([str(i + 1) for i in range(n)], dtype=object)
    return Content({}, values, [f"V{j + 1}" for j in range(p)], ids)


def _check_parts(parts: Any) -> None:
    """Refuse what scipy would cut: places that are no whole numbers, values without a place."""
    if "indptr" not in parts:
        return  # not of CSR or CSC
    if any(parts[name].dtype.kind not in "iu" for name in ("indices", "indptr")):
        raise ValueError("indices and indptr must be whole numbers")
    if parts["indptr"][-1] != parts["data"].shape[0]:
        raise ValueError("indptr does not end at the number of stored values")


def _numbers(path: Any, stored: Any) -> Any:
    """An array, a dataset that is not read yet or a sparse matrix as an array or CSR matrix."""
    if len(stored.shape) != 2:
        raise TableError(f"{path} holds a {len(stored.shape)}-dimensional array; a table has two")
    if stored.dtype.kind not in "fiub":
        raise TableError(f"{path} holds {stored.dtype} values; a table needs numbers")
    dtype = np.float32 if stored.dtype == np.float32 else np.float64
    if not sp.issparse(stored):
        check_memory(path, 8.0 * stored.shape[0] * stored.shape[1])
        return np.array(stored[:], dtype=dtype)
    if stored.format not in ("csr", "csc"):
        raise TableError(f"{path} holds a sparse matrix of format {stored.format!r}; save it as "
                         "CSR")  # fmt: skip
    check_memory(path, 8.0 * (sum(stored.shape) + 2 * stored.nnz))
    matrix = stored.astype(dtype)  # a copy
    matrix.check_format(full_check=True)  # before compiled code uses its indices
    matrix = sp.csr_matrix(matrix)
    matrix.sum_duplicates()
    return matrix


# --- DIA-NN's main report ---------------------------------------------------------------------

DIANN = {"Run", "Protein.Group", "Precursor.Id", "Q.Value"}  # what makes it one
DIANN_QUANTITIES = ("PG.MaxLFQ", "PG.Quantity", "PG.Normalised")
DIANN_NUMBERS = ("Decoy", "Q.Value", "PG.Q.Value", "Lib.Q.Value", "Lib.PG.Q.Value",
                 "Global.Q.Value", "Global.PG.Q.Value", *DIANN_QUANTITIES)  # fmt: skip
DIANN_COLUMNS = DIANN | {"Genes", *DIANN_NUMBERS}


def _diann_report(content: Content) -> Content:
    """One row per precursor and run becomes one row per run and one column per protein group.

    The q-value filters are those its author recommends: of the library where runs were matched
    (otherwise they are 0), else the global ones.
    """
    pandas, names = require("pandas", "cli"), DIANN_COLUMNS.intersection(content.columns)
    frame = pandas.DataFrame({name: content.columns[name] for name in names})
    for name in names.intersection(DIANN_NUMBERS):
        frame[name] = pandas.to_numeric(frame[name], errors="coerce")
    quantity = next((name for name in DIANN_QUANTITIES if name in names), None)
    if quantity is None:
        raise TableError("this is a main report of DIA-NN without quantities of protein groups "
                         "(PG.MaxLFQ); give report.pg_matrix.tsv")  # fmt: skip
    library = "Lib." if (frame.filter(like="Lib.") > 0).any(axis=None) else "Global."
    limits = {"Q.Value": 0.01, "PG.Q.Value": 0.05,
              f"{library}Q.Value": 0.01, f"{library}PG.Q.Value": 0.01}  # fmt: skip
    limits = {name: limit for name, limit in limits.items() if name in names}
    keep = (frame[list(limits)] <= pandas.Series(limits)).all(axis=1) & (frame[quantity] > 0)
    if "Decoy" in names:
        keep &= ~(frame["Decoy"] > 0)
    part = frame[keep].dropna(subset=["Run", "Protein.Group"])
    if part.empty:
        raise TableError("no precursor of this main report of DIA-NN passes the q-value filters")
    wide = part.pivot_table(quantity, "Run", "Protein.Group", aggfunc="max", sort=False)
    wide = wide.reindex(frame["Run"].dropna().unique())  # also runs in which nothing passed
    genes = part.reindex(columns=["Protein.Group", "Genes"]).dropna().astype(str)
    filters = ", ".join(f"{name} <= {limit:g}" for name, limit in limits.items())
    note = (
        f"DIA-NN's main report was pivoted: {quantity} of {wide.shape[1]:,} protein groups in "
        f"{wide.shape[0]:,} runs, from {len(part):,} of {len(frame):,} precursors ({filters})"
    )
    return Content(
        {}, wide.to_numpy(dtype=float), list(map(str, wide.columns)),
        np.array(list(map(str, wide.index)), dtype=object),
        feature_labels=dict(reversed(genes.to_numpy().tolist())),  # the first of each group
        source=content.source | {"report": "DIA-NN"}, notes=[*content.notes, note],
    )  # fmt: skip


READERS: dict[str, Callable[[Path, ReadOptions], Content]] = {
    "text": lambda path, options: TextFile(path, options).read(), "xlsx": _from_excel,
    "parquet": _from_parquet, "npy": _from_numpy, "npz": _from_numpy, "h5ad": _from_store,
    "zarr": _from_store,
}  # fmt: skip
