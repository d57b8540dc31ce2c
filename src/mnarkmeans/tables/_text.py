"""A text file becomes columns, parsed by pyarrow; and the lines above the rows of any table.

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
ENDLESS = "{} has a line of more than {} MB; a table has one row on each line"
REMARKS = ("!", "#!")  # begin the lines around the tables of GEO, and below the names of Perseus


@dataclass(frozen=True)
class Layout:
    """How a text file is written."""

    encoding: str
    delimiter: str
    decimal: str
    names: list[str]
    has_header: bool
    lines_above: int  # the rows
    text_columns: set[int]  # they name rows; other columns of words are found by reading
    notes: list[str]
    block_size: int


def read_text(path: Path, options: ReadOptions) -> Content:
    """What a text file holds."""
    first = _find_encoding(path, options.encoding)
    encodings = [first] if options.encoding or first == "utf-16" else [first, "cp1252"]
    for encoding in encodings:
        try:
            layout = _find_layout(path, encoding, options)
            numbers, texts = _parse(path, layout, layout.text_columns)
        except UnicodeError:
            continue
        if encoding != first:
            layout.notes.append(
                "the file is not UTF-8 and was read as Windows-1252 (cp1252); "
                "give its encoding if names look wrong"
            )
        source = {
            "delimiter": DELIMITERS.get(layout.delimiter, layout.delimiter),
            "encoding": encoding.removesuffix("-sig"),
            "decimal": layout.decimal,
            "header": layout.has_header,
        }
        return Content(
            layout.names, numbers, require("pandas", "cli").DataFrame(texts, dtype=object),
            decimal=layout.decimal, source=source, notes=layout.notes,
        )  # fmt: skip
    tried = " or ".join(encodings).replace("-sig", "").upper().replace("CP1252", "Windows-1252")
    raise TableError(f"{path} is not {tried} text; save it as UTF-8 or name its --encoding")


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    opener: Any = gzip.open if path.suffix.lower() == ".gz" else open
    try:
        with opener(path, "rb") as stream:
            yield stream
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise TableError(f"{path} is a damaged gzip file; copy or download it again") from error


# --- layout -----------------------------------------------------------------------------------


def _find_encoding(path: Path, given: str | None) -> str:
    if given is not None:
        try:
            "".encode(given)  # which codecs of bytes, such as hex, refuse
            name = codecs.lookup(given).name
        except (LookupError, TypeError):
            raise TableError(
                f"{given!r} is not a known encoding; try utf-8, utf-16 or cp1252"
            ) from None
        return "utf-8-sig" if name == "utf-8" else name
    with _opened(path) as stream:
        start = stream.read(4096)
    if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    if start.startswith(b"PK\x03\x04"):
        raise TableError(f"{path} is an Excel workbook or a zip file; save the table as CSV")
    if b"\x00" in start:
        raise TableError(f"{path} is not a text file; its name should end in the format it holds")
    return "utf-8-sig"


def _find_layout(path: Path, encoding: str, options: ReadOptions) -> Layout:
    lines = _first_lines(path, encoding)
    delimiter = _find_delimiter(path, lines, options.delimiter, options.decimal)
    begins, rows = _split(lines, delimiter)
    if not rows:
        raise TableError(f"{path} is empty")
    decimal = find_decimal(rows[1:] or rows, delimiter, options.decimal)
    found, first_row, notes = find_header(rows, decimal, options.header, skipped=begins[0])
    if first_row == len(rows):
        raise TableError(f"{path} has a header line but no rows below it")
    names = found or [f"V{j + 1}" for j in range(len(rows[first_row]))]
    if delimiter == " " and "" in (*names[1:], *rows[first_row]):
        raise TableError(f"{path} has columns padded with blanks; save it as CSV")
    if names.count("") > 1:  # delimiters at the end of the lines
        names = [name or (f"V{j + 1}" if j else "") for j, name in enumerate(names)]
    check_unique(path, names)
    whole = [row for row in rows[first_row:] if len(row) == len(names)]
    text = {j for j, name in enumerate(names) if may_name_rows(name) or name == options.id_column}
    text |= {j for j, fields in enumerate(zip(*whole, strict=True)) if are_padded(fields)}
    block = min(max(ROWS_OF_BLOCK * max(map(len, lines)), BLOCK), LONGEST_LINE)
    return Layout(encoding, delimiter, decimal, names, found is not None, begins[first_row], text,
                  notes, block)  # fmt: skip


def _first_lines(path: Path, encoding: str) -> list[str]:
    lines: list[str] = []
    size = 0
    with _opened(path) as stream, io.TextIOWrapper(stream, encoding) as text:
        while len(lines) < SAMPLE_LINES and (size < SAMPLE_SIZE or len(lines) <= FEWEST_LINES):
            line = text.readline(LONGEST_LINE)
            if len(line) >= LONGEST_LINE:
                raise TableError(ENDLESS.format(path, LONGEST_LINE >> 20))
            if not line:
                break
            size += len(line)
            lines.append(line)
    return lines


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


def _find_delimiter(path: Path, lines: list[str], given: str | None, decimal: str | None) -> str:
    """The delimiter that splits most lines into the same number of fields, or the one given."""
    scores = {}
    quoted = any('"' in line for line in lines)  # then a decimal comma need not split
    for delimiter in (d for d in DELIMITERS if quoted or d != decimal):
        counts = Counter(len(row) for row in _split(lines, delimiter)[1])
        del counts[1]
        fields, times = max(counts.items(), key=lambda item: (item[1], item[0]), default=(0, 0))
        # Names may contain a blank in every row: any other delimiter that splits as evenly wins.
        scores[delimiter] = (times, delimiter != " ", fields)
    best = max(scores, key=lambda d: scores[d])
    if given is None:
        return best if scores[best][0] or decimal != "," else ";"
    given = NAMED_DELIMITERS.get(given.lower(), given)
    if len(given) != 1 or not given.isascii() or given in '"\r\n':
        raise TableError(f"--delimiter must be one character (or tab, comma, ...), not {given!r}")
    if scores[best][0] and all(given not in line for line in lines):
        raise TableError(
            f"{path} has no {given!r} between its columns; it looks {DELIMITERS[best]}-separated: "
            "leave --delimiter out"
        )
    return given


# --- header -----------------------------------------------------------------------------------
#
# Plasma study 12                  a title: skipped
# Date: | 2024-03-01               so is a word with its value, beside a table of more columns
#       | sugars  |         |      groups, which extend to the right
# id    | glucose | lactate |      names
#       | mM      | mM      |      units

MOST_HEADERS = 3  # lines of names: groups, names, units
MOST_LINES_ABOVE = 20  # of which the last may hold the names
Spans = dict[tuple[int, int], int]  # columns a merged cell covers, by line and column


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
    last = max((i for i in range(top + 1, min(len(rows), MOST_LINES_ABOVE))
                if _is_header(rows[i], rows[i + 1 :], decimal)), default=top)  # fmt: skip
    between = rows[top + 1 : last]
    if not all(_is_header(row, rows[last + 1 :], decimal) for row in between):
        # What is known about the samples stands above their names; some of it is numbers.
        top = last = last if _names_all(rows[last]) else top
    notes = []
    if skipped + top:
        lines = "lines were" if skipped + top > 1 else "line was"
        notes.append(f"{skipped + top} {lines} skipped above the table")
    if given is None:
        given = not _is_measured(rows[top], rows[top + 1 :], decimal)
    if not given:
        notes.append("the first line holds values, not names, so columns are called V1, V2, ...")
        return None, top, notes
    if top + 1 < len(rows) and len(rows[top + 1]) == len(rows[top]) + 1:
        if len(rows[top]) == 1 and all(text.isdecimal() for row in rows[top + 1 :] for text in row):
            raise TableError(
                f"one name, {rows[top][0]!r}, stands above two columns of digits; if they are one "
                "number with a decimal comma add --decimal ,"
            )
        return ["", *rows[top]], top + 1, notes  # R's write.table does not name the row names
    if not 0 < last - top < MOST_HEADERS or len({*map(len, rows[top : last + 1])}) > 1:
        return rows[top], top + 1, notes
    merged = {(i - top, j): width for (i, j), width in spans().items() if i >= top}
    names = _join_headers(rows[top : last + 1], merged)
    written = {name for row in rows[top : last + 1] for name in row}
    example = next((name for name in names if name not in written), names[-1])
    many = ("two", "three")[last - top - 1]
    return names, last + 1, [*notes, f"{many} lines of names were joined, such as {example!r}"]


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


def _is_header(first: list[str], others: list[list[str]], decimal: str) -> bool:
    """Whether a row has words in most columns in which all others have numbers."""
    others = [row for row in others if len(row) == len(first)]
    words = {j for j, text in enumerate(first)
             if not is_number_or_missing(text, decimal) and not is_mark(text)}  # fmt: skip
    if len(others) < 2 or len(words) < 2:
        return False
    numeric = {
        j
        for j, column in enumerate(zip(*others, strict=True))
        if any(as_float(text, decimal) is not None for text in column)
        and all(is_number_or_missing(text, decimal) or is_mark(text) for text in column)
    }
    return len(words & numeric) >= 2 and 2 * len(words & numeric) > len(numeric)


def _is_measured(first: list[str], others: list[list[str]], decimal: str) -> bool:
    """Whether a row has numbers alone, or beside names mostly such numbers as stand below them."""
    if all(is_number_or_missing(text, decimal) for text in first):
        return True
    others = [row for row in others if len(row) == len(first)]
    numbers, near = [], []
    for text, *below in zip(first, *others, strict=True):
        known = [v for v in (as_float(one, decimal) for one in below) if v is not None]
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
    """One name for each column from several lines of names."""
    joined = lines[-1]
    for i in range(len(lines) - 2, -1, -1):
        upper = lines[i]
        if upper[1:].count("") > joined[1:].count(""):
            upper = _extended(upper, joined, {j: w for (line, j), w in spans.items() if line == i})
        joined = [" ".join(filter(None, pair)) for pair in zip(upper, joined, strict=True)]
    return joined


def _extended(upper: list[str], lower: list[str], widths: dict[int, int]) -> list[str]:
    """Groups over all of their columns: the merged cell's, or up to the next group."""
    out, group, end = [], "", len(upper)
    for j, (above, below) in enumerate(zip(upper, lower, strict=True)):
        if above:
            group, end = above, j + widths.get(j, len(upper))
        elif j >= end:
            group = ""
        out.append(group if below else above)
    return out


