"""A text file becomes columns, parsed by pyarrow; and the lines above the rows of any table.

The first lines tell how the file is written: encoding, delimiter, decimal sign, header, and which
columns are text. pyarrow reads the rest as numbers, to the last bit and faster than pandas, and
refuses rows of another length, which a parser that pads them would turn into missing values. Only
where a word turns up among the numbers later is the file read once more, as text. DuckDB's
`sniff_csv` and CleverCSV were compared for the first step (docs/howto/read_tables.md).
"""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import re
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .._io import machine_memory, require
from ._cells import (
    SURE_SPELLINGS,
    are_padded,
    as_float,
    find_decimal,
    is_mark,
    is_number_or_missing,
    may_name_rows,
)
from ._table import ReadOptions, TableError, check_unique

DELIMITERS = {"\t": "tab", ";": "semicolon", ",": "comma", "|": "bar", " ": "blank"}
NAMED_DELIMITERS = {"tab": "\t", "\\t": "\t", "comma": ",", "semicolon": ";", "space": " "}
LONGEST_LINE = 1 << 25  # bytes: 100,000 columns of 300 characters each
SAMPLE_LINES, SAMPLE_SIZE, FEWEST_LINES = 64, 1 << 20, 8  # the first lines, fewer if they are long
LONGEST_COPY = 1 << 30
BLOCK = 1 << 20  # bytes parsed at once, at least four lines; pyarrow holds about 32 blocks
ENDLESS = "{} has a line of more than {} MB; a table has one row on each line"
REMARK = "!"  # begins the lines around the tables of GEO


@dataclass(frozen=True)
class Layout:
    """How a text file is written."""

    encoding: str
    delimiter: str
    decimal: str
    names: list[str]
    has_header: bool
    lines_above: int  # the rows
    text_columns: set[int]  # by the first lines, or because their name says so (007 is a name)
    notes: list[str]
    remarks: bool  # whether lines that begin with REMARK are no rows
    block_size: int


def read_text(path: Path, options: ReadOptions) -> tuple[np.ndarray, dict[int, list[str]], Layout]:
    """Columns of numbers (n, p), the others (by position) as they are written, and the layout."""
    encoding = _find_encoding(path, options.encoding)
    sure = options.encoding is not None or encoding == "utf-16"
    for name in (encoding,) if sure else (encoding, "cp1252"):
        try:
            layout = _find_layout(path, name, options)
            try:
                numbers, strings = _parse(path, layout, layout.text_columns)
            except _WordAmongNumbers:
                numbers, strings = _parse(path, layout, set(range(len(layout.names))))
        except UnicodeError:
            continue
        if name != encoding:
            layout.notes.append(
                "the file is not UTF-8 and was read as Windows-1252 (cp1252); "
                "give its encoding if names look wrong"
            )
        return *_converted(path, numbers, strings, layout), layout
    tried = encoding.removesuffix("-sig").upper() + ("" if sure else " or Windows-1252")
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
    with _opened(path) as stream:
        start = stream.read(4096)
    if given is not None:
        try:
            "".encode(given)  # which codecs of bytes, such as hex, refuse
            name = codecs.lookup(given).name
        except (LookupError, TypeError):
            raise TableError(
                f"{given!r} is not a known encoding; try utf-8, utf-16 or cp1252"
            ) from None
        return "utf-8-sig" if name == "utf-8" else name
    if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    if start.startswith(b"PK\x03\x04"):
        raise TableError(f"{path} is an Excel workbook or a zip file; save the table as CSV")
    if b"\x00" in start:
        raise TableError(f"{path} is not a text file; its name should end in the format it holds")
    return "utf-8-sig"


