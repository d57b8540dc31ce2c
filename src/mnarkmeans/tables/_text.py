"""Text files and sheets become columns, parsed by pyarrow; names stand in the lines above the rows.

The first lines tell how the file is written: delimiter, decimal sign and names. pyarrow reads the
rest and refuses rows of another length, which a parser that pads them would turn into missing
values. Columns are converted to numbers block by block, to the last bit; where a word turns up
below the first block, the file is read once more. DuckDB's `sniff_csv` and CleverCSV were compared
for the first step (docs/howto/read_tables.md).
"""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .._io import require
from ._cells import (
    SURE_SPELLINGS,
    are_padded,
    as_float,
    find_decimal,
    is_mark,
    is_number_or_missing,
    may_name_rows,
)
from ._table import Content, ReadOptions, TableError, check_memory, check_unique

DELIMITERS = {"\t": "tab", ";": "semicolon", ",": "comma", "|": "bar", " ": "blank"}
NAMED_DELIMITERS = {name: sign for sign, name in DELIMITERS.items()} | {"\\t": "\t"}
LONGEST_LINE = 1 << 25  # bytes: 100,000 columns of 300 characters each
SAMPLE_LINES, SAMPLE_SIZE, FEWEST_LINES = 64, 1 << 20, 8  # the first lines, fewer if they are long
BLOCK, ROWS_OF_BLOCK = 1 << 20, 64  # bytes and rows parsed at once; pyarrow holds about 32 blocks
REMARKS = ("!", "#!")  # begin the lines around the tables of GEO, and below the names of Perseus
Spans = dict[tuple[int, int], int]  # columns a merged cell covers, by line and column


