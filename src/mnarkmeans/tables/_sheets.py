"""A sheet of an Excel workbook becomes a frame.

Where no sheet is named, the first one that holds a table is read. openpyxl streams the cells; the
merged cells above the table, which say how far a group of columns extends, are taken from the
workbook itself, because openpyxl knows them only after loading everything.
"""

from __future__ import annotations

import re
import zipfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .._io import require
from ._headers import MOST_HEADERS, count_titles, join_headers, lines_skipped
from ._numbers import as_float, find_decimal, is_mark
from ._table import TableError, unknown_name
from ._words import may_name_rows

SEARCHED_LINES = 20  # how far down the first row of numbers may be
_MERGED = re.compile(rb'<mergeCell ref="([A-Z]+)(\d+):([A-Z]+)(\d+)"')
Spans = dict[tuple[int, int], int]  # columns a merged cell covers, by line and column


@dataclass(frozen=True)
class Sheet:
    """A sheet as a pandas frame, its name, and notes on its header."""

    frame: Any
    name: str
    decimal: str
    notes: list[str]


def read_sheet(path: Path, wanted: str | None, decimal: str | None) -> Sheet:
    """Read the sheet of this name or number, or the first that holds a table."""
    openpyxl = require("openpyxl", "cli")
    book = None
    try:
        book = openpyxl.load_workbook(path, read_only=True, data_only=True)
        name, names, body, notes = _first_table(path, book, wanted)
    except TableError:
        raise
    except Exception as error:  # zip, XML and openpyxl have many kinds for one cause
        raise TableError(f"{path} is not a readable .xlsx file; save it again") from error
    finally:
        if book is not None:
            book.close()
    others = [other for other in book.sheetnames if other != name]
    if others and not wanted:
        notes.insert(0, f"sheet {name!r} was read; the workbook also has {others[0]!r}"
                        + (" and others" if others[1:] else ""))  # fmt: skip
    frame = require("pandas", "cli").DataFrame(body, columns=names, dtype=object)
    texts = [[cell if isinstance(cell, str) else "" for cell in row] for row in body]
    return Sheet(frame, name, find_decimal(texts or [[]], "", decimal), notes)


def _first_table(
    path: Path, book: Any, wanted: str | None
) -> tuple[str, list[str], list[list[Any]], list[str]]:
    """The sheet that was named, or the first with a table; what is wrong with the first one."""
    names = book.sheetnames
    if wanted and wanted not in names:
        if not (wanted.isdigit() and 1 <= int(wanted) <= len(names)):
            raise unknown_name("sheet", wanted, names)
        wanted = names[int(wanted) - 1]
    first: TableError | None = None
    for name in [wanted] if wanted else names:
        sheet = book[name]
        if not hasattr(sheet, "iter_rows"):  # a chart
            continue
        sheet.reset_dimensions()  # some programs write a size that is not true
        rows = [list(row) for row in sheet.iter_rows(values_only=True)]
        try:
            return name, *_parted(path, rows, _merged_cells(path, name))
        except TableError as error:
            first = first or error
    raise first or TableError(f"{path} has no sheets")


def _merged_cells(path: Path, sheet: str) -> Spans:
    """The width of every merged cell of a sheet, by its line and column, from 0."""
    with zipfile.ZipFile(path) as archive:
        book = archive.read("xl/workbook.xml").decode(errors="replace")
        links = archive.read("xl/_rels/workbook.xml.rels").decode(errors="replace")
        tags = re.findall(r"<(?:\w+:)?sheet [^>]*>", book)
        ids = {_attribute(tag, "name"): _attribute(tag, r"\w+:id") for tag in tags}
        relations = re.findall(r"<(?:\w+:)?Relationship [^>]*>", links)
        targets = {_attribute(tag, "Id"): _attribute(tag, "Target") for tag in relations}
        target = targets.get(ids.get(sheet, ""), "")
        inside = target.lstrip("/") if target.startswith("/") else f"xl/{target}"
        if inside not in archive.namelist():
            return {}
        with archive.open(inside) as stream:
            tail = b""
            while chunk := stream.read(1 << 20):  # merged cells are written behind the rows
                tail = (tail + chunk)[-(1 << 21) :]
    return {
        (int(top) - 1, _column(left)): _column(right) - _column(left) + 1
        for left, top, right, _ in _MERGED.findall(tail)
    }


