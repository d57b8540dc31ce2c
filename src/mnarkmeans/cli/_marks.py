"""What stands where a number should: marks of laboratories, values below a limit, words.

1,5    a number, with the decimal sign of the file
n.d.   a mark that people use for "not there", in any case: a gap
<0.5   a value below a limit: a gap as well, and the limit is told
else   a word; in a column of numbers nobody but the user knows what it means
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ._command import again, quoted
from ._errors import UserError

SURE_MARKS = frozenset({
    "", "na", "n/a", "#n/a", "#na", "<na>", "nan", "-nan", "null", "none", "filtered",
})  # fmt: skip
SPELLINGS = sorted(
    {"NaN", "-NaN", *(way(m) for m in SURE_MARKS for way in (str.lower, str.upper, str.capitalize))}
)  # of the sure ones, for readers that compare letter by letter
LAB_MARKS = frozenset({
    "n.a.", "n.a", "nd", "n.d.", "n.d", "n/d", "nq", "n.q.", "n.n.", "n.b.", "k.a.", "-", "--",
    "---", "–", "—", "?", "??", ".", "..", "...", "*", "lod", "loq", "lloq", "bdl", "bld", "bql",
    "blq", "bloq", "belowlod", "belowloq", "belowlimit", "belowdetectionlimit", "undetected",
    "undetermined", "notdetected", "notmeasured", "notavailable", "notfound", "nodata", "missing",
    "nichtnachweisbar", "nichtbestimmt", "nn", "kw", "k.w.", "#num!", "#div/0!", "#value!", "#ref!",
    "#null!", "#name?", "#nv", "#wert!", "#zahl!", "#valeur!", "#nombre!", "1.#qnan", "1.#ind",
    "-1.#ind",
})  # fmt: skip
_BELOW = re.compile(r"^(<|≤|<=)\s*([^\W\d_]{1,8}|[\d.,]+(e[+-]?\d+)?)$", re.I)  # <LOD, <NG, <0.5
_LIKE_A_NUMBER = re.compile(r"^[~<>=≤≥±]*\s*[+-]?\d[\d.,'\s]*(e[+-]?\d+)?\s*[^\d]{0,12}$", re.I)
_GROUPS = re.compile(r"^[+-]?\d{1,3}(\.\d{3})+$")
# Thousands set apart, and decimals: by their decimal sign. Both signs together leave no doubt.
GROUPED = {
    ",": re.compile(r"^[+-]?\d{1,3}(\.\d{3})+,\d+$"),
    ".": re.compile(r"^[+-]?\d{1,3}(,\d{3})+\.\d+$"),
}
_THOUSANDS = {
    ",": re.compile(r"^[+-]?\d{1,3}(\.\d{3})+(,\d+)?$"),
    ".": re.compile(r"^[+-]?\d{1,3}(,\d{3})+(\.\d+)?$"),
}
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


def as_float(text: str, decimal: str = ".") -> float | None:
    """The number that a text is, written with this decimal sign, or None.

    Examples
    --------
    >>> as_float("1,5", ","), as_float("1.5"), as_float("1,5"), as_float("1.5", ",")
    (1.5, 1.5, None, None)
    """
    if "_" in text or (decimal == "," and "." in text):
        return None
    try:
        return float(text.replace(",", ".") if decimal == "," else text)
    except ValueError:
        return None


@dataclass(frozen=True)
class Cells:
    """A column of text, read as numbers."""

    numbers: np.ndarray  # NaN where there is none
    marks: Counter[str]  # words for missing that laboratories use
    words: Counter[str]  # all others

    @property
    def count(self) -> int:
        """How many numbers there are."""
        return int(np.isfinite(self.numbers).sum() + np.isinf(self.numbers).sum())

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
    grouped = next((sign for sign in GROUPED if any(map(GROUPED[sign].match, found))), None)
    if grouped is not None:
        decimal = grouped
        apart = "." if grouped == "," else ","
        plain = [t.replace(apart, "") if _THOUSANDS[grouped].match(t) else t for t in found]
    else:
        plain = found
    if (
        grouped is None
        and decimal == ","
        and not any("," in text and as_float(text, ",") is not None for text in found)
    ):
        # A column that holds no comma may be written otherwise than the rest of the file; 1.234 is
        # then a thousand or a fraction, and not for us to say.
        decimal = "," if any(_GROUPS.match(text) for text in found) else "."
    numbers = np.full(len(texts) + 1, np.nan)  # the last one: where there is nothing
    marks: Counter[str] = Counter()
    words: Counter[str] = Counter()
    for i, (text, digits) in enumerate(zip(found, plain, strict=True)):
        if text in codes or is_sure_mark(text):
            continue
        number = as_float(digits, decimal)
        if number is not None:
            numbers[i] = number
        elif is_mark(text):
            marks[text] += int(times[i])
        else:
            words[text] += int(times[i])
    return Cells(numbers[place], marks, words)


@dataclass
class Findings:
    """What columns of numbers held besides numbers, over the whole table."""

    marks: Counter[str] = field(default_factory=Counter)
    words: dict[str, Counter[str]] = field(default_factory=dict)  # by column
    unread: dict[str, str] = field(default_factory=dict)  # columns that look measured: an example
    vocabularies: dict[str, tuple[str, ...]] = field(default_factory=dict)  # of columns with few

    def notes(self) -> list[str]:
        """The marks that were taken for gaps."""
        if not self.marks:
            return []
        below = any(_BELOW.match(mark) for mark in self.marks)
        limit = "; values below a limit are gaps near the least value" if below else ""
        return [f"taken as missing: {listed(self.marks)}{limit}"]

    def check(self, kept: int) -> None:
        """Refuse words nobody explained, and a table whose measured columns are mostly unread."""
        if self.words:
            raise self._words_error()
        if len(self.unread) > kept:
            name, example = next(iter(self.unread.items()))
            comma = "," in example and "." not in example
            hint = (
                "if that is a decimal comma add --decimal ,"
                if comma
                else "take units and percent signs out"
            )
            raise UserError(
                f"{len(self.unread)} columns look like measurements, but are not written as "
                f"numbers, such as {shortened(example)!r} in column {name!r}, and only {kept} are; "
                f"{hint}, or choose the columns with --columns"
            )

    def _words_error(self) -> UserError:
        every: Counter[str] = Counter()
        for words in self.words.values():
            every.update(words)
        names = list(self.words)
        who = f"column {names[0]!r} holds" if len(names) == 1 else f"{len(names)} columns hold"
        drop = " ".join(f"--drop {quoted(name)}" for name in names[:3])
        more = " ..." if len(names) > 3 else ""
        codes = [part for word, _ in every.most_common(SHOWN) for part in ("--missing-value", word)]
        whose = "its" if len(names) == 1 else "their"
        return UserError(
            f"{who} numbers, but {every.total()} of {whose} entries are not: "
            f"{listed(every)}; if that means missing run: {again(*codes)} ; otherwise "
            f"leave out what is not measured with {drop}{more}"
        )


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