def _find_layout(path: Path, encoding: str, options: ReadOptions) -> Layout:
    lines, remarks = _first_lines(path, encoding)
    if not lines:
        raise TableError(f"{path} is empty")
    delimiter = _find_delimiter(path, [line for line, _ in lines], options.delimiter)
    rows = [_split(line, delimiter) for line, _ in lines]
    decimal = find_decimal(rows[1:] or rows, delimiter, options.decimal)
    found, first_row, notes = find_header(rows, decimal, options.header, skipped=remarks)
    if found is not None and first_row == len(rows):
        raise TableError(f"{path} has a header line but no rows below it")
    names = found or [f"V{j + 1}" for j in range(len(rows[first_row]))]
    if names.count("") > 1:  # delimiters at the end of the lines
        names = [name or (f"V{j + 1}" if j else "") for j, name in enumerate(names)]
    check_unique(path, names)
    whole = [row for row in rows[first_row:] if len(row) == len(names)]
    text = {j for j, name in enumerate(names) if may_name_rows(name)}
    for j, fields in enumerate(zip(*whole, strict=True)):
        if not all(is_number_or_missing(field, decimal) for field in fields) or are_padded(fields):
            text.add(j)
    longest = max(len(line) for line, _ in lines)
    return Layout(encoding, delimiter, decimal, names, found is not None,
                  lines[first_row][1], text, notes, remarks > 0,
                  min(max(4 * longest, BLOCK), LONGEST_LINE))  # fmt: skip


def _first_lines(path: Path, encoding: str) -> tuple[list[tuple[str, int]], int]:
    """The first lines that are not blank, with the lines above each; the number of remarks."""
    lines: list[tuple[str, int]] = []
    number = size = remarks = 0
    with _opened(path) as stream, io.TextIOWrapper(stream, encoding) as text:
        while len(lines) < SAMPLE_LINES and (size < SAMPLE_SIZE or len(lines) <= FEWEST_LINES):
            line = text.readline(LONGEST_LINE)
            begin, number = number, number + 1
            while not lines and line.count('"') % 2 and number < begin + SAMPLE_LINES:
                more = text.readline(LONGEST_LINE)  # a name that holds a line end
                if not more:
                    break
                line, number = line + more, number + 1
            if len(line) >= LONGEST_LINE:
                raise TableError(ENDLESS.format(path, LONGEST_LINE >> 20))
            if not line:
                break
            size += len(line)
            if line.startswith(REMARK):
                remarks += 1
            elif line.strip():
                lines.append((line.rstrip("\n"), begin))
    return lines, remarks


def _split(line: str, delimiter: str) -> list[str]:
    """The fields of one line."""
    if delimiter == " ":
        line = " ".join(line.split())
    if '"' not in line:
        return line.split(delimiter)
    try:
        return next(csv.reader([line], delimiter=delimiter, skipinitialspace=True))
    except csv.Error:  # a field without end: not this delimiter
        return [line]


def _find_delimiter(path: Path, lines: list[str], given: str | None) -> str:
    """The delimiter that splits most lines into the same number of fields, or the one given."""
    scores = {}
    for delimiter in DELIMITERS:
        counts = Counter(len(_split(line, delimiter)) for line in lines)
        counts[1] = 0
        fields, times = max(counts.items(), key=lambda item: (item[1], item[0]))
        # Names may contain a blank in every row: any other delimiter that splits as evenly wins.
        scores[delimiter] = (times, delimiter != " ", fields)
    best = max(scores, key=lambda d: scores[d])
    if given is None:
        return best if scores[best][0] else ","
    given = NAMED_DELIMITERS.get(given.lower(), given)
    if len(given) != 1 or not given.isascii() or given in '"\r\n':
        raise TableError(f"--delimiter must be one character (or tab, comma, ...), not {given!r}")
    if scores[best][0] and all(len(_split(line, given)) < 2 for line in lines):
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
# id    | How sweet was it?        descriptions, longer than the names: skipped

