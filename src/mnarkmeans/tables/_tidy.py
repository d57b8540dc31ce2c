"""What a file holds becomes a `Table`: rows and their names, features, numbers, missing values.

Every column is judged once. It is left out for the first of these reasons:

    it names the rows          the column given, one of a well-known name, or unique text
    requested                  columns, drop, drop_rows and labels; not in the model
    no numbers                 dates, truth values
    text                       words, lists of numbers, names made of digits (0017)
    an identifier              respondent_id, where it holds whole numbers or words
    a running number           1, 2, 3, ... beside other columns
    no value observed

The two before the last are not applied to columns that the user or a model names. Words among
numbers that nobody has explained, and tables that are mostly unread, are refused.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
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
    is_sure_mark,
    listed,
    marks_note,
    matches,
    may_name_rows,
    names_features,
    read_cells,
    sample_family,
    shortened,
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
    numbered,
    quoted,
    short_names,
    unknown_name,
)

NEVER_OBSERVED = "no value observed"
NAMES_ROWS = "names the rows"
IDENTIFIER = "an identifier by its name"
WORDS = "words among numbers"
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
    """Read a table from any file of a laboratory, with the defaults of the command line.

    Parameters
    ----------
    source : path, AnnData or frame
        CSV or TSV (also .gz), .xlsx, .parquet, .npy, .npz, .h5ad or .zarr; the ending tells the
        format. A main report of DIA-NN is filtered by q-value and pivoted. An AnnData with
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
    own = wanted if annotations is None else content.having(wanted)
    table = tidy(content, options, own, features)
    if annotations is not None:
        annotate(table, annotations, wanted)
    return table


def tidy(
    content: Content,
    options: ReadOptions,
    labels: Sequence[str] = (),
    features: Sequence[str] | None = None,
) -> Table:
    """A table of what a file holds, or a refusal that says what to do."""
    columns = None if features is None or options.transpose else frozenset(features)
    request = _Request(options, tuple(labels), features is not None, columns)
    request.check_columns(content.names)
    rows, notes = request.kept_rows(content)
    part = content if len(rows) == content.matrix.shape[0] else content.at(rows)
    table = _table_of(part, request)
    table.notes[:0] = notes
    table.source |= content.source | {"missing_value": list(options.missing_value)}
    table.options, table.content, table.rows = options, content, rows
    stored = table.values.data if sp.issparse(table.values) else table.values
    if np.isinf(stored).any():  # such a value has no distance to anything
        i, j = np.argwhere(np.isinf(table.dense()))[0]
        raise TableError(
            f"column {table.features[j]!r} holds an infinite value in row {table.ids[i]!r}; "
            "correct it, or mark it as missing with --missing-value inf"
        )
    if not all(table.shape):
        name = content.source.get("file", "the table")
        raise TableError(f"{name} has {table.shape[0]} rows and {table.shape[1]} numeric columns")
    if not options.transpose:
        return table
    return table.transposed(named=table.source["id_column"] is not None or content.ids is not None)


