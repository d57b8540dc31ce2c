"""Any file becomes a `Content`: a frame of columns, or one matrix with names.

.csv .tsv .txt (+ .gz), .xlsx, .parquet, .npy, .npz, .h5ad, .zarr, AnnData objects, pandas frames.
In dense formats NaN is missing, in sparse ones what is not stored. Nothing that could execute code
is loaded, and what a file declares about its arrays is checked before anything compiled uses them.
`_tidy` makes a `Table` of the content, as often as the options change.
"""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._io import machine_memory, require
from ._cells import as_float, find_decimal, is_sure_mark, read_cells
from ._table import ReadOptions, Table, TableError, check_unique, unknown_name
from ._text import DELIMITERS, SAMPLE_LINES, Spans, find_header, read_text

TEXT = {".csv", ".tsv", ".txt", ".tab", ".gct", ".cdt"}
BINARY = {".parquet": "parquet", ".pq": "parquet", ".npy": "npy", ".npz": "npz", ".h5ad": "h5ad",
          ".xlsx": "xlsx", ".zarr": "zarr"}  # fmt: skip
OPTIONS_OF_FORMATS = {
    "delimiter": ("text",), "encoding": ("text",), "header": ("text",), "decimal": ("text", "xlsx"),
    "sheet": ("xlsx",), "layer": ("h5ad", "zarr", "anndata"),
}  # fmt: skip
MOST_INSERTED = 50  # columns of text that are added to a frame one by one


@dataclass
class Content:
    """What a file holds: a frame of columns, or a matrix with names of rows and features."""

    kind: str
    frame: Any = None
    numbers: np.ndarray | None = None  # the columns of floats of the frame, in the same memory
    texts: dict[int, list[str]] = field(default_factory=dict)  # columns as they are written
    decimal: str = "."
    matrix: Any = None
    ids: Any = None
    features: list[str] = field(default_factory=list)
    rows: Any = None  # frame that describes the rows of a matrix
    unused: dict[str, str] = field(default_factory=dict)  # features set aside by the file, and why
    feature_labels: dict[str, str] = field(default_factory=dict)
    source: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    @property
    def names(self) -> list[str]:
        """The columns."""
        return self.features if self.frame is None else list(self.frame.columns)

    @property
    def about(self) -> Any:
        """The frame that describes the rows, if there is one."""
        return self.rows if self.frame is None else self.frame

    @property
    def n_rows(self) -> int:
        return len(self.ids if self.frame is None else self.frame)

    def having(self, names: Sequence[str]) -> tuple[str, ...]:
        """Those of the names that the file has a column for."""
        return () if self.about is None else tuple(n for n in names if n in self.about.columns)

    def to_frame(self) -> Any:
        """Every row and column; a matrix gets its row names in front."""
        if self.frame is not None:
            return self.frame
        frame = Table(self.matrix, self.ids, self.features).to_frame().reset_index(drop=True)
        frame.insert(0, "id" if "id" not in self.features else "row id", self.ids)
        return frame


def read_content(source: Any, options: ReadOptions) -> Content:
    """Read a file (or take an AnnData object or a frame) as it is."""
    if hasattr(source, "obs_names") and hasattr(source, "var_names"):
        layers = dict(source.layers)
        return _annotated(Path("the AnnData"), source.X, layers, source.obs, source.var, options)
    if hasattr(source, "columns") and hasattr(source, "iloc"):
        return Content("frame", _with_index(source), source={"format": "frame"})
    path = Path(source)
    kind = format_of(path)
    for name, kinds in OPTIONS_OF_FORMATS.items():
        if getattr(options, name) is not None and kind not in kinds:
            raise TableError(f"--{name} is for {' and '.join(kinds[:2])} files, not {path.name}")
    try:
        content = READERS[kind](path, options)
    except (TableError, ImportError):
        raise
    except PermissionError as error:
        raise TableError(f"{path} may not be read: permission denied") from error
    except MemoryError as error:
        raise TableError(f"{path} does not fit into memory") from error
    except Exception as error:  # libraries have many kinds of error for one cause
        raise TableError(f"{path} is not a readable {kind} file; write it again") from error
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
    if last in BINARY:
        return BINARY[last]
    if last in (".xls", ".xlsb", ".xlsm", ".ods"):
        raise TableError(f"{path} is another kind of spreadsheet; save it as .xlsx or CSV (UTF-8)")
    raise TableError(
        f"{path} does not end in a known format; a table is CSV, TSV (also .gz), .xlsx, .parquet, "
        ".npy, .npz, .h5ad or .zarr"
    )


