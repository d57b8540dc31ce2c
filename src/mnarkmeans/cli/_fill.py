"""The file of a table with its gaps filled: its own columns, order, rows and orientation.

A gap that the model knows gets its row's guess. All else stays as it is written: entries that were
observed, columns the model does not know, rows that were dropped.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .._io import require
from .._validation import unnamed
from ._errors import UserError
from ._table import Origin, Table


@dataclass(frozen=True)
class Filled:
    """The whole file as a frame, how many of how many entries were filled, and what was not."""

    frame: Any
    count: int
    entries: int
    notes: list[str]


def fill_file(table: Table, guesses: np.ndarray) -> Filled:
    """Put `guesses` (n, p) into the gaps of the table, within the file it was read from."""
    origin = table.origin
    if origin is None:
        raise UserError("the file was not kept with its table, so it cannot be filled")
    values = table.dense()
    gaps = np.isnan(values)
    values[gaps] = guesses[gaps]
    rows, columns = _places(table, origin)
    if origin.transposed:
        values, gaps = values.T, gaps.T
    lines = np.array([i for i, place in enumerate(rows) if place is not None], dtype=int)
    at = np.array([place for place in rows if place is not None], dtype=int)
    out, filled = {}, 0
    for j, place in enumerate(columns):
        if place is not None:
            own = _Column(at, values[lines, j], gaps[lines, j])
            out[place] = own.within(origin, place)
            filled += int(own.gaps.sum())
    frame = _written(origin, out)
    return Filled(frame, filled, gaps.size, _notes(table, origin, len(lines)))


def _places(table: Table, origin: Origin) -> tuple[list[int | None], list[int | None]]:
    """Where the rows and columns of the file are that hold the table; None: nowhere."""
    position = {name: j for j, name in enumerate(origin.frame.columns)}
    if not origin.transposed:
        columns = [position.get(name) for name in table.features]
        return origin.rows.tolist(), columns
    if origin.id_column is None:
        named = unnamed(len(origin.rows))
    else:
        named = [str(v) for v in origin.frame[origin.id_column].iloc[origin.rows]]
    place = dict(zip(named, origin.rows.tolist(), strict=True))
    return [place.get(name) for name in table.features], [position.get(str(i)) for i in table.ids]


@dataclass(frozen=True)
class _Column:
    """What goes into one column of the file: rows, their values, and which of them were gaps."""

    at: np.ndarray
    values: np.ndarray
    gaps: np.ndarray

    def within(self, origin: Origin, j: int) -> np.ndarray:
        """Column j of the file: numbers, if the table has all of its rows."""
        column = origin.frame.iloc[:, j]
        if len(self.at) == len(column):
            out = np.empty(len(column))
            out[self.at] = self.values
            return out
        if str(column.dtype) == "float64":
            out = column.to_numpy(copy=True)
        else:
            out = np.array(origin.texts.get(j, column.astype(object).to_list()), dtype=object)
        out[self.at[self.gaps]] = self.values[self.gaps]
        return out


def _written(origin: Origin, filled: dict[int, Any]) -> Any:
    """Every column as it is to be written: filled, or word by word."""
    pandas = require("pandas", "cli")
    columns = []
    for j in range(origin.frame.shape[1]):
        if j in filled:
            columns.append(pandas.Series(filled[j]))
        elif j in origin.texts:
            columns.append(pandas.Series(origin.texts[j], dtype=object))
        else:
            columns.append(origin.frame.iloc[:, j].reset_index(drop=True))
    frame = pandas.concat(columns, axis=1)
    frame.columns = list(origin.frame.columns)
    return frame


def spelled(frame: Any, decimal: str) -> Any:
    """The frame as text: whole numbers without a point, others with this decimal sign.

    Examples
    --------
    >>> import pandas as pd
    >>> spelled(pd.DataFrame({"a": [1.0, 2.5, None], "b": ["x", 3.0, ""]}), ",").values.tolist()
    [['1', 'x'], ['2,5', '3'], ['', '']]
    """
    out = frame.astype(object)
    for j, kind in enumerate(frame.dtypes):
        if getattr(kind, "kind", "") in ("f", "O"):
            out.isetitem(j, [_spelled(value, decimal) for value in frame.iloc[:, j].tolist()])
    return out


def _spelled(value: Any, decimal: str) -> Any:
    if value is None:
        return ""
    if not isinstance(value, float):
        return value
    if value != value:
        return ""
    text = repr(value)
    return text.removesuffix(".0") if text.endswith(".0") else text.replace(".", decimal)


def _notes(table: Table, origin: Origin, rows: int) -> list[str]:
    left = origin.frame.shape[0] - len(origin.rows)
    told = [f"{left:,} rows that --drop-rows leaves out are as they were"] if left else []
    names = {*table.features} if not origin.transposed else {str(i) for i in table.ids}
    used = names | {origin.id_column}
    others = [name for name in origin.frame.columns if name not in used]
    if others:
        told.append(f"{len(others):,} columns the model does not use are as they were")
    unfilled = len(origin.rows) - rows if origin.transposed else 0
    if unfilled > 0:
        told.append(
            f"{unfilled:,} rows of the file are no features of the model and are as they were"
        )
    return told
