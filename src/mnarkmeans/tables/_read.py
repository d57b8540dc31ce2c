"""Any file becomes a `Content`: a frame of columns, or one matrix with names. Read once.

.csv .tsv .txt (+ .gz), .xlsx, .parquet, .npy, .npz, .h5ad, .zarr, AnnData objects, pandas frames.
In dense formats NaN is missing, in sparse ones what is not stored. Nothing that could execute code
is loaded. `_tidy` makes a `Table` of the content, as often as the options change.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PureWindowsPath
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._io import require
from ._arrays import checked_dense, checked_sparse, load_npy, load_npz
from ._numbers import is_sure_mark, read_cells
from ._sheets import read_sheet
from ._table import ReadOptions, TableError, unknown_name, without_shared_words
from ._text import DELIMITERS, read_text

TEXT = {".csv", ".tsv", ".txt", ".tab", ".gct", ".cdt"}
BINARY = {".parquet": "parquet", ".pq": "parquet", ".npy": "npy", ".npz": "npz", ".h5ad": "h5ad",
          ".xlsx": "xlsx", ".zarr": "zarr"}  # fmt: skip
OPTIONS_OF_FORMATS = {
    "delimiter": ("text",), "encoding": ("text",), "header": ("text",), "decimal": ("text", "xlsx"),
    "sheet": ("xlsx",), "layer": ("h5ad", "zarr", "anndata"),
}  # fmt: skip
# DIA-NN's main report: what makes it one, and the q-value filters its author recommends.
DIANN = {"Run", "Protein.Group", "Precursor.Id", "Q.Value"}
DIANN_FILTERS = {"Q.Value": 0.01, "PG.Q.Value": 0.05}
DIANN_LIBRARY = (("Lib.Q.Value", "Global.Q.Value"), ("Lib.PG.Q.Value", "Global.PG.Q.Value"))


@dataclass
class Content:
    """What a file holds: a frame of columns, or a matrix with names of rows and features."""

    kind: str
    frame: Any = None
    texts: dict[int, list[str]] = field(default_factory=dict)
    decimal: str = "."
    matrix: Any = None
    ids: Any = None
    features: list[str] = field(default_factory=list)
    rows: Any = None  # frame that describes the rows of a matrix
    unused: dict[str, str] = field(default_factory=dict)  # features set aside by the file, and why
    feature_labels: dict[str, str] = field(default_factory=dict)
    source: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def read_content(source: Any, options: ReadOptions) -> Content:
    """Read a file (or take an AnnData object or a frame) as it is."""
    if hasattr(source, "obs_names") and hasattr(source, "var_names"):
        return _from_anndata(source, options)
    if hasattr(source, "columns") and hasattr(source, "iloc"):
        return Content("frame", frame=_with_index(source), source={"format": "frame"})
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
    suffixes = [s.lower() for s in path.suffixes]
    last = suffixes[-1] if suffixes else ""
    if not path.exists():
        raise TableError(f"there is no file {path}")
    if path.is_dir() and last != ".zarr":
        raise TableError(f"{path} is a folder; name the table inside it")
    if path.is_file() and path.stat().st_size == 0:
        raise TableError(f"{path} is empty")
    if (suffixes[-2:][0] if last == ".gz" else last) in TEXT:
        return "text"
    if last in BINARY:
        return BINARY[last]
    if last in (".xls", ".xlsb", ".xlsm", ".ods"):
        raise TableError(f"{path} is another kind of spreadsheet; save it as .xlsx or CSV (UTF-8)")
    raise TableError(
        f"{path} does not end in a known format; a table is CSV, TSV (also .gz), .xlsx, .parquet, "
        ".npy, .npz, .h5ad or .zarr"
    )


def _from_text(path: Path, options: ReadOptions) -> Content:
    frame, texts, layout = read_text(path, options)
    source = {
        "delimiter": DELIMITERS.get(layout.delimiter, layout.delimiter),
        "encoding": layout.encoding.removesuffix("-sig"),
        "decimal": layout.decimal,
        "header": layout.names is not None,
    }
    content = Content("text", frame, texts, layout.decimal, source=source, notes=layout.notes)
    return _diann_report(content) if set(frame.columns) >= DIANN else content


def _from_excel(path: Path, options: ReadOptions) -> Content:
    sheet = read_sheet(path, options.sheet, options.decimal)
    source = {"sheet": sheet.name} | ({"decimal": ","} if sheet.decimal == "," else {})
    return Content("xlsx", sheet.frame, {}, sheet.decimal, source=source, notes=sheet.notes)


def _from_parquet(path: Path, options: ReadOptions) -> Content:
    parquet, types = require("pyarrow.parquet", "cli"), require("pyarrow.types", "cli")
    with parquet.ParquetFile(path) as file:
        schema = file.schema_arrow
        _check_unique(path, schema.names)
        checked_dense(path, np.broadcast_to(0.0, (file.metadata.num_rows, len(schema.names))))
        if set(schema.names) >= DIANN:
            wanted = [n for n in schema.names if n in _DIANN_COLUMNS]
            table = file.read(columns=wanted)
        else:
            nested = {f.name: str(f.type) for f in schema if types.is_nested(f.type)}
            table = file.read(columns=[n for n in schema.names if n not in nested])
    table.validate(full=True)
    index = [
        n for n in (schema.pandas_metadata or {}).get("index_columns", ()) if isinstance(n, str)
    ]
    if len(index) > 1:
        raise TableError(
            f"{path} has row names in {len(index)} levels; write it again after "
            "frame.reset_index(), and choose one of them with --id-column"
        )
    frame = table.to_pandas(ignore_metadata=True)
    if set(schema.names) >= DIANN:
        return _diann_report(Content("parquet", frame))
    if index and index[0] in frame.columns:
        name = "id" if index[0].startswith("__index_level_") else index[0]
        names = frame.pop(index[0])
        frame.insert(0, name if name not in frame.columns else index[0], names)
    return Content("parquet", frame, unused={n: f"nested values ({t})" for n, t in nested.items()})


def _check_unique(path: Path, names: Sequence[str]) -> None:
    repeated = [name for name, times in Counter(names).items() if times > 1]
    if repeated:
        raise TableError(f"{path} has more than one column called {repeated[0]!r}; rename them")


def _with_index(frame: Any) -> Any:
    """A frame of the user's, its row names as the first column."""
    import pandas as pd

    frame = frame if isinstance(frame, pd.DataFrame) else frame.to_pandas()  # polars
    if frame.index.nlevels > 1 or frame.columns.nlevels > 1:
        raise TableError("the frame has names in several levels; flatten them first")
    frame = frame.copy(deep=False)
    frame.columns = [str(name) for name in frame.columns]
    _check_unique(Path("the frame"), list(frame.columns))
    if isinstance(frame.index, pd.RangeIndex):
        return frame
    name = str(frame.index.name or "id")
    names = frame.index.astype(object)
    frame = frame.reset_index(drop=True)
    frame.insert(0, name if name not in frame.columns else f"{name} (index)", names)
    return frame


