"""What a file holds becomes a `Table`: rows and their names, features, numbers, missing values.

Every column is judged once. It is left out for the first of these reasons:

    (no reason given)          it names the rows: the column given, a well-known name, unique text
    ... as requested, ...      columns, drop, drop_rows and labels; not in the model
    no value observed
    not numbers                dates, booleans
    text                       words, lists of numbers, names made of digits (0017)
    an identifier by its name  respondent_id, where it holds whole numbers or words
    counts the rows            1, 2, 3, ... in their order, beside other columns

The last two are not applied to columns that the user or a model names. Words among numbers that
nobody has explained, and tables that are mostly unread, are refused.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from ._cells import (
    GENE_COLUMNS,
    Cells,
    as_float,
    is_identifier,
    is_mark,
    listed,
    matches,
    may_name_rows,
    names_features,
    read_cells,
    sample_family,
    say_decimal,
    shortened,
    without_codes,
)
from ._read import read_content
from ._table import (
    Content,
    ReadOptions,
    Table,
    TableError,
    by_rows,
    check_unique,
    counted,
    n_observed,
    numbered,
    quoted,
    short_names,
    unknown_name,
)

NEVER_OBSERVED = "no value observed"
IDENTIFIER = "an identifier by its name"
COUNTS_ROWS = "counts the rows in their order"
FEWEST_ROWS = 5  # of which 1, 2, 3, ... is no coincidence


def read_table(
    source: Any,
    *,
    columns: str | Sequence[str] | None = None,
    drop: str | Sequence[str] | None = None,
    drop_rows: str | Sequence[str] | None = None,
    id_column: str | None = None,
    transpose: bool = False,
    missing_value: Any = None,
    sheet: str | int | None = None,
    layer: str | None = None,
    delimiter: str | None = None,
    decimal: str | None = None,
    encoding: str | None = None,
    header: bool | None = None,
    labels: str | Sequence[str] = (),
    annotations: str | Path | None = None,
    features: Sequence[str] | None = None,
) -> Table:
    """Read a table from common laboratory file formats, with the defaults of the command line.

    Parameters
    ----------
    source : path, AnnData or frame
        CSV or TSV (also .gz), .xlsx, .parquet, .npy, .npz, .h5ad or .zarr, by its ending. A main
        report of DIA-NN is filtered by q-value and pivoted. An AnnData with
        ``var["highly_variable"]`` is read with those features.
    columns, drop : str or list of str, optional
        Columns to use and columns to leave out, by name or pattern (``"LFQ intensity *"``).
    drop_rows : str or list of str, optional
        Rows to leave out, as ``"COLUMN=VALUE"``; the value may be a pattern, or empty.
    id_column : str, optional
        The column that names the rows; found if not given.
    transpose : bool, default=False
        The file has features in rows and samples in columns.
    missing_value : number, str or list, optional
        Codes for missing besides empty cells, NA, n.d., <LOD and the like.
    sheet : str or int, optional
        Sheet of a workbook, by name or number (from 1); the first that holds a table if not given.
    layer : str, optional
        Layer of an AnnData to use in place of X.
    delimiter, decimal, encoding, header : optional
        How a text file is written; found if not given.
    labels : str or list of str, optional
        Columns with known classes, of the table or the annotations, for ``Table.labels``.
    annotations : path, optional
        A second file with further columns for the rows, for ``Table.annotations``.
    features : list of str, optional
        Names of the features a fitted model knows; no others are read.

    Returns
    -------
    table : Table
        With ``values``, ``ids``, ``features``, ``notes``, ``to_frame()`` and ``advise()``.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from mnarkmeans import read_table
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "small.csv"
    >>> _ = file.write_text("id,a,b,note\\nr1,1,NA,x\\nr2,2,3,x\\n")
    >>> read_table(file)
    Table small.csv: 2 rows, 2 features, 25.0% missing
      rows are named, such as 'r1'
      left out 'note': text, such as 'x'
    """
    options = ReadOptions.of(
        columns=columns, drop=drop, drop_rows=drop_rows, id_column=id_column, transpose=transpose,
        missing_value=missing_value, sheet=sheet, layer=layer, delimiter=delimiter,
        decimal=decimal, encoding=encoding, header=header,
    )  # fmt: skip
    wanted = (labels,) if isinstance(labels, str) else tuple(labels)
    content = read_content(source, options)
    aside = wanted if annotations is None else content.having(wanted)
    table = Tidy(content, options, aside, features).table()
    if annotations is not None:
        annotate(table, annotations, wanted)
    return table


class Tidy:
    """A file on its way to a table: what the user said, and what each column was found to be.

    labels : columns that are kept aside; features : those that a model knows, if there is one
    """

    def __init__(
        self,
        content: Content,
        options: ReadOptions,
        labels: Sequence[str] = (),
        features: Sequence[str] | None = None,
    ) -> None:
        self.whole, self.options, self.labels = content, options, labels
        self.of_model = features is not None
        # Features the model knows; with --transpose they are rows, so columns are not filtered.
        self.features = None if features is None or options.transpose else frozenset(features)
        # Where nobody named the columns, those that measure nothing are set aside.
        self.auto_columns = content.ids is None and not options.columns and self.features is None
        self.row_rules = [*map(_rule, options.drop_rows)]
        self.check_names()
        self.rows, self.notes = self.kept_rows()
        self.content = content = content.at(self.rows)
        self.places = {name: j for j, name in enumerate(content.features)}  # in the matrix
        self.matrix = None
        if content.matrix is not None:
            self.matrix = without_codes(content.matrix, options.missing_value)
            self.n_observed = n_observed(self.matrix)
        self.left_out: dict[str, str] = {}  # columns, and why
        self.cells: dict[str, Cells] = {}  # of columns

    def table(self) -> Table:
        """The rows that are kept, with the columns that hold measurements as features.

        A file that holds no such table is refused, with what to do about it.
        """
        content, options, n = self.content, self.options, len(self.rows)
        id_column = self.id_column() if content.ids is None else None
        used = []
        for name in content.names:
            if name == id_column:
                continue
            if reason := self.requested(name) or self.not_measured(name):
                self.left_out[name] = reason
            else:
                used.append(name)
        self.check_columns(used)
        values, places = self.matrix, [self.places.get(name) for name in used]
        if values is None or None in places:
            values = np.empty((n, len(used)))
            for j, name in enumerate(used):
                values[:, j] = self.cells[name].numbers
        elif len(used) < values.shape[1]:
            values = by_rows(values[:, places])
        ids, unnamed = content.ids, np.zeros(n, bool)
        if ids is None:
            ids = np.array([str(i + 1) for i in range(n)], dtype=object)
        if id_column is not None:
            names = content.column(id_column)
            unnamed = names.isna().to_numpy()
            ids = np.where(unnamed, "row " + ids, names.astype(str).str.strip().to_numpy(object))
        notes = self.notes
        of_columns = [self.cells[name].marks for name in used if name in self.cells]
        if marks := sum(filter(None, of_columns), Counter[str]()):
            notes.append("read as missing: " + listed(marks))
        if not (self.of_model and content.ids is not None):
            notes += content.notes
        if sp.issparse(values):
            notes.append("entries that are not stored count as missing")
        labels = {name: content.column(name) for name in self.labels}
        table = Table(
            values, ids, used, (id_column or "").strip() or "id",
            list(self.left_out.items()), notes,
            labels={name: column.where(~column.astype(str).isin(options.missing_value)).to_numpy()
                    for name, column in labels.items()},
            feature_labels=self.genes(id_column, ids) | content.feature_labels,
            source={"id_column": id_column, "unnamed_rows": int(unnamed.sum())} | content.source
            | {"missing_value": list(options.missing_value)},
            options=options, content=self.whole, rows=self.rows,
        )  # fmt: skip
        if np.isinf(values.data if sp.issparse(values) else values).any():
            i, j = np.argwhere(np.isinf(table.dense()))[0]  # distances to it are undefined
            raise TableError(f"column {used[j]!r} holds an infinite value in row {ids[i]!r}; if it "
                             "means missing add --missing-value \"inf\"")  # fmt: skip
        if not options.transpose:
            return table
        return table.transposed(named=id_column is not None or content.ids is not None)

    def genes(self, id_column: str | None, ids: np.ndarray) -> dict[str, str]:
        """The names of genes by the names of the features, where rows are features."""
        content = self.content
        named = [n for n in content.names if n.strip().lower() in GENE_COLUMNS and n != id_column]
        if not (self.options.transpose and named) or content.ids is not None:
            return {}
        pairs = zip(numbered(list(ids)), content.column(named[0]), strict=True)
        return {i: gene for i, gene in pairs if isinstance(gene, str) and gene.strip()}

    # --- requests -----------------------------------------------------------------------------

    def requested(self, name: str) -> str | None:
        """Why a column is set aside by request or by the file, or None."""
        options = self.options
        if name in self.labels:
            return "known classes, kept aside"
        if self.features is not None:
            return None if name in self.features else "not in the model"
        if name in dict(self.row_rules):
            return "decides which rows are dropped"
        if options.drop and matches(name, options.drop):
            return "dropped as requested"
        if options.columns and not matches(name, options.columns):
            return "not among the columns requested"
        return None if self.of_model else self.content.unused.get(name)

    def check_names(self) -> None:
        """Names and patterns that fit no column are mistakes, but for what a model remembers."""
        content, options = self.whole, self.options
        if content.ids is not None and not options.transpose:
            check_unique(content.source.get("file", "the table"), content.names)
        if self.of_model:
            return
        if content.ids is not None and options.id_column is not None:
            raise TableError("--id-column is for files of columns; this file names its rows itself")
        for option in ("drop", "columns"):
            for pattern in getattr(options, option):
                if not any(matches(name, (pattern,)) for name in content.names):
                    raise unknown_name(f"column for --{option}", pattern, content.names)

    def kept_rows(self) -> tuple[np.ndarray, list[str]]:
        """Positions of the rows that drop_rows leaves, and notes on the others."""
        content, rules = self.whole, self.row_rules
        keep, notes = np.ones(content.n_rows, bool), []
        if self.of_model and self.features is None:
            # With --transpose a model picks its rows by name: a rule without its column is dropped.
            rules = [rule for rule in rules if content.having(rule[:1])]
        for name in (*self.labels, *(name for name, _ in rules)):
            if not content.having([name]):
                raise unknown_name("column", name, content.columns)
        for name, value in rules:
            hit = _holds(content.column(name), value) & keep
            keep &= ~hit
            what = repr(value) if value else "empty"
            notes.append(f"{counted(int(hit.sum()), 'row')} dropped because {name} is {what}")
        if len(keep) and not keep.any():
            raise TableError(f"--drop-rows {self.options.drop_rows[0]!r} leaves no row")
        return np.flatnonzero(keep), notes

    # --- columns ------------------------------------------------------------------------------

    def not_measured(self, name: str) -> str | None:
        """Why a column is no measurement, or None."""
        content, place = self.content, self.places.get(name)
        if place is not None and not self.n_observed[place]:
            return NEVER_OBSERVED
        if content.ids is not None:
            return None
        column = content.columns[name]
        if column.dtype.kind in "cbmM":
            return f"not numbers ({column.dtype})"
        # If --decimal is given, the other sign separates thousands.
        grouped = self.options.decimal is not None and not self.of_model
        codes = self.options.missing_value
        cells = self.cells[name] = read_cells(column, content.decimal, codes, grouped=grouped)
        if cells.words:
            return self.text(name, cells)
        if place is None and not cells.n_numbers:
            return NEVER_OBSERVED
        if not self.auto_columns:
            return None
        numbers = cells.numbers
        if is_identifier(name) and not (numbers % 1 > 0).any():
            return IDENTIFIER
        first, n = numbers[0], len(numbers)
        counts = first in (0, 1) and n >= FEWEST_ROWS and (numbers == first + np.arange(n)).all()
        return COUNTS_ROWS if counts else None

    def text(self, name: str, cells: Cells) -> str:
        """Why a column with words is left out; a refusal if most of it seems to be numbers."""
        doubtful, n_words = cells.doubtful, cells.words.total()
        example = f"such as {shortened(next(iter(cells.words)))!r}"
        # Of the many columns of a known program only its samples matter.
        family = sample_family(self.content.names) or "*"
        if doubtful and cells.looks_measured:
            hint = say_decimal("," if "," in doubtful else ".")
        elif self.auto_columns and is_identifier(name):
            return f"{IDENTIFIER}, {example}"
        elif n_words <= 4 * cells.n_numbers and matches(name, [family]):
            words = [quoted(word, always=True) for word, _ in cells.words.most_common(3)]
            codes = " ".join(f"--missing-value {word}" for word in words)
            hint = f"if they mean missing add {codes}"
        else:
            return f"text, {example}"
        raise TableError(
            f"column {name!r} looks like measurements, but {n_words} of the entries cannot be read "
            f"as numbers: {listed(cells.words)}; {hint}, otherwise use --drop "
            f"{quoted(name, always=True)}"
        )

    def id_column(self) -> str | None:
        """The column that names the rows: the one given, a well-known name, or unique text."""
        content, given, n = self.content, self.options.id_column, len(self.rows)
        if given in content.columns:
            return given
        if given is not None and not self.of_model:
            raise unknown_name("column", given, content.names)
        others = {name: content.column(name).dropna() for name, column in content.columns.items()
                  if column.dtype.kind != "f"}  # fmt: skip

        def is_text(column: Any) -> bool:
            part = column.iloc[:: max(1, len(column) // 1000)]  # a thousand are enough
            cells = read_cells(part.array, content.decimal, self.options.missing_value)
            return cells.n_numbers <= cells.words.total()

        def complete(name: str, share: float = 1.0) -> bool:
            """Whether a column names this share of the rows, no two alike."""
            return len(others[name]) >= share * n and others[name].is_unique

        text = [name for name, column in others.items() if is_text(column)]
        unique = [name for name in text if complete(name)]
        candidates = (
            *(name for name in unique if may_name_rows(name)),
            *(name for name in others if may_name_rows(name, surely=True) and complete(name)),
            *(name for name in text if may_name_rows(name) and complete(name, 0.8)),
            *(x for x in text if names_features(x) and 2 * others[x].nunique() >= n),
            *unique,
        )
        return next(iter(candidates), None)

    def check_columns(self, used: list[str]) -> None:
        """Refuse a table that is mostly unread, long, or without numbers; say what to do."""
        content, left_out = self.content, self.left_out
        unread = [n for n in left_out if n in self.cells and self.cells[n].looks_measured]
        if len(unread) > len(used):
            example = shortened(next(iter(self.cells[unread[0]].words)))
            raise TableError(f"{len(unread)} columns look like measurements but cannot be read as "
                             f"numbers, such as {example!r} in {unread[0]!r}; remove units and "
                             "percent signs, or choose others with --columns")  # fmt: skip
        if self.auto_columns and not self.of_model and len(used) <= 3:
            others = content.to_frame().drop(columns=[*used, *self.places])
            times, n = others.nunique(), len(others)
            for one, other in combinations(times.index[times.between(3, n / 3)][:6], 2):
                pairs = times[one] * times[other]
                if 0.5 * pairs <= n <= pairs and not others.duplicated([one, other]).any():
                    raise TableError("the table seems to be in long format (one line per "
                                     f"combination of {one!r} and {other!r}); pivot it first, or "
                                     "name the columns to cluster with --columns")  # fmt: skip
        if not used and self.features is None:  # those of a model are compared with its own
            reasons = "; ".join(f"{name!r}: {why}" for name, why in left_out.items())[:200]
            hint = "; is the --delimiter right?" if "delimiter" in content.source else ""
            raise TableError(f"{content.source.get('file', 'the table')} has no numeric column to "
                             f"cluster{reasons and f' ({reasons})'}{hint}")  # fmt: skip


def _rule(rule: str) -> tuple[str, str]:
    name, _, value = rule.rpartition("=")
    if not name:
        raise TableError(f"--drop-rows takes COLUMN=VALUE, such as Reverse=+, not {rule!r}")
    return name, value.strip()


def _holds(column: Any, value: str) -> np.ndarray:
    """Where a column holds this text, this pattern or this number; '' is a missing value."""
    missing, texts = column.isna().to_numpy(), column.astype(str).str.strip()
    if not value:
        return missing | (texts == "").to_numpy(bool)
    number = as_float(value)
    same = [matches(text, [value]) or (number is not None and as_float(text) == number)
            for text in texts]  # fmt: skip
    return np.array(same, dtype=bool) & ~missing


# --- annotations ------------------------------------------------------------------------------


def annotate(table: Table, path: str | Path, labels: Sequence[str]) -> None:
    """Add the columns of a second file, among them the labels that the first does not have.

    The column that names the rows is found by its content; names may lack what all rows share
    (``LFQ intensity``) or the folder and ending of a raw file.
    """
    content, where = read_content(path, ReadOptions()), Path(path)
    if content.ids is not None:
        raise TableError(f"{where} has no columns with names; give a CSV, .xlsx or .parquet file")
    names, joins = [str(i).strip() for i in table.ids], []
    for change in (list, short_names):
        ours = change(names)
        for name, column in content.columns.items():
            theirs = change(["" if text is None else str(text).strip() for text in column])
            joins.append((len({*ours} & {*theirs} - {""}), name, ours, theirs))
    n_shared, key, ours, theirs = max(joins, key=lambda join: join[0])
    if not n_shared or len(content.columns) == 1:
        raise TableError(f"{where} needs a column that holds the row names of the table, such as "
                         f"{names[0]!r}, and another one")  # fmt: skip
    if twice := {name for name, times in Counter(theirs).items() if times > 1} & {*ours} - {""}:
        raise TableError(f"{where} has more than one row for {min(twice)!r} in column {key!r}; "
                         "give one for each")  # fmt: skip
    place = {text: i for i, text in enumerate(theirs)}
    for name, column in content.columns.items():
        if name != key:
            values = _plain_values(column, content.decimal)
            table.annotations[name] = [values[place[n]] if n in place else None for n in ours]
    if absent := sum(name not in place for name in ours):
        table.notes.append(f"{absent:,} of {len(names):,} rows are not in {where.name}")
    known = table.annotations | table.labels
    for name in labels:
        if name not in known:
            raise unknown_name("column", name, known)
        table.labels.setdefault(name, np.array(known[name], dtype=object))


def _plain_values(column: Any, decimal: str) -> list[Any]:
    """Numbers where the column holds nothing else, words otherwise."""
    cells = read_cells(column, decimal)
    if cells.words or not cells.n_numbers:
        return [None if v is None or is_mark(str(v), surely=True) else str(v).strip()
                for v in column]  # fmt: skip
    return [None if np.isnan(v) else int(v) if v == round(v) else v for v in cells.numbers.tolist()]
