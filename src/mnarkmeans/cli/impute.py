"""`mnarkmeans impute`: the file that was given, with its missing values filled.

Missing values of the model's features get the value of the row's centre, in the units of the
table. Everything else stays as it is written: observed values, other columns, rows left out.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import MNARMixture
from .._io import require
from .._validation import unnamed
from ..tables import Table
from ..tables._table import Origin
from ._console import UserError
from ._main import verb
from ._options import Use
from .predict import claimed_output, open_table, write_frame


@verb("impute result new.csv -o filled.csv")
def impute(use: Use) -> None:
    """Fill the missing values of a table, in its own units, order and layout."""
    console = use.console
    with claimed_output(use) as claim:
        saved, table, preparation = open_table(console, use)
        model, X = saved.estimator, preparation.apply(table)
        if isinstance(model, MNARMixture):
            expected = np.asarray(model.impute(X), dtype=float)
        else:
            expected = np.asarray(model.cluster_centers_, dtype=float)[model.predict(X)]
        frame, filled = fill(table, preparation.undo(expected, table))
        write_frame(claim, frame, use, layout=table.source)
    rows, columns = table.shape
    console.say(f"{filled:,} of {rows * columns:,} values filled in; written to {use.out}")
    console.result({"rows": rows, "filled": filled, "output": str(use.out)})


def fill(table: Table, expected: np.ndarray) -> tuple[Any, int]:
    """The whole file as a frame with `expected` in its missing entries, and how many."""
    origin = table.origin
    if origin is None:
        raise UserError("this file cannot be written back with its missing values filled")
    frame = origin.frame
    values = table.dense()
    missing = np.isnan(values)
    values[missing] = expected[missing]
    rows, columns = _places(table, origin)
    if origin.transposed:
        values, missing = values.T, missing.T
    at = np.array([i for i in rows if i is not None], dtype=int)
    taken = np.array([k for k, i in enumerate(rows) if i is not None], dtype=int)
    texts = origin.content.texts  # columns of text exactly as they are written
    parts: list[Any] = [
        np.array(texts[j], dtype=object) if j in texts else frame.iloc[:, j]
        for j in range(frame.shape[1])
    ]
    filled = 0
    for k, j in enumerate(columns):
        if j is None:
            continue
        gaps, numbers = missing[taken, k], values[taken, k]
        if len(at) == len(frame):
            column = np.empty(len(frame))
            column[at] = numbers
        else:
            kind = frame.iloc[:, j].dtype
            column = np.array(parts[j], dtype=float if str(kind) == "float64" else object)
            column[at[gaps]] = numbers[gaps]
        parts[j] = column
        filled += int(gaps.sum())
    pandas = require("pandas", "cli")
    series = [pandas.Series(part).reset_index(drop=True) for part in parts]
    out = pandas.concat(series, axis=1)
    out.columns = list(frame.columns)
    return out, filled


def _places(table: Table, origin: Origin) -> tuple[list[int | None], list[int | None]]:
    """Where the rows and columns of the table are in the file; None: nowhere."""
    position = {name: j for j, name in enumerate(origin.frame.columns)}
    if not origin.transposed:
        return origin.rows.tolist(), [position.get(name) for name in table.features]
    if origin.id_column is None:
        names = unnamed(len(origin.rows))
    else:
        names = [str(v) for v in origin.frame[origin.id_column].iloc[origin.rows]]
    place = dict(zip(names, origin.rows.tolist(), strict=True))
    return [place.get(name) for name in table.features], [position.get(str(i)) for i in table.ids]
