"""`mnarkmeans predict` and `impute`: a model and a new table in, one file out."""

from __future__ import annotations

import gzip
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from .._io.model_files import ARRAYS_NAME, JSON_NAME, ModelFileError, SavedModel, load_model
from .._io.optional import require
from ..metrics._confidence import confidence_of
from ._console import Console
from ._csv import without_formulas
from ._errors import UserError
from ._fill import fill_file, spelled
from ._options import OutputFile, Rereading
from ._output import FileClaim, claimed_file
from ._prepare import Preparation, matched
from ._remembered import remembered
from ._table import Table
from ._tables import read_table

SUFFIXES = (".csv", ".tsv", ".txt", ".csv.gz", ".tsv.gz", ".txt.gz", ".parquet", ".npy")


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
        _write(claim, require("pandas", "cli").DataFrame(columns), output)
    sizes = np.bincount(labels, minlength=distances.shape[1])
    console.say(f"{len(labels):,} rows labelled; written to {output.out}")
    console.result({"rows": len(labels), "cluster_sizes": sizes, "output": str(output.out)})


def impute(console: Console, model: Path, data: Path, given: Rereading, output: OutputFile) -> None:
    """The file in its own units, shape and order, with every gap the model knows filled."""
    with _claimed(model, data, output) as claim:
        saved, table, X = _ready(console, model, data, given, keep=True)
        labels = np.asarray(saved.estimator.predict(X))
        preparation = _preparation(saved)
        centers = preparation.undo(np.asarray(saved.estimator.cluster_centers_, dtype=float))
        guesses = centers[labels] * preparation.row_factors(table)
        filled = fill_file(table, guesses)
        _write(claim, filled.frame, output, layout=table.source)
    console.say(f"{filled.count:,} of {filled.entries:,} entries filled; written to {output.out}")
    for text in filled.notes:
        console.note(text)
    told = {"rows": len(labels), "filled": filled.count, "output": str(output.out)}
    console.result(told)


def _claimed(model: Path, data: Path, output: OutputFile) -> AbstractContextManager[FileClaim]:
    if not output.out.name.lower().endswith(SUFFIXES):
        raise UserError(f"{output.out} must end in one of {', '.join(SUFFIXES)}")
    inputs = [data, model, model / JSON_NAME, model / ARRAYS_NAME]
    return claimed_file(output.out, force=output.force, inputs=inputs)


def _ready(
    console: Console, model: Path, data: Path, given: Rereading, *, keep: bool = False
) -> tuple[SavedModel, Table, Any]:
    saved = read_model(model)
    reading = remembered(saved, given, data)
    try:
        table = read_table(data, reading, only=saved.feature_names, keep=keep)
    except UserError as error:
        # The fitted table's id column need not be in the new one.
        if given.id_column or not reading.id_column or reading.id_column not in str(error):
            raise
        reading = replace(reading, id_column=None)
        table = read_table(data, reading, only=saved.feature_names, keep=keep)
    preparation = _preparation(saved)
    table = preparation.with_gaps(matched(table, tuple(saved.feature_names)))
    X = preparation.apply(table)
    console.say(
        f"{data.name}: {table.shape[0]:,} rows, {table.shape[1]:,} features, "
        f"{table.missing_share():.1%} missing"
    )
    for text in table.notes:
        console.note(text)
    return saved, table, X


def read_model(path: Path) -> SavedModel:
    """The model, its problems told as the user's."""
    try:
        return load_model(path)
    except ModelFileError as error:
        raise UserError(str(error)) from error


def _preparation(saved: SavedModel) -> Preparation:
    stored = saved.extra.get("preparation")
    if stored is None:
        return Preparation(tuple(saved.feature_names))
    if not isinstance(stored, dict):
        raise UserError("preparation of the model is damaged; fit the model again")
    return Preparation.from_dict(stored, saved.feature_names)


def _write(
    claim: FileClaim, frame: Any, output: OutputFile, layout: dict[str, Any] | None = None
) -> None:
    with claim.file() as path:
        write_frame(path, frame, output.out.name.lower(), output.safe, layout)


def write_frame(
    path: Path, frame: Any, name: str, safe: bool, layout: dict[str, Any] | None = None
) -> None:
    """A frame as a text table, Parquet, or (numbers only) .npy, by the ending of `name`.

    A .csv comes back with the separator and the decimal sign of the .csv it was made from: the
    spreadsheet that wrote the one opens the other.
    """
    if name.endswith(".npy"):
        numeric = frame.select_dtypes("number").to_numpy(dtype=float)
        with open(path, "wb") as stream:
            np.save(stream, numeric)
    elif name.endswith(".parquet"):
        _one_kind_each(frame).to_parquet(path, index=False)
    else:
        frame = without_formulas(frame) if safe else frame
        by_comma = name.endswith((".csv", ".csv.gz"))
        separator = "," if by_comma else "\t"
        if layout is not None:
            if by_comma and layout.get("delimiter") == "semicolon":
                separator = ";"
            frame = spelled(frame, "." if separator == "," else layout.get("decimal", "."))
        text = frame.to_csv(index=False, sep=separator, lineterminator="\n")
        # No time stamp in the gzip header: the same input gives the same bytes.
        content = text.encode()
        path.write_bytes(gzip.compress(content, mtime=0) if name.endswith(".gz") else content)


def _one_kind_each(frame: Any) -> Any:
    """Parquet has one kind of value in a column: words, unless it holds nothing but numbers."""
    out = frame.copy(deep=False)
    for j, kind in enumerate(frame.dtypes):
        if getattr(kind, "kind", "") == "O":
            column = frame.iloc[:, j]
            out.isetitem(j, column.where(column.isna(), column.astype(str)))
    return out
