"""`mnarkmeans predict` and `impute`: a model and a new table in, one file out."""

from __future__ import annotations

import gzip
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._io.model_files import ARRAYS_NAME, JSON_NAME, ModelFileError, SavedModel, load_model
from .._io.optional import require
from ..metrics._confidence import confidence_of
from ._console import Console
from ._csv import without_formulas
from ._errors import UserError
from ._frames import Table
from ._options import OutputFile, Rereading
from ._output import FileClaim, claimed_file
from ._prepare import Preparation, matched
from ._tables import read_table

SUFFIXES = (".csv", ".tsv", ".csv.gz", ".tsv.gz", ".parquet", ".npy")


def predict(
    console: Console, model: Path, data: Path, given: Rereading, output: OutputFile
) -> None:
    """The cluster of every row, and its distance to the centre."""
    with _claimed(model, data, output) as claim:
        saved, table, X = _ready(console, model, data, given)
        labels = np.asarray(saved.estimator.predict(X))
        distances = np.asarray(saved.estimator.transform(X))
        own = distances[np.arange(len(labels)), labels]
        columns = {"id": table.ids, "cluster": labels, "distance": own}
        noise = saved.extra.get("noise")
        if isinstance(noise, float):  # models of tables read in blocks do not have it
            columns["confidence"] = confidence_of(distances, noise)
        _write(claim, columns, output)
    sizes = np.bincount(labels, minlength=distances.shape[1])
    console.say(f"{len(labels):,} rows labelled; written to {output.out}")
    console.result({"rows": len(labels), "cluster_sizes": sizes, "output": str(output.out)})


def impute(console: Console, model: Path, data: Path, given: Rereading, output: OutputFile) -> None:
    """The table in its own units with every gap filled from the row's centre."""
    with _claimed(model, data, output) as claim:
        saved, table, X = _ready(console, model, data, given)
        if table.id_name in table.features:
            raise UserError(
                f"a feature is called {table.id_name!r} like the column that names the rows"
            )
        labels = np.asarray(saved.estimator.predict(X))
        centers = np.asarray(saved.estimator.cluster_centers_, dtype=float)
        values = _dense(table)
        gaps = np.isnan(values)
        filled = np.where(gaps, _preparation(saved).undo(centers)[labels], values)
        columns = {name: filled[:, j] for j, name in enumerate(table.features)}
        _write(claim, {table.id_name: table.ids} | columns, output)
    console.say(f"{gaps.sum():,} of {gaps.size:,} entries filled; written to {output.out}")
    told = {"rows": len(labels), "filled": int(gaps.sum()), "output": str(output.out)}
    console.result(told)


def _claimed(model: Path, data: Path, output: OutputFile) -> AbstractContextManager[FileClaim]:
    if not output.out.name.lower().endswith(SUFFIXES):
        raise UserError(f"{output.out} must end in one of {', '.join(SUFFIXES)}")
    inputs = [data, model, model / JSON_NAME, model / ARRAYS_NAME]
    return claimed_file(output.out, force=output.force, inputs=inputs)


def _ready(
    console: Console, model: Path, data: Path, given: Rereading
) -> tuple[SavedModel, Table, Any]:
    saved = read_model(model)
    reading = _as_fitted(saved, given)
    try:
        table = read_table(data, reading, only=saved.feature_names)
    except UserError as error:
        # The fitted table's id column need not be in the new one.
        if given.id_column or not reading.id_column or reading.id_column not in str(error):
            raise
        table = read_table(data, replace(reading, id_column=None), only=saved.feature_names)
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


def _as_fitted(saved: SavedModel, given: Rereading) -> Rereading:
    """Read as the fitted table was read, but for what is said now; no text layout is kept."""
    stored = saved.extra.get("reading") or {}
    kept: dict[str, Any] = {}
    for name, kind in (("missing_codes", list), ("id_column", str), ("transpose", bool),
                       ("layer", str)):  # fmt: skip
        value = stored.get(name) if isinstance(stored, dict) else stored
        if value is not None and not isinstance(value, kind):
            raise UserError(f"reading/{name} of the model is damaged; fit the model again")
        kept[name] = value
    said = {name: value for name, value in vars(given).items() if value not in (None, False)}
    if given.header is not None:
        said["header"] = given.header
    return replace(Rereading(**kept), **said)


def _preparation(saved: SavedModel) -> Preparation:
    stored = saved.extra.get("preparation")
    if stored is None:
        return Preparation(tuple(saved.feature_names))
    if not isinstance(stored, dict):
        raise UserError("preparation of the model is damaged; fit the model again")
    return Preparation.from_dict(stored, saved.feature_names)


def _dense(table: Table) -> np.ndarray:
    if not sp.issparse(table.values):
        return np.asarray(table.values, dtype=float)
    coo = table.values.tocoo()
    out = np.full(table.shape, np.nan)
    out[coo.row, coo.col] = coo.data
    return out


def _write(claim: FileClaim, columns: dict[str, Any], output: OutputFile) -> None:
    frame = require("pandas", "cli").DataFrame(columns)
    with claim.file() as path:
        write_frame(path, frame, output.out.name.lower(), output.safe)


def write_frame(path: Path, frame: Any, name: str, safe: bool) -> None:
    """A frame as a text table, Parquet, or (numbers only) .npy, by the ending of `name`."""
    if name.endswith(".npy"):
        numeric = frame.select_dtypes("number").to_numpy(dtype=float)
        with open(path, "wb") as stream:
            np.save(stream, numeric)
    elif name.endswith(".parquet"):
        frame.astype({frame.columns[0]: str}).to_parquet(path, index=False)
    else:
        frame = without_formulas(frame) if safe else frame
        text = frame.to_csv(index=False, sep="\t" if ".tsv" in name else ",", lineterminator="\n")
        # No time stamp in the gzip header: the same input gives the same bytes.
        content = text.encode()
        path.write_bytes(gzip.compress(content, mtime=0) if name.endswith(".gz") else content)
