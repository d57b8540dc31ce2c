"""A text file becomes a frame, read once, by one parser (pyarrow).

The first lines tell how the file is written: encoding, delimiter, decimal sign, lines above the
rows. pyarrow then parses the stream block by block. It refuses rows of another length, which a
parser that pads them would turn into missing values, reads numbers to the last bit, and is faster
than pandas; DuckDB's `sniff_csv` and CleverCSV were compared for the first step
(docs/howto/read_tables.md).
"""

from __future__ import annotations

import codecs
import gzip
import io
import re
import zlib
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain, groupby, islice
from pathlib import Path
from typing import Any

import numpy as np

from .._io import machine_memory, require
from ._headers import MOST_HEADERS, count_titles, join_headers, lines_skipped
from ._numbers import (
    SURE_SPELLINGS,
    as_float,
    find_decimal,
    is_mark,
    is_number_or_missing,
    is_sure_mark,
)
from ._table import ReadOptions, TableError
from ._words import are_padded, may_name_rows

DELIMITERS = {"\t": "tab", ";": "semicolon", ",": "comma", "|": "bar", " ": "blank"}
NAMED_DELIMITERS = {"tab": "\t", "\\t": "\t", "comma": ",", "semicolon": ";", "space": " "}
LONGEST_LINE = 1 << 25  # bytes: 100,000 columns of 300 characters each
CHUNK = 1 << 20
SAMPLE_LINES, SAMPLE_BYTES, FEWEST_LINES = 64, 1 << 20, 8  # the first lines, fewer if they are long
REMARK = "!"  # begins the lines around the tables of GEO
_LINE_END = re.compile(r"\r\n|\n|\r")
_LINE_END_BYTES = re.compile(rb"\r\n|\n|\r")


@dataclass(frozen=True)
class TextLayout:
    """How a text file is written."""

    encoding: str
    delimiter: str
    decimal: str
    names: list[str] | None  # None: the first line already holds numbers
    n_fields: int
    lines_above: int  # the rows
    text_columns: frozenset[int]  # by the first lines
    notes: list[str]
    remark: str = ""  # what lines begin with that are no rows


class _NotUnicode(TableError):
    """A text file in an encoding that has to be named."""


def read_text(path: Path, options: ReadOptions) -> tuple[Any, dict[int, list[str]], TextLayout]:
    """A pandas frame, its text columns as they are written (by position), and the layout.

    Columns of text, and those whose name says that they name the rows (007 is a name), are
    objects with None for missing; all others are floats.
    """
    encoding = _find_encoding(path, options.encoding)
    try:
        return _read(path, options, encoding)
    except _NotUnicode:
        if options.encoding is not None:
            raise
    frame, texts, layout = _read(path, options, "cp1252")
    layout.notes.append(
        "the file is not UTF-8 and was read as Windows-1252 (cp1252); "
        "give its encoding if names look wrong"
    )
    return frame, texts, layout


def _read(
    path: Path, options: ReadOptions, encoding: str
) -> tuple[Any, dict[int, list[str]], TextLayout]:
    with _opened(path) as stream:
        parts = _blocks(path, stream, encoding)
        start: list[bytes] = []
        for block in parts:
            start.append(block)
            lines = sum(len(_LINE_END_BYTES.findall(part)) for part in start)
            long = sum(map(len, start)) > SAMPLE_BYTES and lines > FEWEST_LINES
            if lines > 2 * SAMPLE_LINES or long:
                break
        layout = _find_layout(path, b"".join(start).decode(), encoding, options)
        names = _column_names(path, layout)
        parts = _rows(chain(start, parts), layout)
        numbers, texts = _parse(path, parts, layout, names)
    texts_as_written = {j: [t or "" for t in column] for j, column in texts.items()}
    return _frame(numbers, texts, names), texts_as_written, layout