# --- matrices ---------------------------------------------------------------------------------


def _from_numpy(path: Path, options: ReadOptions) -> Content:
    values = load_npz(path) if path.suffix.lower() == ".npz" else load_npy(path)
    if not sp.issparse(values):
        checked_dense(path, values)
    n, p = values.shape
    ids = np.array([str(i + 1) for i in range(n)], dtype=object)
    return Content("npy", matrix=values, ids=ids, features=[f"V{j + 1}" for j in range(p)])


def _from_store(path: Path, options: ReadOptions) -> Content:
    """An AnnData in HDF5 or Zarr, or a plain Zarr array."""
    if path.suffix.lower() == ".zarr":
        root = require("zarr", "dask").open(str(path), mode="r")
        if hasattr(root, "shape"):
            values = np.asarray(checked_dense(path, root)[:])
            ids = np.array([str(i + 1) for i in range(len(values))], dtype=object)
            names = [f"V{j + 1}" for j in range(values.shape[1])]
            return Content("zarr", matrix=values, ids=ids, features=names)
        return _from_group(path, root, options)
    with require("h5py", "anndata").File(path, "r") as root:
        return _from_group(path, root, options)


def _from_group(path: Path, root: Any, options: ReadOptions) -> Content:
    read = require("anndata.io", "anndata").read_elem
    layers = list(root["layers"]) if "layers" in root else []
    if options.layer is not None and options.layer not in layers:
        raise unknown_name("layer", options.layer, layers)
    if options.layer is None and "X" not in root:
        raise unknown_name("layer", "X", layers)
    stored = root["X"] if options.layer is None else root["layers"][options.layer]
    if hasattr(stored, "shape"):
        values: Any = np.asarray(checked_dense(path, stored)[:])
    else:
        kind = str(stored.attrs.get("encoding-type", "")).removesuffix("_matrix")
        if kind not in ("csr", "csc"):
            raise TableError(f"{path} holds a matrix of an unknown kind ({kind or 'none'})")
        data, indices, indptr = (stored[name] for name in ("data", "indices", "indptr"))
        values = checked_sparse(path, kind, data, indices, indptr, stored.attrs["shape"])
    return _annotated("h5ad", values, read(root["obs"]), read(root["var"]), layers, options)


