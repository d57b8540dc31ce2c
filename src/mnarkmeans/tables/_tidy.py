"""What a file holds becomes a `Table`: rows and their names, features, numbers, missing values.

Columns are set aside for one of these reasons, checked in this order; columns that the user or a
model names are taken as they are.

    names the rows          the column given, one of a well-known name, or unique text
    requested               columns, drop, drop_rows and labels
    names made of digits    00017
    an identifier           respondent_id, where it holds whole numbers or words
    text                    words, lists of numbers, truth values
    dates                   20240131
    running number          1, 2, 3, ... beside other columns
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from ._cells import (
    GENE_COLUMNS,
    Cells,
    are_padded,
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
from ._read import Content, read_content
from ._table import (
    ReadOptions,
    Table,
    TableError,
    check_unique,
    counted,
    numbered,
    quoted,
    short_names,
    some,
    unknown_name,
)

NEVER_OBSERVED = "no value observed"
NAMES_ROWS = "names the rows"
IDENTIFIER = "an identifier by its name"
WORDS = "words among numbers"
COUNTS_ROWS = "counts the rows in their order"
FEW_WORDS = 12  # distinct ones: categories, the answers of a survey
FEWEST_ROWS = 5  # of which 1, 2, 3, ... is no coincidence
FIRST_DAY, LAST_DAY = 19000101, 21001231


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
    rows, notes = request.kept_rows(content.about, content.n_rows)
    table = (_from_matrix if content.frame is None else _from_frame)(content, request, rows)
    table.notes[:0] = notes
    table.source |= content.source | {"missing_value": list(options.missing_value)}
    table.options, table.content, table.rows = options, content, rows
    name, values = content.source.get("file", "the table"), table.values
    infinite = np.transpose(((values == np.inf) + (values == -np.inf)).nonzero())
    for i, j in infinite[:1]:  # such a value has no distance to anything
        raise TableError(
            f"column {table.features[j]!r} holds an infinite value in row {table.ids[i]!r}; "
            "correct it, or mark it as missing with --missing-value inf"
        )
    if not all(table.shape):
        raise TableError(f"{name} has {table.shape[0]} rows and {table.shape[1]} numeric columns")
    if table.missing_share() == 1.0:
        raise TableError(f"every entry of {name} is missing; check --missing-value and --columns")
    if not options.transpose:
        return table
    return table.transposed(named=table.source.get("id_column", "names") is not None)


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

    def kept_rows(self, about: Any, n: int) -> tuple[np.ndarray, list[str]]:
        """Positions of the rows that drop_rows leaves, by a frame about them; notes on others."""
        keep, notes = np.ones(n, bool), []
        known = [] if about is None else list(about.columns)
        rules = [*map(_rule, self.options.drop_rows)]
        if self.of_model and self.features is None:  # it finds its features, the rows, by name
            rules = [rule for rule in rules if rule[0] in known]
        for name in (*self.labels, *(name for name, _ in rules)):
            if name not in known:
                raise unknown_name("column", name, known)
        for name, value in rules:
            hit = _holds(about[name], value) & keep
            keep &= ~hit
            what = repr(value) if value else "empty"
            notes.append(f"{counted(int(hit.sum()), 'row')} dropped because {name} is {what}")
        if n and not keep.any():
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


# --- frames -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Column:
    """A column on its way to numbers."""

    name: str
    reason: str | None  # why it is left out
    numbers: Any = None
    cells: Cells | None = None  # of a column of text


def _from_frame(content: Content, request: _Request, rows: np.ndarray) -> Table:
    frame, stored, options = content.frame, content.numbers, request.options
    if len(rows) < len(frame):
        frame = frame.iloc[rows].reset_index(drop=True)
        stored = None if stored is None else stored[rows]
    id_column = _id_column(frame, options, content.decimal, request.of_model)
    # Where nobody named the columns, those that measure nothing are set aside.
    free = not options.columns and request.features is None
    columns = []
    for j, name in enumerate(content.names):
        reason = NAMES_ROWS if name == id_column else request.reason(name)
        columns.append(
            _Column(name, reason) if reason
            else _read_column(name, frame.iloc[:, j], content.decimal, options.missing_value, free)
        )  # fmt: skip
    used = [column.name for column in columns if column.reason is None]
    texts = {c.name: c.cells for c in columns if c.cells and (c.reason or "").startswith("text")}
    categories = {name: tuple(cells.words) for name, cells in texts.items()
                  if len(cells.words) <= FEW_WORDS and not cells.doubtful}  # fmt: skip
    _check_words({c.name: c.cells.words for c in columns if c.cells and c.reason == WORDS},
                 content.names)  # fmt: skip
    _check_unread({n: cells for n, cells in texts.items() if cells.looks_measured}, len(used))
    if free and not request.of_model:
        _check_answers(categories, len(used))
        _check_long(frame, [column.name for column in columns if column.reason], len(used))
    left_out = [(c.name, c.reason) for c in columns if c.reason and c.reason != NAMES_ROWS]
    left_out += content.unused.items()
    if not used:
        raise TableError(_no_numbers(left_out, request))
    if (
        stored is not None
        and not options.missing_value
        and used
        == [
            name
            for name, kind in zip(content.names, frame.dtypes, strict=True)
            if kind == np.float64
        ]
    ):
        values = stored  # most of the memory is not copied
    else:
        values = np.column_stack([c.numbers for c in columns if c.reason is None])
    ids, unnamed = [str(i + 1) for i in range(len(frame))], 0
    if id_column is not None:
        missing = frame[id_column].isna().to_numpy()
        named = zip(frame[id_column], ids, missing, strict=True)
        ids = [f"row {i}" if without else str(name) for name, i, without in named]
        unnamed = int(missing.sum())
    labels: dict[str, str] = {}
    genes = [n for n in content.names if n.strip().lower() in GENE_COLUMNS and n != id_column]
    if options.transpose and genes:
        pairs = zip(numbered(ids), frame[genes[0]], strict=True)
        labels = {i: gene for i, gene in pairs if isinstance(gene, str) and gene.strip()}
    return Table(
        values,
        np.array(ids, dtype=object),
        used,
        (id_column or "").strip() or "id",
        left_out,
        [*_reading_notes(columns, content), *content.notes],
        {n: frame[n].where(~frame[n].astype(str).isin(options.missing_value)).to_numpy()
         for n in request.labels},
        feature_labels=labels,
        categories=categories,
        source={"id_column": id_column, "unnamed_rows": unnamed},
    )  # fmt: skip


def _read_column(
    name: str, column: Any, decimal: str, codes: tuple[str, ...], free: bool
) -> _Column:
    """The numbers of a column, or the reason why it is left out."""
    kind, cells = getattr(column.dtype, "kind", "O"), None
    if kind in "cbmM":
        return _Column(name, f"not numbers ({column.dtype})")
    if kind in "fiu":
        numbers = column.to_numpy(dtype=np.float64, na_value=np.nan)
    elif free and are_padded(column.dropna().astype(str)):
        return _Column(name, f"names made of digits, such as {column.dropna().iloc[0]!r}")
    else:
        cells = read_cells(column, decimal, codes)
        numbers, example = cells.numbers, shortened(cells.example)
        if cells.words and free and is_identifier(name):
            return _Column(name, IDENTIFIER)
        if cells.lists:
            return _Column(name, f"lists, such as {example!r}")
        if cells.words and cells.measured and not (cells.doubtful and cells.looks_measured):
            return _Column(name, WORDS, cells=cells)
        if cells.words:
            return _Column(name, f"text, such as {example!r}", cells=cells)
    numbers = without_codes(numbers, codes)
    if np.isnan(numbers).all():
        return _Column(name, NEVER_OBSERVED)
    return _Column(name, _not_measured(name, numbers) if free else None, numbers, cells)


def _not_measured(name: str, numbers: np.ndarray) -> str | None:
    """Why numbers measure nothing: an identifier, a running number, dates."""
    import pandas as pd

    first = numbers[0]
    if is_identifier(name) and _all_whole(numbers):
        return IDENTIFIER
    if first in (0, 1) and len(numbers) >= FEWEST_ROWS:
        return COUNTS_ROWS if np.array_equal(numbers, first + np.arange(len(numbers))) else None
    if FIRST_DAY <= first <= LAST_DAY and _all_whole(numbers):
        days = [f"{day:.0f}" for day in np.unique(numbers[~np.isnan(numbers)])]
        found = pd.to_datetime(days, format="%Y%m%d", errors="coerce")
        if len(days) > 1 and found.notna().all() and max(days) <= str(LAST_DAY):
            return f"dates, such as {first:.0f}"
    return None


def _all_whole(numbers: np.ndarray) -> bool:
    return not (numbers % 1 > 0).any()


def _reading_notes(columns: list[_Column], content: Content) -> list[str]:
    """Marks that were read as missing, and columns with another decimal sign."""
    read = [(c.name, c.cells) for c in columns if c.cells and c.reason is None]
    marks: Counter[str] = sum((cells.marks for _, cells in read), Counter())
    commas = [name for name, cells in read if cells.commas]
    notes = []
    if commas and (content.kind == "xlsx" or content.decimal != ","):
        many = f"{len(commas):,} columns" if len(commas) > 1 else "one column"
        notes.append(f"the comma was read as decimal sign in {many}: {some(commas, 3)}")
    return notes + ([marks_note(marks)] if marks else [])


# --- tables that are refused ------------------------------------------------------------------


def _check_words(words: dict[str, Counter[str]], names: list[str]) -> None:
    """Refuse words among numbers that nobody has explained."""
    if not words:
        return
    every, columns = sum(words.values(), Counter()), list(words)
    who = f"column {columns[0]!r} holds" if len(columns) == 1 else f"{len(columns)} columns hold"
    codes = " ".join(f"--missing-value {quoted(word)}" for word, _ in every.most_common(3))
    family = sample_family([name for name in names if name not in words])
    use = f"--columns {quoted(family)}" if family else f"--drop {quoted(columns[0])}"
    raise TableError(
        f"{who} numbers, but {every.total()} of the entries are words: {listed(every)}; if "
        f"they mean missing add {codes}, otherwise use {use}"
    )


def _check_unread(texts: dict[str, Cells], used: int) -> None:
    """Refuse 1,500 that may be either, and a table whose measured columns are mostly unread."""
    doubtful = {name: cells for name, cells in texts.items() if cells.doubtful}
    columns = doubtful or (texts if len(texts) > used else {})
    for name, cells in [*columns.items()][:1]:
        hint = "remove units and percent signs"
        if "," in cells.example and "." not in cells.example:
            hint = 'for a decimal comma add --decimal ",", and remove commas between thousands'
        many = f"{len(columns)} columns look" if len(columns) > 1 else "one column looks"
        raise TableError(
            f"{many} like measurements but cannot be read as numbers, such as "
            f"{shortened(cells.example)!r} in column {name!r} ({used} columns can); {hint}, or "
            "choose columns with --columns or --drop"
        )


def _check_answers(categories: dict[str, tuple[str, ...]], used: int) -> None:
    """Refuse answers in words: the few numbers beside them would be clustered."""
    answers = {name: words for name, words in categories.items() if len(words) > 1}
    times = Counter(word for words in answers.values() for word in words)
    asked = [n for n, words in answers.items() if min(times[word] for word in words) >= 3]
    if len(asked) >= 3 and len(asked) > used:
        shown = ", ".join(repr(shortened(word)) for word, _ in times.most_common(4))
        raise TableError(
            f"{len(asked)} columns, such as {asked[0]!r}, hold answers in words ({shown}), and "
            f"only {used} hold numbers; write the answers as numbers in their order, such as "
            "1 to 5, or name the columns to cluster with --columns"
        )


def _check_long(frame: Any, texts: list[str], used: int) -> None:
    """Refuse a table with one value of a feature and sample in each line."""
    counts = {name: frame[name].nunique() for name in texts if used <= 3}
    keys = [name for name, count in counts.items()
            if 3 <= count <= len(frame) / 3 and frame[name].notna().all()]  # fmt: skip
    for one, other in combinations(keys[:6], 2):
        pairs = counts[one] * counts[other]
        if 0.5 * pairs <= len(frame) <= pairs and not frame.duplicated([one, other]).any():
            raise TableError(
                f"every line seems to hold one value of {one!r} and {other!r} (a long table); "
                "make it wide first, one row for each sample and one column for each feature, "
                "or name the columns to cluster with --columns"
            )


def _no_numbers(left_out: list[tuple[str, str]], request: _Request) -> str:
    wanted = request.features or ()
    found = "; ".join(f"{n!r}: {why}" for n, why in left_out if not wanted or n in wanted)[:200]
    what = "the table has no numeric column to cluster"
    if request.of_model:
        like = min(wanted or request.options.columns or ("V1",))
        what = f"the table has no numbers in the columns of the model, such as {like!r}"
    return f"{what} ({found or 'it has no such column'})"


# --- names of rows ----------------------------------------------------------------------------


def _id_column(frame: Any, options: ReadOptions, decimal: str, of_model: bool) -> str | None:
    """The column that names the rows: the one given, a well-known name, or unique text."""
    names, given, n = list(frame.columns), options.id_column, len(frame)
    if given is not None and (given in names or not of_model):
        if given not in names:
            raise unknown_name("column", given, names)
        return given
    text = [name for name, dtype in zip(names, frame.dtypes, strict=True)
            if getattr(dtype, "kind", "O") not in "fiuc"
            and not _mostly_numbers(frame[name], decimal, options)]  # fmt: skip

    def complete(name: str, share: float = 1.0) -> bool:
        """Whether a column names so many of the rows, no two alike."""
        named = frame[name].dropna()
        return len(named) >= share * n and named.is_unique

    unique = [name for name in text if complete(name)]
    candidates = (
        *(name for name in unique if may_name_rows(name)),
        *(name for name in names if may_name_rows(name, surely=True) and complete(name)),
        *(name for name in text if may_name_rows(name) and complete(name, 0.8)),
        *(name for name in text if names_features(name) and 2 * frame[name].nunique() >= n),
        *unique,
    )
    return candidates[0] if candidates else None


def _mostly_numbers(column: Any, decimal: str, options: ReadOptions) -> bool:
    column = column.dropna()
    column = column.iloc[:: max(1, len(column) // 1000)]  # a thousand tell enough
    if are_padded(column.astype(str)):
        return False
    cells = read_cells(column, decimal, options.missing_value)
    return cells.count > cells.words.total()


# --- matrices ---------------------------------------------------------------------------------


def _from_matrix(content: Content, request: _Request, rows: np.ndarray) -> Table:
    """A table from an array, or from AnnData, whose obs describes the rows."""
    options, obs, values = request.options, content.rows, content.matrix
    if options.id_column is not None:
        raise TableError("--id-column is for files of columns; this file names its rows itself")
    values = values if len(rows) == len(content.ids) else values[rows]
    if not sp.issparse(values) and values.dtype != np.float32:
        values = values.astype(np.float64, copy=False)
    if not options.transpose:
        check_unique(content.source.get("file", "the table"), content.features)
    unused = {} if request.of_model else content.unused
    reasons = [unused.get(name) or request.reason(name) for name in content.features]
    notes = [] if request.of_model else list(content.notes)
    if sp.issparse(values):
        notes.append("entries that are not stored count as missing")
    table = Table(
        without_codes(values, options.missing_value),
        content.ids[rows],
        list(content.features),
        left_out=[(n, r) for n, r in zip(content.features, reasons, strict=True) if r is not None],
        notes=notes,
        labels={name: obs[name].to_numpy()[rows] for name in request.labels},
        feature_labels=content.feature_labels,
    )
    keep = np.array([reason is None for reason in reasons])
    return table if keep.all() else table.with_features(keep)


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
    content = read_content(path, ReadOptions())
    frame, where = content.frame, Path(path)
    if frame is None:
        raise TableError(f"{where} has no columns with names; give a CSV, .xlsx or .parquet file")
    names = [str(i).strip() for i in ids]
    key, place = _matched_names(where, frame, names)
    columns = {}
    for name in frame.columns.drop(key):
        values = _plain_values(frame[name], content.decimal)
        columns[str(name)] = [values[place[n]] if n in place else None for n in names]
    if not columns:
        raise TableError(f"{where} has no column besides {key!r}, which names the rows")
    absent = sum(name not in place for name in names)
    note = f"{absent:,} of {len(names):,} rows are not in {where.name}"
    return columns, [note] if absent else []


def _matched_names(path: Path, frame: Any, names: list[str]) -> tuple[str, dict[str, int]]:
    """The column that names the rows, and where each row of the table is in the file."""
    key, found, twice = "", dict[str, int](), ""
    for change in (list, short_names):
        ours = dict(zip(change(names), names, strict=True))
        for column in frame.columns:
            texts = ["" if text is None else str(text).strip() for text in frame[column]]
            for theirs in (texts, change(texts)):
                times = Counter(text for text in theirs if text and text in ours)
                if len(times) <= len(found):
                    continue
                if max(times.values()) > 1:
                    twice = twice or f"{times.most_common(1)[0][0]!r} in column {column!r}"
                else:
                    key = str(column)
                    found = {ours[t]: i for i, t in enumerate(theirs) if t and t in ours}
        if 2 * len(found) >= len(names):
            break
    if found:
        return key, found
    if twice:
        raise TableError(f"{path} has more than one row for {twice}; give one for each")
    raise TableError(f"no column of {path} holds the row names of the table, such as "
                     f"{names[0]!r}; add one")  # fmt: skip


def _plain_values(column: Any, decimal: str) -> list[Any]:
    """Numbers where the column holds nothing else, words otherwise."""
    cells = read_cells(column, decimal)
    if cells.words or not cells.count:
        return [None if v is None or is_sure_mark(str(v)) else str(v).strip() for v in column]
    return [None if np.isnan(v) else int(v) if v == round(v) else v for v in cells.numbers.tolist()]