# --- columns ----------------------------------------------------------------------------------


def _from_text(path: Path, options: ReadOptions) -> Content:
    """A frame of floats and of texts, in which missing is None."""
    numbers, texts, layout = read_text(path, options)
    pandas, names = require("pandas", "cli"), layout.names
    cells = {names[j]: [None if is_sure_mark(t) else t for t in texts[j]] for j in sorted(texts)}
    frame = pandas.DataFrame(numbers, columns=[n for n in names if n not in cells], copy=False)
    if len(cells) > MOST_INSERTED:
        frame = pandas.concat([frame, pandas.DataFrame(cells, dtype=object)], axis=1)[names]
    else:  # the numbers, most of the memory, are not copied
        for name, column in cells.items():
            frame.insert(names.index(name), name, pandas.Series(column, dtype=object))
    source = {
        "delimiter": DELIMITERS.get(layout.delimiter, layout.delimiter),
        "encoding": layout.encoding.removesuffix("-sig"),
        "decimal": layout.decimal,
        "header": layout.has_header,
    }
    content = Content("text", frame, numbers, texts, layout.decimal, source=source,
                      notes=layout.notes)  # fmt: skip
    return _diann_report(content) if set(names) >= DIANN else content


def _from_excel(path: Path, options: ReadOptions) -> Content:
    """The sheet that was named, or the first with a table; what is wrong with the first one."""
    openpyxl, wanted = require("openpyxl", "cli"), options.sheet
    book = openpyxl.load_workbook(path, read_only=True, data_only=True)
    try:
        names = book.sheetnames
        if wanted and wanted not in names:
            if not (wanted.isdigit() and 1 <= int(wanted) <= len(names)):
                raise unknown_name("sheet", wanted, names)
            wanted = names[int(wanted) - 1]
        first: TableError | None = None
        for name in [wanted] if wanted else names:
            if not hasattr(book[name], "iter_rows"):  # a chart
                continue
            book[name].reset_dimensions()  # some programs write a size that is not true
            try:
                content = _sheet(path, name, book[name].iter_rows(values_only=True), options)
            except TableError as error:
                first = first or error
                continue
            others = [other for other in names if other != name]
            if others and not wanted:
                note = f"sheet {name!r} was read; the workbook also has {others[0]!r}"
                content.notes.insert(0, note + " and others" * bool(others[1:]))
            return content
    finally:
        book.close()
    raise first or TableError(f"{path} has no sheets")


def _sheet(path: Path, sheet: str, cells: Any, options: ReadOptions) -> Content:
    """A sheet as a frame, without empty lines and columns."""
    pandas = require("pandas", "cli")
    frame = pandas.DataFrame([list(row) for row in cells], dtype=object)
    frame = frame.where(frame.map(lambda cell: str(cell).strip() != ""), None)
    frame = frame.dropna(how="all").dropna(axis=1, how="all")
    if frame.empty:
        raise TableError(f"{path} has nothing on this sheet; choose another one with --sheet")
    lines, used = list(frame.index), list(frame.columns)

    def spans() -> Spans:  # openpyxl knows merged cells only after loading everything
        merged = require("openpyxl", "cli").load_workbook(path)[sheet].merged_cells.ranges
        return {
            (lines.index(cell.min_row - 1), used.index(cell.min_col - 1)):
                sum(cell.min_col <= j + 1 <= cell.max_col for j in used)
            for cell in merged if cell.min_row - 1 in lines and cell.min_col - 1 in used
        }  # fmt: skip

    written = frame.map(lambda cell: cell if isinstance(cell, str) else "").to_numpy().tolist()
    decimal = find_decimal(written, "", options.decimal)
    top = frame.iloc[:SAMPLE_LINES].map(lambda cell: "" if cell is None else str(cell).strip())
    found, first_row, notes = find_header(top.to_numpy().tolist(), ".", spans=spans)
    names = found or [f"V{j + 1}" for j in range(len(used))]
    check_unique(path, names)
    frame = frame.iloc[first_row:].reset_index(drop=True).set_axis(names, axis=1)
    if not frame.map(_is_number).to_numpy().any():
        raise TableError(
            f"{path} has no row of numbers on sheet {sheet!r}; choose another one with --sheet, or "
            "save the table alone as CSV"
        )
    source = {"sheet": sheet} | ({"decimal": ","} if decimal == "," else {})
    return Content("xlsx", frame, decimal=decimal, source=source, notes=notes)