# --- requests ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Request:
    """What the user said about columns and rows, and the features a model knows."""

    options: ReadOptions
    labels: tuple[str, ...]
    of_model: bool
    features: frozenset[str] | None  # of a model, unless they are the rows of the file

    def reason(self, name: str) -> str | None:
        """Why a column is set aside by request, or None."""
        options = self.options
        if name in self.labels:
            return "known classes, kept aside"
        if self.features is not None:
            return None if name in self.features else "not in the model"
        if any(_rule(rule)[0] == name for rule in options.drop_rows):
            return "decides which rows are dropped"
        if options.drop and matches(name, options.drop):
            return "dropped as requested"
        if options.columns and not matches(name, options.columns):
            return "not among the columns requested"
        return None

    def check_columns(self, names: Sequence[str]) -> None:
        """Names and patterns that fit no column are mistakes, but for what a model remembers."""
        given = [(name, pattern) for name in ("drop", "columns")
                 for pattern in getattr(self.options, name)]  # fmt: skip
        for option, pattern in () if self.of_model else given:
            if any(matches(name, (pattern,)) for name in names):
                continue
            for name in names:
                if fnmatchcase(name.lower(), pattern.lower()):
                    raise TableError(f"no column fits --{option} {pattern!r}, but {name!r} does "
                                     "except for upper and lower case")  # fmt: skip
            raise unknown_name(f"column for --{option}", pattern, names)

    def kept_rows(self, content: Content) -> tuple[np.ndarray, list[str]]:
        """Positions of the rows that drop_rows leaves, and notes on the others."""
        keep, notes = np.ones(content.matrix.shape[0], bool), []
        rules = [*map(_rule, self.options.drop_rows)]
        if self.of_model and self.features is None:  # it finds its features, the rows, by name
            rules = [rule for rule in rules if content.having(rule[:1])]
        for name in (*self.labels, *(name for name, _ in rules)):
            if not content.having([name]):
                raise unknown_name("column", name, content.known)
        for name, value in rules:
            hit = _holds(content.column(name), value) & keep
            keep &= ~hit
            what = repr(value) if value else "empty"
            notes.append(f"{counted(int(hit.sum()), 'row')} dropped because {name} is {what}")
        if len(keep) and not keep.any():
            raise TableError(f"--drop-rows {self.options.drop_rows[0]!r} leaves no row")
        return np.flatnonzero(keep), notes


def _rule(rule: str) -> tuple[str, str]:
    name, _, value = rule.rpartition("=")
    if not name:
        raise TableError(f"--drop-rows takes COLUMN=VALUE, such as Reverse=+, not {rule!r}")
    return name, value.strip()


def _holds(column: Any, value: str) -> np.ndarray:
    """Where a column holds this text, this pattern or this number; '' is a missing value."""
    missing = column.isna().to_numpy()
    texts = [str(cell).strip() for cell in column]
    if not value:
        return missing | np.array([not text for text in texts])
    number = as_float(value)
    same = [
        text == value or (value != "*" and fnmatchcase(text, value))
        or (number is not None and as_float(text) == number)
        for text in texts
    ]  # fmt: skip
    return np.array(same, dtype=bool) & ~missing


# --- columns ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Column:
    """A column, judged: where its numbers are, or why it is left out."""

    name: str
    reason: str | None
    place: int | None = None  # of its numbers in the matrix of the file
    numbers: Any = None  # where they are not in the matrix
    cells: Cells | None = None  # of a column of text


