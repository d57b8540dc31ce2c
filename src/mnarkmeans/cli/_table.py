"""A table as the verbs work with it: numbers with gaps, names, and the story of their reading."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from ._errors import UserError


@dataclass(frozen=True)
class Origin:
    """The file a table was read from, all of it, so that it can be written again.

    frame : pandas frame of every row and column
    texts : columns that hold words, as they are written, by position
    rows : positions in the frame of the rows that were taken
    """

    frame: Any
    texts: dict[int, list[str]]
    rows: np.ndarray
    id_column: str | None
    transposed: bool = False


@dataclass
class Table:
    """Numbers with gaps, the names of their rows and columns, and the story of their reading.

    values : (n, p) array with NaN for missing, or CSR matrix whose stored entries are observed.
    words : the words of columns of text that have a few of them, again and again
    """

    values: Any
    ids: np.ndarray
    features: list[str]
    id_name: str = "id"
    left_out: list[tuple[str, str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    labels: dict[str, np.ndarray] = field(default_factory=dict)
    source: dict[str, Any] = field(default_factory=dict)
    origin: Origin | None = None
    words: dict[str, tuple[str, ...]] = field(default_factory=dict)  # of columns with few

    @property
    def shape(self) -> tuple[int, int]:
        return self.values.shape

    def missing_by_feature(self) -> np.ndarray:
        """Share of missing entries of every feature."""
        n = max(self.shape[0], 1)
        if sp.issparse(self.values):
            return 1.0 - self.values.getnnz(axis=0) / n
        return np.isnan(self.values).sum(axis=0) / n

    def missing_share(self) -> float:
        """Share of missing entries of the whole table."""
        return float(self.missing_by_feature().mean()) if self.shape[1] else 0.0

    def with_features(self, keep: np.ndarray) -> Table:
        """The same rows with the features where `keep` is true (or in the order of its indices)."""
        where = np.flatnonzero(keep) if keep.dtype == bool else keep
        values = self.values[:, where]
        return replace(
            self,
            values=values.tocsr() if sp.issparse(values) else np.ascontiguousarray(values),
            features=[self.features[j] for j in where],
            left_out=list(self.left_out),
            notes=list(self.notes),
        )

    def dense(self) -> np.ndarray:
        """The values as an array of their own, NaN where nothing was observed."""
        if not sp.issparse(self.values):
            return np.array(self.values, dtype=float)
        coo = self.values.tocoo()
        out = np.full(self.shape, np.nan)
        out[coo.row, coo.col] = coo.data
        return out


def transposed(table: Table, *, named: bool = True) -> Table:
    """Rows become features and features become rows; names that come again are told apart."""
    features, again = told_apart([str(i) for i in table.ids])
    if again:
        table.notes.append(
            f"{again:,} names of features come more than once in column {table.id_name!r}; they "
            f"are told apart, such as {next(n for n in features if n.endswith(' (2)'))!r}"
        )
    if not named:
        features = [f"V{name}" for name in features]
    values = table.values.T
    values = values.tocsr() if sp.issparse(values) else np.ascontiguousarray(values)
    ids = np.array(table.features, dtype=object)
    origin = table.origin and replace(table.origin, transposed=True)
    return Table(values, ids, features, "id", table.left_out, table.notes, {}, table.source, origin,
                 table.words)  # fmt: skip


def told_apart(names: list[str]) -> tuple[list[str], int]:
    """Names that come again with their number, and how many names come more than once.

    Examples
    --------
    >>> told_apart(["a", "b", "a"])
    (['a', 'b', 'a (2)'], 1)
    """
    taken, seen, told = set(names), Counter[str](), []
    for name in names:
        seen[name] += 1
        given, number = name, seen[name]
        while number > 1 and given in taken:
            given, number = f"{name} ({number})", number + 1
        taken.add(given)
        told.append(given)
    return told, sum(times > 1 for times in seen.values())


def check_finite(table: Table) -> None:
    """Infinite values have no distance to anything: name the first one."""
    values = table.values.data if sp.issparse(table.values) else table.values
    if not np.isinf(values).any():
        return
    if sp.issparse(table.values):
        coo = table.values.tocoo()
        first = np.flatnonzero(np.isinf(coo.data))[0]
        i, j = coo.row[first], coo.col[first]
    else:
        i, j = np.argwhere(np.isinf(values))[0]
    raise UserError(
        f"column {table.features[j]!r} holds an infinite value in row {table.ids[i]!r}; "
        "correct it, or mark it as missing with --missing-value inf"
    )