def _frame(numbers: np.ndarray, texts: dict[int, list[str | None]], names: list[str]) -> Any:
    """Columns side by side; neighbouring columns of numbers stay one block of memory."""
    pandas = require("pandas", "cli")
    pieces = []
    for is_text, group in groupby(range(len(names)), key=texts.__contains__):
        at = list(group)
        if is_text:
            cells = {j: [None if t is None or is_sure_mark(t) else t for t in texts[j]] for j in at}
            pieces.append(pandas.DataFrame(cells, dtype=object))
        else:
            pieces.append(pandas.DataFrame(numbers[:, at[0] : at[-1] + 1], copy=False))
    frame = pandas.concat(pieces, axis=1) if len(pieces) > 1 else pieces[0]
    frame.columns = names
    return frame


# --- lines ------------------------------------------------------------------------------------


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    opener: Any = gzip.open if path.suffix.lower() == ".gz" else open
    try:
        with opener(path, "rb") as stream:
            yield stream
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise TableError(f"{path} is a damaged gzip file; copy or download it again") from error


def _find_encoding(path: Path, given: str | None) -> str:
    with _opened(path) as stream:
        start = stream.read(4096)
    if given is not None:
        try:
            codecs.lookup(given)
            "".encode(given)  # hex and the like are codecs of bytes
        except (LookupError, TypeError):
            raise TableError(f"{given!r} is no encoding; try utf-8, utf-16 or cp1252") from None
        return "utf-8-sig" if given.lower().replace("_", "-") in ("utf-8", "utf8") else given
    if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    if start.startswith(b"PK\x03\x04"):
        raise TableError(f"{path} is an Excel workbook or a zip file; save the table as CSV")
    if b"\x00" in start:
        raise TableError(f"{path} is not a text file; its name should end in the format it holds")
    return "utf-8-sig"


def _blocks(path: Path, stream: Any, encoding: str) -> Iterator[bytes]:
    """The file as UTF-8, a few whole lines at a time."""
    decoder = codecs.getincrementaldecoder(encoding)()
    rest = b""
    try:
        while chunk := stream.read(CHUNK):
            text = rest + decoder.decode(chunk).encode()
            cut = text.rfind(b"\n") + 1 or text.rfind(b"\r", 0, -1) + 1  # not between \r and \n
            rest = text[cut:]
            if len(rest) > LONGEST_LINE:
                raise TableError(
                    f"{path} has a line of more than {LONGEST_LINE >> 20} MB; a table has one row "
                    "on each line"
                )
            if cut:
                yield text[:cut]
        rest += decoder.decode(b"", final=True).encode()
    except UnicodeDecodeError as error:
        raise _NotUnicode(
            f"{path} is not {encoding.removesuffix('-sig').upper()} text (byte "
            f"0x{error.object[error.start]:02x}); save it as UTF-8 or name its --encoding"
        ) from error
    except UnicodeError as error:
        raise TableError(f"{path} cannot be read as {encoding}: {error}") from error
    if rest:
        yield rest + b"\n"


def _rows(parts: Iterator[bytes], layout: TextLayout) -> Iterator[bytes]:
    """The blocks below the header, as the parser wants them."""
    above = layout.lines_above
    for block in parts:
        if above:
            ends = [found.end() for found in islice(_LINE_END_BYTES.finditer(block), above)]
            above -= len(ends)
            block = block[ends[-1] :] if not above and ends else b"" if above else block
        if layout.remark:
            mark = layout.remark.encode()
            block = b"".join(x for x in block.splitlines(True) if not x.startswith(mark))
        yield _single_blanks(block) if layout.delimiter == " " else block


def _single_blanks(block: bytes) -> bytes:
    """Runs of blanks outside quotes become one, and none are left at the ends of a line.

    Examples
    --------
    >>> _single_blanks(b'  a   "b  c" 1 \\n')
    b'a "b  c" 1\\n'
    """
    pieces = block.split(b'"')
    pieces[::2] = [re.sub(rb"[ \t]+", b" ", piece) for piece in pieces[::2]]
    return re.sub(rb" ?(\r\n|\n|\r) ?", rb"\1", b'"'.join(pieces)).lstrip(b" ")


