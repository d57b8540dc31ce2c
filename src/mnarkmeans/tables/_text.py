"""Text files and sheets become columns, parsed by pyarrow; names stand in the lines above the rows.

The first lines tell how the file is written: delimiter, decimal sign and names, and which columns
hold numbers alone. pyarrow reads the rest and refuses rows of another length, which a parser that
pads them would turn into missing values. Where a word turns up among the numbers below the first
lines, the file is read once more as text. DuckDB's `sniff_csv` and CleverCSV were compared for the
first step (docs/howto/read_tables.md).
"""

from __future__ import annotations

import codecs
import csv
import gzip
import io
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .._io import require
from ._cells import (
    SURE_SPELLINGS,
    are_grouped,
    are_padded,
    as_float,
    find_decimal,
    is_mark,
    is_value,
    may_name_rows,
    say_decimal,
)
from ._table import Content, ReadOptions, TableError, check_memory, check_unique

DELIMITERS = "\t;,| "
LONGEST_LINE = 1 << 25  # bytes: 100,000 columns of 300 characters each
SAMPLE_LINES, SAMPLE_SIZE, FEWEST_LINES = 64, 1 << 20, 8  # the first lines, fewer if they are long
BLOCK, ROWS_OF_BLOCK = 1 << 20, 64  # bytes and rows parsed at once; pyarrow holds about 32 blocks
REMARKS = ("!", "#!")  # begin the lines around the tables of GEO, and below the names of Perseus