MOST_HEADERS = 3  # lines of names: groups, names, units
MOST_LINES_ABOVE = 20  # of which the last may hold the names
LONGEST_UNIT = 12  # letters on average; longer lines below the names describe them
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
    notes = [_skipped(skipped + top, "above the table")] if skipped + top else []
    if given is None:
        given = not all(is_number_or_missing(text, decimal) for text in rows[top])
    if not given:
        notes.append("the first line holds numbers, so columns are called V1, V2, ...")
        return None, top, notes
    if top + 1 < len(rows) and len(rows[top + 1]) == len(rows[top]) + 1:
        return ["", *rows[top]], top + 1, notes  # R's write.table does not name the row names
    if not 0 < last - top < MOST_HEADERS or len({*map(len, rows[top : last + 1])}) > 1:
        return rows[top], top + 1, notes
    merged = {(i - top, j): width for (i, j), width in spans().items() if i >= top}
    names, joined = _join_headers(rows[top : last + 1], merged)
    return names, last + 1, notes + joined


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


def _skipped(count: int, where: str) -> str:
    return f"{count} line{'s were' if count > 1 else ' was'} skipped {where}"


def _join_headers(lines: list[list[str]], spans: Spans) -> tuple[list[str], list[str]]:
    """One name for each column from several lines of names, and notes on what was done."""
    names, *others = lines
    notes = []
    if all(names) and len(set(names)) == len(names):
        kept = [line for line in others if not _describes(line, names)]
        if len(kept) < len(others):
            example = next(filter(None, others[-1]))[:30]
            where = f"below the names, such as {example!r}"
            notes.append(_skipped(len(others) - len(kept), where))
        lines = [names, *kept]
    if len(lines) == 1:
        return names, notes
    joined = lines[-1]
    for i in range(len(lines) - 2, -1, -1):
        upper = lines[i]
        if upper[1:].count("") > joined[1:].count(""):
            upper = _extended(upper, joined, {j: w for (line, j), w in spans.items() if line == i})
        joined = [" ".join(filter(None, pair)) for pair in zip(upper, joined, strict=True)]
    written = {name for line in lines for name in line}
    example = next((name for name in joined if name not in written), joined[-1])
    many = ("two", "three")[len(lines) - 2]
    return joined, [*notes, f"{many} lines of names were joined, such as {example!r}"]


def _describes(line: list[str], names: list[str]) -> bool:
    """Whether a line below complete names explains them or is meant for a program."""
    words = [text for text in line if text]
    if words and words[0].startswith("#"):
        return True
    length, usual = (sum(map(len, texts)) / max(len(texts), 1) for texts in (words, names))
    return length > max(LONGEST_UNIT, 1.5 * usual)


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


class _WordAmongNumbers(Exception):
    """A column of numbers holds something else below the first lines."""


def _parse(path: Path, layout: Layout, text: set[int]) -> tuple[np.ndarray, dict[int, Any]]:
    """Numbers (n, p) of the columns that are not `text`, and those as Arrow strings."""
    csv, arrow = require("pyarrow.csv", "cli"), require("pyarrow", "cli")
    types = {str(j): arrow.string() if j in text else arrow.float64()
             for j in range(len(layout.names))}  # fmt: skip
    numeric = [j for j in range(len(types)) if j not in text]
    strings: dict[int, list[Any]] = {j: [] for j in sorted(text)}
    wrong: list[Any] = []

    def handle(row: Any) -> str:
        if layout.remarks and row.text.startswith(REMARK):
            return "skip"
        wrong.append(row)
        return "error"

    how = (
        csv.ReadOptions(
            column_names=list(types), use_threads=False, block_size=layout.block_size,
            skip_rows=layout.lines_above, encoding=layout.encoding.replace("utf-8-sig", "utf8"),
        ),
        csv.ParseOptions(
            delimiter=layout.delimiter, newlines_in_values=True, invalid_row_handler=handle,
            ignore_empty_lines=len(types) > 1,
        ),
        csv.ConvertOptions(
            column_types=types, null_values=SURE_SPELLINGS, decimal_point=layout.decimal
        ),
    )  # fmt: skip
    values, n, size, memory = np.empty((0, len(numeric))), 0, 0, machine_memory()
    try:
        with _opened(path) as stream, csv.open_csv(_single_blanks(stream, layout), *how) as reader:
            for batch in reader:
                begin, n = n, n + batch.num_rows
                if n > len(values):  # grows in place, where the system can
                    values.resize((int(1.125 * n), len(numeric)), refcheck=False)
                for k, j in enumerate(numeric):
                    values[begin:n, k] = batch.column(j).to_numpy(zero_copy_only=False)
                for j, chunks in strings.items():
                    chunks.append(batch.column(j))
                size += 2 * batch.nbytes
                if size > memory:
                    raise TableError(
                        f"{path} needs more than {size / 1e9:.0f} GB of memory to be read; "
                        "in Python, mnarkmeans.dask.MNARKMeans fits tables in blocks"
                    )
    except arrow.ArrowInvalid as error:
        _explain(path, layout, error, wrong)
    values.resize((n, len(numeric)), refcheck=False)
    return values, {j: arrow.chunked_array(parts, arrow.string()) for j, parts in strings.items()}


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
    if "conversion error" in str(error):
        raise _WordAmongNumbers from error
    if "straddling" in str(error):
        raise TableError(ENDLESS.format(path, layout.block_size >> 20)) from error
    if "Empty CSV" not in str(error) and "Could not skip" not in str(error):
        raise TableError(f"{path} cannot be read as a table: {error}") from error