def _is_number(cell: Any) -> bool:
    texts = () if cell is None or isinstance(cell, bool) else (str(cell).strip(),)
    return any(as_float(text, sign) is not None for text in texts for sign in ".,")


def _from_parquet(path: Path, options: ReadOptions) -> Content:
    dataset, types = require("pyarrow.dataset", "cli"), require("pyarrow.types", "cli")
    stored = dataset.dataset(path, format="parquet")  # a file, or the files of a folder
    schema = stored.schema
    check_unique(path, schema.names)
    _check_memory(path, 8.0 * stored.count_rows() * len(schema.names))
    report = set(schema.names) >= DIANN
    nested = {f.name: str(f.type) for f in schema if types.is_nested(f.type)}
    wanted = DIANN_COLUMNS if report else set(schema.names) - nested.keys()
    table = stored.to_table(columns=[n for n in schema.names if n in wanted])
    table.validate(full=True)
    index = (schema.pandas_metadata or {}).get("index_columns", ())
    index = [name for name in index if isinstance(name, str)]
    if len(index) > 1:
        raise TableError(
            f"{path} has row names in {len(index)} levels; write it again after "
            "frame.reset_index(), and choose one of them with --id-column"
        )
    frame = table.to_pandas(ignore_metadata=True)
    if report:
        return _diann_report(Content("parquet", frame))
    if index and index[0] in frame.columns:
        name = "id" if index[0].startswith("__index_level_") else index[0]
        names = frame.pop(index[0])
        frame.insert(0, name if name not in frame.columns else index[0], names)
    return Content("parquet", frame, unused={n: f"nested values ({t})" for n, t in nested.items()})


def _with_index(frame: Any) -> Any:
    """A frame of the user's, its row names as the first column."""
    import pandas as pd

    frame = frame if isinstance(frame, pd.DataFrame) else frame.to_pandas()  # polars
    if frame.index.nlevels > 1 or frame.columns.nlevels > 1:
        raise TableError("the frame has names in several levels; flatten them first")
    frame = frame.set_axis([str(name) for name in frame.columns], axis=1)
    check_unique("the frame", frame.columns)
    if isinstance(frame.index, pd.RangeIndex):
        return frame
    name = str(frame.index.name or "id")
    names = frame.index.astype(object)
    frame = frame.reset_index(drop=True)
    frame.insert(0, name if name not in frame.columns else f"{name} (index)", names)
    return frame


# --- matrices ---------------------------------------------------------------------------------


def _from_array(path: Path, options: ReadOptions, values: Any = None) -> Content:
    values = _load_numpy(path) if values is None else _dense(path, values)
    n, p = values.shape
    ids = np.array([str(i + 1) for i in range(n)], dtype=object)
    return Content("npy", matrix=values, ids=ids, features=[f"V{j + 1}" for j in range(p)])


def _load_numpy(path: Path) -> Any:
    """The dense array of an .npy or .npz file, or the matrix `scipy.sparse.save_npz` wrote."""
    if path.suffix.lower() == ".npz":
        with zipfile.ZipFile(path) as archive:
            _check_memory(path, sum(info.file_size for info in archive.infolist()))
    try:
        stored = np.load(path, mmap_mode="r", allow_pickle=False)
        if isinstance(stored, np.ndarray):
            return _dense(path, stored)
        with stored:
            arrays = {name: stored[name] for name in stored.files}
    except ValueError as error:
        if isinstance(error, TableError):
            raise
        why = str(error).partition("\n")[0]
        raise TableError(f"{path} is not a readable NumPy file ({why}); write it again") from error
    if "format" in arrays:
        kind = arrays["format"]
        name = str(np.char.decode(kind, "latin1") if kind.dtype.kind == "S" else kind)
        if name not in SPARSE or not {"data", "indices", "indptr", "shape"} <= arrays.keys():
            raise TableError(f"{path} holds a sparse matrix of format {name!r}; save it as CSR")
        return _sparse(path, name, *(arrays[n] for n in ("data", "indices", "indptr", "shape")))
    if len(arrays) != 1:
        raise TableError(
            f"{path} holds {len(arrays)} arrays ({', '.join(list(arrays)[:4])}); save one, or a "
            "sparse matrix with scipy.sparse.save_npz"
        )
    return _dense(path, *arrays.values())


