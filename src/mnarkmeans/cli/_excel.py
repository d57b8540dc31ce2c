"""A sheet of an Excel workbook becomes a frame.

People write titles above a table, and names in two lines: groups or units over or under the names
themselves. The lines above the first row of numbers are read so:

    a line with one filled cell      a title, passed over
    the last lines with more         names, joined: groups are spread to the right, units follow

Where no sheet is named, the first one that holds a table is read.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .._io import require
from .._validation import unnamed
from ._errors import UserError, unknown_name
from ._headers import MOST_HEADERS, joined_headers, titles_above, told_of_titles
from ._layout import find_decimal
from ._marks import is_mark
from ._numbering import may_name_rows
from ._written import as_float

LINES_OF_NAMES = 20  # as far down the first row of numbers is looked for


@dataclass(frozen=True)
class Sheet:
    """A sheet as a pandas frame, its name, and what was done about its header."""

    frame: Any
    name: str
    decimal: str
    notes: list[str]


_Parts = tuple[list[str], list[list[Any]], list[str]]  # names, rows, what was done


def read_sheet(path: Path, wanted: str | None, decimal: str | None = None) -> Sheet:
    """Read one sheet: the one of this name or number, or the first that holds a table."""
    openpyxl = require("openpyxl", "cli")
    try:
        book = openpyxl.load_workbook(path, read_only=True, data_only=True)
    except Exception as error:  # zip, XML and openpyxl have many kinds for one cause
        raise UserError(f"{path} is not a readable .xlsx file; save it again") from error
    try:
        name, (names, body, told) = _first_table(path, book, wanted)
    except UserError:
        raise
    except Exception as error:
        raise UserError(f"{path} is not a readable .xlsx file; save it again") from error
    finally:
        book.close()
    others = [other for other in book.sheetnames if other != name]
    notes = [f"sheet {name!r} was read; --sheet takes another"] if others and not wanted else []
    frame = require("pandas", "cli").DataFrame(body, columns=names, dtype=object)
    texts = [[cell if isinstance(cell, str) else "" for cell in row] for row in body]
    return Sheet(frame, name, find_decimal(texts, "", decimal), notes + told)


def _first_table(path: Path, book: Any, wanted: str | None) -> tuple[str, _Parts]:
    """The sheet that was asked for, or the first with a table; the first one's fault is told."""
    asked = [_chosen(book.sheetnames, wanted)] if wanted else book.sheetnames
    first: UserError | None = None
    for name in asked:
        sheet = book[name]
        sheet.reset_dimensions()  # some programs write a size that is not true
        rows = [list(row) for row in sheet.iter_rows(values_only=True)]
        try:
            return name, _parted(path, _trimmed(rows))
        except UserError as error:
            first = first or error
    raise first or UserError(f"{path} has no sheets")


def _chosen(names: list[str], wanted: str) -> str:
    if wanted in names:
        return wanted
    if wanted.isdigit() and 1 <= int(wanted) <= len(names):
        return names[int(wanted) - 1]
    raise unknown_name("sheet", wanted, names)


def _trimmed(rows: list[list[Any]]) -> list[list[Any]]:
    """Without lines and columns that are empty, all lines of one length."""
    rows = [row for row in rows if any(_filled(cell) for cell in row)]
    width = max(map(len, rows), default=0)
    rows = [row + [None] * (width - len(row)) for row in rows]
    used = [j for j in range(width) if any(_filled(row[j]) for row in rows)]
    return [[row[j] for j in used] for row in rows]


def _filled(cell: Any) -> bool:
    return cell is not None and str(cell).strip() != ""


def _parted(path: Path, rows: list[list[Any]]) -> _Parts:
    """Names of the columns, the rows below them, and what was done."""
    if not rows:
        raise UserError(f"{path} has nothing on this sheet; choose another one with --sheet")
    passed = titles_above(rows)
    rows = rows[passed:]
    begin = next((i for i, row in enumerate(rows[:LINES_OF_NAMES]) if _holds_numbers(row)), None)
    if begin is None:
        raise UserError(
            f"{path} has no row of numbers in its first {LINES_OF_NAMES} lines; choose another "
            "sheet with --sheet, or save the table alone as CSV"
        )
    first = next(cell for cell in rows[begin] if _filled(cell))
    if isinstance(first, str) and first.strip() and may_name_rows(first):
        begin += 1  # samples are called 1, 2, 3
    full = next((i for i, row in enumerate(rows[:LINES_OF_NAMES]) if _names_all(row)), -1)
    if full >= begin:  # what is known of the columns stands above their names
        passed, rows, begin = passed + full, rows[full:], 1
    above = rows[:begin]
    headers = [row for row in above if sum(map(_filled, row)) > 1 or len(row) <= 2]
    passed += len(above) - len(headers)
    if len(headers) > MOST_HEADERS:
        raise UserError(
            f"{path} has {len(headers)} lines above its first row of numbers; leave the lines "
            "of names there"
        )
    told = told_of_titles(passed) if passed else []
    if not headers:
        names = unnamed(len(rows[0]))
        told.append("the first line holds numbers, so columns are called V1, V2, ...")
    else:
        lines = [["" if not _filled(c) else str(c).strip() for c in row] for row in headers]
        names, joined = joined_headers(lines)
        told += joined
    _check_names(path, names)
    return names, rows[begin:], told


def _holds_numbers(row: list[Any]) -> bool:
    """A row of the table: a number, and nothing but numbers and marks but for some names."""
    numbers = sum(_is_number(cell) for cell in row)
    others = sum(not _is_number(c) and _filled(c) and not is_mark(str(c)) for c in row)
    return numbers >= 1 and numbers >= 0.3 * (numbers + others)


def _names_all(row: list[Any]) -> bool:
    """A name for every column, no two alike and no number among them."""
    return (
        all(isinstance(cell, str) and _filled(cell) and not _is_number(cell) for cell in row)
        and len(set(row)) == len(row) > 2
    )


def _is_number(cell: Any) -> bool:
    if isinstance(cell, bool) or not _filled(cell):
        return False
    if isinstance(cell, (int, float)):
        return True
    return any(as_float(str(cell).strip(), sign) is not None for sign in ".,")


def _check_names(path: Path, names: list[str]) -> None:
    repeated = [name for name, times in Counter(names).items() if times > 1]
    if repeated:
        what = f"called {repeated[0]!r}" if repeated[0] else "without a name"
        raise UserError(f"{path} has more than one column {what}; rename them")
