"""A table: numbers with missing values, the names of rows and features, and how it was read."""

from __future__ import annotations

import difflib
import html
import os
import re
import shlex
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields, replace
from numbers import Real
from pathlib import Path, PureWindowsPath
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from .._io import machine_memory

if TYPE_CHECKING:
    from ._advise import Advice
    from ._prepare import Preparation

BY_REQUEST = ("not among the columns requested", "dropped as requested", "not in the model")
_OPTION = re.compile(r"--([a-z][a-z0-9]*(?:-[a-z]+)*)(?: (?=[^\s,;.)a-z]))?")
# A table of 1,000,000 x 50 takes up to five times its size until its report is written.
SHARE_OF_MEMORY = 0.2


class TableError(ValueError):
    """What was found in a file and what to do about it, in one sentence.

    In Python its options are parameters, on the command line (``command_line``) options.
    """

    def __init__(self, sentence: str) -> None:
        self.command_line = " ".join(sentence.split())
        super().__init__(_OPTION.sub(lambda m: m[1].replace("-", "_") + "=", self.command_line))


# --- words of messages ------------------------------------------------------------------------


def unknown_name(kind: str, name: str, known: Iterable[object]) -> TableError:
    """Say that `name` is not among `known`, with the nearest one or the first few."""
    names = [str(k) for k in known]
    folded = {other.lower(): other for other in reversed(names)}
    near = difflib.get_close_matches(name.lower(), folded, n=1)
    hint = (
        f"did you mean {folded[near[0]]!r}?"
        if near
        else f"there are {abbreviated(names) or 'none'}"
    )
    return TableError(f"there is no {kind} called {name!r}; {hint}")


def check_unique(where: Any, names: Iterable[str]) -> None:
    """Refuse columns that share a name."""
    name, times = (Counter(names).most_common(1) or [("", 0)])[0]
    if times > 1:
        what = f"called {name!r}" if name else "without a name"
        raise TableError(f"{where} has more than one column {what}; rename them")


def check_memory(path: Any, n_bytes: float) -> None:
    """Refuse a table that is too large to be clustered in memory."""
    memory = machine_memory()
    if n_bytes > SHARE_OF_MEMORY * memory:
        raise TableError(f"{path} is a table of {n_bytes / 1e9:,.3g} GB or more, too large for "
                         f"{memory / 1e9:,.3g} GB of memory; in Python, mnarkmeans.dask.MNARKMeans "
                         "fits it in blocks")  # fmt: skip


def abbreviated(names: Sequence[str], most: int = 5) -> str:
    """The first few names, and how many more there are."""
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return ", ".join(map(repr, names[:most])) + more


def counted(number: int, what: str) -> str:
    """1 row, 1,200 rows"""
    return f"{number:,} {what}{'s' * (number != 1)}"


def quoted(text: str, *, always: bool = False) -> str:
    """A word of a command: in double quotes, which every shell takes, where it needs any."""
    if not always and re.fullmatch(r"[\w+=:./-]+", text):
        return text
    # A backslash means itself unless another sign that is special follows.
    plain = re.match(r'^[^"$`!]*$', text) and not re.search(r"\\(\\|$)", text)
    return f'"{text}"' if plain else shlex.quote(text)


def typed_options(options: Any) -> list[str]:
    """The fields of a dataclass that differ from their defaults, as command-line options."""
    words: list[str] = []
    for f in fields(options):
        value, name = getattr(options, f.name), "--" + f.name.replace("_", "-")
        if f.metadata.get("learned") or value is None or value == f.default:
            continue
        if isinstance(value, bool):
            words.append(name if value else name.replace("--", "--no-"))
        else:
            for word in value if isinstance(value, tuple) else (value,):
                words += [name, str(word)]
    return words


# --- options ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class ReadOptions:
    """How a file is read: the parameters of `read_table` that a model remembers.

    Examples
    --------
    >>> options = ReadOptions.of(columns="LFQ intensity *", transpose=True)
    >>> options.typed()
    ['--columns', 'LFQ intensity *', '--transpose']
    >>> ReadOptions.from_dict(options.to_dict()) == options
    True
    """

    columns: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    drop_rows: tuple[str, ...] = ()
    id_column: str | None = None
    transpose: bool = False
    missing_value: tuple[str, ...] = ()
    sheet: str | None = None
    layer: str | None = None
    delimiter: str | None = None
    decimal: str | None = None
    encoding: str | None = None
    header: bool | None = None

    @classmethod
    def of(cls, **given: Any) -> ReadOptions:
        """From keywords; what can be repeated may be one string (or number) or several."""
        options: dict[str, Any] = {}
        for name, value in given.items():
            if getattr(cls, name) == () and value is not None:
                several = [value] if isinstance(value, str | Real) else value
                options[name] = tuple(str(word).removesuffix(".0") for word in several)
            elif value is not None:
                options[name] = value if isinstance(value, bool) else str(value)
        if options.get("decimal", ".") not in (".", ","):
            raise TableError(f"--decimal must be . or , (not {options['decimal']!r})")
        return cls(**options)

    def to_dict(self) -> dict[str, Any]:
        """Plain lists and values, for a model file or for ``read_table(path, **options)``."""
        return {name: list(v) if isinstance(v, tuple) else v for name, v in vars(self).items()}

    @classmethod
    def from_dict(cls, stored: dict[str, Any]) -> ReadOptions:
        """What `to_dict` gives, beside which there may be other values."""
        return cls.of(**{f.name: stored.get(f.name) for f in fields(cls)})

    def for_new_file(self, path: str | Path) -> ReadOptions:
        """As a model's new tables are read: what belongs to the fitted file alone is left out."""
        from ._read import OPTIONS_OF_FORMATS, format_of

        kind = format_of(Path(path))
        names = [name for name, kinds in OPTIONS_OF_FORMATS.items() if kind not in kinds]
        return replace(self, **dict.fromkeys([*names, "delimiter", "encoding"]))  # type: ignore[arg-type]

    typed = typed_options


