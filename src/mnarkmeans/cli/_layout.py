"""How a text file is written, told from its first lines: encoding, delimiter, decimals, header."""

from __future__ import annotations

import codecs
import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from ._errors import OtherEncoding, UserError
from ._headers import MOST_HEADERS, joined_headers, titles_above, told_of_titles
from ._lines import blocks, opened
from ._marks import is_mark, is_sure_mark
from ._numbering import are_padded
from ._options import Rereading
from ._written import as_float, decimal_sign

DELIMITERS = {"\t": "tab", ";": "semicolon", ",": "comma", "|": "bar", " ": "blank"}
NAMED_DELIMITERS = {"tab": "\t", "\\t": "\t", "comma": ",", "semicolon": ";", "space": " "}
LINES_OF_SAMPLE = 64
REMARK = "!"  # of the series matrices of GEO
UNDER_TITLES = 0.9  # how sure a delimiter is that the first lines do not have
BYTES_OF_SAMPLE, FEWEST_LINES = 1 << 20, 8  # of wide tables fewer lines tell enough
_LINE_END = re.compile(r"\r\n|\n|\r")


@dataclass(frozen=True)
class TextLayout:
    """How a text file is written."""

    encoding: str
    delimiter: str
    decimal: str
    header: list[str] | None  # None: the first line already holds numbers
    n_fields: int
    names_in_front: bool  # R's write.table: the header has one field less than the rows
    lines_above: int  # the rows: the header and blank lines before it
    words: tuple[int, ...]  # columns in which the first lines have something else than numbers
    told: tuple[str, ...] = ()  # what was done about lines above the rows
    remark: str = ""  # what lines begin with that are no rows, wherever they stand


class Line(NamedTuple):
    """A line that is not blank, and how many lines of the file lie before it and up to its end."""

    text: str
    begin: int
    end: int


def find_layout(path: Path, reading: Rereading) -> TextLayout:
    """Read the first lines and say how the file is written."""
    encoding = find_encoding(path, reading.encoding)
    lines, remark = _first_lines(path, encoding)
    if not lines:
        raise UserError(f"{path} is empty")
    delimiter = find_delimiter(path, [line.text for line in lines], reading.delimiter)
    rows = [split_line(line.text, delimiter) for line in lines]
    titles = titles_above(rows)
    lines, rows = lines[titles:], rows[titles:]
    passed = lines[0].begin
    told = told_of_titles(passed) if passed and (titles or remark) else []
    decimal = find_decimal(rows[1:] or rows, delimiter, reading.decimal)
    header = reading.header
    if header is None:
        header = not all(is_number_or_missing(field, decimal) for field in rows[0])
    names, in_front, above = None, False, lines[0].begin
    if header:
        if len(rows) == 1:
            raise UserError(f"{path} has a header line but no rows below it")
        names = [name.strip() for name in rows.pop(0)]
        in_front = len(rows[0]) == len(names) + 1
        above = lines[0].end
        more = 0 if in_front else _further_names(rows, len(names), decimal)
        if more:
            headers = [names, *([name.strip() for name in row] for row in rows[:more])]
            names, joined = joined_headers(headers)
            rows, above = rows[more:], lines[more].end
            told += joined
    n_fields = len(names) + in_front if names else len(rows[0])
    words = _columns_of_words(rows, n_fields, decimal)
    return TextLayout(
        encoding, delimiter, decimal, names, n_fields, in_front, above, words, tuple(told), remark
    )


def _further_names(rows: list[list[str]], width: int, decimal: str) -> int:
    """How many of the first rows are further lines of names."""
    for more in range(MOST_HEADERS - 1, 0, -1):
        above, below = rows[:more], rows[more:]
        if all(len(row) == width and _names_go_on([row, *below], decimal) for row in above):
            return more
    return 0


def _names_go_on(rows: list[list[str]], decimal: str) -> bool:
    """Whether the first of these rows is a second line of names, such as units.

    It has words where all others have numbers, in most columns.
    """
    first, *others = rows
    others = [row for row in others if len(row) == len(first)]
    if len(others) < 2:
        return False
    measured = [
        j
        for j, column in enumerate(zip(*others, strict=True))
        if any(as_float(field.strip(), decimal) is not None for field in column)
        and all(is_number_or_missing(field, decimal) or is_mark(field) for field in column)
    ]
    words = [
        j for j in measured if not is_number_or_missing(first[j], decimal) and not is_mark(first[j])
    ]
    return len(words) >= 2 and 2 * len(words) > len(measured)


def _columns_of_words(rows: list[list[str]], n_fields: int, decimal: str) -> tuple[int, ...]:
    """Names in digits are words too: as numbers they would lose their zeros."""
    whole = [row for row in rows if len(row) == n_fields]
    return tuple(
        j
        for j, fields in enumerate(zip(*whole, strict=True))
        if not all(is_number_or_missing(field, decimal) for field in fields) or are_padded(fields)
    )


def find_encoding(path: Path, given: str | None) -> str:
    """UTF-8 or UTF-16 by its mark; other encodings must be named."""
    with opened(path) as stream:
        start = stream.read(4096)
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


