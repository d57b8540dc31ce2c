"""The lines above the rows of a table, in a text file or a sheet: titles, and lines of names.

Plasma study 12                  a title, passed over
Date: | 2024-03-01               so is a word with its value, beside a table of more columns
      | sugars  |         |      groups, spread to the right
id    | glucose | lactate |      names
      | mM      | mM      |      units
#!{Type} ...                     what a program tells itself: passed over
id    | How sweet was it?        what the names mean, longer than they are: passed over
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from ._written import as_float

MOST_HEADERS = 3  # lines of names: groups, names, units
A_UNIT, LONGER = 12, 1.5  # letters; times as long as the names: then they are sentences about them


def titles_above(rows: Sequence[Sequence[Any]]) -> int:
    """How many lines at the top have one filled field, or two in front, where others have more."""
    if not rows:
        return 0
    usual = Counter(map(len, rows)).most_common(1)[0][0]
    count = 0
    while usual > 2 and count < len(rows) - 2 and _is_title(rows[count], usual):
        count += 1
    return count


def _is_title(row: Sequence[Any], usual: int) -> bool:
    filled = [j for j, field in enumerate(row) if field is not None and str(field).strip()]
    number = bool(filled) and as_float(str(row[filled[0]]).strip()) is not None
    if len(filled) == 2:
        return filled == [0, 1] and usual > 4 and (not number or len(row) == 2)
    return len(filled) == 1 and not number


def told_of_titles(lines: int) -> list[str]:
    """That lines were passed over."""
    return [f"{_lines_were(lines, 'above the table')} passed over"]


def _lines_were(count: int, where: str) -> str:
    return f"{count} line{'s' if count > 1 else ''} {where} {'were' if count > 1 else 'was'}"


def joined_headers(lines: list[list[str]]) -> tuple[list[str], list[str]]:
    """One name for each column, and what was done, in words.

    Examples
    --------
    >>> joined_headers([["id", "a"], ["", "mM"]])
    (['id', 'a mM'], ["two lines of names were joined, such as 'a mM'"])
    """
    names, *others = lines
    told = []
    if all(names) and len(set(names)) == len(names):
        kept = [line for line in others if not _speaks_of(line, names)]
        passed = len(others) - len(kept)
        if passed:
            example = next(filter(None, others[-1]))[:30]
            told.append(f"{_lines_were(passed, 'below the names')} passed over: {example!r}")
        lines = [names, *kept]
    found = _joined(lines)
    return found, told + _told_of_joined(lines, found)


def _speaks_of(line: list[str], names: list[str]) -> bool:
    """Whether a line below complete names is no part of them."""
    words = [text for text in line if text]
    if words and words[0].startswith("#"):
        return True
    return bool(words) and _mean_length(words) > max(A_UNIT, LONGER * _mean_length(names))


def _mean_length(texts: list[str]) -> float:
    return sum(map(len, texts)) / len(texts)


def _joined(lines: list[list[str]]) -> list[str]:
    """One name for each column; a name above several stands over those to its right.

    Examples
    --------
    >>> _joined([["", "sugars", "", "acids"], ["id", "a", "b", "c"], ["", "mM", "mM", "g"]])
    ['id', 'sugars a mM', 'sugars b mM', 'acids c g']
    """
    if len(lines) == 1:
        return lines[0]
    if len(lines) > 2:
        return _joined([lines[0], _joined(lines[1:])])
    upper, lower = lines
    gaps, gaps_below = (sum(not name for name in line[1:]) for line in (upper, lower))
    if gaps > gaps_below:  # groups over names
        spread, last = [], ""
        for above, below in zip(upper, lower, strict=True):
            last = above or last
            spread.append(last if below else above)
        upper = spread
    return [" ".join(part for part in pair if part) for pair in zip(upper, lower, strict=True)]


def _told_of_joined(lines: list[list[str]], names: list[str]) -> list[str]:
    """That lines of names were joined, with a name that came of it."""
    if len(lines) < 2:
        return []
    written = {name for line in lines for name in line}
    example = next((name for name in names if name not in written), names[-1])
    many = ("two", "three")[len(lines) - 2]
    return [f"{many} lines of names were joined, such as {example!r}"]