# --- parsing ----------------------------------------------------------------------------------


def _parse(path: Path, layout: Layout, text: set[int]) -> tuple[np.ndarray, dict[str, list[Any]]]:
    """Numbers (n, p) of the columns that hold nothing else, and the other columns by name.

    text : columns that are taken as text whatever they hold
    """
    csv, arrow = require("pyarrow.csv", "cli"), require("pyarrow", "cli")
    types = {str(j): arrow.string() for j in range(len(layout.names))}
    wrong: list[Any] = []

    def handle(row: Any) -> str:
        if row.text.startswith(REMARKS):
            return "skip"
        wrong.append(row)
        return "error"

    how = (
        csv.ReadOptions(
            column_names=list(types), use_threads=False, block_size=layout.block_size,
            skip_rows=layout.lines_above, encoding=layout.encoding.replace("utf-8-sig", "utf8"),
        ),
        csv.ParseOptions(
            delimiter=layout.delimiter, newlines_in_values=True, invalid_row_handler=handle
        ),
        csv.ConvertOptions(
            column_types=types, null_values=SURE_SPELLINGS, strings_can_be_null=True
        ),
    )  # fmt: skip
    values, strings = np.empty((0, 0)), dict[int, list[Any]]()
    late, n, size = set[int](), 0, 0
    try:
        with _opened(path) as stream, csv.open_csv(stream, *how) as reader:
            for batch in reader:
                begin, n = n, n + batch.num_rows
                numbers = {j: _as_numbers(batch.column(j), layout.decimal)
                           for j in range(len(types)) if j not in text}  # fmt: skip
                words = {j for j, column in numbers.items() if column is None}
                if not begin:
                    text = text | words
                    strings = {j: [] for j in sorted(text)}
                    values = np.empty((0, len(types) - len(text)))
                late |= words - text
                if n > len(values):  # grows in place, where the system can
                    values.resize((int(1.125 * n), values.shape[1]), refcheck=False)
                for k, j in enumerate(j for j in numbers if j not in text | late):
                    values[begin:n, k] = numbers[j]
                for j, column in strings.items():
                    column += batch.column(j).to_pylist()
                size += sum(batch.column(j).nbytes for j in strings)
                check_memory(path, 8.0 * n * values.shape[1] + size)
    except arrow.ArrowInvalid as error:
        _explain(path, layout, error, wrong)
    if late:  # words below the first block
        return _parse(path, layout, text | late)
    if "\n" in "".join(column[-1] or "" for column in strings.values()):
        with _opened(path) as stream:
            quotes = sum(line.count(b'"') for line in stream)
        if quotes % 2:
            raise TableError(
                f"{path} cannot be read as a table: a quote is opened and never closed"
            )
    values.resize((n, values.shape[1]), refcheck=False)
    return values, {layout.names[j]: column for j, column in strings.items()}


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


def _explain(path: Path, layout: Layout, error: Exception, wrong: list[Any]) -> None:
    """Raise what pyarrow's error means; a file without rows is none."""
    if wrong:
        raise TableError(
            f"row {wrong[0].number - layout.lines_above} of {path}, "
            f"{wrong[0].text.strip()[:30]!r}, has {wrong[0].actual_columns} fields where "
            f"{wrong[0].expected_columns} were expected ({DELIMITERS.get(layout.delimiter)}-"
            "separated); the file may be damaged or use another --delimiter"
        ) from None
    if "UTF8" in str(error):
        raise UnicodeError from error
    if "straddling" in str(error):
        raise TableError(ENDLESS.format(path, layout.block_size >> 20)) from error
    if "Empty CSV" not in str(error) and "Could not skip" not in str(error):
        raise TableError(f"{path} cannot be read as a table: {error}") from error
