"""`mnarkmeans impute`: a model and a table in; the same table with its missing values filled out.

All rows and columns of the file come back in their order, also those that the model does not use;
only missing values of the model's features change.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import MNARMixture
from .._validation import unnamed
from ..tables import Table
from ._console import UserError
from ._main import verb
from ._options import ModelOptions
from .predict import claimed_output, open_table, write_columns


@verb("impute result new.csv -o filled.csv")
def impute(use: ModelOptions) -> None:
    """Fill the missing values of a table, in its own units, order and layout."""
    console = use.console
    with claimed_output(use) as claim:
        saved, table, preparation = open_table(console, use)
        model, X = saved.estimator, preparation.apply(table)
        if isinstance(model, MNARMixture):
            expected = np.asarray(model.impute(X), dtype=float)
        else:
            expected = np.asarray(model.cluster_centers_, dtype=float)[model.predict(X)]
        columns, filled = fill(table, preparation.undo(expected, table))
        write_columns(claim, columns, layout=table.source)
    n, p = table.shape
    console.say(f"{filled:,} of {n * p:,} values filled in; written to {use.out}")
    console.result({"rows": n, "filled": filled, "output": str(use.out)})


def fill(table: Table, expected: np.ndarray) -> tuple[dict[str, Any], int]:
    """All columns of the file with `expected` in their missing entries, and how many these are."""
    origin = table.origin
    if origin is None:
        raise UserError("this file cannot be written back with its missing values filled")
    frame, texts = origin.frame.reset_index(drop=True), origin.content.texts
    # Columns of text exactly as they are written.
    columns = {
        j: np.array(texts[j], dtype=object) if j in texts else frame.iloc[:, j]
        for j in range(frame.shape[1])
    }
    values = table.dense()
    missing = np.isnan(values)
    values[missing] = expected[missing]
    position = {name: j for j, name in enumerate(frame.columns)}
    if origin.transposed:
        values, missing = values.T, missing.T
        names = unnamed(len(origin.rows))
        if origin.id_column is not None:
            names = [str(v) for v in frame[origin.id_column].iloc[origin.rows]]
        place = dict(zip(names, origin.rows.tolist(), strict=True))
        rows = np.array([place.get(name, -1) for name in table.features])
        at = [position.get(str(name)) for name in table.ids]
    else:
        rows, at = origin.rows, [position.get(name) for name in table.features]
    here, filled = rows >= 0, 0  # features of the model need not be in the file
    for j, numbers, gaps in zip(at, values[here].T, missing[here].T, strict=True):
        if j is None:
            continue
        if here.sum() == len(frame):
            column = np.empty(len(frame))
            column[rows[here]] = numbers
        else:
            kind = float if str(frame.iloc[:, j].dtype) == "float64" else object
            column = np.array(columns[j], dtype=kind)
            column[rows[here][gaps]] = numbers[gaps]
        columns[j] = column
        filled += int(gaps.sum())
    return dict(zip(frame.columns, columns.values(), strict=True)), filled
