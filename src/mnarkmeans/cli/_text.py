"""A text file becomes a frame.

Nothing is guessed in silence: the encoding must be UTF-8 (or UTF-16 with its mark) unless given;
the delimiter is the one that splits the first lines most evenly; every row must have as many
fields as the others, because a reader that pads short rows turns a damaged file into missing data.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import re
import zlib
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, TextIO

from ._errors import UserError

MISSING_WORDS = (
    "", "NA", "N/A", "n/a", "#N/A", "#NA", "<NA>", "NaN", "nan", "NAN", "-NaN", "-nan",
    "null", "NULL", "Null", "None", "none", "Filtered", "filtered", "FILTERED",
)  # fmt: skip

DELIMITERS = {"\t": "tab", ";": "semicolon", ",": "comma", "|": "bar", " ": "blank"}
NAMED_DELIMITERS = {"tab": "\t", "\\t": "\t", "comma": ",", "semicolon": ";", "space": " "}
_WITH_COMMA = re.compile(r"^[+-]?\d+,(\d+)(e[+-]?\d+)?$", re.IGNORECASE)
_WITH_POINT = re.compile(r"^[+-]?\d+\.\d*(e[+-]?\d+)?$", re.IGNORECASE)


@dataclass(frozen=True)
class TextLayout:
    """How a text file is written."""

    encoding: str
    delimiter: str
    decimal: str
    header: list[str] | None  # None: the first line already holds numbers
    n_fields: int
    names_in_front: bool  # R's write.table: the header has one field less than the rows


@contextmanager
def opened(path: Path, encoding: str) -> Iterator[TextIO]:
    """The text of a plain or gzipped file; damage is reported in one sentence."""
    opener: Any = gzip.open if path.suffix.lower() == ".gz" else open
    try:
        with opener(path, "rt", encoding=encoding, newline="") as stream:
            yield stream
    except UnicodeDecodeError as error:
        raise UserError(
            f"{path} is not {encoding.removesuffix('-sig').upper()} text (byte "
            f"0x{error.object[error.start]:02x} cannot be read); save it as UTF-8 or name its "
            "encoding, for example --encoding cp1252 for a file from an older Excel"
        ) from error
    except UnicodeError as error:
        raise UserError(f"{path} cannot be read as {encoding}: {error}") from error
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise UserError(f"{path} is a damaged gzip file; copy or download it again") from error


def first_bytes(path: Path, count: int = 4096) -> bytes:
    """The start of the file, unzipped where it is gzipped."""
    opener: Any = gzip.open if path.suffix.lower() == ".gz" else open
    try:
        with opener(path, "rb") as stream:
            return stream.read(count)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise UserError(f"{path} is a damaged gzip file; copy or download it again") from error


def find_encoding(path: Path, given: str | None) -> str:
    """UTF-8 or UTF-16 by its mark; other encodings must be named."""
    start = first_bytes(path)
    if given is not None:
        try:
            codecs.lookup(given)
        except LookupError:
            raise UserError(f"{given!r} is not an encoding; try utf-8, utf-16 or cp1252") from None
        return "utf-8-sig" if given.lower().replace("_", "-") in ("utf-8", "utf8") else given
    if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    if start.startswith(b"PK\x03\x04"):
        raise UserError(f"{path} is an Excel workbook or a zip file; save the table as CSV (UTF-8)")
    if b"\x00" in start:
        raise UserError(f"{path} is not a text file; its name should end in the format it holds")
    return "utf-8-sig"


def split_line(line: str, delimiter: str) -> list[str]:
    """The fields of one line."""
    if delimiter == " ":
        return line.split()
    return next(csv.reader([line], delimiter=delimiter), [])


def _evenness(lines: list[str], delimiter: str) -> tuple[float, int]:
    """Share of lines with the commonest field count, and that count; (0, 1) if it splits none."""
    counts = [len(split_line(line, delimiter)) for line in lines]
    commonest, times = Counter(counts[1:] or counts).most_common(1)[0]
    if commonest < 2:
        return 0.0, 1
    header_fits = counts[0] in (commonest, commonest - 1)
    return times / len(counts[1:] or counts) * (1.0 if header_fits else 0.5), commonest


def find_delimiter(path: Path, lines: list[str], given: str | None) -> str:
    """The delimiter that splits the lines most evenly, or the one that was given."""
    scores = {d: _evenness(lines, d) for d in DELIMITERS}
    best = max(DELIMITERS, key=lambda d: (scores[d][0], scores[d][1]))
    if given is None:
        return best if scores[best][0] > 0 else ","
    given = NAMED_DELIMITERS.get(given.lower(), given)
    if len(given) != 1:
        raise UserError(f"--delimiter must be one character (or tab, comma, ...), not {given!r}")
    splits_nothing = all(len(split_line(line, given)) < 2 for line in lines)
    if splits_nothing and scores[best][0] > 0:
        raise UserError(
            f"{path} has no {given!r} between its columns; "
            f"it looks {DELIMITERS[best]}-separated: leave --delimiter out"
        )
    return given


def is_number_or_missing(field: str, decimal: str = ".") -> bool:
    """Whether a field can stand in a numeric column."""
    field = field.strip()
    if field in MISSING_WORDS:
        return True
    try:
        float(field.replace(",", ".") if decimal == "," else field)
    except ValueError:
        return False
    return True


def _has_decimal_commas(rows: list[list[str]]) -> bool:
    """Numbers such as 1,5 and none such as 1.5; 1,500 may mean thousands and does not count."""
    fields = [field.strip() for row in rows for field in row]
    commas = [found for field in fields if (found := _WITH_COMMA.match(field))]
    points = any(_WITH_POINT.match(field) for field in fields)
    return not points and any(len(found.group(1)) != 3 for found in commas)


def find_layout(
    path: Path, *, encoding: str | None, delimiter: str | None, header: bool | None
) -> TextLayout:
    """Read the first lines and say how the file is written."""
    codec = find_encoding(path, encoding)
    with opened(path, codec) as stream:
        lines = [s for line in islice(stream, 64) if (s := line.rstrip("\r\n")).strip()]
    if not lines:
        raise UserError(f"{path} is empty")
    separator = find_delimiter(path, lines, delimiter)
    rows = [split_line(line, separator) for line in lines]
    decimal = "," if separator != "," and _has_decimal_commas(rows[1:] or rows) else "."
    if header is None:
        header = not all(is_number_or_missing(field, decimal) for field in rows[0])
    if not header:
        return TextLayout(codec, separator, decimal, None, len(rows[0]), False)
    if len(rows) == 1:
        raise UserError(f"{path} has a header line but no rows below it")
    names = [name.strip() for name in rows[0]]
    in_front = len(rows[1]) == len(names) + 1
    return TextLayout(codec, separator, decimal, names, len(names) + in_front, in_front)


def check_rows(path: Path, layout: TextLayout) -> None:
    """Refuse a file whose rows differ in length, naming the first such line."""
    with opened(path, layout.encoding) as stream:
        skipped_header = layout.header is None
        for number, count in _field_counts(stream, layout.delimiter):
            if not skipped_header:
                skipped_header = True
                continue
            if count != layout.n_fields:
                raise UserError(
                    f"line {number} of {path} has {count} fields where {layout.n_fields} were "
                    f"expected ({DELIMITERS.get(layout.delimiter, layout.delimiter)}-separated); "
                    "the file may be damaged or use another --delimiter"
                )


def _field_counts(stream: TextIO, delimiter: str) -> Iterator[tuple[int, int]]:
    """(line number, number of fields) of every line that is not blank."""
    lines = enumerate(stream, start=1)
    for number, line in lines:
        if not line.strip("\r\n") or not line.strip(" \r\n"):
            continue
        if delimiter == " ":
            yield number, len(line.split())
        elif '"' not in line:
            yield number, line.count(delimiter) + 1
        else:
            # A quoted field may hold delimiters and line ends: from such a line on, a real reader
            # takes what it needs.
            def rest(first: str = line) -> Iterator[str]:
                yield first
                for _, following in lines:
                    yield following

            try:
                yield number, len(next(csv.reader(rest(), delimiter=delimiter)))
            except csv.Error as error:
                raise UserError(f"line {number} cannot be read: {error}") from error


def read_text(
    path: Path,
    *,
    encoding: str | None = None,
    delimiter: str | None = None,
    header: bool | None = None,
    missing_codes: tuple[str, ...] = (),
) -> tuple[Any, TextLayout]:
    """Read a CSV or TSV file into a pandas frame with unique column names.

    Returns
    -------
    (frame, layout)
        The frame, numeric where the file is, and how the file is written.
    """
    import pandas as pd

    layout = find_layout(path, encoding=encoding, delimiter=delimiter, header=header)
    check_rows(path, layout)
    names = layout.header or [f"V{j + 1}" for j in range(layout.n_fields)]
    if layout.names_in_front:
        names = ["", *names]
    repeated = [name for name, times in Counter(names).items() if times > 1]
    if repeated:
        raise UserError(f"{path} has more than one column called {repeated[0]!r}; rename them")
    try:
        frame = pd.read_csv(
            path,
            sep=r"\s+" if layout.delimiter == " " else layout.delimiter,
            header=None,
            names=names,
            index_col=False,
            skiprows=0 if layout.header is None else _header_lines(path, layout),
            encoding=layout.encoding,
            decimal=layout.decimal,
            keep_default_na=False,
            na_values=list(MISSING_WORDS + missing_codes),
            skipinitialspace=True,
            low_memory=False,
            float_precision="round_trip",  # the default parser may miss the last bit
            compression="gzip" if path.suffix.lower() == ".gz" else None,
        )
    except pd.errors.ParserError as error:
        raise UserError(f"{path} cannot be read as a table: {error}") from error
    return frame, layout


def _header_lines(path: Path, layout: TextLayout) -> int:
    """How many physical lines end with the header (blank ones may come first)."""
    with opened(path, layout.encoding) as stream:
        for number, line in enumerate(stream, start=1):
            if line.strip():
                return number
    return 0