# --- layout -----------------------------------------------------------------------------------


def _find_layout(path: Path, text: str, encoding: str, options: ReadOptions) -> TextLayout:
    lines, remark = _first_lines(text)
    if not lines:
        raise TableError(f"{path} is empty")
    delimiter = _find_delimiter(path, [line for line, _, _ in lines], options.delimiter)
    rows = [_split(line, delimiter) for line, _, _ in lines]
    titles = count_titles(rows)
    lines, rows = lines[titles:], rows[titles:]
    skipped = lines[0][1]
    notes = [lines_skipped(skipped)] if skipped and (titles or remark) else []
    decimal = find_decimal(rows[1:] or rows, delimiter, options.decimal)
    header = options.header
    if header is None:
        header = not all(is_number_or_missing(field, decimal) for field in rows[0])
    if not header:
        notes.append("the first line holds numbers, so columns are called V1, V2, ...")
        columns = _text_columns(rows, len(rows[0]), decimal)
        return TextLayout(encoding, delimiter, decimal, None, len(rows[0]), lines[0][1], columns,
                          notes, remark)  # fmt: skip
    if len(rows) == 1:
        raise TableError(f"{path} has a header line but no rows below it")
    names = [name.strip() for name in rows.pop(0)]
    above = lines[0][2]
    if len(rows[0]) == len(names) + 1:  # R's write.table does not name the row names
        names = ["", *names]
    elif more := _further_headers(rows, len(names), decimal):
        headers = [names, *([name.strip() for name in row] for row in rows[:more])]
        names, joined = join_headers(headers)
        rows, above = rows[more:], lines[more][2]
        notes += joined
    columns = _text_columns(rows, len(names), decimal)
    return TextLayout(encoding, delimiter, decimal, names, len(names), above, columns, notes,
                      remark)  # fmt: skip


def _first_lines(text: str) -> tuple[list[tuple[str, int, int]], str]:
    """Lines that are not blank, with the lines of the file before and up to their end; the mark of
    remarks, which are left out."""
    pieces = _LINE_END.split(text)
    if pieces[0].count('"') % 2:  # a name that holds a line end
        stop = next((i for i, x in enumerate(pieces[1:SAMPLE_LINES], 1) if x.count('"') % 2), 0)
        pieces = ["\n".join(pieces[: stop + 1]), *pieces[stop + 1 :]]
    lines: list[tuple[str, int, int]] = []
    remark, end = "", 0
    for line in pieces:
        begin, end = end, end + 1 + line.count("\n")
        if not lines and line.startswith(REMARK):
            remark = REMARK
        elif line.strip() and not (remark and line.startswith(remark)):
            lines.append((line, begin, end))
    return lines[:SAMPLE_LINES], remark


def _split(line: str, delimiter: str) -> list[str]:
    """The fields of one line.

    Examples
    --------
    >>> _split('a,"b, c",', ",")
    ['a', 'b, c', '']
    """
    if delimiter == " ":
        line = " ".join(line.split())
    if '"' not in line:
        return line.split(delimiter)
    end = re.escape(delimiter)
    field = re.compile(rf'\s*("(?:[^"]|"")*")[^{end}]*{end}|([^{end}]*){end}')
    found = field.findall(line + delimiter)
    return [quoted[1:-1].replace('""', '"') if quoted else bare for quoted, bare in found]


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


def _further_headers(rows: list[list[str]], width: int, decimal: str) -> int:
    """How many of the first rows are further lines of names, such as units."""
    for more in range(MOST_HEADERS - 1, 0, -1):
        above, below = rows[:more], rows[more:]
        if all(len(row) == width and _is_header(row, below, decimal) for row in above):
            return more
    return 0


