"""A text file becomes a frame, parsed by pyarrow.

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
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .._io import machine_memory, require
from ._cells import (
    SURE_SPELLINGS,
    are_padded,
    find_decimal,
    is_number_or_missing,
    is_sure_mark,
    may_name_rows,
)
from ._header import find_header
from ._table import ReadOptions, TableError, check_unique

DELIMITERS = {"\t": "tab", ";": "semicolon", ",": "comma", "|": "bar", " ": "blank"}
NAMED_DELIMITERS = {"tab": "\t", "\\t": "\t", "comma": ",", "semicolon": ";", "space": " "}
LONGEST_LINE = 1 << 25  # bytes: 100,000 columns of 300 characters each
SAMPLE_LINES, SAMPLE_SIZE, FEWEST_LINES = 64, 1 << 20, 8  # the first lines, fewer if they are long
LONGEST_COPY = 1 << 30
MOST_INSERTED = 50  # columns of text that are added to a frame one by one
REMARK = "!"  # begins the lines around the tables of GEO


@dataclass(frozen=True)
class TextLayout:
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
    block_size: int  # bytes that pyarrow parses at once: more than one line has


def read_text(path: Path, options: ReadOptions) -> tuple[Any, dict[int, list[str]], TextLayout]:
    """A pandas frame, its text columns as they are written (by position), and the layout.

    Text columns of the frame are objects with None for missing; all others are floats.
    """
    encoding = _find_encoding(path, options.encoding)
    sure = options.encoding is not None or encoding == "utf-16"
    for name in (encoding,) if sure else (encoding, "cp1252"):
        try:
            frame, texts, layout = _read(path, options, name)
        except UnicodeError:
            continue
        if name != encoding:
            layout.notes.append(
                "the file is not UTF-8 and was read as Windows-1252 (cp1252); "
                "give its encoding if names look wrong"
            )
        return frame, texts, layout
    tried = encoding.removesuffix("-sig").upper() + ("" if sure else " or Windows-1252")
    raise TableError(f"{path} is not {tried} text; save it as UTF-8 or name its --encoding")


def _read(
    path: Path, options: ReadOptions, encoding: str
) -> tuple[Any, dict[int, list[str]], TextLayout]:
    layout = _find_layout(path, encoding, options)
    names = layout.names
    try:
        numbers, strings = _parse(path, layout, layout.text_columns)
    except _WordAmongNumbers:
        numbers, strings = _parse(path, layout, set(range(len(names))))
    numbers, texts = _converted(path, numbers, strings, layout)
    pandas = require("pandas", "cli")
    cells = {names[j]: [None if is_sure_mark(t) else t for t in texts[j]] for j in sorted(texts)}
    frame = pandas.DataFrame(numbers, columns=[n for n in names if n not in cells], copy=False)
    if len(cells) > MOST_INSERTED:
        frame = pandas.concat([frame, pandas.DataFrame(cells, dtype=object)], axis=1)[names]
    else:  # the numbers, most of the memory, are not copied
        for name, column in cells.items():
            frame.insert(names.index(name), name, pandas.Series(column, dtype=object))
    return frame, texts, layout


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


def _find_layout(path: Path, encoding: str, options: ReadOptions) -> TextLayout:
    lines, remarks = _first_lines(path, encoding)
    if not lines:
        raise TableError(f"{path} is empty")
    delimiter = _find_delimiter(path, [line for line, _ in lines], options.delimiter)
    rows = [_split(line, delimiter) for line, _ in lines]
    decimal = find_decimal(rows[1:] or rows, delimiter, options.decimal)
    header = find_header(rows, decimal, options.header, skipped=remarks)
    if header.names is not None and header.first_row == len(rows):
        raise TableError(f"{path} has a header line but no rows below it")
    names = header.names or [f"V{j + 1}" for j in range(len(rows[header.first_row]))]
    if names.count("") > 1:  # delimiters at the end of the lines
        names = [name or (f"V{j + 1}" if j else "") for j, name in enumerate(names)]
    check_unique(path, names)
    whole = [row for row in rows[header.first_row :] if len(row) == len(names)]
    text = {j for j, name in enumerate(names) if may_name_rows(name)}
    for j, fields in enumerate(zip(*whole, strict=True)):
        if not all(is_number_or_missing(field, decimal) for field in fields) or are_padded(fields):
            text.add(j)
    longest = max(len(line) for line, _ in lines)
    block_size = min(max(16 * longest, 1 << 22), LONGEST_LINE)
    return TextLayout(encoding, delimiter, decimal, names, header.names is not None,
                      lines[header.first_row][1], text, header.notes, remarks > 0,
                      block_size)  # fmt: skip


def _first_lines(path: Path, encoding: str) -> tuple[list[tuple[str, int]], int]:
    """The first lines that are not blank, with the lines of the file above each; without remarks,
    which are counted."""
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
                raise _endless(path)
            if not line:
                break
            size += len(line)
            if line.startswith(REMARK):
                remarks += 1
            elif line.strip():
                lines.append((line.rstrip("\n"), begin))
    return lines, remarks


def _endless(path: Path, size: int = LONGEST_LINE) -> TableError:
    return TableError(
        f"{path} has a line of more than {size >> 20} MB; a table has one row on each line"
    )


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
    """The delimiter that splits the lines most evenly, or the one given."""
    scores = {d: _evenness(lines, d) for d in DELIMITERS}
    # Names may contain a blank in every row: any other delimiter that splits as evenly wins.
    best = max(DELIMITERS, key=lambda d: (scores[d][0], d != " ", scores[d][1]))
    if given is None:
        return best if scores[best][0] > 0 else ","
    given = NAMED_DELIMITERS.get(given.lower(), given)
    if len(given) != 1 or not given.isascii() or given in '"\r\n':
        raise TableError(f"--delimiter must be one character (or tab, comma, ...), not {given!r}")
    if scores[best][0] > 0 and all(len(_split(line, given)) < 2 for line in lines):
        raise TableError(
            f"{path} has no {given!r} between its columns; it looks {DELIMITERS[best]}-separated: "
            "leave --delimiter out"
        )
    return given


def _evenness(lines: list[str], delimiter: str) -> tuple[float, int]:
    """Share of lines with the most frequent number of fields, and that number.

    It counts less where the first lines have one field: they are titles, or this is no delimiter.
    """
    counts = [len(_split(line, delimiter)) for line in lines]
    usual, times = Counter(counts[1:] or counts).most_common(1)[0]
    if usual < 2:
        return 0.0, 1
    first = next((i for i, count in enumerate(counts[:-1]) if count > 1), 0)
    if usual == 2 or not first:
        fits = counts[0] in (usual, usual - 1)
        return times / len(counts[1:] or counts) * (1.0 if fits else 0.5), usual
    return 0.9 * counts[first:].count(usual) / len(counts[first:]), usual


# --- parsing ----------------------------------------------------------------------------------


class _WordAmongNumbers(Exception):
    """A column of numbers holds something else below the first lines."""


def _parse(path: Path, layout: TextLayout, text: set[int]) -> tuple[np.ndarray, dict[int, Any]]:
    """Numbers (n, p) of the columns that are not `text`, and those as Arrow strings."""
    csv, arrow = require("pyarrow.csv", "cli"), require("pyarrow", "cli")
    types = [arrow.string() if j in text else arrow.float64() for j in range(len(layout.names))]
    columns = [str(j) for j in range(len(types))]
    numeric = [j for j in range(len(types)) if j not in text]
    wrong: list[Any] = []

    def handle(row: Any) -> str:
        if layout.remarks and row.text.startswith(REMARK):
            return "skip"
        wrong.append(row)
        return "error"

    how = (
        csv.ReadOptions(
            column_names=columns, use_threads=False, block_size=layout.block_size,
            skip_rows=layout.lines_above, encoding=layout.encoding.replace("utf-8-sig", "utf8"),
        ),
        csv.ParseOptions(
            delimiter=layout.delimiter, newlines_in_values=True, invalid_row_handler=handle,
            ignore_empty_lines=len(types) > 1,
        ),
        csv.ConvertOptions(
            column_types=dict(zip(columns, types, strict=True)), null_values=SURE_SPELLINGS,
            decimal_point=layout.decimal,
        ),
    )  # fmt: skip
    values, n = np.empty((0, len(numeric))), 0
    strings: dict[int, list[Any]] = {j: [] for j in sorted(text)}
    size = 0
    try:
        with _opened(path) as stream, csv.open_csv(_single_blanks(stream, layout), *how) as reader:
            for batch in reader:
                begin, n = n, n + batch.num_rows
                if n > len(values):  # grows in place, where the system can
                    values.resize((int(1.25 * n), len(numeric)), refcheck=False)
                for k, j in enumerate(numeric):
                    values[begin:n, k] = batch.column(j).to_numpy(zero_copy_only=False)
                for j, chunks in strings.items():
                    chunks.append(batch.column(j))
                size += batch.nbytes
                if 2 * size > machine_memory():
                    raise TableError(
                        f"{path} needs more than {2 * size / 1e9:.0f} GB of memory to be read; "
                        "store the table as Parquet, which is read in blocks"
                    )
    except arrow.ArrowInvalid as error:
        _explain(path, layout, error, wrong)
    chunked = {j: arrow.chunked_array(chunks, arrow.string()) for j, chunks in strings.items()}
    values.resize((n, len(numeric)), refcheck=False)
    return values, chunked


def _explain(path: Path, layout: TextLayout, error: Exception, wrong: list[Any]) -> None:
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
        raise _endless(path, layout.block_size) from error
    if "Empty CSV" not in str(error) and "Could not skip" not in str(error):
        raise TableError(f"{path} cannot be read as a table: {error}") from error


def _converted(
    path: Path, numbers: np.ndarray, strings: dict[int, Any], layout: TextLayout
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
    last = "".join(column[-1] for column in texts.values() if column)
    if "\n" in last:
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


def _single_blanks(stream: Any, layout: TextLayout) -> Any:
    """The stream; of a file separated by blanks a copy with one blank between fields.

    Blanks within quotes stay, those at the ends of lines go.
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
