"""A frame becomes a table: which rows count, what names them, which columns hold numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

import numpy as np

from ._dropped import column_and_value, kept_rows
from ._errors import UserError, unknown_name
from ._marks import Findings, read_cells, shortened
from ._meaning import FEW_ANSWERS, check_meaning
from ._numbering import (
    IDENTIFIES,
    are_padded,
    may_name_rows,
    names_features,
    not_measured,
    says_identifier,
)
from ._options import Reading, Rereading
from ._table import Origin, Table, check_finite, transposed

NEVER_OBSERVED = "no value observed"
NAMES_ROWS = "names the rows"
MOSTLY, NEARLY_ALL = 0.5, 0.8  # of the rows: different names of features; a name at all


@dataclass(frozen=True)
class Words:
    """How numbers are written in a text: their decimal sign, and the user's codes for missing."""

    codes: tuple[str, ...] = ()
    decimal: str = "."
    in_sheet: bool = False  # among numbers that have no sign of their own


@dataclass(frozen=True)
class ColumnChoice:
    """What the user said about columns and rows."""

    id_column: str | None = None
    columns: Sequence[str] = ()  # patterns such as "LFQ intensity *"
    drop: Sequence[str] = ()
    labels: Sequence[str] = ()  # kept aside, never clustered
    transpose: bool = False  # features in rows
    only: frozenset[str] | None = None  # the features a model knows; all others are ignored
    drop_rows: Sequence[str] = ()  # such as "Reverse=+"
    of_model: bool = False  # a model says all this, of a table that may lack what only it needed
    keep_origin: bool = False

    @property
    def names_columns(self) -> bool:
        """Whether the columns to cluster were named, by the user or by a model."""
        return bool(self.columns) or self.only is not None

    def kept_rows(
        self, names: Sequence[str], column_of: Any, n_rows: int
    ) -> tuple[np.ndarray, list[str]]:
        """Positions of the rows that --drop-rows leaves, and what was dropped in words."""
        # Where rows are features, those of a model are found by name.
        lenient = self.of_model and self.transpose
        return kept_rows(self.drop_rows, names, column_of, n_rows, lenient=lenient)

    @classmethod
    def of(
        cls, reading: Rereading, labels: Sequence[str], only: Sequence[str], keep: bool
    ) -> ColumnChoice:
        """From the options. A model knows its columns by name; but of a transposed table they are
        the rows, and the columns that are samples are chosen as they were when it was fitted."""
        chosen = reading if isinstance(reading, Reading) else Reading()
        by_name = bool(only) and not reading.transpose
        return cls(
            reading.id_column,
            () if by_name else tuple(chosen.columns or ()),
            () if by_name else tuple(chosen.drop or ()),
            tuple(labels),
            reading.transpose,
            frozenset(only) if by_name else None,
            tuple(chosen.drop_rows or ()),
            bool(only),
            keep,
        )


def table_from_frame(
    frame: Any,
    choice: ColumnChoice,
    words: Words,
    texts: dict[int, list[str]] | None = None,
) -> Table:
    """Find the id column and the numeric columns of a pandas frame."""
    names = [str(name) for name in frame.columns]
    frame.columns = names
    whole = frame
    asked = choice.labels if choice.of_model else (*choice.labels, *choice.drop)
    for name in asked:
        if name not in names and not any(fnmatchcase(n, name) for n in names):
            raise unknown_name("column", name, names)
    rows, told = choice.kept_rows(names, lambda name: frame[name], len(frame))
    if len(rows) < len(frame):
        frame = frame.iloc[rows].reset_index(drop=True)
    id_column = find_id_column(frame, choice.id_column, words)
    reasons = [_set_aside(name, id_column, choice) for name in names]
    if not choice.names_columns:
        reasons = _without_names(frame, reasons, words)
    values, reasons, findings = _matrix(frame, reasons, words)
    if not choice.names_columns:
        values, reasons = _measured(values, names, reasons)
    features = [name for name, reason in zip(names, reasons, strict=True) if reason is None]
    findings.check(len(features), names)
    if not (choice.columns or choice.of_model):
        check_meaning(frame, names, reasons, findings.vocabularies)
    left_out = [
        (name, reason)
        for name, reason in zip(names, reasons, strict=True)
        if reason is not None and reason != NAMES_ROWS
    ]
    if not features:
        raise UserError(_no_numbers(left_out, choice))
    ids, id_name = _row_names(frame, id_column)
    # Samples of a transposed table are columns; their labels cannot be columns as well.
    labels = {name: _classes(frame[name], words.codes) for name in choice.labels}
    origin = Origin(whole, texts or {}, rows, id_column) if choice.keep_origin else None
    notes = [*told, *findings.notes()]
    source: dict[str, Any] = {"id_column": id_column}
    if id_column is not None and frame[id_column].isna().any():
        source["unnamed_rows"] = int(frame[id_column].isna().sum())
    table = Table(values, ids, features, id_name, left_out, notes, labels, source, origin,
                  findings.vocabularies)  # fmt: skip
    check_finite(table)
    return transposed(table, named=id_column is not None) if choice.transpose else table