def _is_header(first: list[str], others: list[list[str]], decimal: str) -> bool:
    """Whether a row has words in most columns in which all others have numbers."""
    others = [row for row in others if len(row) == len(first)]
    words = [j for j, field in enumerate(first)
             if not is_number_or_missing(field, decimal) and not is_mark(field)]  # fmt: skip
    if len(others) < 2 or len(words) < 2:
        return False
    numeric = [
        j
        for j, column in enumerate(zip(*others, strict=True))
        if any(as_float(field.strip(), decimal) is not None for field in column)
        and all(is_number_or_missing(field, decimal) or is_mark(field) for field in column)
    ]
    found = len(set(words).intersection(numeric))
    return found >= 2 and 2 * found > len(numeric)


def _text_columns(rows: list[list[str]], n_fields: int, decimal: str) -> frozenset[int]:
    """Columns with words in the first lines; names made of digits would lose their zeros."""
    whole = [row for row in rows if len(row) == n_fields]
    return frozenset(
        j
        for j, fields in enumerate(zip(*whole, strict=True))
        if not all(is_number_or_missing(field, decimal) for field in fields) or are_padded(fields)
    )


def _column_names(path: Path, layout: TextLayout) -> list[str]:
    names = layout.names or [f"V{j + 1}" for j in range(layout.n_fields)]
    if names.count("") > 1:  # delimiters at the end of the lines
        names = [name or (f"V{j + 1}" if j else "") for j, name in enumerate(names)]
    repeated = [name for name, times in Counter(names).items() if times > 1]
    if repeated:
        raise TableError(f"{path} has more than one column called {repeated[0]!r}; rename them")
    return names


# --- parsing ----------------------------------------------------------------------------------


def _parse(
    path: Path, parts: Iterator[bytes], layout: TextLayout, names: list[str]
) -> tuple[np.ndarray, dict[int, list[str | None]]]:
    """Numbers (n, p) of the columns that hold nothing else, and the others as text."""
    columns = [str(j) for j in range(layout.n_fields)]
    text = set(layout.text_columns) | {j for j, name in enumerate(names) if may_name_rows(name)}
    out = _Columns(layout.n_fields, text, layout.decimal)
    stream = _Stream(parts)
    csv, arrow = require("pyarrow.csv", "cli"), require("pyarrow", "cli")
    wrong: list[Any] = []

    def refuse(row: Any) -> str:
        wrong.append(row)
        return "error"

    try:
        with csv.open_csv(
            io.BufferedReader(stream, CHUNK),
            csv.ReadOptions(column_names=columns, use_threads=False, block_size=LONGEST_LINE),
            csv.ParseOptions(
                delimiter=layout.delimiter,
                newlines_in_values=True,
                ignore_empty_lines=layout.n_fields > 1,
                invalid_row_handler=refuse,
            ),
            csv.ConvertOptions(
                column_types=dict.fromkeys(columns, arrow.string()),
                strings_can_be_null=True,
                null_values=[""],
            ),
        ) as reader:
            for batch in reader:
                out.add(path, batch)
    except arrow.ArrowInvalid as error:
        if wrong:
            row = wrong[0]
            sign = DELIMITERS.get(layout.delimiter, layout.delimiter)
            raise TableError(
                f"line {_line_number(path, layout, out.n_rows, row.text)} of {path} has "
                f"{row.actual_columns} fields where {row.expected_columns} were expected "
                f"({sign}-separated); the file may be damaged or use another --delimiter"
            ) from None
        if "Empty CSV" not in str(error):
            raise TableError(f"{path} cannot be read as a table: {error}") from error
    numbers, texts = out.finished()
    if stream.quotes % 2 and any("\n" in (t or "") for column in texts.values() for t in column):
        raise TableError(f"{path} cannot be read as a table: a quote is opened and never closed")
    return numbers, texts