def is_unicode(path: Path) -> bool:
    """Whether a text file can be read without being told its encoding."""
    try:
        for _ in blocks(path, find_encoding(path, None)):
            pass
    except OtherEncoding:
        return False
    return True


def _first_lines(path: Path, encoding: str) -> tuple[list[Line], str]:
    """Some lines that are not blank and no remarks, and what remarks begin with."""
    text, remark = "", ""
    for block in blocks(path, encoding):
        text += block.decode()
        count = len(_LINE_END.findall(text))
        if count > 2 * LINES_OF_SAMPLE or (len(text) > BYTES_OF_SAMPLE and count > FEWEST_LINES):
            break
    lines: list[Line] = []
    end = 0
    for line in _whole_quotes(_LINE_END.split(text)):
        begin, end = end, end + 1 + len(_LINE_END.findall(line))
        if not lines and line.startswith(REMARK):
            remark = REMARK
        elif line.strip() and not (remark and line.startswith(remark)):
            lines.append(Line(line, begin, end))
    return lines[:LINES_OF_SAMPLE], remark


def _whole_quotes(lines: list[str]) -> list[str]:
    """A quoted field may hold line ends: the first line is what lies between closed quotes."""
    if lines[0].count('"') % 2 == 0:
        return lines
    for stop in range(1, min(len(lines), LINES_OF_SAMPLE)):
        if lines[stop].count('"') % 2:
            return ["\n".join(lines[: stop + 1]), *lines[stop + 1 :]]
    return lines


def split_line(line: str, delimiter: str) -> list[str]:
    """The fields of one line.

    Examples
    --------
    >>> split_line('a,"b, c",', ",")
    ['a', 'b, c', '']
    """
    if delimiter == " ":
        line, delimiter = " ".join(line.split()), " "
    if '"' not in line:
        return line.split(delimiter)
    fields = []
    for quoted, bare in _field(delimiter).findall(line + delimiter):
        fields.append(quoted[1:-1].replace('""', '"') if quoted else bare)
    return fields


def _field(delimiter: str) -> re.Pattern[str]:
    """A field and the delimiter after it: within quotes, or bare."""
    end = re.escape(delimiter)
    return re.compile(rf'\s*("(?:[^"]|"")*")[^{end}]*{end}|([^{end}]*){end}')


def _evenness(lines: list[str], delimiter: str) -> tuple[float, int]:
    """Share of lines with the commonest field count, and that count; (0, 1) if it splits none.

    It counts less where the first lines have one field only: they may be titles, or this is not
    what separates the columns.
    """
    counts = [len(split_line(line, delimiter)) for line in lines]
    commonest, times = Counter(counts[1:] or counts).most_common(1)[0]
    if commonest < 2:
        return 0.0, 1
    first = next((i for i, count in enumerate(counts[:-1]) if count > 1), 0)
    if commonest == 2 or not first:
        header_fits = counts[0] in (commonest, commonest - 1)
        return times / len(counts[1:] or counts) * (1.0 if header_fits else 0.5), commonest
    below = counts[first:]
    return UNDER_TITLES * below.count(commonest) / len(below), commonest


def find_delimiter(path: Path, lines: list[str], given: str | None) -> str:
    """The delimiter that splits the lines most evenly, or the one that was given."""
    scores = {d: _evenness(lines, d) for d in DELIMITERS}
    # A blank may be part of names that all rows have: any other that splits as evenly goes first.
    best = max(DELIMITERS, key=lambda d: (scores[d][0], d != " ", scores[d][1]))
    if given is None:
        return best if scores[best][0] > 0 else ","
    given = NAMED_DELIMITERS.get(given.lower(), given)
    if len(given) != 1 or not given.isascii() or given in '"\r\n':
        raise UserError(f"--delimiter must be one character (or tab, comma, ...), not {given!r}")
    splits_nothing = all(len(split_line(line, given)) < 2 for line in lines)
    if splits_nothing and scores[best][0] > 0:
        raise UserError(
            f"{path} has no {given!r} between its columns; "
            f"it looks {DELIMITERS[best]}-separated: leave --delimiter out"
        )
    return given


def is_number_or_missing(field: str, decimal: str = ".") -> bool:
    """Whether a field can stand in a numeric column, whatever the column."""
    return is_sure_mark(field) or as_float(field.strip(), decimal) is not None


def find_decimal(rows: list[list[str]], delimiter: str, given: str | None) -> str:
    """The decimal sign that more columns use, or the one that was given.

    1,500 may mean thousands: it counts only where semicolons separate, as they do where the comma
    is a decimal sign.

    Examples
    --------
    >>> find_decimal([["1,5", "x"], ["2,25", "y"]], "|", None)
    ','
    >>> find_decimal([["1,500"]], "|", None), find_decimal([["1,500"]], ";", None)
    ('.', ',')
    """
    if given is not None:
        return given
    columns: list[set[str]] = [set() for _ in range(max(map(len, rows)))]
    for row in rows:
        for signs, field in zip(columns, row, strict=False):
            sign = decimal_sign(field, thousands=delimiter != ";")
            if sign is not None:
                signs.add(sign)
    commas = sum("," in signs for signs in columns)
    return "," if commas > sum("." in signs for signs in columns) else "."
