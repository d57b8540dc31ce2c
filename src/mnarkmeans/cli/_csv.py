"""Text tables that people open in spreadsheets.

Ids and names are written as they are, because they are keys by which tables are joined. A name that
begins with = + - or @ is a formula to a spreadsheet; where that matters, `safe` puts an apostrophe
before it, which the spreadsheet does not show.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable
from itertools import chain
from pathlib import Path
from typing import Any

FORMULA = ("=", "+", "-", "@", "\t", "\r")


def no_formula(value: Any) -> Any:
    """The value, with an apostrophe before a text that a spreadsheet would calculate.

    Examples
    --------
    >>> no_formula("=1+1"), no_formula("gene"), no_formula(-1.5)
    ("'=1+1", 'gene', -1.5)
    """
    return f"'{value}" if isinstance(value, str) and value.startswith(FORMULA) else value


def write_csv(
    path: Path, header: Iterable[Any], rows: Iterable[Iterable[Any]], *, safe: bool = False
) -> None:
    """One line for the header, one for each row; None is an empty field."""
    with open(path, "w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        for row in chain([header], rows):
            writer.writerow([no_formula(value) for value in row] if safe else row)


def without_formulas(frame: Any) -> Any:
    """The pandas frame with `no_formula` in its names and its columns of text."""
    out = frame.rename(columns=no_formula)
    for name, kind in out.dtypes.items():
        if str(kind) in ("object", "string", "str", "category"):
            out[name] = [no_formula(value) for value in out[name]]
    return out