def _from_store(path: Path, options: ReadOptions) -> Content:
    """An AnnData in HDF5 or Zarr, or a plain Zarr array."""
    read = require("anndata.io", "anndata").read_elem
    if path.suffix.lower() == ".zarr":
        root = require("zarr", "dask").open(str(path), mode="r")
    else:
        root = require("h5py", "anndata").File(path, "r")
    try:
        if hasattr(root, "shape"):
            return _from_array(path, options, root)
        layers = {name: root["layers"][name] for name in (root.get("layers") or ())}
        obs, var = read(root["obs"]), read(root["var"])
        return _annotated(path, root.get("X"), layers, obs, var, options)
    finally:
        if hasattr(root, "close"):
            root.close()


def _annotated(
    path: Path, X: Any, layers: dict[str, Any], obs: Any, var: Any, options: ReadOptions
) -> Content:
    """X or a layer (arrays, or datasets not read yet) with frames for its rows and features.

    As for `tl.mnar_kmeans`, genes that are not marked are left out and zeros are missing.
    """
    stored = X if options.layer is None else layers.get(options.layer)
    if stored is None:
        raise unknown_name("layer", options.layer or "X", layers)
    notes, unused = [], {}
    if options.layer is None and layers:
        note = f"X was read; the file also has the layer {next(iter(layers))!r}"
        notes.append(note + " and others" * (len(layers) > 1))
    if sp.issparse(stored):
        stored = stored if stored.format in SPARSE else stored.tocsr()
        parts = stored.data, stored.indices, stored.indptr, stored.shape
        values = _sparse(path, stored.format, *parts)
    elif hasattr(stored, "shape"):
        values = _dense(path, stored)
        if (values == 0).any():
            values = np.where(values == 0, np.nan, values)
            notes.append("zeros are missing values, as in a sparse matrix")
    else:
        kind = str(stored.attrs.get("encoding-type", "")).removesuffix("_matrix")
        if kind not in SPARSE:
            raise TableError(f"{path} holds a matrix of an unknown kind ({kind or 'none'})")
        parts = stored["data"], stored["indices"], stored["indptr"], stored.attrs["shape"]
        values = _sparse(path, kind, *parts)
    if sp.issparse(values):
        values.eliminate_zeros()
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
            unused = {n: reason for n, m in zip(features, marked, strict=True) if not m}
            notes.append(
                f'the {marked.sum():,} features marked in var["highly_variable"] of '
                f"{len(marked):,} are used"
            )
    ids = np.array([str(name) for name in obs.index], dtype=object)
    return Content("h5ad", matrix=values, ids=ids, features=features, rows=obs, unused=unused,
                   source={"format": "anndata"}, notes=notes)  # fmt: skip


# --- arrays as a file declares them -----------------------------------------------------------

SPARSE = {"csr": sp.csr_matrix, "csc": sp.csc_matrix}


def _dense(path: Path, values: Any) -> np.ndarray:
    """An array, or a dataset that is not read yet, if it can be a table."""
    if len(values.shape) != 2:
        raise TableError(f"{path} holds a {len(values.shape)}-dimensional array; a table has two")
    if values.dtype.kind not in "fiu":
        raise TableError(f"{path} holds {values.dtype} values; a table needs numbers")
    _check_memory(path, 8.0 * values.shape[0] * values.shape[1])
    return np.array(values[:])


def _sparse(
    path: Path, kind: str, data: Any, indices: Any, indptr: Any, shape: Any
) -> sp.csr_matrix:
    """A CSR or CSC matrix from its three arrays (or datasets), as CSR."""
    extents = np.asarray(shape)
    try:
        if extents.shape != (2,) or extents.dtype.kind not in "iu":
            raise ValueError("its shape is no pair of sizes")
        if data.dtype.kind not in "fiub" or {indices.dtype.kind, indptr.dtype.kind} - {"i", "u"}:
            raise ValueError("its arrays are not numbers of the right kind")
        if indptr.shape != (extents[int(kind == "csc")] + 1,) or data.shape != indices.shape:
            raise ValueError("its arrays differ in length")
        _check_memory(path, 8.0 * (extents.sum(dtype=float) + 2 * data.shape[0]))
        values = np.asarray(data[:])
        values = values.astype(np.float32 if values.dtype == np.float32 else np.float64)
        places, ends = (np.asarray(part[:]).astype(np.int64) for part in (indices, indptr))
        if ends[-1] != len(values):
            raise ValueError("indptr does not end at the number of stored entries")
        matrix = SPARSE[kind]((values, places, ends), shape=tuple(map(int, extents)))
        matrix.check_format(full_check=True)
    except (ValueError, TypeError, IndexError, OverflowError) as error:
        if isinstance(error, TableError):
            raise
        what = str(error).partition("\n")[0]
        raise TableError(f"{path} holds a damaged sparse matrix: {what}; write it again") from error
    matrix = sp.csr_matrix(matrix)
    matrix.sum_duplicates()
    return matrix