def _from_anndata(adata: Any, options: ReadOptions) -> Content:
    layers = list(adata.layers.keys())
    if options.layer is not None and options.layer not in layers:
        raise unknown_name("layer", options.layer, layers)
    values = adata.X if options.layer is None else adata.layers[options.layer]
    if values is None:
        raise unknown_name("layer", "X", layers)
    where = Path("the AnnData")
    if sp.issparse(values):
        kind = values if values.format in ("csr", "csc") else values.tocsr()
        values = checked_sparse(
            where, kind.format, kind.data, kind.indices, kind.indptr, kind.shape
        )
    else:
        values = np.asarray(checked_dense(where, values)[:])
    return _annotated("anndata", values, adata.obs, adata.var, layers, options)


def _annotated(
    kind: str, values: Any, obs: Any, var: Any, layers: list[str], options: ReadOptions
) -> Content:
    """A matrix with frames for its rows and features.

    As for `tl.mnar_kmeans`, genes that are not marked are left out and zeros are missing.
    """
    if values.shape != (len(obs), len(var)):
        raise TableError(
            f"the matrix of the file is {values.shape[0]:,} x {values.shape[1]:,}, but it names "
            f"{len(obs):,} rows and {len(var):,} features; write it again"
        )
    features = [str(name) for name in var.index]
    notes, unused = [], {}
    if options.layer is None and layers:
        notes.append(f"X was read; the file also has the layer {layers[0]!r}"
                     + (" and others" if layers[1:] else ""))  # fmt: skip
    if "highly_variable" in var and not options.columns:
        marked = var["highly_variable"].to_numpy(dtype=bool)
        if marked.any() and not marked.all():
            reason = 'not marked in var["highly_variable"]'
            unused = {n: reason for n, m in zip(features, marked, strict=True) if not m}
            notes.append(
                f'the {marked.sum():,} features marked in var["highly_variable"] of '
                f"{len(marked):,} are used"
            )
    if sp.issparse(values):
        values.eliminate_zeros()
    elif (values == 0).any():
        values = np.where(values == 0, np.nan, values)
        notes.append("zeros are missing values, as in a sparse matrix")
    ids = np.array([str(name) for name in obs.index], dtype=object)
    return Content(kind, matrix=values, ids=ids, features=features, rows=obs, unused=unused,
                   notes=notes)  # fmt: skip


# --- DIA-NN's main report ---------------------------------------------------------------------

_QUANTITIES = ("PG.MaxLFQ", "PG.Quantity", "PG.Normalised")
_DIANN_COLUMNS = {"Run", "Protein.Group", "Precursor.Id", "Genes", "Decoy", *_QUANTITIES,
                  *DIANN_FILTERS, *(name for pair in DIANN_LIBRARY for name in pair)}  # fmt: skip


def _diann_report(content: Content) -> Content:
    """One row per precursor and run becomes one row per run and one column per protein group."""
    frame = content.frame
    quantity = next((name for name in _QUANTITIES if name in frame.columns), None)
    if quantity is None:
        raise TableError(
            "this is a main report of DIA-NN without quantities of protein groups (PG.MaxLFQ); "
            "export it again, or give report.pg_matrix.tsv"
        )

    def numbers(name: str) -> np.ndarray:
        return read_cells(frame[name], content.decimal).numbers

    limits = {name: limit for name, limit in DIANN_FILTERS.items() if name in frame.columns}
    for pair in DIANN_LIBRARY:  # those of the library are 0 throughout without matching runs
        found = [n for n in pair if n in frame.columns and (numbers(n) > 0).any()]
        limits |= {name: 0.01 for name in found[:1]}
    keep = np.ones(len(frame), bool)
    for name, limit in limits.items():
        keep &= numbers(name) <= limit
    if "Decoy" in frame.columns:
        keep &= ~(numbers("Decoy") > 0)
    values = numbers(quantity)
    keep &= (
        (values > 0) & frame["Run"].notna().to_numpy() & frame["Protein.Group"].notna().to_numpy()
    )
    if not keep.any():
        raise TableError("no precursor of this main report of DIA-NN passes the q-value filters")
    part = frame.loc[keep, ["Run", "Protein.Group"]].astype(str).assign(value=values[keep])
    wide = part.groupby(["Run", "Protein.Group"], sort=False)["value"].max().unstack()
    runs = dict.fromkeys(str(run) for run in frame["Run"].dropna())
    wide = wide.reindex(list(runs))
    filters = ", ".join(f"{name} <= {limit:g}" for name, limit in limits.items())
    notes = [*content.notes,
             f"DIA-NN's main report was pivoted: {quantity} of {wide.shape[1]:,} protein groups in "
             f"{wide.shape[0]:,} runs, from {keep.sum():,} of {len(frame):,} precursors "
             f"({filters})"]  # fmt: skip
    labels = {}
    if "Genes" in frame.columns:
        genes = frame.loc[keep, ["Protein.Group", "Genes"]].dropna().astype(str)
        labels = dict(zip(genes["Protein.Group"], genes["Genes"], strict=True))
    return Content(content.kind, matrix=wide.to_numpy(dtype=float), feature_labels=labels,
                   ids=np.array(wide.index, dtype=object), features=list(wide.columns),
                   source=content.source | {"report": "DIA-NN"}, notes=notes)  # fmt: skip