# --- what a file holds ------------------------------------------------------------------------


@dataclass
class Content:
    """What a file holds: columns, or a matrix with row names and columns about its rows."""

    columns: dict[str, Any]  # arrays, of floats where a column holds numbers and nothing else
    matrix: Any = None  # (n, p) array or CSR matrix; where there are no ids, some of the columns
    features: list[str] = field(default_factory=list)  # of the matrix
    ids: np.ndarray | None = None
    decimal: str = "."
    unused: dict[str, str] = field(default_factory=dict)  # set aside by the file, and why
    feature_labels: dict[str, str] = field(default_factory=dict)
    source: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    @property
    def names(self) -> list[str]:
        """The columns of the table."""
        return [*self.columns] if self.ids is None else self.features

    @property
    def n_rows(self) -> int:
        return len(next(iter(self.columns.values()), ()) if self.ids is None else self.ids)

    def having(self, names: Iterable[str]) -> tuple[str, ...]:
        """Those of the names that `column` knows."""
        return tuple(name for name in names if name in self.columns)

    def column(self, name: str) -> Any:
        """A column, or what is known about the rows of the matrix, as a pandas series."""
        import pandas as pd

        return pd.Series(self.columns[name])

    def at(self, rows: np.ndarray) -> Content:
        """The same with some of the rows."""
        if len(rows) == self.n_rows:
            return self
        columns = {name: column[rows] for name, column in self.columns.items()}
        if self.ids is None:
            return replace(self, columns=columns, matrix=None, features=[])
        return replace(self, columns=columns, matrix=self.matrix[rows], ids=self.ids[rows])

    def to_frame(self) -> Any:
        """Every row and column; a matrix gets its row names in front."""
        import pandas as pd

        if self.ids is None:
            return pd.DataFrame(self.columns)
        name = "id" if "id" not in self.features else "row id"
        return Table(self.matrix, self.ids, self.features, name).to_frame().reset_index()


# --- the table ------------------------------------------------------------------------------