SHARE_OF_MEMORY = 0.4  # of a table in memory; preparing and fitting need room too


def _check_memory(path: Path, n_bytes: float) -> None:
    memory = machine_memory()
    if n_bytes > SHARE_OF_MEMORY * memory:
        raise TableError(
            f"{path} is a table of {n_bytes / 1e9:,.3g} GB, too large for {memory / 1e9:,.3g} GB "
            "of memory; in Python, mnarkmeans.dask.MNARKMeans fits it in blocks"
        )


# --- DIA-NN's main report ---------------------------------------------------------------------

DIANN = {"Run", "Protein.Group", "Precursor.Id", "Q.Value"}  # what makes it one
# The q-value filters its author recommends; those of the library are 0 without matching runs.
DIANN_FILTERS = (("Q.Value", 0.01), ("PG.Q.Value", 0.05), ("Lib.Q.Value", 0.01),
                 ("Lib.PG.Q.Value", 0.01))  # fmt: skip
DIANN_QUANTITIES = ("PG.MaxLFQ", "PG.Quantity", "PG.Normalised")
DIANN_COLUMNS = DIANN | {"Genes", "Decoy", *DIANN_QUANTITIES} | {
    name.replace("Lib.", prefix) for name, _ in DIANN_FILTERS for prefix in ("Lib.", "Global.")
}  # fmt: skip


def _diann_report(content: Content) -> Content:
    """One row per precursor and run becomes one row per run and one column per protein group."""
    frame = content.frame
    quantity = next((name for name in DIANN_QUANTITIES if name in frame.columns), None)
    if quantity is None:
        raise TableError(
            "this is a main report of DIA-NN without quantities of protein groups (PG.MaxLFQ); "
            "export it again, or give report.pg_matrix.tsv"
        )

    def numbers(name: str) -> np.ndarray:
        return read_cells(frame[name], content.decimal).numbers

    values = numbers(quantity)
    keep = (values > 0) & frame[["Run", "Protein.Group"]].notna().all(axis=1).to_numpy()
    filters = []
    for name, limit in DIANN_FILTERS:
        for column in dict.fromkeys((name, name.replace("Lib.", "Global."))):
            q = numbers(column) if column in frame.columns else np.zeros(0)
            if q.any() or (column in frame.columns and "Lib." not in name):
                keep &= q <= limit
                filters.append(f"{column} <= {limit:g}")
                break
    if "Decoy" in frame.columns:
        keep &= ~(numbers("Decoy") > 0)
    if not keep.any():
        raise TableError("no precursor of this main report of DIA-NN passes the q-value filters")
    part = frame.loc[keep, ["Run", "Protein.Group"]].astype(str).assign(value=values[keep])
    wide = part.groupby(["Run", "Protein.Group"], sort=False)["value"].max().unstack()
    wide = wide.reindex(list(dict.fromkeys(frame["Run"].dropna().astype(str))))
    note = (
        f"DIA-NN's main report was pivoted: {quantity} of {wide.shape[1]:,} protein groups in "
        f"{wide.shape[0]:,} runs, from {keep.sum():,} of {len(frame):,} precursors "
        f"({', '.join(filters)})"
    )
    labels = {}
    if "Genes" in frame.columns:
        genes = frame.loc[keep, ["Protein.Group", "Genes"]].dropna().astype(str)
        labels = dict(zip(genes["Protein.Group"], genes["Genes"], strict=True))
    ids, features = np.array(wide.index, dtype=object), list(wide.columns)
    source, notes = content.source | {"report": "DIA-NN"}, [*content.notes, note]
    return Content(content.kind, matrix=wide.to_numpy(dtype=float), ids=ids, features=features,
                   feature_labels=labels, source=source, notes=notes)  # fmt: skip


READERS: dict[str, Callable[[Path, ReadOptions], Content]] = {
    "text": _from_text, "xlsx": _from_excel, "parquet": _from_parquet, "npy": _from_array,
    "npz": _from_array, "h5ad": _from_store, "zarr": _from_store,
}  # fmt: skip
