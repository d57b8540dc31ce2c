"""`mnarkmeans predict`: a model and a new table in, one file of labels out."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from .. import MNARMixture
from .._model_files import ARRAYS_NAME, JSON_NAME, SavedModel, load_model
from ..metrics import confidence
from ..tables import Preparation, ReadOptions, Table, read_table
from ..tables._table import counted
from ._claims import Claim, claimed
from ._console import Console, UserError
from ._options import ModelOptions
from ._outputs import label_frame

TEXTS = (".csv", ".tsv", ".txt", ".csv.gz", ".tsv.gz", ".txt.gz")


def predict(use: ModelOptions) -> None:
    """Label the rows of a new table, read and prepared like the table of the fit.

    Example: mnarkmeans predict result new.csv -o labels.csv
    """
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
            if saved.extra.get("odds") is not None:  # a model saved in Python has none
                sure = confidence(X, model, noise=saved.extra["noise"], odds=saved.extra["odds"])
        write_frame(claim, label_frame(table, labels, distance, sure))
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
    saved = load_model(use.model)
    features = saved.feature_names
    preparation = Preparation.from_dict(saved.extra.get("preparation") or {}, features)
    remembered = ReadOptions.from_dict(saved.extra.get("reading") or {}).for_new_file(use.data)
    changed = {n: v for n, v in vars(use.options).items() if v != getattr(ReadOptions, n)}
    options: dict[str, Any] = replace(remembered, **changed).to_dict()
    options |= {"features": features, "annotations": use.annotations}
    options["labels"] = () if preparation.batch is None else (preparation.batch,)
    table = preparation.select(read_table(use.data, **options))
    console.note(*table.summary())
    return saved, table, preparation


def write_frame(claim: Claim, frame: pd.DataFrame, layout: dict[str, Any] | None = None) -> None:
    """Write a frame as text or Parquet, by the ending of the name.

    A .csv keeps the separator and the decimal sign of the .csv it was made from (`layout`): the
    spreadsheet that wrote the one opens the other.
    """
    name = claim.target.name.lower()
    with claim.writing() as folder:
        path = folder / claim.place.name
        if name.endswith(".parquet"):
            texts = frame.select_dtypes("object")  # a column of Parquet has one kind of value
            frame[texts.columns] = texts.where(texts.isna(), texts.astype(str))
            frame.to_parquet(path, index=False)
            return
        separator = "," if name.endswith((".csv", ".csv.gz")) else "\t"
        if layout is not None:
            if separator == "," and layout.get("delimiter") == ";":
                separator = ";"
            decimal = "." if separator == "," else layout.get("decimal", ".")
            frame = frame.map(as_text, decimal=decimal)
        # Without a time stamp in the archive: the same input gives the same bytes.
        zipped = {"method": "gzip", "mtime": 0} if name.endswith(".gz") else None
        frame.to_csv(path, sep=separator, index=False, lineterminator="\n", compression=zipped)


def as_text(value: Any, decimal: str) -> Any:
    """Whole numbers without a point, others with this decimal sign, nothing for a missing value.

    Examples
    --------
    >>> [as_text(value, ",") for value in (1.0, 2.5, None, "x")]
    ['1', '2,5', '', 'x']
    """
    if value is None or value is pd.NA or value != value:
        return ""
    if not isinstance(value, float):
        return value
    return repr(float(value)).removesuffix(".0").replace(".", decimal)