def _table_of(content: Content, request: _Request) -> Table:
    """The rows of a file as a table."""
    options, has_names = request.options, content.ids is not None
    if has_names and options.id_column is not None:
        raise TableError("--id-column is for files of columns; this file names its rows itself")
    if has_names and not options.transpose:
        check_unique(content.source.get("file", "the table"), content.names)
    id_column = None if has_names else _id_column(content, request)
    matrix = without_codes(content.matrix, options.missing_value)
    observed = matrix.getnnz(axis=0) if sp.issparse(matrix) else _n_observed(matrix)
    columns = []
    for name, place in zip(content.names, content.places, strict=True):
        reason = NAMES_ROWS if name == id_column else request.reason(name)
        if reason is None and not request.of_model:
            reason = content.unused.get(name)
        if reason is None and place is not None and not observed[place]:
            reason = NEVER_OBSERVED
        column = _Column(name, reason, place)
        columns.append(column if reason else _judged(column, content, matrix, request))
    for sentence in _refusals(columns, content, request):
        raise TableError(sentence)
    used = [column for column in columns if column.reason is None]
    places = [column.place for column in used]
    if None in places:
        values = np.column_stack(
            [matrix[:, c.place] if c.numbers is None else c.numbers for c in used]
        )
    else:  # most of the memory is not copied where it need not be
        values = matrix if len(places) == matrix.shape[1] else by_rows(matrix[:, places])
    ids, missing = content.ids, np.zeros(matrix.shape[0], bool)
    if ids is None:
        ids = np.array([str(i + 1) for i in range(matrix.shape[0])], dtype=object)
    if id_column is not None:
        names = content.column(id_column)
        missing = names.isna().to_numpy()
        ids = np.where(missing, "row " + ids, names.astype(str).to_numpy(dtype=object))
    labels: dict[str, str] = {}
    genes = [n for n in content.names if n.strip().lower() in GENE_COLUMNS and n != id_column]
    if options.transpose and genes and not has_names:
        pairs = zip(numbered(list(ids)), content.column(genes[0]), strict=True)
        labels = {i: gene for i, gene in pairs if isinstance(gene, str) and gene.strip()}
    known = {name: content.column(name) for name in request.labels}
    marks: Counter[str] = sum((c.cells.marks for c in used if c.cells), Counter())
    notes = [marks_note(marks)] if marks else []
    notes += [] if request.of_model and has_names else content.notes
    if sp.issparse(values):
        notes.append("entries that are not stored count as missing")
    left_out = [(c.name, c.reason) for c in columns if c.reason and c.reason != NAMES_ROWS]
    left_out += [(n, why) for n, why in content.unused.items() if n not in content.names]
    return Table(
        values, ids, [column.name for column in used], (id_column or "").strip() or "id",
        left_out, notes,
        {name: column.where(~column.astype(str).isin(options.missing_value)).to_numpy()
         for name, column in known.items()},
        feature_labels=labels | content.feature_labels,
        source={"id_column": id_column, "unnamed_rows": int(missing.sum())},
    )  # fmt: skip


def _judged(column: _Column, content: Content, matrix: Any, request: _Request) -> _Column:
    """A column that may be measurements, with its numbers or the reason why it is left out."""
    name, codes = column.name, request.options.missing_value
    # Where nobody named the columns, those that measure nothing are set aside.
    free = content.ids is None and not request.options.columns and request.features is None
    if column.place is None:
        series = content.frame[name]
        if getattr(series.dtype, "kind", "O") in "cbmM":
            return replace(column, reason=f"not numbers ({series.dtype})")
        cells = read_cells(series, content.decimal, codes)
        if cells.words:
            kind = IDENTIFIER if free and is_identifier(name) else "text"
            mixed = cells.words.total() <= 4 * cells.n_numbers  # with some numbers
            if mixed and kind == "text" and not (cells.doubtful and cells.looks_measured):
                kind = WORDS
            example = shortened(cells.doubtful or next(iter(cells.words)))
            return replace(column, reason=f"{kind}, such as {example!r}", cells=cells)
        numbers = without_codes(cells.numbers, codes)
        if not _n_observed(numbers):
            return replace(column, reason=NEVER_OBSERVED)
        column = replace(column, numbers=numbers, cells=cells)
    if free:
        numbers = matrix[:, column.place] if column.numbers is None else column.numbers
        if is_identifier(name) and not (numbers % 1 > 0).any():
            return replace(column, reason=IDENTIFIER)
        first, n = numbers[0], len(numbers)
        if first in (0, 1) and n >= FEWEST_ROWS and (numbers == first + np.arange(n)).all():
            return replace(column, reason=COUNTS_ROWS)
    return column


def _n_observed(numbers: np.ndarray) -> Any:
    return len(numbers) - np.isnan(numbers).sum(axis=0)


