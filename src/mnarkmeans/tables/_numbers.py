"""What a cell of text says: a number, a mark for missing, or a word.

1,5  1.5           a decimal sign, of the column or else of the file
1.234,5  1,234.5   both signs together leave no doubt which is which
1 234,5  1'234.5   blanks and apostrophes group thousands
1,500              may be either: the user has to say
n.d.  -  #N/A      marks for missing that laboratories and spreadsheets use
<0.5  <LOD         values below a limit: missing as well
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np

# Missing in every column, also among texts.
SURE_MARKS = frozenset({"", "na", "n/a", "#n/a", "<na>", "nan", "-nan", "null", "none", "filtered"})
SURE_SPELLINGS = sorted(
    {"NaN", "-NaN", *(f(m) for m in SURE_MARKS for f in (str.lower, str.upper, str.capitalize))}
)
# Missing where a number is expected; blanks within them do not matter.
LAB_MARKS = frozenset({
    "n.a.", "nd", "n.d.", "n/d", "nq", "n.q.", "n.n.", "-", "--", "–", "—", "\u2212", "?", ".",
    "*", "lod", "loq", "lloq", "bdl", "bld", "bql", "blq", "undetected", "undetermined",
    "notdetected", "missing", "nichtnachweisbar", "#num!", "#div/0!", "#value!", "#ref!", "#nv",
})  # fmt: skip
_BELOW = re.compile(r"^(<|≤|<=)\s*([^\W\d_]{1,8}|[\d.,]+(e[+-]?\d+)?)$", re.I)
_WITH_UNIT = re.compile(r"^[~<>=≤≥±]*\s*[+-]?\d[\d.,'\s]*(e[+-]?\d+)?\s*[^\d]{0,12}$", re.I)
_LIST = re.compile(r"^[\d.]+(;[\d.]+)+$")
SHOWN = 12  # words listed in one sentence

MAY_BE_THOUSANDS = re.compile(r"^[+-]?[1-9]\d{0,2},\d{3}$")
_POINT_GROUPS = re.compile(r"^[+-]?[1-9]\d{0,2}(\.\d{3})+$")
_GROUPED = {  # thousands beyond doubt, by the decimal sign that remains
    ",": re.compile(r"^[+-]?\d{1,3}((\.\d{3})+,\d+|(\.\d{3}){2,})$"),
    ".": re.compile(r"^[+-]?\d{1,3}((,\d{3})+\.\d+|(,\d{3}){2,})$"),
}
_THOUSANDS = {
    ",": re.compile(r"^[+-]?\d{1,3}(\.\d{3})+(,\d+)?$"),
    ".": re.compile(r"^[+-]?\d{1,3}(,\d{3})+(\.\d+)?$"),
}
_SPACE = "[ \u00a0\u2009\u202f'\u2019]"
_SPACED = re.compile(rf"^[+-]?\d{{1,3}}({_SPACE}\d{{3}})+([.,]\d+)?$")
_WITH_COMMA = re.compile(r"^[+-]?\d+,\d+(e[+-]?\d+)?$", re.I)
_WITH_POINT = re.compile(r"^[+-]?\d+\.\d*(e[+-]?\d+)?$", re.I)
_MINUS = re.compile(r"^[\u2212\u2013](?=[\d.,])|(?<=\de)[\u2212\u2013](?=\d)", re.I)


def is_sure_mark(text: str) -> bool:
    """Whether a text means missing, whatever the column."""
    return text.strip().lower() in SURE_MARKS


def is_mark(text: str) -> bool:
    """Whether a text means missing where a number is expected.

    Examples
    --------
    >>> [is_mark(text) for text in ("N.D.", "< LOD", "<0,5", "-", "", "x", "-5")]
    [True, True, True, True, True, False, False]
    """
    text = text.strip()
    joined = "".join(text.lower().split())
    return joined in SURE_MARKS or joined in LAB_MARKS or _BELOW.match(text) is not None


def plain_number(text: str) -> str:
    """A number with an ASCII minus and without blanks or apostrophes between thousands.

    Examples
    --------
    >>> [plain_number(text) for text in ("\u22120.5", "\u2013", "1 234,5")]
    ['-0.5', '–', '1234,5']
    """
    if not text.isascii():
        text = _MINUS.sub("-", text)
    return re.sub(_SPACE, "", text) if _SPACED.match(text) else text


def decimal_sign(text: str, *, thousands: bool = True) -> str | None:
    """The decimal sign a number is written with; None if it has none or leaves doubt.

    Examples
    --------
    >>> [decimal_sign(text) for text in ("1,5", "0,125", "1,500", "1.5", "12", "x")]
    [',', ',', None, '.', None, None]
    """
    text = plain_number(text.strip())
    if _GROUPED[","].match(text):
        return ","
    if _WITH_COMMA.match(text):
        return None if thousands and MAY_BE_THOUSANDS.match(text) else ","
    return "." if _WITH_POINT.match(text) else None


def as_float(text: str, decimal: str = ".") -> float | None:
    """The number a text is, with this decimal sign, or None.

    Examples
    --------
    >>> as_float("1,5", ","), as_float("1.5"), as_float("1,5"), as_float("1.5", ",")
    (1.5, 1.5, None, None)
    """
    if "_" in text or (decimal == "," and "." in text and "," not in text):
        return None
    try:
        return float(text)  # most of them
    except ValueError:
        text = plain_number(text)
    if decimal == "," and "." in text:
        return None
    try:
        return float(text.replace(",", ".") if decimal == "," else text)
    except ValueError:
        return None


def is_number_or_missing(text: str, decimal: str = ".") -> bool:
    """Whether a text can stand in a numeric column without further knowledge."""
    return as_float(text.strip(), decimal) is not None or is_sure_mark(text)


def find_decimal(rows: list[list[str]], delimiter: str, given: str | None) -> str:
    """The decimal sign that more columns use, or the one given.

    1,500 counts as a decimal comma only between semicolons, which spreadsheets use with it.

    Examples
    --------
    >>> find_decimal([["1,500"]], "|", None), find_decimal([["1,500"]], ";", None)
    ('.', ',')
    """
    if given is not None:
        return given
    signs: list[set[str]] = [set() for _ in range(min(1000, max(map(len, rows))))]
    for row in rows:
        for found, text in zip(signs, row, strict=False):  # a thousand columns tell enough
            sign = decimal_sign(text, thousands=delimiter != ";")
            if sign is not None:
                found.add(sign)
    commas, points = (sum(sign in found for found in signs) for sign in ",.")
    return "," if commas > points else "."


def _decimal_of_column(texts: list[str], usual: str) -> str:
    """The decimal sign of one column, which may differ from the rest of the file."""
    signs = {decimal_sign(text) for text in texts}
    if usual == ".":
        return "," if "," in signs and "." not in signs else "."
    if any("," in text and as_float(text, ",") is not None for text in texts):
        return ","
    # 1.234 alone is a thousand or a fraction; 1.5 beside it settles that.
    sure = any(_WITH_POINT.match(text) and not _POINT_GROUPS.match(text) for text in texts)
    return "," if not sure and any(map(_POINT_GROUPS.match, texts)) else "."


@dataclass(frozen=True)
class Cells:
    """A column of text read as numbers: the numbers, and what the other cells hold."""

    numbers: np.ndarray  # NaN where there is none
    marks: Counter[str]  # marks for missing
    words: Counter[str]  # everything else
    decimal: str = "."

    @property
    def count(self) -> int:
        """How many cells are numbers."""
        return int((~np.isnan(self.numbers)).sum())

    @property
    def doubtful(self) -> str | None:
        """A cell such as 1,500, a number only if its comma is known."""
        return next(filter(MAY_BE_THOUSANDS.match, self.words), None)

    @property
    def lists(self) -> bool:
        """Whether more than one cell in a hundred is a list, such as 12;3."""
        several = sum(times for text, times in self.words.items() if _LIST.match(text))
        return several > 0.01 * (self.count + self.words.total())

    @property
    def measured(self) -> bool:
        """Whether this is a column of numbers with words in it: at least half are numbers, or a
        few words recur beside numbers that differ."""
        words = self.words.total()
        if self.count >= max(words, 1):
            return True
        distinct = len(np.unique(self.numbers[~np.isnan(self.numbers)]))
        few = len(self.words) <= 5 and distinct >= 2 * len(self.words)
        return self.count >= max(2, 0.1 * words) and few

    @property
    def looks_measured(self) -> bool:
        """Whether half the cells are numbers to a person: with units, percent signs, thousands."""
        like = sum(times for text, times in self.words.items() if _WITH_UNIT.match(text))
        return like > 0 and self.count + like >= 0.5 * (self.count + self.words.total())


def read_cells(column: Any, decimal: str, codes: tuple[str, ...] = ()) -> Cells:
    """Read a pandas column of texts (and numbers) cell by cell; each distinct cell once."""
    import pandas as pd

    place, distinct = pd.factorize(column.astype(object))
    times = np.bincount(place[place >= 0], minlength=len(distinct))
    texts = [str(value).strip() for value in distinct]
    numeric = [isinstance(v, Real) and not isinstance(v, bool) for v in distinct]
    plain = [plain_number(text) for text in texts]
    written = [text for text, number in zip(plain, numeric, strict=True) if not number]
    grouped = next((s for s in _GROUPED if any(map(_GROUPED[s].match, written))), None)
    decimal = grouped or _decimal_of_column(written, decimal)
    if grouped is not None:
        group = "." if decimal == "," else ","
        plain = [t.replace(group, "") if _THOUSANDS[decimal].match(t) else t for t in plain]
    numbers = np.full(len(texts) + 1, np.nan)  # the last one is for missing cells (place -1)
    marks: Counter[str] = Counter()
    words: Counter[str] = Counter()
    for i, (text, digits) in enumerate(zip(texts, plain, strict=True)):
        if text in codes or is_sure_mark(text):
            continue
        number = float(distinct[i]) if numeric[i] else as_float(digits, decimal)
        if number is not None:
            numbers[i] = number
        elif is_mark(text):
            marks[text] += int(times[i])
        else:
            words[text] += int(times[i])
    return Cells(numbers[place], marks, words, decimal)


def marks_note(marks: Counter[str]) -> str:
    """Which marks were read as missing; several limits (<0.25, <1.5) are one item."""
    limits = [m for m in marks if _BELOW.match(m) and any(map(str.isdigit, m))]
    if len(limits) > 1:
        rest = Counter({m: times for m, times in marks.items() if m not in limits})
        marks = rest + Counter({"<number": sum(marks[m] for m in limits)})
    below = any(map(_BELOW.match, marks))
    return f"read as missing: {listed(marks)}" + (
        "; values below a limit are treated as missing near the smallest value" if below else ""
    )


def listed(words: Counter[str]) -> str:
    """Words with how often they occur, the most frequent first.

    Examples
    --------
    >>> listed(Counter({"n.d.": 2, "x": 1}))
    "'n.d.' (2 times), 'x' (once)"
    """
    items = [
        f"{shortened(word)!r} ({'once' if times == 1 else f'{times:,} times'})"
        for word, times in words.most_common(SHOWN)
    ]
    more = len(words) - SHOWN
    return ", ".join(items) + (f" and {more:,} others" if more > 0 else "")


def shortened(text: str) -> str:
    """A text of a table, cut for a sentence."""
    return text if len(text) <= 30 else text[:27] + "..."
