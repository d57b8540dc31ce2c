"""The lines above the rows of a table, in a text file or a sheet.

Plasma study 12                  a title: skipped
Date: | 2024-03-01               so is a word with its value, beside a table of more columns
      | sugars  |         |      groups, which extend to the right
id    | glucose | lactate |      names
      | mM      | mM      |      units
id    | How sweet was it?        descriptions, longer than the names: skipped
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from ._numbers import as_float
from ._words import is_statistic

MOST_HEADERS = 3  # lines of names: groups, names, units
LONGEST_UNIT = 12  # letters on average; longer lines below the names describe them


def count_titles(rows: Sequence[Sequence[Any]]) -> int:
    """How many lines at the top have one filled field, or two in front, where others have more."""
    if not rows:
        return 0
    usual = Counter(map(len, rows)).most_common(1)[0][0]
    count = 0
    while usual > 2 and count < len(rows) - 2 and _is_title(rows[count], usual):
        count += 1
    return count


def _is_title(row: Sequence[Any], usual: int) -> bool:
    filled = [j for j, text in enumerate(row) if text is not None and str(text).strip()]
    number = bool(filled) and as_float(str(row[filled[0]]).strip()) is not None
    if len(filled) == 2:
        return filled == [0, 1] and usual > 4 and (not number or len(row) == 2)
    return len(filled) == 1 and not number


def lines_skipped(count: int, where: str = "above the table") -> str:
    """A note on lines that are no part of the table."""
    return f"{count} line{'s were' if count > 1 else ' was'} skipped {where}"


def join_headers(
    lines: list[list[str]], spans: dict[tuple[int, int], int] | None = None
) -> tuple[list[str], list[str]]:
    """One name for each column from several lines of names, and notes on what was done.

    spans : how many columns a merged cell covers, by line and column, where that is known

    Examples
    --------
    >>> join_headers([["", "sugars", "", "acids"], ["id", "a", "b", "c"], ["", "mM", "mM", "g"]])[0]
    ['id', 'sugars a mM', 'sugars b mM', 'acids c g']
    """
    names, *others = lines
    notes = []
    if all(names) and len(set(names)) == len(names):
        kept = [line for line in others if not _describes(line, names)]
        if len(kept) < len(others):
            example = next(filter(None, others[-1]))[:30]
            where = f"below the names, such as {example!r}"
            notes.append(lines_skipped(len(others) - len(kept), where))
        lines = [names, *kept]
    if len(lines) == 1:
        return names, notes
    joined = _joined(lines, spans or {})
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


def _joined(lines: list[list[str]], spans: dict[tuple[int, int], int]) -> list[str]:
    upper, lower = lines[0], lines[1]
    if len(lines) > 2:
        below = {(line - 1, j): width for (line, j), width in spans.items() if line}
        lower = _joined(lines[1:], below)
    if sum(not name for name in upper[1:]) > sum(not name for name in lower[1:]):
        upper = _extended(upper, lower, {j: w for (line, j), w in spans.items() if line == 0})
    return [" ".join(filter(None, pair)) for pair in zip(upper, lower, strict=True)]


def _extended(upper: list[str], lower: list[str], widths: dict[int, int]) -> list[str]:
    """Groups over all of their columns: the merged cell's, or up to the next group or statistic."""
    out, group, end = [], "", len(upper)
    for j, (above, below) in enumerate(zip(upper, lower, strict=True)):
        if above:
            group, end = above, j + widths.get(j, len(upper))
        elif j >= end or (j not in widths and is_statistic(below)):
            group = ""
        out.append(group if below else above)
    return out