def _id_column(content: Content, request: _Request) -> str | None:
    """The column that names the rows: the one given, a well-known name, or unique text."""
    names, given, frame = content.names, request.options.id_column, content.frame
    if given is not None and (given in names or not request.of_model):
        if given not in names:
            raise unknown_name("column", given, names)
        return given

    def is_text(name: str) -> bool:
        column = frame[name].dropna()
        column = column.iloc[:: max(1, len(column) // 1000)]  # a thousand tell enough
        cells = read_cells(column, content.decimal, request.options.missing_value)
        return cells.n_numbers <= cells.words.total()

    def complete(name: str, share: float = 1.0) -> bool:
        """Whether a column names so many of the rows, no two alike."""
        named = frame[name].dropna()
        return len(named) >= share * len(frame) and named.is_unique

    text = [name for name in frame.columns if is_text(name)]
    unique = [name for name in text if complete(name)]
    candidates = (
        *(name for name in unique if may_name_rows(name)),
        *(name for name in frame.columns if may_name_rows(name, surely=True) and complete(name)),
        *(name for name in text if may_name_rows(name) and complete(name, 0.8)),
        *(n for n in text if names_features(n) and 2 * frame[n].nunique() >= len(frame)),
        *unique,
    )
    return candidates[0] if candidates else None


def without_codes(values: Any, codes: Sequence[str]) -> Any:
    """The values with codes for missing as NaN (not stored, if sparse)."""
    stored = values.data if sp.issparse(values) else values
    numbers = [number for number in map(as_float, codes) if number is not None]
    if not numbers and not sp.issparse(values):
        return values
    hit = np.isin(stored, np.array(numbers, dtype=stored.dtype))
    if sp.issparse(values):
        hit |= np.isnan(stored)
    if not hit.any():
        return values
    if not sp.issparse(values):
        return np.where(hit, stored.dtype.type(np.nan), stored)
    coo = values.tocoo()
    return sp.csr_matrix((coo.data[~hit], (coo.row[~hit], coo.col[~hit])), shape=values.shape)


# --- tables that are refused ------------------------------------------------------------------


def _refusals(columns: list[_Column], content: Content, request: _Request) -> Iterator[str]:
    """Why these columns cannot be a table, and what to do about it; nothing if they can."""
    used = [column.name for column in columns if column.reason is None]
    left_out = {c.name: c.reason for c in columns if c.reason and c.reason != NAMES_ROWS}
    read = {column.name: column.cells for column in columns if column.cells}
    # Of the many columns of a known program only its samples matter.
    family = sample_family(content.names)
    words = {
        name: cells.words
        for name, cells in read.items()
        if left_out.get(name, "").startswith(WORDS) and matches(name, [family or "*"])
    }
    if words:
        every, names = sum(words.values(), Counter()), list(words)
        who = f"column {names[0]!r} holds" if len(names) == 1 else f"{len(names)} columns hold"
        codes = " ".join(f"--missing-value {quoted(word)}" for word, _ in every.most_common(3))
        yield (f"{who} numbers, but {every.total()} of the entries are words: {listed(every)}; "
               f"if they mean missing add {codes}, otherwise use --drop {quoted(names[0])}"
        )  # fmt: skip
    unread = {
        name: cells for name, cells in read.items() if name in left_out and cells.looks_measured
    }
    doubtful = {name: cells for name, cells in unread.items() if cells.doubtful}
    worst = doubtful or (unread if len(unread) > len(used) else {})
    for name, cells in worst.items():
        hint, example = "remove units and percent signs", cells.doubtful or next(iter(cells.words))
        if cells.doubtful:
            name_of_sign, sign = ("comma", '","') if "," in cells.doubtful else ("point", ".")
            hint = f"if all numbers of the file have a decimal {name_of_sign} add --decimal {sign}"
        many = f"{len(worst)} columns look" if len(worst) > 1 else "one column looks"
        yield (f"{many} like measurements but cannot be read as numbers, such as "
               f"{shortened(example)!r} in column {name!r} ({len(used)} columns can); "
               f"{hint}, or choose columns with --columns or --drop")  # fmt: skip
    if content.ids is None and not (request.options.columns or request.of_model or len(used) > 3):
        frame, n = content.frame, len(content.frame)
        keys = [name for name in frame.columns
                if name not in used and 3 <= frame[name].nunique() <= n / 3]  # fmt: skip
        for one, other in combinations(keys[:6], 2):
            pairs = frame[one].nunique() * frame[other].nunique()
            if 0.5 * pairs <= n <= pairs and not frame.duplicated([one, other]).any():
                yield (f"every line seems to hold one value of {one!r} and {other!r} (a long "
                       "table); make it wide first, one row for each sample and one column for "
                       "each feature, or name the columns to cluster with --columns")  # fmt: skip
    if not used:
        wanted = request.features or left_out.keys()
        found = "; ".join(f"{n!r}: {why}" for n, why in left_out.items() if n in wanted)[:200]
        what = "the table has no numeric column to cluster"
        if request.of_model:
            like = min(request.features or request.options.columns or ("V1",))
            what = f"the table has no numbers in the columns of the model, such as {like!r}"
        yield f"{what} ({found or 'it has no such column'})"


# --- annotations ------------------------------------------------------------------------------


def annotate(table: Table, path: str | Path, labels: Sequence[str]) -> None:
    """Add the columns of a second file, among them the labels that the first does not have."""
    table.annotations, notes = read_annotations(path, table.ids)
    table.notes.extend(notes)
    for name in labels:
        if name not in (*table.labels, *table.annotations):
            raise unknown_name("column", name, (*table.labels, *table.annotations))
        if name not in table.labels:
            table.labels[name] = np.array(table.annotations[name], dtype=object)


def read_annotations(path: str | Path, ids: np.ndarray) -> tuple[dict[str, list[Any]], list[str]]:
    """Columns of a second file in the order of the rows (None where unknown), and notes.

    The column that names the rows is found by its content; names may lack what all rows share
    (``LFQ intensity``) or the folder and ending of a raw file.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import numpy as np
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "about.csv"
    >>> _ = file.write_text("sample,tissue\\nS2,liver\\nS1,lung\\n")
    >>> read_annotations(file, np.array(["S1", "S2", "S3"]))
    ({'tissue': ['lung', 'liver', None]}, ['1 of 3 rows are not in about.csv'])
    """
    content, where = read_content(path, ReadOptions()), Path(path)
    if content.ids is not None:
        raise TableError(f"{where} has no columns with names; give a CSV, .xlsx or .parquet file")
    frame, names = content.to_frame(), [str(i).strip() for i in ids]
    key, place = _matched_names(where, frame, names)
    columns = {}
    for name in frame.columns.drop(key):
        values = _plain_values(frame[name], content.decimal)
        columns[str(name)] = [None if i is None else values[i] for i in place]
    if not columns:
        raise TableError(f"{where} has no column besides {key!r}, which names the rows")
    note = f"{place.count(None):,} of {len(names):,} rows are not in {where.name}"
    return columns, [note] if None in place else []


def _matched_names(path: Path, frame: Any, names: list[str]) -> tuple[str, list[int | None]]:
    """The column that names the rows, and where each row of the table is in the file."""
    key, matched = "", 0
    found: list[int | None] = []
    for change in (list, short_names):
        ours = change(names)
        known = set(ours)
        for column in frame.columns:
            texts = change(["" if text is None else str(text).strip() for text in frame[column]])
            times = Counter(text for text in texts if text and text in known)
            if len(times) > matched:
                key, matched, (most, repeated) = str(column), len(times), times.most_common(1)[0]
                where = {text: i for i, text in enumerate(texts)}
                found = [where[name] if name in times else None for name in ours]
        if 2 * matched >= len(names):
            break
    if not matched:
        raise TableError(f"no column of {path} holds the row names of the table, such as "
                         f"{names[0]!r}; add one")  # fmt: skip
    if repeated > 1:
        raise TableError(f"{path} has more than one row for {most!r} in column {key!r}; "
                         "give one for each")  # fmt: skip
    return key, found


def _plain_values(column: Any, decimal: str) -> list[Any]:
    """Numbers where the column holds nothing else, words otherwise."""
    cells = read_cells(column, decimal)
    if cells.words or not cells.n_numbers:
        return [None if v is None or is_sure_mark(str(v)) else str(v).strip() for v in column]
    return [None if np.isnan(v) else int(v) if v == round(v) else v for v in cells.numbers.tolist()]