@dataclass
class TextFile:
    """A text file on its way to its columns, or a sheet of a workbook as text with tabs.

    spans : finds the merged cells; called where several lines of names are joined
    """

    path: Path
    options: ReadOptions
    sheet: bytes | None = None
    spans: Callable[[], Spans] = dict

    def read(self) -> Content:
        """Read it in the encoding it seems to have; Windows-1252 is what older programs write."""
        given = self._encoding()
        encodings = [given] if self.options.encoding or given == "utf-16" else [given, "cp1252"]
        for self.encoding in encodings:
            with suppress(UnicodeError):
                self._find_layout()
                numbers, texts = self._parse(self.text_columns)
                break
        else:
            tried = " or ".join(name.removesuffix("-sig").upper() for name in encodings)
            raise TableError(f"{self.path} is not {tried} text; save it as UTF-8 or name its "
                             "--encoding")  # fmt: skip
        if self.encoding != given:
            self.notes.append("the file is not UTF-8 and was read as Windows-1252 (cp1252); give "
                              "its encoding if names look wrong")  # fmt: skip
        source = {
            "delimiter": DELIMITERS.get(self.delimiter, self.delimiter),
            "encoding": self.encoding.removesuffix("-sig"),
            "decimal": self.decimal,
            "header": self.has_header,
        }
        frame = require("pandas", "cli").DataFrame(texts, dtype=object)
        return Content(self.names, numbers, frame, decimal=self.decimal, source=source,
                       notes=self.notes)  # fmt: skip

    @contextmanager
    def _opened(self) -> Iterator[Any]:
        opener: Any = gzip.open if self.path.suffix.lower() == ".gz" else open
        try:
            with opener(self.path, "rb") if self.sheet is None else io.BytesIO(self.sheet) as file:
                yield file
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            raise TableError(
                f"{self.path} is a damaged gzip file; copy or download it again"
            ) from error

    # --- layout -------------------------------------------------------------------------------

    def _encoding(self) -> str:
        given, path = self.options.encoding, self.path
        if given is not None:
            try:
                "".encode(given)  # which codecs of bytes, such as hex, refuse
                return codecs.lookup(given).name.replace("utf-8", "utf-8-sig")
            except (LookupError, TypeError):
                raise TableError(
                    f"{given!r} is not a known encoding; try utf-8, utf-16 or cp1252"
                ) from None
        with self._opened() as stream:
            start = stream.read(4096)
        if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            return "utf-16"
        if start.startswith(b"PK\x03\x04"):
            raise TableError(f"{path} is an Excel workbook or a zip file; save the table as CSV")
        if b"\x00" in start:
            raise TableError(
                f"{path} is not a text file; its name should end in the format it holds"
            )
        return "utf-8-sig"

    def _find_layout(self) -> None:
        path, options, lines = self.path, self.options, self._first_lines()
        self.delimiter = "\t" if self.sheet is not None else self._find_delimiter(lines)
        begins, rows = _split(lines, self.delimiter)
        if not rows:
            raise TableError(f"{path} is empty")
        self.decimal = find_decimal(rows[1:] or rows, self.delimiter, options.decimal)
        found, first_row, self.notes = find_header(
            rows, self.decimal, options.header, self.spans, skipped=begins[0]
        )
        if first_row == len(rows):
            raise TableError(f"{path} has a header line but no rows below it")
        names = found or [f"V{j + 1}" for j in range(len(rows[first_row]))]
        if self.delimiter == " " and "" in (*names[1:], *rows[first_row]):
            raise TableError(f"{path} has columns padded with blanks; save it as CSV")
        if names.count("") > 1:  # delimiters at the end of the lines
            names = [name or (f"V{j + 1}" if j else "") for j, name in enumerate(names)]
        check_unique(path, names)
        whole = [row for row in rows[first_row:] if len(row) == len(names)]
        # These name rows; other columns of words are found by reading.
        self.text_columns = {
            j for j, (name, fields) in enumerate(zip(names, zip(*whole, strict=True), strict=True))
            if may_name_rows(name) or name == options.id_column or are_padded(fields)
        }  # fmt: skip
        self.names, self.has_header, self.lines_above = names, found is not None, begins[first_row]
        self.block_size = min(max(ROWS_OF_BLOCK * max(map(len, lines)), BLOCK), LONGEST_LINE)

    def _first_lines(self) -> list[str]:
        lines: list[str] = []
        size = 0
        with self._opened() as stream, io.TextIOWrapper(stream, self.encoding) as text:
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
        """The delimiter that splits most lines into the same number of fields, or the one given."""
        given, decimal, scores = self.options.delimiter, self.options.decimal, {}
        quoted = any('"' in line for line in lines)  # then a decimal comma need not split
        for delimiter in (d for d in DELIMITERS if quoted or d != decimal):
            counts = Counter(len(row) for row in _split(lines, delimiter)[1])
            del counts[1]
            fields, times = max(counts.items(), key=lambda x: (x[1], x[0]), default=(0, 0))
            # Names may contain a blank in every row: another delimiter that splits as evenly wins.
            scores[delimiter] = (times, delimiter != " ", fields)
        best = max(scores, key=lambda d: scores[d])
        if given is None:
            return best if scores[best][0] or decimal != "," else ";"
        given = NAMED_DELIMITERS.get(given.lower(), given)
        if len(given) != 1 or not given.isascii() or given in '"\r\n':
            raise TableError(
                f"--delimiter must be one character (or tab, comma, ...), not {given!r}"
            )
        if scores[best][0] and all(given not in line for line in lines):
            raise TableError(f"{self.path} has no {given!r} between its columns; it looks "
                             f"{DELIMITERS[best]}-separated: leave --delimiter out")  # fmt: skip
        return given

    # --- parsing ------------------------------------------------------------------------------

    def _parse(self, text: set[int]) -> tuple[np.ndarray, dict[str, list[Any]]]:
        """Numbers (n, p) of the columns that hold nothing else, and the other columns by name.

        text : columns that are taken as text whatever they hold
        """
        csv, arrow = require("pyarrow.csv", "cli"), require("pyarrow", "cli")
        types = {str(j): arrow.string() for j in range(len(self.names))}
        wrong: list[Any] = []

        def handle(row: Any) -> str:
            if row.text.startswith(REMARKS):
                return "skip"
            wrong.append(row)
            return "error"

        how = (
            csv.ReadOptions(
                column_names=list(types), use_threads=False, block_size=self.block_size,
                skip_rows=self.lines_above, encoding=self.encoding.replace("utf-8-sig", "utf8"),
            ),
            csv.ParseOptions(
                delimiter=self.delimiter, newlines_in_values=True, invalid_row_handler=handle
            ),
            csv.ConvertOptions(
                column_types=types, null_values=SURE_SPELLINGS, strings_can_be_null=True
            ),
        )  # fmt: skip
        strings: dict[int, list[Any]] = {j: [] for j in sorted(text)}
        numeric = [j for j in range(len(types)) if j not in text]
        values, words = np.empty((0, len(numeric))), set[int]()
        n, size = 0, 0
        try:
            with self._opened() as stream, csv.open_csv(stream, *how) as reader:
                for batch in reader:
                    for j, column in strings.items():
                        column += batch.column(j).to_pylist()
                    numbers = {j: _as_numbers(batch.column(j), self.decimal) for j in numeric}
                    words |= {j for j, column in numbers.items() if column is None}
                    if words and not n:
                        break
                    begin, n = n, n + batch.num_rows
                    if n > len(values):  # grows in place, where the system can
                        values.resize((int(1.125 * n), len(numeric)), refcheck=False)
                    for k, j in enumerate(numeric if not words else ()):
                        values[begin:n, k] = numbers[j]
                    size += sum(batch.column(j).nbytes for j in strings)
                    check_memory(self.path, 8.0 * n * len(numeric) + size)
        except arrow.ArrowInvalid as error:
            self._explain(error, wrong)
        if words:
            del values
            return self._parse(text | words)
        if any("\n" in (column[-1] or "") for column in strings.values() if column):
            with self._opened() as stream:
                if sum(line.count(b'"') for line in stream) % 2:
                    raise self._unreadable("a quote is opened and never closed")
        values.resize((n, len(numeric)), refcheck=False)
        return values, {self.names[j]: column for j, column in strings.items()}

    def _explain(self, error: Exception, wrong: list[Any]) -> None:
        """Raise what pyarrow's error means; a file without rows is none."""
        if wrong:
            row = wrong[0]
            raise TableError(
                f"row {row.number - self.lines_above} of {self.path}, {row.text.strip()[:30]!r}, "
                f"has {row.actual_columns} fields where {row.expected_columns} were expected "
                f"({DELIMITERS.get(self.delimiter)}-separated); the file may be damaged or use "
                "another --delimiter"
            ) from None
        if "UTF8" in str(error):
            raise UnicodeError from error
        if "straddling" in str(error):
            raise self._endless_line() from error
        if "Empty CSV" not in str(error) and "Could not skip" not in str(error):
            raise self._unreadable(str(error)) from error

    def _unreadable(self, why: str) -> TableError:
        return TableError(f"{self.path} cannot be read as a table: {why}")

    def _endless_line(self) -> TableError:
        megabytes = LONGEST_LINE >> 20
        return TableError(f"{self.path} has a line of more than {megabytes} MB; a table has one "
                          "row on each line")  # fmt: skip