def _attribute(tag: str, name: str) -> str:
    found = re.search(rf'\s{name}="([^"]*)"', tag)
    return found[1] if found else ""


def _column(letters: bytes) -> int:
    number = 0
    for letter in letters[:3]:
        number = 26 * number + letter - 64
    return number - 1


def _filled(cell: Any) -> bool:
    return cell is not None and str(cell).strip() != ""


def _parted(
    path: Path, rows: list[list[Any]], merged: Spans
) -> tuple[list[str], list[list[Any]], list[str]]:
    """Names of the columns, the rows below them, and notes."""
    lines = [i for i, row in enumerate(rows) if any(map(_filled, row))]
    if not lines:
        raise TableError(f"{path} has nothing on this sheet; choose another one with --sheet")
    width = max(len(rows[i]) for i in lines)
    full = [rows[i] + [None] * (width - len(rows[i])) for i in lines]
    used = [j for j in range(width) if any(_filled(row[j]) for row in full)]
    rows = [[row[j] for j in used] for row in full]
    skipped = count_titles(rows)
    rows, lines = rows[skipped:], lines[skipped:]
    begin = next((i for i, row in enumerate(rows[:SEARCHED_LINES]) if _holds_numbers(row)), None)
    if begin is None:
        raise TableError(
            f"{path} has no row of numbers in its first {SEARCHED_LINES} lines; choose another "
            "sheet with --sheet, or save the table alone as CSV"
        )
    first = next(cell for cell in rows[begin] if _filled(cell))
    if isinstance(first, str) and may_name_rows(first):
        begin += 1  # samples are called 1, 2, 3
    names_at = next((i for i, row in enumerate(rows[:SEARCHED_LINES]) if _names_all(row)), -1)
    if names_at >= begin:  # what is known about the samples stands above their names
        skipped, begin = skipped + names_at, 1
        rows, lines = rows[names_at:], lines[names_at:]
    headers = [i for i in range(begin) if sum(map(_filled, rows[i])) > 1 or len(used) <= 2]
    skipped += begin - len(headers)
    if len(headers) > MOST_HEADERS:
        raise TableError(
            f"{path} has {len(headers)} lines above its first row of numbers; leave only the "
            f"names there, in at most {MOST_HEADERS} lines"
        )
    notes = [lines_skipped(skipped)] if skipped else []
    if not headers:
        names = [f"V{j + 1}" for j in range(len(used))]
        notes.append("the first line holds numbers, so columns are called V1, V2, ...")
    else:
        texts = [["" if not _filled(c) else str(c).strip() for c in rows[i]] for i in headers]
        at = {lines[i]: k for k, i in enumerate(headers)}
        spans = {
            (at[line], used.index(j)): sum(j <= u < j + wide for u in used)
            for (line, j), wide in merged.items()
            if line in at and j in used
        }
        names, joined = join_headers(texts, spans)
        notes += joined
    repeated = [name for name, times in Counter(names).items() if times > 1]
    if repeated:
        what = f"called {repeated[0]!r}" if repeated[0] else "without a name"
        raise TableError(f"{path} has more than one column {what}; rename them")
    return names, rows[begin:], notes


def _holds_numbers(row: list[Any]) -> bool:
    """A row of the table: numbers and marks but for some names."""
    numbers = sum(map(_is_number, row))
    others = sum(not _is_number(c) and _filled(c) and not is_mark(str(c)) for c in row)
    return numbers >= 1 and numbers >= 0.3 * (numbers + others)


def _names_all(row: list[Any]) -> bool:
    """A name for every column, no two alike and no number among them."""
    texts = all(isinstance(cell, str) and _filled(cell) and not _is_number(cell) for cell in row)
    return texts and len(set(row)) == len(row) > 2


def _is_number(cell: Any) -> bool:
    if isinstance(cell, bool) or not _filled(cell):
        return False
    if isinstance(cell, (int, float)):
        return True
    return any(as_float(str(cell).strip(), sign) is not None for sign in ".,")
