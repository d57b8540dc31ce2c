"""What stands where a number should: marks of laboratories, values below a limit, words.

1,5    a number, with the decimal sign of its column, or else of the file; −1 is one as well
n.d.   a mark that people use for "not there", in any case: a gap
<0.5   a value below a limit: a gap as well, and the limit is told
else   a word; in a column of numbers nobody but the user knows what it means
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from numbers import Real
from typing import Any

import numpy as np

from ._command import again, quoted
from ._errors import UnreadColumns
from ._written import MAY_BE_THOUSANDS, as_float, decimal_of, grouped, plainly, without_groups

SURE_MARKS = frozenset({
    "", "na", "n/a", "#n/a", "#na", "<na>", "nan", "-nan", "null", "none", "filtered",
})  # fmt: skip
SPELLINGS = sorted(
    {"NaN", "-NaN", *(way(m) for m in SURE_MARKS for way in (str.lower, str.upper, str.capitalize))}
)  # of the sure ones, for readers that compare letter by letter
LAB_MARKS = frozenset({
    "n.a.", "n.a", "nd", "n.d.", "n.d", "n/d", "nq", "n.q.", "n.n.", "n.b.", "k.a.", "-", "--",
    "---", "–", "—", "\u2212", "?", "??", ".", "..", "...", "*", "lod", "loq", "lloq", "bdl", "bld",
    "bql", "blq", "bloq", "belowlod", "belowloq", "belowlimit", "belowdetectionlimit", "undetected",
    "undetermined", "notdetected", "notmeasured", "notavailable", "notfound", "nodata", "missing",
    "nichtnachweisbar", "nichtbestimmt", "nn", "kw", "k.w.", "#num!", "#div/0!", "#value!", "#ref!",
    "#null!", "#name?", "#nv", "#wert!", "#zahl!", "#valeur!", "#nombre!", "1.#qnan", "1.#ind",
    "-1.#ind",
})  # fmt: skip
_BELOW = re.compile(r"^(<|≤|<=)\s*([^\W\d_]{1,8}|[\d.,]+(e[+-]?\d+)?)$", re.I)  # <LOD, <NG, <0.5
_LIKE_A_NUMBER = re.compile(r"^[~<>=≤≥±]*\s*[+-]?\d[\d.,'\s]*(e[+-]?\d+)?\s*[^\d]{0,12}$", re.I)
_LIST = re.compile(r"^[\d.]+(;[\d.]+)+$")
MANY_LISTS = 0.01  # share of the entries from which a list among numbers is no slip
FEW_WORDS = 5  # different ones, in a column that has numbers as well
SHOWN = 12


def is_sure_mark(text: str) -> bool:
    """A word for missing that means nothing else, whatever the column."""
    return text.strip().lower() in SURE_MARKS


def is_mark(text: str) -> bool:
    """A word for missing where a number is expected.

    Examples
    --------
    >>> [is_mark(text) for text in ("N.D.", "< LOD", "<0,5", "-", "", "x", "-5")]
    [True, True, True, True, True, False, False]
    """
    text = text.strip()
    joined = "".join(text.lower().split())
    return joined in SURE_MARKS or joined in LAB_MARKS or _BELOW.match(text) is not None


@dataclass(frozen=True)
class Cells:
    """A column of text, read as numbers."""

    numbers: np.ndarray  # NaN where there is none
    marks: Counter[str]  # words for missing that laboratories use
    words: Counter[str]  # all others
    decimal: str = "."  # as the column is written

    @property
    def doubtful(self) -> str | None:
        """A word that is a number, if its comma is a decimal sign; else it is thousands."""
        return next(filter(MAY_BE_THOUSANDS.match, self.words), None)

    @property
    def count(self) -> int:
        """How many numbers there are."""
        return int(np.isfinite(self.numbers).sum() + np.isinf(self.numbers).sum())

    @property
    def lists(self) -> bool:
        """Whether entries are lists, of one number or of several: 12;3, one for each isoform."""
        several = sum(times for text, times in self.words.items() if _LIST.match(text))
        return several > MANY_LISTS * (self.count + self.words.total())

    @property
    def measured(self) -> bool:
        """Whether this is a column of numbers, be there words among them or not.

        Half of what is there are numbers; or a few words come again and again beside numbers that
        differ, as marks do.
        """
        numbers, words = self.count, self.words.total()
        if numbers >= max(words, 1):
            return True
        distinct = len(np.unique(self.numbers[~np.isnan(self.numbers)]))
        return (
            numbers >= max(2, 0.1 * words)
            and len(self.words) <= FEW_WORDS
            and distinct >= 2 * len(self.words)
        )

    @property
    def looks_measured(self) -> bool:
        """Numbers to a person: with units, percent signs or thousands set apart."""
        like = sum(times for text, times in self.words.items() if _LIKE_A_NUMBER.match(text))
        return like > 0 and self.count + like >= 0.5 * (self.count + self.words.total())


def read_cells(column: Any, decimal: str, codes: tuple[str, ...]) -> Cells:
    """Numbers, marks and words of a pandas column; its gaps are gaps.

    Examples
    --------
    >>> import pandas as pd
    >>> cells = read_cells(pd.Series(["1,5", "n.d.", None, "<0,5", "x", "n.d."]), ",", ())
    >>> cells.numbers.tolist(), dict(cells.marks), dict(cells.words)
    ([1.5, nan, nan, nan, nan, nan], {'n.d.': 2, '<0,5': 1}, {'x': 1})
    """
    import pandas as pd

    place, texts = pd.factorize(column.astype(object))
    times = np.bincount(place[place >= 0], minlength=len(texts))
    found = [str(text).strip() for text in texts]
    plain = [plainly(text) for text in found]
    written = [t for t, value in zip(plain, texts, strict=True) if not _is_real(value)]
    apart = grouped(written)
    decimal = apart or decimal_of(written, decimal)
    if apart is not None:
        plain = [without_groups(text, decimal) for text in plain]
    numbers = np.full(len(texts) + 1, np.nan)  # the last one: where there is nothing
    marks: Counter[str] = Counter()
    words: Counter[str] = Counter()
    for i, (text, digits) in enumerate(zip(found, plain, strict=True)):
        if text in codes or is_sure_mark(text):
            continue
        number = float(texts[i]) if _is_real(texts[i]) else as_float(digits, decimal)
        if number is not None:
            numbers[i] = number
        elif is_mark(text):
            marks[text] += int(times[i])
        else:
            words[text] += int(times[i])
    return Cells(numbers[place], marks, words, decimal)


def _is_real(value: Any) -> bool:
    """A number already: sheets hold them beside text."""
    return isinstance(value, Real) and not isinstance(value, bool)


@dataclass
class Findings:
    """What columns of numbers held besides numbers, over the whole table."""

    marks: Counter[str] = field(default_factory=Counter)
    words: dict[str, Counter[str]] = field(default_factory=dict)  # by column
    unread: dict[str, str] = field(default_factory=dict)  # columns that look measured: an example
    vocabularies: dict[str, tuple[str, ...]] = field(default_factory=dict)  # of columns with few
    commas: list[str] = field(default_factory=list)  # columns of decimal commas among others

    def notes(self) -> list[str]:
        """The marks that were taken for gaps, and numbers written otherwise than the others."""
        told = []
        if self.commas:
            some = ", ".join(map(repr, self.commas[:3])) + (" ..." if self.commas[3:] else "")
            many = f"{len(self.commas):,} columns" if len(self.commas) > 1 else "one column"
            told.append(f"the comma was read as decimal sign in {many}: {some}")
        if self.marks:
            below = any(_BELOW.match(mark) for mark in self.marks)
            limit = "; values below a limit are gaps near the least value" if below else ""
            told.append(f"taken as missing: {listed(_limits_together(self.marks))}{limit}")
        return told

    def check(self, kept: int, names: list[str]) -> None:
        """Refuse words nobody explained, and a table whose measured columns are mostly unread."""
        if self.words:
            raise UnreadColumns(self._words_told(), list(self.words), names)
        doubtful = {n: text for n, text in self.unread.items() if MAY_BE_THOUSANDS.match(text)}
        if doubtful or len(self.unread) > kept:
            columns = doubtful or self.unread
            raise UnreadColumns(self._unread_told(columns, kept), list(columns), names)

    def _unread_told(self, columns: dict[str, str], kept: int) -> str:
        name, example = next(iter(columns.items()))
        comma = "," in example and "." not in example
        hint = (
            "if that is a decimal comma add --decimal , and if it sets thousands apart take it out"
            if comma
            else "take units and percent signs out"
        )
        many = f"{len(columns)} columns look" if len(columns) > 1 else "one column looks"
        are = "are" if len(columns) > 1 else "is"
        return (
            f"{many} like measurements, but {are} not written as numbers, such as "
            f"{shortened(example)!r} in column {name!r}, and {kept} are; {hint}, or choose the "
            "columns with --columns or --drop"
        )

    def _words_told(self) -> str:
        every: Counter[str] = Counter()
        for words in self.words.values():
            every.update(words)
        names = list(self.words)
        who = f"column {names[0]!r} holds" if len(names) == 1 else f"{len(names)} columns hold"
        drop = " ".join(f"--drop {quoted(name)}" for name in names[:3])
        more = " ..." if len(names) > 3 else ""
        codes = [part for word, _ in every.most_common(SHOWN) for part in ("--missing-value", word)]
        whose = "its" if len(names) == 1 else "their"
        return (
            f"{who} numbers, but {every.total()} of {whose} entries are not: "
            f"{listed(every)}; if that means missing run: {again(*codes)} ; otherwise "
            f"leave out what is not measured with {drop}{more}"
        )


def _limits_together(marks: Counter[str]) -> Counter[str]:
    """Several limits, <0.25 and <1.5, as one item; a single one stays as it is written."""
    limits = [mark for mark in marks if _BELOW.match(mark) and any(map(str.isdigit, mark))]
    if len(limits) < 2:
        return marks
    others = Counter({mark: times for mark, times in marks.items() if mark not in limits})
    return others + Counter({"<number": sum(marks[mark] for mark in limits)})


def listed(words: Counter[str]) -> str:
    """Words with how often they come, the commonest first.

    Examples
    --------
    >>> listed(Counter({"n.d.": 2, "x": 1}))
    "'n.d.' (2 times), 'x' (once)"
    """
    told = [
        f"{shortened(word)!r} ({'once' if times == 1 else f'{times:,} times'})"
        for word, times in words.most_common(SHOWN)
    ]
    more = len(words) - SHOWN
    return ", ".join(told) + (f" and {more:,} others" if more > 0 else "")


def shortened(text: str) -> str:
    """A text of a table, for a sentence."""
    return text if len(text) <= 30 else text[:27] + "..."
