"""A frame becomes a table: which column names the rows, which hold numbers, what was left out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

import numpy as np
import scipy.sparse as sp

from ._errors import UserError, unknown_name
from ._layout import MISSING_WORDS
from ._options import Reading, Rereading

NEVER_OBSERVED = "no value observed"
SURE_ID_NAMES = {"", "id", "index", "unnamed: 0", "row", "rowid", "row_id"}
LIKELY_ID_NAMES = {
    "sample", "sample id", "sample_id", "sampleid", "cell", "cell id", "cell_id", "barcode", "name",
    "gene", "genes", "gene name", "gene names", "gene_id", "protein", "protein id", "protein ids",
    "protein.ids", "protein.group", "majority protein ids", "accession", "metabolite", "lipid",
    "compound", "feature",
}  # fmt: skip


@dataclass
class Table:
    """Numbers with gaps, the names of their rows and columns, and the story of their reading.

    values : (n, p) array with NaN for missing, or CSR matrix whose stored entries are observed.
    """

    values: Any
    ids: np.ndarray
    features: list[str]
    id_name: str = "id"
    left_out: list[tuple[str, str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    labels: dict[str, np.ndarray] = field(default_factory=dict)
    source: dict[str, Any] = field(default_factory=dict)

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
        return Table(
            values=values.tocsr() if sp.issparse(values) else np.ascontiguousarray(values),
            ids=self.ids,
            features=[self.features[j] for j in where],
            id_name=self.id_name,
            left_out=list(self.left_out),
            notes=list(self.notes),
            labels=self.labels,
            source=self.source,
        )


@dataclass(frozen=True)
class ColumnChoice:
    """What the user said about columns."""

    id_column: str | None = None
    columns: Sequence[str] = ()  # patterns such as "LFQ intensity *"
    drop: Sequence[str] = ()
    labels: Sequence[str] = ()  # kept aside, never clustered
    transpose: bool = False  # features in rows
    only: frozenset[str] | None = None  # the features a model knows; all others are ignored

    @classmethod
    def of(cls, reading: Rereading, labels: Sequence[str], only: Sequence[str]) -> ColumnChoice:
        """From the options; the columns of a model need no choice."""
        chosen = reading if isinstance(reading, Reading) and not only else Reading()
        return cls(
            reading.id_column,
            tuple(chosen.columns or ()),
            tuple(chosen.drop or ()),
            tuple(labels),
            reading.transpose,
            frozenset(only) if only and not reading.transpose else None,
        )


def table_from_frame(frame: Any, choice: ColumnChoice, missing_codes: tuple[str, ...]) -> Table:
    """Find the id column and the numeric columns of a pandas frame."""
    names = [str(name) for name in frame.columns]
    frame.columns = names
    id_column = find_id_column(frame, choice.id_column)
    for name in (*choice.labels, *choice.drop):
        if name not in names and not any(fnmatchcase(n, name) for n in names):
            raise unknown_name("column", name, names)
    # Samples of a transposed table are columns; their labels cannot be columns as well.
    reasons = [_set_aside(name, id_column, choice) for name in names]
    values, reasons = _matrix(frame, reasons, missing_codes)
    features = [name for name, reason in zip(names, reasons, strict=True) if reason is None]
    left_out = [
        (name, reason)
        for name, reason in zip(names, reasons, strict=True)
        if reason is not None and name != id_column
    ]
    if not features and choice.only:
        some = sorted(choice.only)[0]
        raise UserError(f"the table has none of the model's columns, such as {some!r}")
    if not features:
        raise UserError(_no_numbers(left_out))
    ids, id_name = _row_names(frame, id_column)
    labels = {name: _classes(frame[name], missing_codes) for name in choice.labels}
    table = Table(values, ids, features, id_name, left_out, labels=labels)
    _check_finite(table)
    return transposed(table, named=id_column is not None) if choice.transpose else table


def _matrix(
    frame: Any, reasons: list[str | None], missing_codes: tuple[str, ...]
) -> tuple[np.ndarray, list[str | None]]:
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
    for j, name in enumerate(frame.columns):
        if reasons[j] is None and not floats[j]:
            column, reasons[j] = _numbers(frame.iloc[:, j], name, missing_codes)
            if column is not None:
                others[j] = column
    if not others:
        return (values[:, ~never] if never.any() else values), reasons
    place = {j: i for i, j in enumerate(together)}
    kept = [j for j, reason in enumerate(reasons) if reason is None]
    columns = [others[j] if j in others else values[:, place[j]] for j in kept]
    return np.column_stack(columns), reasons


def _set_aside(name: str, id_column: str | None, choice: ColumnChoice) -> str | None:
    if name == id_column:
        return "names the rows"
    if name in choice.labels:
        return "known classes, kept aside"
    if choice.only is not None and name not in choice.only:
        return "unknown to the model"
    if any(name == pattern or fnmatchcase(name, pattern) for pattern in choice.drop):
        return "dropped as asked"
    if choice.columns and not any(name == p or fnmatchcase(name, p) for p in choice.columns):
        return "not among --columns"
    return None


def find_id_column(frame: Any, given: str | None) -> str | None:
    """The column that names the rows: the one given, a well-known name, or unique text."""
    names = list(frame.columns)
    if given is not None:
        if given not in names:
            raise unknown_name("column", given, names)
        return given
    kinds = frame.dtypes.to_numpy()
    text = [n for n, kind in zip(names, kinds, strict=True) if not _is_number(kind)]
    text = [n for n in text if _names_rows(frame[n]) and not _mostly_numbers(frame[n])]
    for candidates in (
        [n for n in text if may_name_rows(n)],
        [n for n in names if n.strip().lower() in SURE_ID_NAMES and _names_rows(frame[n])],
        text,
    ):
        if candidates:
            return candidates[0]
    return None


def may_name_rows(name: str) -> bool:
    """Whether a column of this name may turn out to be the one that names the rows."""
    return name.strip().lower() in SURE_ID_NAMES | LIKELY_ID_NAMES


def _classes(column: Any, missing_codes: tuple[str, ...]) -> np.ndarray:
    """Known classes; a code for missing is none."""
    return column.where(~column.astype(str).isin(missing_codes)).to_numpy()


def _names_rows(column: Any) -> bool:
    """No gap, and no value twice."""
    return bool(column.notna().all() and column.is_unique)


def _is_number(kind: Any) -> bool:
    return isinstance(kind, np.dtype) and kind.kind in "fiu"


def _is_numeric(column: Any) -> bool:
    import pandas as pd

    return bool(pd.api.types.is_numeric_dtype(column)) and not pd.api.types.is_bool_dtype(column)


def _mostly_numbers(column: Any) -> bool:
    """Numbers, perhaps with a few words among them that stand for something else."""
    import pandas as pd

    if _is_numeric(column):
        return True
    return bool(pd.to_numeric(column.astype(str), errors="coerce").notna().mean() > 0.5)


def _numbers(
    column: Any, name: str, missing_codes: tuple[str, ...]
) -> tuple[np.ndarray | None, str | None]:
    """The column as floats, or the reason why it is left out."""
    import pandas as pd

    if not column.notna().any():
        return None, NEVER_OBSERVED
    if _is_numeric(column):
        if pd.api.types.is_complex_dtype(column):
            return None, "complex numbers"
        return column.to_numpy(dtype=np.float64, na_value=np.nan), None
    if pd.api.types.is_bool_dtype(column) or pd.api.types.is_datetime64_any_dtype(column):
        return None, f"not numbers ({column.dtype})"
    present = column.notna()
    as_text = column.astype(str).str.strip()
    present &= ~as_text.isin((*MISSING_WORDS, *missing_codes))
    if not present.any():
        return None, NEVER_OBSERVED
    numbers = pd.to_numeric(as_text.where(present), errors="coerce").astype(np.float64)
    words = as_text[present & numbers.isna()]
    if words.empty:
        numbers[present] = [float(text) for text in as_text[present]]  # to the last bit
        return numbers.to_numpy(), None
    if len(words) < 0.5 * present.sum():
        example = Counter(words).most_common(1)[0][0]
        raise UserError(
            f"column {name!r} holds numbers, but {len(words)} of its entries are not, such as "
            f"{_short(example)!r}; if that means missing add --missing-value {_quoted(example)}, "
            f"otherwise leave the column out with --drop {_quoted(name)}"
        )
    return None, f"text, such as {_short(words.iloc[0])!r}"


def _short(text: str) -> str:
    return text if len(text) <= 30 else text[:27] + "..."


def _quoted(text: str) -> str:
    return f'"{text}"' if not text.isalnum() else text


def _no_numbers(left_out: list[tuple[str, str]]) -> str:
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


def _check_finite(table: Table) -> None:
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


def transposed(table: Table, *, named: bool = True) -> Table:
    """Rows become features and features become rows; feature names must be unique."""
    features = [str(i) for i in table.ids]
    repeated = [name for name, times in Counter(features).items() if times > 1]
    if repeated:
        raise UserError(
            f"with --transpose every row names a feature, but {repeated[0]!r} appears more than "
            f"once in column {table.id_name!r}; choose another one with --id-column"
        )
    if not named:
        features = [f"V{name}" for name in features]
    values = table.values.T
    values = values.tocsr() if sp.issparse(values) else np.ascontiguousarray(values)
    ids = np.array(table.features, dtype=object)
    return Table(values, ids, features, "id", table.left_out, table.notes, {}, table.source)
