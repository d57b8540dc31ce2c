"""`mnarkmeans predict`: a model and a new table in, one file of labels out."""

from __future__ import annotations

import gzip
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .. import MNARMixture
from .._io import require
from .._model_files import ARRAYS_NAME, JSON_NAME, ModelFileError, SavedModel, load_model
from ..metrics import confidence
from ..tables import Preparation, ReadOptions, Table, TableError, read_table
from ._app import verb
from ._console import Console, UserError
from ._files import Claim, claimed, without_formulas
from ._options import Use
from ._results import label_columns
from ._source import describe

SUFFIXES = (".csv", ".tsv", ".txt", ".csv.gz", ".tsv.gz", ".txt.gz", ".parquet", ".npy")


@verb("predict result new.csv -o labels.csv")
def predict(use: Use) -> None:
    """Label the rows of a new table, read and prepared as the model's own was."""
    console = use.console
    with claimed_output(use) as claim:
        new = open_table(console, use)
        model, X = new.saved.estimator, new.X
        labels = np.asarray(model.predict(X))
        own, sure, noise = None, None, new.saved.extra.get("noise")
        if isinstance(model, MNARMixture):
            sure = confidence(X, model)
        else:
            own = np.asarray(model.transform(X), dtype=float)[np.arange(len(labels)), labels]
            if noise is not None:  # a table read in blocks has none
                sure = confidence(X, model, noise=noise)
        columns = label_columns(new.table, labels, own, sure)
        write_frame(claim, require("pandas", "cli").DataFrame(columns), use)
    params = model.get_params(deep=False)
    sizes = np.bincount(labels, minlength=params.get("n_clusters") or params["n_components"])
    console.say(f"{len(labels):,} rows labelled; written to {use.out}")
    console.result({"rows": len(labels), "cluster_sizes": sizes, "output": str(use.out)})


@dataclass(frozen=True)
class NewTable:
    """A model, and a table read and prepared as the model's own was."""

    saved: SavedModel
    table: Table
    preparation: Preparation
    X: Any


def claimed_output(use: Use) -> AbstractContextManager[Claim]:
    """Claim the file to write."""
    if not use.out.name.lower().endswith(SUFFIXES):
        raise UserError(f"{use.out} must end in one of {', '.join(SUFFIXES)}")
    inputs = [use.data, use.model, use.model / JSON_NAME, use.model / ARRAYS_NAME]
    return claimed(use.out, force=use.force, inputs=inputs)


def open_table(console: Console, use: Use) -> NewTable:
    """Load the model; read and prepare the table as the model's own was."""
    try:
        saved = load_model(use.model)
    except ModelFileError as error:
        raise UserError(str(error)) from error
    features = saved.feature_names
    preparation = Preparation.from_dict(saved.extra.get("preparation") or {}, features)
    remembered = ReadOptions.from_dict(saved.extra.get("reading") or {}).for_new_file(use.data)
    given = {n: v for n, v in use.options.to_dict().items() if v not in (None, False, [])}
    if use.header is not None:
        given["header"] = use.header
    # The batch of each row is in the annotations, or in a column of the table.
    batch = () if preparation.batch is None or use.annotations else (preparation.batch,)
    more: dict[str, Any] = {
        "features": features, "annotations": use.annotations, "labels": batch
    }  # fmt: skip
    options = remembered.to_dict() | given
    try:
        table = read_table(use.data, **options, **more)
    except TableError as error:
        # The column that named the fitted rows need not be in the new table.
        name = options.get("id_column")
        if use.id_column or not name or name not in str(error):
            raise
        table = read_table(use.data, **options | {"id_column": None}, **more)
    table = preparation.select(table)
    describe(console, table)
    return NewTable(saved, table, preparation, preparation.apply(table))


def write_frame(claim: Claim, frame: Any, use: Use, layout: dict[str, Any] | None = None) -> None:
    """Write a frame as text, Parquet or (numbers only) .npy, by the ending of the name.

    A .csv keeps the separator and the decimal sign of the .csv it was made from (`layout`): the
    spreadsheet that wrote the one opens the other.
    """
    name = use.out.name.lower()
    with claim.writing() as path:
        if name.endswith(".npy"):
            with open(path, "wb") as stream:
                np.save(stream, frame.select_dtypes("number").to_numpy(dtype=float))
        elif name.endswith(".parquet"):
            _one_kind_each(frame).to_parquet(path, index=False)
        else:
            _write_text(path, without_formulas(frame) if use.safe else frame, name, layout)


def _write_text(path: Path, frame: Any, name: str, layout: dict[str, Any] | None) -> None:
    is_csv = name.endswith((".csv", ".csv.gz"))
    separator = "," if is_csv else "\t"
    if layout is not None:
        if is_csv and layout.get("delimiter") == "semicolon":
            separator = ";"
        frame = as_text(frame, "." if separator == "," else layout.get("decimal", "."))
    content = frame.to_csv(index=False, sep=separator, lineterminator="\n").encode()
    # No time stamp in the gzip header: the same input gives the same bytes.
    path.write_bytes(gzip.compress(content, mtime=0) if name.endswith(".gz") else content)


def as_text(frame: Any, decimal: str) -> Any:
    """The frame as text: whole numbers without a point, others with this decimal sign.

    Examples
    --------
    >>> import pandas as pd
    >>> as_text(pd.DataFrame({"a": [1.0, 2.5, None], "b": ["x", 3.0, ""]}), ",").values.tolist()
    [['1', 'x'], ['2,5', '3'], ['', '']]
    """

    def text(value: Any) -> Any:
        if value is None or value != value:
            return ""
        if not isinstance(value, float):
            return value
        return repr(value).removesuffix(".0").replace(".", decimal)

    out = frame.astype(object)
    for j, kind in enumerate(frame.dtypes):
        if getattr(kind, "kind", "") in ("f", "O"):
            out.isetitem(j, [text(value) for value in frame.iloc[:, j].tolist()])
    return out


def _one_kind_each(frame: Any) -> Any:
    """Parquet has one kind of value in a column: text, unless it holds nothing but numbers."""
    out = frame.copy(deep=False)
    for j, kind in enumerate(frame.dtypes):
        if getattr(kind, "kind", "") == "O":
            column = frame.iloc[:, j]
            out.isetitem(j, column.where(column.isna(), column.astype(str)))
    return out