def _converted(
    path: Path, numbers: np.ndarray, strings: dict[int, Any], layout: Layout
) -> tuple[np.ndarray, dict[int, list[str]]]:
    """Numbers of the columns that hold nothing else, and the others as they are written."""
    found: list[np.ndarray] = []
    texts: dict[int, list[str]] = {}
    for j, column in strings.items():
        values = None if j in layout.text_columns else _as_numbers(column, layout.decimal)
        if values is None:
            texts[j] = column.to_pylist()
        else:
            found.append(values.to_numpy())
    if found:  # the file was read as text
        numbers = np.column_stack(found)
    if "\n" in "".join(column[-1] for column in texts.values() if column):
        with _opened(path) as stream:
            quotes = sum(line.count(b'"') for line in stream)
        if quotes % 2:
            raise TableError(
                f"{path} cannot be read as a table: a quote is opened and never closed"
            )
    n = len(numbers)
    if len(layout.names) == 1:  # blank lines at the end of a single column are no rows
        while n and (not texts[0][n - 1] if texts else np.isnan(numbers[n - 1, 0])):
            n -= 1
    return numbers[:n], {j: column[:n] for j, column in texts.items()}


def _as_numbers(column: Any, decimal: str) -> Any:
    """A column of text as floats, or None if it holds anything but numbers."""
    arrow, compute = require("pyarrow", "cli"), require("pyarrow.compute", "cli")
    column = compute.utf8_trim_whitespace(column)
    if decimal == ",":
        if compute.any(compute.match_substring(column, ".")).as_py():
            return None
        column = compute.replace_substring(column, ",", ".")
    missing = compute.is_in(column, value_set=arrow.array(SURE_SPELLINGS))
    try:
        return compute.if_else(missing, None, column).cast(arrow.float64())
    except arrow.ArrowInvalid:
        return None


def _single_blanks(stream: Any, layout: Layout) -> Any:
    """The stream; of a file separated by blanks a copy with one blank between its fields.

    Columns that are padded to a width have as many blanks in every row, but at other places.
    """
    if layout.delimiter != " ":
        return stream
    content = stream.read(LONGEST_COPY)
    if len(content) == LONGEST_COPY:
        raise TableError("a table of more than 1 GB cannot be separated by blanks; use commas")
    pieces = content.decode(layout.encoding).split('"')
    pieces[::2] = [re.sub(r"[ \t]+", " ", piece) for piece in pieces[::2]]
    text = re.sub(r" ?(\r\n|\n|\r) ?", r"\1", '"'.join(pieces)).lstrip(" ")
    return io.BytesIO(text.encode(layout.encoding))