@dataclass
class TextFile:
    """A text file on its way to its columns, or a sheet of a workbook as text with tabs."""

    path: Path
    options: ReadOptions
    sheet: bytes | None = None

    def read(self) -> Content:
        """Read it in the encoding it seems to have; Windows-1252 is what older programs write."""
        encodings = self._encodings()
        for self.encoding in encodings:
            with suppress(UnicodeError):
                self._find_layout()
                columns, matrix = self._parse()
                break
        else:
            tried = " or ".join(name.removesuffix("-sig").upper() for name in encodings)
            raise TableError(f"{self.path} is not {tried} text; save it as UTF-8 or name its "
                             "--encoding")  # fmt: skip
        if self.encoding != encodings[0]:
            self.notes.append("the file is not UTF-8 and was read as Windows-1252 (cp1252); give "
                              "its encoding if names look wrong")  # fmt: skip
        source = {
            "delimiter": self.delimiter, "encoding": self.encoding.removesuffix("-sig"),
            "decimal": self.decimal, "header": self.has_header,
        }  # fmt: skip
        features = [name for name in self.names if name not in self.text_columns]
        return Content(columns, matrix, features, decimal=self.decimal, source=source,
                       notes=self.notes)  # fmt: skip

    def _open(self) -> Any:
        if self.sheet is not None:
            return io.BytesIO(self.sheet)
        return (gzip.open if self.path.suffix.lower() == ".gz" else open)(self.path, "rb")

    def _encodings(self) -> list[str]:
        """The encoding given, or those to try."""
        if self.options.encoding is not None:
            return [codecs.lookup(self.options.encoding).name.replace("utf-8", "utf-8-sig")]
        with self._open() as stream:
            start = stream.read(4096)
        if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            return ["utf-16"]
        if start.startswith(b"PK\x03\x04") or b"\x00" in start:
            raise TableError(f"{self.path} is not a text file, but perhaps a workbook or an "
                             "archive; its name should end in the format it holds")  # fmt: skip
        return ["utf-8-sig", "cp1252"]

    # --- layout -------------------------------------------------------------------------------

    def _find_layout(self) -> None:
        path, options, lines = self.path, self.options, self._first_lines()
        self.delimiter = "\t" if self.sheet is not None else self._find_delimiter(lines)
        begins, rows = _split(lines, self.delimiter)
        if not rows:
            raise TableError(f"{path} is empty")
        self.decimal = options.decimal or find_decimal(rows[1:] or rows, self.delimiter)
        header, first, self.notes = find_header(rows, self.decimal, options.header, begins[0])
        if first == len(rows):
            raise TableError(f"{path} has a header line but no rows below it")
        names = header or [f"V{j + 1}" for j in range(len(rows[first]))]
        if self.delimiter == " " and "" in (*names[1:], *rows[first]):
            raise TableError(f"{path} has columns padded with blanks; save it as CSV")
        names = [name or (f"V{j + 1}" if j else "") for j, name in enumerate(names)]
        check_unique(path, names)
        self.names, self.has_header, self.lines_above = names, header is not None, begins[first]
        self.block_size = min(max(ROWS_OF_BLOCK * max(map(len, lines)), BLOCK), LONGEST_LINE)
        self.kept_as_text, self.text_columns = set[str](), set[str]()
        whole = [row for row in rows[first:] if len(row) == len(names)]
        for j, name in enumerate(names):
            fields = [row[j].strip() for row in whole]
            if options.decimal is None and are_grouped(fields, self.decimal):
                raise TableError(
                    f"column {name!r} may hold thousands or decimals, as in "
                    f"{max(fields, key=len)}; {say_decimal(self.decimal)}"
                )
            if may_name_rows(name) or name == options.id_column or are_padded(fields):
                self.kept_as_text.add(name)  # they name rows
            elif not all(is_value(text, self.decimal) for text in fields):
                self.text_columns.add(name)
        self.text_columns |= self.kept_as_text

    def _first_lines(self) -> list[str]:
        lines: list[str] = []
        size = 0
        with self._open() as stream, io.TextIOWrapper(stream, self.encoding) as text:
            while len(lines) < SAMPLE_LINES and (size < SAMPLE_SIZE or len(lines) <= FEWEST_LINES):
                line = text.readline(LONGEST_LINE)
                if len(line) >= LONGEST_LINE:
                    raise self._endless_line()
                if not line:
                    break
                size += len(line)
                lines.append(line)
        return lines

    def _find_delimiter(self, lines: list[str]) -> str:
        """The delimiter given, or the one that splits most lines into the same number of fields."""
        given, decimal = self.options.delimiter, self.options.decimal
        if given is not None:
            given = given.replace("\\t", "\t")
            if len(given) != 1 or not given.isascii() or given in '"\r\n':
                raise TableError(f"--delimiter must be one character, such as ';', not {given!r}")
            return given
        quoted = any('"' in line for line in lines)  # then a decimal comma need not split
        scores = {}
        for delimiter in DELIMITERS if quoted else DELIMITERS.replace(decimal or "", ""):
            counts = Counter(len(row) for row in _split(lines, delimiter)[1] if len(row) > 1)
            fields, times = max(counts.items(), key=lambda x: (x[1], x[0]), default=(0, 0))
            # Names may contain a blank in every row: another delimiter that splits as evenly wins.
            scores[delimiter] = (times, delimiter != " ", fields)
        best = max(scores, key=lambda d: scores[d])
        return best if scores[best][0] or decimal != "," else ";"

    # --- parsing ------------------------------------------------------------------------------

    def _parse(self) -> tuple[dict[str, np.ndarray], np.ndarray]:
        """The columns by name, and those that hold numbers alone as a matrix."""
        arrow = require("pyarrow", "cli")
        texts: dict[str, list[Any]] = {name: [] for name in self.text_columns}
        numeric = {name: j for j, name in enumerate(self.names) if name not in texts}
        matrix, n, size = np.empty((0, len(numeric))), 0, 0
        try:
            with self._open() as stream, self._reader(stream) as reader:
                for batch in reader:
                    size += batch.nbytes
                    check_memory(self.path, size)
                    begin, n = n, n + len(batch)
                    if n > len(matrix):
                        matrix.resize((n + n // 8, len(numeric)), refcheck=False)
                    for k, j in enumerate(numeric.values()):
                        matrix[begin:n, k] = batch.column(j)
                    for name, chunks in texts.items():
                        chunks.append(batch.column(name))
        except arrow.ArrowInvalid as error:
            if "conversion error to double" in str(error):
                del matrix, texts  # the memory of the first attempt
                self.text_columns = {*self.names}
                return self._parse()
            if "Expected" in str(error):
                why = str(error).removeprefix("CSV parse error: ")
                raise TableError(
                    f"{self.path} has rows of different lengths ({why}; separated by "
                    f"{self.delimiter!r}); the file may be damaged or need another --delimiter or "
                    "--decimal"
                ) from error
            if "straddling" in str(error):
                raise self._endless_line() from error
            if "UTF8" in str(error):
                raise UnicodeError(error) from error
            raise
        matrix.resize((n, len(numeric)), refcheck=False)
        columns = dict(zip(numeric, matrix.T, strict=True))
        for name in self.text_columns:
            column, numbers = arrow.chunked_array(texts.pop(name), arrow.string()), None
            if not numeric and name not in self.kept_as_text:
                numbers = _as_floats(column, self.decimal)
            columns[name] = np.asarray(column) if numbers is None else numbers
        if any("\n" in str(column[-1]) for column in columns.values() if n):
            with self._open() as stream:
                if sum(line.count(b'"') for line in stream) % 2:
                    raise TableError(f"{self.path} has a quote that is opened and never closed")
        return {name: columns[name] for name in self.names}, matrix

    def _reader(self, stream: Any) -> Any:
        csv, arrow = require("pyarrow.csv", "cli"), require("pyarrow", "cli")
        types = dict.fromkeys(self.names, arrow.float64())
        return csv.open_csv(
            stream,
            csv.ReadOptions(
                column_names=self.names, use_threads=False, block_size=self.block_size,
                skip_rows=self.lines_above, encoding=self.encoding.replace("utf-8-sig", "utf8"),
            ),
            csv.ParseOptions(
                delimiter=self.delimiter, newlines_in_values=True,
                invalid_row_handler=lambda r: "skip" if r.text.startswith(REMARKS) else "error",
            ),
            csv.ConvertOptions(
                column_types=types | dict.fromkeys(self.text_columns, arrow.string()),
                null_values=SURE_SPELLINGS, strings_can_be_null=True, decimal_point=self.decimal,
            ),
        )  # fmt: skip

    def _endless_line(self) -> TableError:
        return TableError(f"{self.path} has a line of more than {LONGEST_LINE >> 20} MB, so it is "
                          "no table")  # fmt: skip


def _split(lines: list[str], delimiter: str) -> tuple[list[int], list[list[str]]]:
    """How many lines are above each row that holds something, and its fields."""
    reader, begin = csv.reader(lines, delimiter=delimiter), 0
    begins: list[int] = []
    rows: list[list[str]] = []
    try:
        for row in reader:
            filled = "".join(row).strip() or (len(row) > 1 and delimiter != " ")
            if filled and not row[0].startswith(REMARKS):
                begins.append(begin)
                rows.append(row)
            begin = reader.line_num
    except csv.Error:  # a field without end: not this delimiter
        return [], []
    return begins, rows


def _as_floats(column: Any, decimal: str) -> np.ndarray | None:
    """A column of texts as numbers, if it holds nothing else."""
    arrow, compute = require("pyarrow", "cli"), require("pyarrow.compute", "cli")
    plain = compute.utf8_trim_whitespace(column)
    if decimal == ",":
        if compute.any(compute.match_substring(plain, ".")).as_py():
            return None
        plain = compute.replace_substring(plain, ",", ".")
    try:
        return np.asarray(plain.cast(arrow.float64()))
    except arrow.ArrowInvalid:
        return None


# --- header -----------------------------------------------------------------------------------
#
# Plasma study 12                  a title: skipped
# Date: | 2024-03-01               so is a word with its value, beside a table of more columns
#       | sugars  |         |      groups, which extend to the right
# id    | glucose | lactate |      names
#       | mM      | mM      |      units

MOST_HEADERS = 3  # lines of names: groups, names, units
MOST_LINES_ABOVE = 20  # of which the last may hold the names


def find_header(
    rows: list[list[str]], decimal: str, given: bool | None, skipped: int
) -> tuple[list[str] | None, int, list[str]]:
    """Names of the columns (None: there are none), the first row below them, and notes.

    rows : the first rows as texts; missing cells are ''
    skipped : lines above that are known to be no part of the table
    """
    rows = [[text.strip() for text in row] for row in rows]
    usual, title = Counter(map(len, rows)).most_common(1)[0][0], 0
    while usual > 2 and title < len(rows) - 2 and _is_title(rows[title], usual):
        title += 1
    top, last = (title + i for i in _lines_of_names(rows[title:], decimal))
    first, *below = rows[top:]
    notes, above = [], skipped + top
    if above:
        notes.append(f"{above} {'lines were' if above > 1 else 'line was'} skipped above the table")
    if given is None:
        given = not _is_measured(first, below, decimal)
    if not given:
        notes.append("the first line holds values, not names, so columns are called V1, V2, ...")
        return None, top, notes
    if below and {*map(len, below)} == {len(first) + 1} and not any(row[-1] for row in below):
        return [*first, ""], top + 1, notes  # a delimiter at the end of each row
    if below and len(below[0]) == len(first) + 1:
        ids = [row[0] for row in below]  # words or 1, 2, ...: anything else is a decimal comma
        if as_float(ids[0]) is None or ids == [str(i + 1) for i in range(len(ids))]:
            return ["", *first], top + 1, notes  # R's write.table does not name the row names
    unique = len({*first[1:]} - {""}) == len(first) - 1
    if last == top and not unique and below and not below[0][0] and all(below[0][1:]):
        last += 1  # numbers of replicates below the names of groups
    names = rows[top : last + 1]
    if not 1 < len(names) <= MOST_HEADERS:
        return first, top + 1, notes
    joined = _join_headers(names)
    example = next((name for name in joined if not any(name in row for row in names)), joined[-1])
    notes.append(f"{len(names)} lines of names were joined, such as {example!r}")
    return joined, last + 1, notes


def _is_title(row: list[str], usual: int) -> bool:
    """Whether a line has one filled field, or two in front, where others have more."""
    filled = [j for j, text in enumerate(row) if text]
    number = bool(filled) and as_float(row[filled[0]]) is not None
    if len(filled) == 2:
        return filled == [0, 1] and usual > 4 and (not number or len(row) == 2)
    return len(filled) == 1 and not number


def _lines_of_names(rows: list[list[str]], decimal: str) -> tuple[int, int]:
    """The first and the last line that may hold names: words above columns of numbers."""
    if len({*map(len, rows)}) > 1:
        return 0, 0
    fits = [[is_value(text, decimal) or is_mark(text) for text in row] for row in rows]
    begins = []  # of the columns of numbers: the row below the last word
    for j, column in enumerate(zip(*rows, strict=True)):
        begin = max((i + 1 for i, row in enumerate(fits) if not row[j]), default=0)
        if len(rows) - begin > 1 and any(as_float(t, decimal) is not None for t in column[begin:]):
            begins.append((j, begin))

    def has_names(i: int, first: int) -> bool:
        """Whether most columns that hold numbers from a row on have words in row i."""
        words = [not fits[i][j] for j, begin in begins if begin <= first]
        return sum(words) >= 2 and 2 * sum(words) > len(words)

    several = [i for i in range(1, min(len(rows), MOST_LINES_ABOVE)) if has_names(i, i + 1)]
    last = max(several, default=0)
    if all(has_names(i, last + 1) for i in range(1, last)):
        return 0, last
    # What is known about the samples stands above their names; some of it is numbers.
    names = rows[last]
    numbers = any(as_float(text, sign) is not None for text in names for sign in ".,")
    all_named = all(names) and not numbers and len({*names}) == len(names) > 2
    all_named &= all("" in row for row in rows[:last])  # otherwise they are another table
    return (last, last) if all_named else (0, 0)


def _is_measured(first: list[str], below: list[list[str]], decimal: str) -> bool:
    """Whether a row has numbers alone, or beside names mostly such numbers as stand below them."""
    if all(is_value(text, decimal) for text in first):
        return True
    numbers, near = [], []
    for text, *column in zip(first, *(r for r in below if len(r) == len(first)), strict=True):
        known = [v for v in (as_float(cell, decimal) for cell in column) if v is not None]
        number = as_float(text, decimal)
        if known and number is not None:
            numbers.append(number)
            near.append(min(known) <= number <= max(known))
        elif known and not is_value(text, decimal):
            return False
    steps = np.diff(numbers)  # of samples 1, 2, 3, of masses or wavelengths
    names = np.all(steps == 1.0) if len(steps) < 3 else np.all(steps > 0) or np.all(steps < 0)
    return bool(near) and 2 * sum(near) >= len(near) and not (len(steps) and names)


def _join_headers(lines: list[list[str]]) -> list[str]:
    """One name for each column from several lines of names.

    A group extends over the columns to its right, unless it stands over each of its own.
    """
    *above, joined = lines
    for upper in reversed(above):
        groups, group = list(upper), ""
        if upper[1:].count("") > joined[1:].count(""):
            for j, (text, below) in enumerate(zip(upper, joined, strict=True)):
                if text:
                    group = "" if j and text == upper[j - 1] else text
                elif below:
                    groups[j] = group
        joined = [" ".join(filter(None, pair)) for pair in zip(groups, joined, strict=True)]
    return joined
