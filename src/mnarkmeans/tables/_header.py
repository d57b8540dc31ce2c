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
from collections.abc import Callable
from dataclasses import dataclass, field

from ._cells import as_float, is_mark, is_number_or_missing, is_statistic

MOST_HEADERS = 3  # lines of names: groups, names, units
LONGEST_UNIT = 12  # letters on average; longer lines below the names describe them
Spans = dict[tuple[int, int], int]  # columns a merged cell covers, by line and column


@dataclass(frozen=True)
class Header:
    """Names of the columns (None where the file has none), the first row below them, notes."""

    names: list[str] | None
    first_row: int
    notes: list[str] = field(default_factory=list)


def find_header(
    rows: list[list[str]],
    decimal: str,
    given: bool | None = None,
    spans: Callable[[], Spans] = dict,
    skipped: int = 0,
) -> Header:
    """The header of a table by its first rows, which are texts; missing cells are ''.

    spans : finds the merged cells; called where several lines of names are joined
    skipped : lines above that are known to be no part of the table
    """
    top = _count_titles(rows)
    # What is known about the samples may stand above their names; some of it is numbers.
    for i in range(top + 2, min(len(rows), 20)):
        lines, below = rows[top + 1 : i + 1], rows[i + 1 :]
        heads = [_names_all(rows[i]) and _is_header(line, below, decimal) for line in lines]
        if heads[-1] and not all(heads):
            top = i
            break
    skipped += top
    notes = [_skipped(skipped, "above the table")] if skipped else []
    if given is None:
        given = not all(is_number_or_missing(text, decimal) for text in rows[top])
    if not given:
        notes.append("the first line holds numbers, so columns are called V1, V2, ...")
        return Header(None, top, notes)
    names = [text.strip() for text in rows[top]]
    below = rows[top + 1 :]
    if below and len(below[0]) == len(names) + 1:  # R's write.table does not name the row names
        return Header(["", *names], top + 1, notes)
    for more in range(min(MOST_HEADERS, len(below)) - 1, 0, -1):
        if all(len(row) == len(names) and _is_header(row, below[more:], decimal)
               for row in below[:more]):  # fmt: skip
            lines = [names, *([text.strip() for text in row] for row in below[:more])]
            merged = {(i - top, j): width for (i, j), width in spans().items() if i >= top}
            names, joined = join_headers(lines, merged)
            return Header(names, top + 1 + more, notes + joined)
    return Header(names, top + 1, notes)


def _count_titles(rows: list[list[str]]) -> int:
    """How many lines at the top have one filled field, or two in front, where others have more."""
    usual = Counter(map(len, rows)).most_common(1)[0][0]
    count = 0
    while usual > 2 and count < len(rows) - 2 and _is_title(rows[count], usual):
        count += 1
    return count


def _is_title(row: list[str], usual: int) -> bool:
    filled = [j for j, text in enumerate(row) if text.strip()]
    number = bool(filled) and as_float(row[filled[0]].strip()) is not None
    if len(filled) == 2:
        return filled == [0, 1] and usual > 4 and (not number or len(row) == 2)
    return len(filled) == 1 and not number


def _is_number(text: str, decimal: str) -> bool:
    return as_float(text.strip(), decimal) is not None


def _names_all(row: list[str]) -> bool:
    """A name for every column, no two alike and no number among them."""
    texts = all(text.strip() and not any(_is_number(text, sign) for sign in ".,") for text in row)
    return texts and len(set(row)) == len(row) > 2


def _is_header(first: list[str], others: list[list[str]], decimal: str) -> bool:
    """Whether a row has words in most columns in which all others have numbers."""
    others = [row for row in others if len(row) == len(first)]
    words = [j for j, text in enumerate(first)
             if not is_number_or_missing(text, decimal) and not is_mark(text)]  # fmt: skip
    if len(others) < 2 or len(words) < 2:
        return False
    numeric = [
        j
        for j, column in enumerate(zip(*others, strict=True))
        if any(_is_number(text, decimal) for text in column)
        and all(is_number_or_missing(text, decimal) or is_mark(text) for text in column)
    ]
    found = len(set(words).intersection(numeric))
    return found >= 2 and 2 * found > len(numeric)


def _skipped(count: int, where: str) -> str:
    return f"{count} line{'s were' if count > 1 else ' was'} skipped {where}"


def join_headers(lines: list[list[str]], spans: Spans) -> tuple[list[str], list[str]]:
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
    joined = _joined(lines, spans)
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


def _joined(lines: list[list[str]], spans: Spans) -> list[str]:
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