def _matrix(
    frame: Any, reasons: list[str | None], words: Words
) -> tuple[np.ndarray, list[str | None], Findings]:
    """Columns that were not set aside and hold numbers, and why the others do not.

    Columns of floats are taken together: a table may have 100,000 of them.
    """
    reasons, floats = list(reasons), [str(kind) == "float64" for kind in frame.dtypes]
    together = [j for j, reason in enumerate(reasons) if reason is None and floats[j]]
    values = frame.iloc[:, together].to_numpy(dtype=np.float64)
    never = np.isnan(values).all(axis=0)
    for j in np.asarray(together, dtype=int)[never].tolist():
        reasons[j] = NEVER_OBSERVED
    others: dict[int, np.ndarray] = {}
    findings = Findings()
    for j, name in enumerate(frame.columns):
        if reasons[j] is None and not floats[j]:
            column, reasons[j] = _numbers(frame.iloc[:, j], name, words, findings)
            if column is not None:
                others[j] = column
    if not others:
        return (values[:, ~never] if never.any() else values), reasons, findings
    place = {j: i for i, j in enumerate(together)}
    kept = [j for j, reason in enumerate(reasons) if reason is None]
    columns = [others[j] if j in others else values[:, place[j]] for j in kept]
    return np.column_stack(columns), reasons, findings


def _without_names(frame: Any, reasons: list[str | None], words: Words) -> list[str | None]:
    """Columns of text that are names, though digits or some of them may be numbers."""
    reasons = list(reasons)
    for j, (name, kind) in enumerate(zip(frame.columns, frame.dtypes, strict=True)):
        if reasons[j] is not None or _is_number(kind):
            continue
        column = frame.iloc[:, j]
        if are_padded(column.dropna().astype(str)):
            reasons[j] = f"names in digits, such as {column.dropna().iloc[0]!r}"
        elif says_identifier(name) and read_cells(column, words.decimal, words.codes).words:
            reasons[j] = IDENTIFIES
    return reasons


def _measured(
    values: np.ndarray, names: list[str], reasons: list[str | None]
) -> tuple[np.ndarray, list[str | None]]:
    """Without the columns of numbers that measure nothing, and why those are left out."""
    kept = [j for j, reason in enumerate(reasons) if reason is None]
    found = not_measured(values, [names[j] for j in kept])
    if not found:
        return values, reasons
    reasons = list(reasons)
    for i, reason in found.items():
        reasons[kept[i]] = reason
    return np.delete(values, list(found), axis=1), reasons


def _set_aside(name: str, id_column: str | None, choice: ColumnChoice) -> str | None:
    if name == id_column:
        return NAMES_ROWS
    if name in choice.labels:
        return "known classes, kept aside"
    if choice.only is not None:
        return None if name in choice.only else "unknown to the model"
    if any(column_and_value(rule)[0] == name for rule in choice.drop_rows):
        return "tells which rows are dropped"
    if any(name == pattern or fnmatchcase(name, pattern) for pattern in choice.drop):
        return "dropped as asked"
    if choice.columns and not any(name == p or fnmatchcase(name, p) for p in choice.columns):
        return "not among --columns"
    return None


def set_aside(names: Sequence[str], choice: ColumnChoice) -> list[str | None]:
    """Why each column of a file that names its rows itself is not used, or None."""
    return [_set_aside(name, None, choice) for name in names]