def _split(lines: list[str], delimiter: str) -> tuple[list[int], list[list[str]]]:
    """The rows that hold something, and how many lines are above each."""
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


def _as_numbers(column: Any, decimal: str) -> np.ndarray | None:
    """A column of texts as floats, or None if it holds anything but numbers."""
    arrow, compute = require("pyarrow", "cli"), require("pyarrow.compute", "cli")
    if decimal == ",":
        if compute.any(compute.match_substring(column, ".")).as_py():
            return None
        column = compute.replace_substring(column, ",", ".")
    for prepared in (lambda: column, lambda: compute.utf8_trim_whitespace(column)):
        with suppress(arrow.ArrowInvalid):
            return prepared().cast(arrow.float64()).to_numpy(zero_copy_only=False)
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
    rows: list[list[str]],
    decimal: str,
    given: bool | None = None,
    spans: Callable[[], Spans] = dict,
    skipped: int = 0,
) -> tuple[list[str] | None, int, list[str]]:
    """Names of the columns (None: there are none), the first row below them, and notes.

    rows : the first rows as texts; missing cells are ''
    spans : finds the merged cells; called where several lines of names are joined
    skipped : lines above that are known to be no part of the table
    """
    rows = [[text.strip() for text in row] for row in rows]
    usual, top = Counter(map(len, rows)).most_common(1)[0][0], 0
    while usual > 2 and top < len(rows) - 2 and _is_title(rows[top], usual):
        top += 1
    headers = [i for i in range(top + 1, min(len(rows), MOST_LINES_ABOVE))
               if _is_header(rows[i], rows[i + 1 :], decimal)]  # fmt: skip
    last = max(headers, default=top)
    if not all(_is_header(row, rows[last + 1 :], decimal) for row in rows[top + 1 : last]):
        # What is known about the samples stands above their names; some of it is numbers.
        top = last = last if _names_all(rows[last]) else top
    notes, above = [], skipped + top
    if above:
        notes.append(f"{above} {'lines were' if above > 1 else 'line was'} skipped above the table")
    first, *below = rows[top:]
    if given is None:
        given = not _is_measured(first, below, decimal)
    if not given:
        notes.append("the first line holds values, not names, so columns are called V1, V2, ...")
        return None, top, notes
    if below and len(below[0]) == len(first) + 1:
        if len(first) == 1 and all(text.isdecimal() for row in below for text in row):
            raise TableError(
                f"one name, {first[0]!r}, stands above two columns of digits; if they are one "
                "number with a decimal comma add --decimal ,"
            )
        return ["", *first], top + 1, notes  # R's write.table does not name the row names
    names = rows[top : last + 1]
    if not 1 < len(names) <= MOST_HEADERS or len({*map(len, names)}) > 1:
        return first, top + 1, notes
    joined = _join_headers(names, {(i - top, j): width for (i, j), width in spans().items()})
    example = next((name for name in joined if not any(name in row for row in names)), joined[-1])
    many = {2: "two", 3: "three"}[len(names)]
    return joined, last + 1, [*notes, f"{many} lines of names were joined, such as {example!r}"]