READERS: dict[str, Callable[[Path, ReadOptions], Content]] = {
    "text": _from_text,
    "xlsx": _from_excel,
    "parquet": _from_parquet,
    "npy": _from_numpy,
    "npz": _from_numpy,
    "h5ad": _from_store,
    "zarr": _from_store,
}


# --- annotations ------------------------------------------------------------------------------


def read_annotations(path: str | Path, ids: np.ndarray) -> tuple[dict[str, list[Any]], list[str]]:
    """Columns of a second file in the order of the rows (None where unknown), and notes.

    The column that names the rows is found by its content; names may lack what all rows share
    (``LFQ intensity``) or the folder and ending of a raw file.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import numpy as np
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "about.csv"
    >>> _ = file.write_text("sample,tissue\\nS2,liver\\nS1,lung\\n")
    >>> read_annotations(file, np.array(["S1", "S2", "S3"]))
    ({'tissue': ['lung', 'liver', None]}, ['1 of 3 rows are not in about.csv'])
    """
    content = read_content(path, ReadOptions())
    frame, where = content.frame, Path(path)
    if frame is None:
        raise TableError(f"{where} has no columns with names; give a CSV, .xlsx or .parquet file")
    names = [str(i) for i in ids]
    key, place = _matched_names(where, frame, names)
    rows = [place.get(name) for name in names]
    columns = {}
    for name in frame.columns:
        if name != key:
            values = _plain_values(frame[name], content.decimal)
            columns[str(name)] = [None if i is None else values[i] for i in rows]
    if not columns:
        raise TableError(f"{where} has no column besides {key!r}, which names the rows")
    absent = sum(i is None for i in rows)
    note = f"{absent:,} of {len(names):,} rows are not in {where.name}"
    return columns, [note] if absent else []


def _matched_names(path: Path, frame: Any, names: list[str]) -> tuple[str, dict[str, int]]:
    """The column that names the rows, and where each row of the table is in the file."""
    best: tuple[int, str, dict[str, int]] = (0, "", {})
    twice = ""
    for change in (_stripped, without_shared_words, _file_stems):
        ours = change(names)
        wanted = set(ours)
        for column in frame.columns:
            texts = ["" if text is None else str(text).strip() for text in frame[column]]
            for theirs in (texts, change(texts)):
                times = Counter(text for text in theirs if text and text in wanted)
                if len(times) > best[0] and max(times.values()) > 1:
                    twice = twice or f"{max(times, key=lambda t: times[t])!r} in column {column!r}"
                elif len(times) > best[0]:
                    place = {text: i for i, text in enumerate(theirs)}
                    found = {n: place[o] for n, o in zip(names, ours, strict=True) if o in place}
                    best = len(times), str(column), found
        if 2 * best[0] >= len(names):
            break
    if not best[0] and twice:
        raise TableError(f"{path} has more than one row for {twice}; give one for each")
    if not best[0]:
        raise TableError(f"no column of {path} holds the row names of the table, such as "
                         f"{names[0]!r}; add one")  # fmt: skip
    return best[1], best[2]


def _stripped(names: list[str]) -> list[str]:
    return [name.strip() for name in names]


def _file_stems(names: list[str]) -> list[str]:
    return [PureWindowsPath(name.strip()).stem for name in names]


def _plain_values(column: Any, decimal: str) -> list[Any]:
    """Numbers where the column holds nothing else, words otherwise."""
    cells = read_cells(column, decimal)
    if cells.words or not cells.count:
        return [None if v is None or is_sure_mark(str(v)) else str(v).strip() for v in column]
    return [None if np.isnan(v) else int(v) if v == round(v) else v for v in cells.numbers.tolist()]