def find_id_column(frame: Any, given: str | None, words: Words) -> str | None:
    """The column that names the rows: the one given, a well-known name, or unique text."""
    names = list(frame.columns)
    if given is not None:
        if given not in names:
            raise unknown_name("column", given, names)
        return given
    kinds = frame.dtypes.to_numpy()
    text = [n for n, kind in zip(names, kinds, strict=True) if not _is_number(kind)]
    text = [n for n in text if not _mostly_numbers(frame[n], words)]
    unique = [n for n in text if _names_rows(frame[n])]
    for candidates in (
        (n for n in unique if may_name_rows(n)),
        (n for n in names if may_name_rows(n, surely=True) and _names_rows(frame[n])),
        (n for n in text if may_name_rows(n) and _names_rows(frame[n].dropna(), of=len(frame))),
        (n for n in unique if names_features(n)),
        (n for n in text if names_features(n) and frame[n].nunique() >= MOSTLY * len(frame)),
        iter(unique),
    ):
        found = next(candidates, None)
        if found is not None:
            return found
    return None


def _classes(column: Any, missing_codes: tuple[str, ...]) -> np.ndarray:
    """Known classes; a code for missing is none."""
    return column.where(~column.astype(str).isin(missing_codes)).to_numpy()


def _names_rows(column: Any, of: int | None = None) -> bool:
    """No gap, and no value twice; of: how many rows there are, if most of them are enough."""
    enough = column.notna().all() if of is None else len(column) >= NEARLY_ALL * of
    return bool(enough and column.is_unique)


def _is_number(kind: Any) -> bool:
    return isinstance(kind, np.dtype) and kind.kind in "fiu"


def _is_numeric(column: Any) -> bool:
    import pandas as pd

    return bool(pd.api.types.is_numeric_dtype(column)) and not pd.api.types.is_bool_dtype(column)


def _mostly_numbers(column: Any, words: Words) -> bool:
    """Numbers, perhaps with a few words among them that stand for something else."""
    if _is_numeric(column):
        return True
    if are_padded(column.dropna().astype(str)):
        return False
    cells = read_cells(column, words.decimal, words.codes)
    return cells.count > cells.words.total()


def _numbers(
    column: Any, name: str, words: Words, findings: Findings
) -> tuple[np.ndarray | None, str | None]:
    """The column as floats, or the reason why it is left out; INOUT findings: its words."""
    import pandas as pd

    if not column.notna().any():
        return None, NEVER_OBSERVED
    if _is_numeric(column):
        if pd.api.types.is_complex_dtype(column):
            return None, "complex numbers"
        return column.to_numpy(dtype=np.float64, na_value=np.nan), None
    if pd.api.types.is_bool_dtype(column) or pd.api.types.is_datetime64_any_dtype(column):
        return None, f"not numbers ({column.dtype})"
    cells = read_cells(column, words.decimal, words.codes)
    if not cells.words and not cells.count:
        return None, NEVER_OBSERVED
    if not cells.words:
        findings.marks.update(cells.marks)
        if cells.decimal == "," and (words.in_sheet or words.decimal != ","):
            findings.commas.append(name)
        return cells.numbers, None
    if cells.lists:
        return None, f"lists, such as {shortened(next(iter(cells.words)))!r}"
    if cells.doubtful and cells.looks_measured:
        findings.unread[name] = cells.doubtful
        return None, f"text, such as {shortened(cells.doubtful)!r}"
    if cells.measured:
        findings.words[name] = cells.words
        return None, "words among numbers"
    if len(cells.words) <= FEW_ANSWERS:
        findings.vocabularies[name] = tuple(cells.words)
    example = next(iter(cells.words))
    if cells.looks_measured:
        findings.unread[name] = example
    return None, f"text, such as {shortened(example)!r}"


def _no_numbers(left_out: list[tuple[str, str]], choice: ColumnChoice) -> str:
    unread = [(name, why) for name, why in left_out if name in (choice.only or ())]
    if unread:
        told = "; ".join(f"{name!r}: {why}" for name, why in unread[:3])
        return f"the columns of the model are in the table, but hold no number ({told})"
    if choice.only:
        return f"the table has none of the model's columns, such as {sorted(choice.only)[0]!r}"
    if choice.of_model and choice.columns:
        return f"the model reads columns like {choice.columns[0]!r}, and the table has none of them"
    told = "; ".join(f"{name!r}: {reason}" for name, reason in left_out[:3])
    return f"the table has no numeric column to cluster ({told or 'it has no columns'})"


def _row_names(frame: Any, id_column: str | None) -> tuple[np.ndarray, str]:
    if id_column is None:
        return np.array([str(i + 1) for i in range(len(frame))], dtype=object), "id"
    values = frame[id_column]
    ids = np.array(
        [f"row {i + 1}" if gap else str(v) for i, (v, gap) in enumerate(
            zip(values, values.isna(), strict=True))],
        dtype=object,
    )  # fmt: skip
    return ids, id_column.strip() or "id"
