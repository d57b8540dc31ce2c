"""`mnarkmeans predict`: a model and a new table in, one file of labels out."""

from __future__ import annotations

import gzip
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from .. import MNARMixture
from .._io import require
from .._model_files import ARRAYS_NAME, JSON_NAME, ModelFileError, SavedModel, load_model
from ..metrics import confidence
from ..tables import Preparation, ReadOptions, Table, TableError, read_table
from ._console import Console, UserError, counted
from ._fitting import label_columns
from ._main import verb
from ._options import ModelOptions
from ._outputs import Claim, claimed

TEXTS = (".csv", ".tsv", ".txt", ".csv.gz", ".tsv.gz", ".txt.gz")


@verb("predict result new.csv -o labels.csv")
def predict(use: ModelOptions) -> None:
    """Label the rows of a new table, read and prepared like the table of the fit."""
    console = use.console
    with claimed_output(use) as claim:
        saved, table, preparation = open_table(console, use)
        model, X = saved.estimator, preparation.apply(table)
        labels = np.asarray(model.predict(X))
        distance = sure = None
        if isinstance(model, MNARMixture):
            sure, k = confidence(X, model), model.n_components
        else:
            k = model.n_clusters
            distance = np.asarray(model.transform(X), dtype=float)[np.arange(len(labels)), labels]
            if saved.extra.get("odds") is not None:  # a table read in blocks has none
                sure = confidence(X, model, noise=saved.extra["noise"], odds=saved.extra["odds"])
        columns = label_columns(table, labels, distance, sure)
        write_frame(claim, require("pandas", "cli").DataFrame(columns))
    sizes = np.bincount(labels, minlength=k)
    console.say(f"{counted(len(labels), 'row')} labelled; written to {use.out}")
    console.result({"rows": len(labels), "cluster_sizes": sizes, "output": str(use.out)})


def claimed_output(use: ModelOptions) -> AbstractContextManager[Claim]:
    """Claim the file to write."""
    if not use.out.name.lower().endswith((*TEXTS, ".parquet")):
        raise UserError(f"{use.out} must end in one of {', '.join(TEXTS)}, .parquet")
    inputs = [use.data, use.model, use.model / JSON_NAME, use.model / ARRAYS_NAME]
    return claimed(use.out, force=use.force, inputs=inputs)


def open_table(console: Console, use: ModelOptions) -> tuple[SavedModel, Table, Preparation]:
    """The model, the table with the model's features, and how to prepare it."""
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
    options: dict[str, Any] = remembered.to_dict() | given
    options |= {"features": features, "annotations": use.annotations}
    options["labels"] = () if preparation.batch is None else (preparation.batch,)
    try:
        table = read_table(use.data, **options)
    except TableError as error:
        # The column that named the fitted rows need not be in the new table.
        name = options["id_column"]
        if use.id_column or not name or name not in str(error):
            raise
        table = read_table(use.data, **options | {"id_column": None})
    table = preparation.select(table)
    console.note(*table.summary())
    return saved, table, preparation


def write_frame(claim: Claim, frame: Any, layout: dict[str, Any] | None = None) -> None:
    """Write a frame as text or Parquet, by the ending of the name.

    A .csv keeps the separator and the decimal sign of the .csv it was made from (`layout`): the
    spreadsheet that wrote the one opens the other.
    """
    name = claim.target.name.lower()
    with claim.writing() as path:
        if name.endswith(".parquet"):
            texts = frame.select_dtypes("object")  # a column of Parquet has one kind of value
            frame[texts.columns] = texts.where(texts.isna(), texts.astype(str))
            frame.to_parquet(path, index=False)
            return
        separator = "," if name.endswith((".csv", ".csv.gz")) else "\t"
        if layout is not None:
            if separator == "," and layout.get("delimiter") == "semicolon":
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
        return repr(float(value)).removesuffix(".0").replace(".", decimal)

    return frame.astype(object).map(text)