@dataclass
class Table:
    """Numbers with missing values, and the names of their rows and features.

    Attributes
    ----------
    values : (n, p) array with NaN for missing, or CSR matrix whose stored entries are observed
    ids, features : names of the rows and of the columns
    left_out : (name, reason) of every column that is not among the features
    notes : what was decided while reading, in sentences
    labels : columns kept aside on request, by name
    annotations : further columns for the rows, None where unknown
    feature_labels : gene names of the features, where the file has them
    source : file name, format and how the file is written
    options : the options it was read with
    content : all that the file holds
    rows : where the rows are in the file; if transposed, where each feature is

    Examples
    --------
    >>> import numpy as np
    >>> Table(np.array([[1.0, np.nan]]), np.array(["r1"]), ["a", "b"])
    Table table: 1 row, 2 features, 50.0% missing
      rows are named, such as 'r1'
    """

    values: Any
    ids: np.ndarray
    features: list[str]
    id_name: str = "id"
    left_out: list[tuple[str, str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    labels: dict[str, np.ndarray] = field(default_factory=dict)
    annotations: dict[str, list[Any]] = field(default_factory=dict)
    feature_labels: dict[str, str] = field(default_factory=dict)
    source: dict[str, Any] = field(default_factory=dict)
    options: ReadOptions = field(default_factory=ReadOptions)
    content: Any = None
    rows: Any = None

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and features."""
        return self.values.shape

    def missing_by_feature(self) -> np.ndarray:
        """Share of missing entries of every feature."""
        n = self.shape[0]
        return (n - n_observed(self.values)) / n

    def missing_share(self) -> float:
        """Share of missing entries of the whole table."""
        return float(self.missing_by_feature().mean()) if self.shape[1] else 0.0

    def with_features(self, keep: np.ndarray) -> Table:
        """The same rows with the features where `keep` is true (or in the order of its indices)."""
        where = np.flatnonzero(keep) if keep.dtype == bool else keep
        features = [self.features[j] for j in where]
        return replace(self, values=by_rows(self.values[:, where]), features=features,
                       left_out=list(self.left_out), notes=list(self.notes))  # fmt: skip

    def transposed(self, *, named: bool = True) -> Table:
        """Rows become features and features become rows; repeated names get a number."""
        names, notes = [str(i) if named else f"V{i}" for i in self.ids], list(self.notes)
        features = numbered(names)
        if changed := [new for old, new in zip(names, features, strict=True) if old != new]:
            notes.append(f"{len(changed):,} names in {self.id_name!r} occurred before and were "
                         f"numbered, such as {changed[0]!r}")  # fmt: skip
        return replace(
            self, values=by_rows(self.values.T), ids=np.array(self.features, dtype=object),
            features=features, id_name="id", notes=notes, labels={},
            rows=dict(zip(features, self.rows, strict=True)),
        )  # fmt: skip

    def dense(self) -> np.ndarray:
        """A new array of the values, NaN where nothing was observed."""
        if not sp.issparse(self.values):
            return np.array(self.values, dtype=float)
        coo = self.values.tocoo()
        out = np.full(self.shape, np.nan)
        out[coo.row, coo.col] = coo.data
        return out

    def to_frame(self) -> Any:
        """A pandas frame: rows by id, a column for each feature, NaN for missing."""
        import pandas as pd

        return pd.DataFrame(self.dense(), pd.Index(self.ids, name=self.id_name), self.features)

    @property
    def short_ids(self) -> list[str]:
        """The row names without what all of them share."""
        return short_names([str(i) for i in self.ids])

    @property
    def short_features(self) -> list[str]:
        """The feature names without what all of them share."""
        return short_names(self.features)

    @property
    def remembered(self) -> ReadOptions:
        """The options for a model to remember, with the id column and decimal sign found."""
        id_column = self.options.id_column or self.source.get("id_column")
        decimal = self.options.decimal or self.source.get("decimal")
        return replace(self.options, id_column=id_column, decimal=decimal)

    def advise(self, preparation: Preparation | None = None) -> Advice:
        """Suggestions for reading and preparing this table, with reasons; nothing is changed."""
        from ._advise import advise

        return advise(self, None, preparation)

    def summary(self) -> list[str]:
        """Size, row names, what was left out (a line for each reason) and the notes."""
        n, p = self.shape
        name = self.source.get("file", "table")
        lines = [f"{name}: {counted(n, 'row')}, {counted(p, 'feature')}, "
                 f"{self.missing_share():.1%} missing"]  # fmt: skip
        if n and (self.id_name != "id" or not str(self.ids[0]).isdigit()):
            by = "" if self.id_name == "id" else f" by {self.id_name!r}"
            lines.append(f"rows are named{by}, such as {str(self.ids[0])!r}")
        groups: dict[str, dict[str, str]] = {}
        for name, reason in self.left_out:
            shared = reason.split(", such as")[0]
            shared = "too many missing values" if shared.endswith("% missing") else shared
            groups.setdefault(shared, {})[name] = reason
        for shared, reasons in groups.items():
            names, by_request = [*reasons], shared in BY_REQUEST  # then nobody asks for the names
            what = counted(len(names), "column") if by_request else abbreviated(names, 8)
            lines.append(f"left out {what}: {shared if len(names) > 1 else reasons[names[0]]}")
        return lines + self.notes

    def __repr__(self) -> str:
        first, *others = self.summary()
        return "\n".join([f"Table {first}", *(f"  {line}" for line in others)])

    def _repr_html_(self) -> str:
        first, *others = map(html.escape, self.summary())
        items = "".join(f"<li>{line}</li>" for line in others)
        part = Table(self.values[:5, :6], self.ids[:5], self.features[:6], self.id_name)
        return f"<p><b>{first}</b></p><ul>{items}</ul>{part.to_frame().to_html(na_rep='')}"


def n_observed(values: Any) -> np.ndarray:
    """(p,) the number of observed entries of every feature."""
    if sp.issparse(values):
        return values.getnnz(axis=0)
    return len(values) - np.isnan(values).sum(axis=0)


def by_rows(values: Any) -> Any:
    return values.tocsr() if sp.issparse(values) else np.ascontiguousarray(values)


# --- names ------------------------------------------------------------------------------------


def numbered(names: list[str]) -> list[str]:
    """Repeated names with a number."""
    used, times, unique = {*names}, Counter[str](), []
    for name in names:
        times[name] += 1
        new, number = name, times[name]
        while number > 1 and new in used:
            new, number = f"{name} ({number})", number + 1
        used.add(new)
        unique.append(new)
    return unique


def short_names(names: list[str]) -> list[str]:
    """Names without the words all begin and end with; raw files without folder and ending."""
    short = names
    if all("\\" in name or "/" in name for name in names):
        short = [PureWindowsPath(name.strip()).stem for name in names]
    elif len(set(names)) > 1:
        begin = _shared_words(names)
        end = _shared_words([name[begin:][::-1] for name in names])
        short = [name[begin : len(name) - end].strip() for name in names]
    return short if all(short) and len(set(short)) == len(set(names)) else names


def _shared_words(names: list[str]) -> int:
    """How many characters at the start, up to the end of a word, are the same in all names."""
    shared = os.path.commonprefix(names)  # noqa: RUF071 - these are no paths
    return max(map(shared.rfind, " _.-:/\\")) + 1