def _line_number(path: Path, layout: TextLayout, rows: int, text: str) -> int:
    """The line of the file in which a row below the first `rows` begins."""
    first = text.splitlines()[0].strip().encode()
    number, seen = 0, 0
    with _opened(path) as stream:
        for block in _blocks(path, stream, layout.encoding):
            for line in _LINE_END_BYTES.split(block)[:-1]:
                number += 1
                seen += number > layout.lines_above and bool(line.strip())
                line = _single_blanks(line) if layout.delimiter == " " else line
                if seen > rows and line.strip() == first:
                    return number
    return number


class _Columns:
    """Batches of text columns, turned into numbers where they are."""

    def __init__(self, n_fields: int, text: set[int], decimal: str) -> None:
        self.arrow, self.compute = require("pyarrow", "cli"), require("pyarrow.compute", "cli")
        self.decimal, self.n_rows = decimal, 0
        self.numbers = np.empty((0, n_fields))
        self.texts: dict[int, list[str | None]] = {j: [] for j in sorted(text)}

    def add(self, path: Path, batch: Any) -> None:
        """Append a batch; a column in which a word turns up becomes text."""
        n, more = self.n_rows, batch.num_rows
        if n + more > len(self.numbers):
            size = max(n + more, int(1.5 * n))
            needed = 8.0 * size * self.numbers.shape[1]
            if needed > machine_memory():
                raise TableError(
                    f"{path} needs more than {needed / 1e9:.0f} GB of memory to be read; store the "
                    "table as Parquet, which is read in blocks"
                )
            self.numbers.resize((size, self.numbers.shape[1]), refcheck=False)
        block = np.full((more, self.numbers.shape[1]), np.nan)
        for j, column in enumerate(batch.columns):
            if j not in self.texts:
                numbers = self._numbers(column)
                if numbers is not None:
                    block[:, j] = numbers
                    continue
                self.texts[j] = [_spelled(v, self.decimal) for v in self.numbers[:n, j].tolist()]
            self.texts[j] += column.to_pylist()
        self.numbers[n : n + more] = block
        self.n_rows += more

    def _numbers(self, column: Any) -> np.ndarray | None:
        """A batch of a column as floats, or None if it holds anything but numbers."""
        arrow, compute = self.arrow, self.compute
        if self.decimal == ",":
            if compute.any(compute.match_substring(column, ".")).as_py():
                return None
            column = compute.replace_substring(column, ",", ".")
        for clean in (False, True):
            if clean:
                column = compute.utf8_trim_whitespace(column)
                missing = compute.is_in(column, value_set=arrow.array(SURE_SPELLINGS))
                column = compute.if_else(missing, None, column)
            try:
                return column.cast(arrow.float64()).to_numpy(zero_copy_only=False)
            except arrow.ArrowInvalid:
                pass
        return None

    def finished(self) -> tuple[np.ndarray, dict[int, list[str | None]]]:
        """All rows; blank lines at the end of a single column are no rows."""
        n = self.n_rows
        if self.numbers.shape[1] == 1:
            while n and (not self.texts[0][n - 1] if 0 in self.texts
                         else np.isnan(self.numbers[n - 1, 0])):  # fmt: skip
                n -= 1
        self.numbers.resize((n, self.numbers.shape[1]), refcheck=False)
        for j in self.texts:
            self.numbers[:, j] = np.nan
        return self.numbers, {j: column[:n] for j, column in self.texts.items()}


def _spelled(value: float, decimal: str) -> str | None:
    if np.isnan(value):
        return None
    return repr(value).removesuffix(".0").replace(".", decimal)


class _Stream(io.RawIOBase):
    """Blocks of bytes as a file; counts the quotes that go through."""

    def __init__(self, parts: Iterator[bytes]) -> None:
        self._parts, self._rest, self.quotes = parts, memoryview(b""), 0

    def readable(self) -> bool:
        return True

    def readinto(self, out: Any) -> int:
        while not self._rest:
            block = next(self._parts, None)
            if block is None:
                return 0
            self.quotes += block.count(b'"')
            self._rest = memoryview(block)
        size = min(len(out), len(self._rest))
        out[:size] = self._rest[:size]
        self._rest = self._rest[size:]
        return size
