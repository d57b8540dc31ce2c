"""`mnarkmeans impute`: a model and a table in; the same table with its missing values filled out.

All rows and columns of the file come back in their order, also those that the model does not use;
only missing values of the model's features change, and marks for missing elsewhere become empty.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from ..tables import Table
from ._options import ModelOptions
from .predict import claimed_output, open_table, write_frame


def impute(use: ModelOptions) -> None:
    """Fill the missing values of a table, in its own units, order and layout.

    Example: mnarkmeans impute result new.csv -o filled.csv
    """
    console = use.console
    with claimed_output(use) as claim:
        saved, table, preparation = open_table(console, use)
        model, X = saved.estimator, preparation.apply(table)
        expected = np.asarray(model.impute(X), dtype=float)
        frame, filled = fill(table, preparation.undo(expected, table))
        write_frame(claim, frame, layout=table.source)
    n, p = table.shape
    console.say(f"{filled:,} of {n * p:,} values filled in; written to {use.out}")
    console.result({"rows": n, "filled": filled, "output": str(use.out)})


def fill(table: Table, expected: np.ndarray) -> tuple[pd.DataFrame, int]:
    """All columns of the file with `expected` in their missing entries, and how many these are."""
    content, rows, names = table.content, table.rows, [*table.features]
    frame = content.to_frame().reset_index(drop=True)
    columns = {name: frame[name] for name in frame.columns}
    values = table.dense()
    missing = np.isnan(values)
    values[missing] = expected[missing]
    if table.options.transpose:
        values, missing, names = values.T, missing.T, table.ids.tolist()
        rows = np.array([rows.get(name, -1) for name in table.features])
    here, filled = rows >= 0, 0  # features of the model need not be in the file
    for name, numbers, gaps in zip(names, values[here].T, missing[here].T, strict=True):
        if name not in columns:
            continue
        if here.sum() == len(frame):
            column = np.empty(len(frame))
            column[rows[here]] = numbers
        else:
            kind = float if str(frame[name].dtype) == "float64" else object
            column = np.array(columns[name], dtype=kind)
            column[rows[here][gaps]] = numbers[gaps]
        columns[name] = column
        filled += int(gaps.sum())
    return pd.DataFrame(columns), filled
