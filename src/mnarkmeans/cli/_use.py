"""`mnarkmeans predict` and `impute`: a model and a new table in, one file out."""

from __future__ import annotations

import gzip
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from .. import MNARMixture
from .._io import require
from .._model_files import ARRAYS_NAME, JSON_NAME, ModelFileError, SavedModel, load_model
from ..metrics._verdict import confidence, confidence_of
from ._console import Console
from ._csv import without_formulas
from ._errors import UserError
from ._fill import fill_file, spelled
from ._formats import read_file
from ._options import OutputFile, Use
from ._output import FileClaim, claimed_file
from ._prepare import Preparation, matched
from ._remembered import remembered
from ._results import shown_confidence
from ._table import Table

SUFFIXES = (".csv", ".tsv", ".txt", ".csv.gz", ".tsv.gz", ".txt.gz", ".parquet", ".npy")


def predict(console: Console, use: Use) -> None:
    """The cluster of every row, its distance to the centre, and how sure that is."""
    with _claimed(use) as claim:
        saved, table, X = _ready(console, use)
        labels = np.asarray(saved.estimator.predict(X))
        columns = {"id": table.ids, "cluster": labels} | _judged(saved, X, labels)
        _write(claim, require("pandas", "cli").DataFrame(columns), use.output)
    params = saved.estimator.get_params(deep=False)
    k = params.get("n_clusters") or params["n_components"]
    sizes = np.bincount(labels, minlength=k)
    console.say(f"{len(labels):,} rows labelled; written to {use.output.out}")
    console.result({"rows": len(labels), "cluster_sizes": sizes, "output": str(use.output.out)})


def _judged(saved: SavedModel, X: Any, labels: np.ndarray) -> dict[str, np.ndarray]:
    """What can be said of the labels: a mixture knows probabilities, k-means distances."""
    if isinstance(saved.estimator, MNARMixture):
        return {"confidence": shown_confidence(confidence(X, saved.estimator))}
    distances = np.asarray(saved.estimator.transform(X))
    told = {"distance": distances[np.arange(len(labels)), labels]}
    noise = saved.extra.get("noise")
    if noise is not None:  # models of tables read in blocks do not have it
        told["confidence"] = shown_confidence(confidence_of(distances, noise))
    return told


def impute(console: Console, use: Use) -> None:
    """The file in its own units, shape and order, with every gap the model knows filled."""
    with _claimed(use) as claim:
        saved, table, X = _ready(console, use, keep=True)
        filled = fill_file(table, _guesses(saved, table, X))
        _write(claim, filled.frame, use.output, layout=table.source)
    out = use.output.out
    console.say(f"{filled.count:,} of {filled.entries:,} entries filled; written to {out}")
    for text in filled.notes:
        console.note(text)
    console.result({"rows": table.shape[0], "filled": filled.count, "output": str(out)})


def _guesses(saved: SavedModel, table: Table, X: Any) -> np.ndarray:
    """What each entry would be by the model, in the units of the table."""
    preparation = _preparation(saved)
    if isinstance(saved.estimator, MNARMixture):
        expected = np.asarray(saved.estimator.impute(X), dtype=float)
    else:
        centers = np.asarray(saved.estimator.cluster_centers_, dtype=float)
        expected = centers[np.asarray(saved.estimator.predict(X))]
    return preparation.undo(expected) * preparation.row_factors(table)


def _claimed(use: Use) -> AbstractContextManager[FileClaim]:
    out, model = use.output.out, use.model
    if not out.name.lower().endswith(SUFFIXES):
        raise UserError(f"{out} must end in one of {', '.join(SUFFIXES)}")
    inputs = [use.data, model, model / JSON_NAME, model / ARRAYS_NAME]
    return claimed_file(out, force=use.output.force, inputs=inputs)


def _ready(console: Console, use: Use, *, keep: bool = False) -> tuple[SavedModel, Table, Any]:
    saved = read_model(use.model)
    reading = remembered(saved, use.given, use.data)
    try:
        table = read_file(use.data, reading, only=saved.feature_names, keep=keep)
    except UserError as error:
        # The fitted table's id column need not be in the new one.
        found = reading.id_column
        if use.given.id_column or not found or found not in str(error):
            raise
        reading = replace(reading, id_column=None)
        table = read_file(use.data, reading, only=saved.feature_names, keep=keep)
    preparation = _preparation(saved)
    table = preparation.with_gaps(matched(table, tuple(saved.feature_names)))
    X = preparation.apply(table)
    console.say(
        f"{use.data.name}: {table.shape[0]:,} rows, {table.shape[1]:,} features, "
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