def _is_title(row: list[str], usual: int) -> bool:
    """Whether a line has one filled field, or two in front, where others have more."""
    filled = [j for j, text in enumerate(row) if text]
    number = bool(filled) and as_float(row[filled[0]]) is not None
    if len(filled) == 2:
        return filled == [0, 1] and usual > 4 and (not number or len(row) == 2)
    return len(filled) == 1 and not number


def _names_all(row: list[str]) -> bool:
    """A name for every column, no two alike and no number among them."""
    numbers = any(as_float(text, sign) is not None for text in row for sign in ".,")
    return all(row) and not numbers and len(set(row)) == len(row) > 2


def _columns_below(first: list[str], others: list[list[str]]) -> list[tuple[str, ...]]:
    """What stands below each field of a row, in rows of the same length."""
    return [column[1:] for column in zip(first, *(row for row in others if len(row) == len(first)),
                                         strict=True)]  # fmt: skip


def _is_header(first: list[str], others: list[list[str]], decimal: str) -> bool:
    """Whether a row has words in most columns in which all others have numbers."""
    below = _columns_below(first, others)
    numeric = [
        text for text, column in zip(first, below, strict=True)
        if len(column) > 1 and any(as_float(one, decimal) is not None for one in column)
        and all(is_number_or_missing(one, decimal) or is_mark(one) for one in column)
    ]  # fmt: skip
    named = [t for t in numeric if not (is_number_or_missing(t, decimal) or is_mark(t))]
    return len(named) >= 2 and 2 * len(named) > len(numeric)


def _is_measured(first: list[str], others: list[list[str]], decimal: str) -> bool:
    """Whether a row has numbers alone, or beside names mostly such numbers as stand below them."""
    if all(is_number_or_missing(text, decimal) for text in first):
        return True
    numbers, near = [], []
    for text, column in zip(first, _columns_below(first, others), strict=True):
        known = [v for v in (as_float(one, decimal) for one in column) if v is not None]
        if not known:  # a column of names
            continue
        if not is_number_or_missing(text, decimal):
            return False
        number = as_float(text, decimal)
        numbers += [] if number is None else [number]
        near.append(number is None or min(known) <= number <= max(known))
    steps = np.diff(numbers)  # of samples 1, 2, 3, of masses or wavelengths
    names = np.all(steps == 1.0) if len(steps) < 3 else np.all(steps > 0) or np.all(steps < 0)
    return bool(near) and 2 * sum(near) >= len(near) and not (len(steps) and names)


def _join_headers(lines: list[list[str]], spans: Spans) -> list[str]:
    """One name for each column from several lines of names; groups extend over their columns.

    spans : a merged cell covers its own columns, any other group those up to the next one
    """
    *above, joined = lines
    for i, upper in reversed(list(enumerate(above))):
        if upper[1:].count("") > joined[1:].count(""):
            group, end = "", len(upper)
            for j, (text, below) in enumerate(zip(upper, joined, strict=True)):
                if text:
                    group, end = text, j + spans.get((i, j), len(upper))
                elif below and j < end:
                    upper = [*upper[:j], group, *upper[j + 1 :]]
        joined = [" ".join(filter(None, pair)) for pair in zip(upper, joined, strict=True)]
    return joined
