"""`mnarkmeans predict` and `impute`: a model and a new table in, one file out."""

from __future__ import annotations

import gzip
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._io.model_files import ModelFileError, SavedModel, load_model
from .._io.optional import require
from . import _output
from ._console import Console
from ._errors import UserError
from ._frames import Table
from ._job import Reading
from ._prepare import Preparation, matched

SUFFIXES = (".csv", ".tsv", ".csv.gz", ".tsv.gz", ".parquet", ".npy")


def predict(
    console: Console, model: Path, data: Path, out: Path, given: Reading, force: bool
) -> None:
    """The cluster of every row, and its distance to the centre."""
    saved, table, X = _ready(console, model, data, out, given, force)
    labels = np.asarray(saved.estimator.predict(X))
    distances = np.asarray(saved.estimator.transform(X))
    own = distances[np.arange(len(labels)), labels]
    columns = {"id": table.ids, "cluster": labels, "distance": own}
    _output.write_file(out, lambda path: write_columns(path, columns), force=force)
    sizes = np.bincount(labels, minlength=distances.shape[1])
    console.say(f"{len(labels):,} rows labelled; written to {out}")
    console.result({"rows": len(labels), "cluster_sizes": sizes, "output": str(out)})


def impute(
    console: Console, model: Path, data: Path, out: Path, given: Reading, force: bool
) -> None:
    """The table in its own units with every gap filled from the row's centre."""
    saved, table, X = _ready(console, model, data, out, given, force)
    labels = np.asarray(saved.estimator.predict(X))
    preparation = _preparation(saved)
    fill = preparation.undo(np.asarray(saved.estimator.cluster_centers_, dtype=float))[labels]
    values = _dense(table)
    gaps = np.isnan(values)
    filled = np.where(gaps, fill, values)
    columns = {table.id_name: table.ids} | {
        name: filled[:, j] for j, name in enumerate(table.features) if name != table.id_name
    }
    if len(columns) != len(table.features) + 1:
        raise UserError(
            f"a feature is called {table.id_name!r} like the column that names the rows"
        )
    _output.write_file(out, lambda path: write_columns(path, columns), force=force)
    console.say(f"{gaps.sum():,} of {gaps.size:,} entries filled; written to {out}")
    console.result({"rows": len(labels), "filled": int(gaps.sum()), "output": str(out)})


def _ready(
    console: Console, model: Path, data: Path, out: Path, given: Reading, force: bool
) -> tuple[SavedModel, Table, Any]:
    _check_suffix(out)
    _output.check_file(out, force)
    saved = read_model(model)
    reading = _as_fitted(saved, given)
    try:
        table = reading.read(data, only=saved.feature_names)
    except UserError as error:
        # The fitted table's id column need not be in the new one.
        if given.id_column or not reading.id_column or reading.id_column not in str(error):
            raise
        table = replace(reading, id_column=None).read(data, only=saved.feature_names)
    table = matched(table, tuple(saved.feature_names))
    X = _preparation(saved).apply(table)
    console.say(
        f"{data.name}: {table.shape[0]:,} rows, {table.shape[1]:,} features, "
        f"{table.missing_share():.1%} missing"
    )
    return saved, table, X


def read_model(path: Path) -> SavedModel:
    """The model, its problems told as the user's."""
    try:
        return load_model(path)
    except ModelFileError as error:
        raise UserError(str(error)) from error


def _as_fitted(saved: SavedModel, given: Reading) -> Reading:
    """Read as the fitted table was read, but for what is said now; no text layout is kept."""
    stored = dict(saved.extra.get("reading") or {})
    fitted = Reading(
        missing_codes=tuple(stored.get("missing_codes") or ()),
        id_column=stored.get("id_column"),
        transpose=bool(stored.get("transpose")),
        layer=stored.get("layer"),
    )
    said = {
        name: getattr(given, name)
        for name in (
            "missing_codes",
            "id_column",
            "transpose",
            "layer",
            "encoding",
            "delimiter",
            "header",
        )
        if getattr(given, name) not in (None, (), False)
    }
    if given.header is not None:
        said["header"] = given.header
    return replace(fitted, **said)


def _preparation(saved: SavedModel) -> Preparation:
    stored = saved.extra.get("preparation")
    if stored is None:
        return Preparation(tuple(saved.feature_names))
    return Preparation.from_dict(stored, saved.feature_names)


def _dense(table: Table) -> np.ndarray:
    if not sp.issparse(table.values):
        return np.asarray(table.values, dtype=float)
    coo = table.values.tocoo()
    out = np.full(table.shape, np.nan)
    out[coo.row, coo.col] = coo.data
    return out


def _check_suffix(path: Path) -> None:
    if not path.name.lower().endswith(SUFFIXES):
        raise UserError(f"{path} must end in one of {', '.join(SUFFIXES)}")


def write_columns(path: Path, columns: dict[str, Any]) -> None:
    """Columns as a text table, Parquet, or (numbers only) .npy."""
    pandas = require("pandas", "cli")
    name = path.name.lower()
    frame = pandas.DataFrame(columns)
    if name.endswith(".npy"):
        numeric = frame.select_dtypes("number").to_numpy(dtype=float)
        with open(path, "wb") as stream:
            np.save(stream, numeric)
    elif name.endswith(".parquet"):
        frame.astype({frame.columns[0]: str}).to_parquet(path, index=False)
    else:
        separator = "\t" if ".tsv" in name else ","
        # No time stamp in the gzip header: the same input gives the same bytes.
        if name.endswith(".gz"):
            text = frame.to_csv(index=False, sep=separator)
            path.write_bytes(gzip.compress(text.encode(), mtime=0))
        else:
            frame.to_csv(path, index=False, sep=separator, encoding="utf-8", lineterminator="\n")
