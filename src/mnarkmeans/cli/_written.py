"""How a number is written: its decimal sign, what sets its thousands apart, its minus.

1,5   1.5            a decimal sign, of the column or else of the file
1.234,5   1,234.5    both signs together leave no doubt which is which
1,234,567            a sign that comes twice sets thousands apart
1 234,5   1'234.5    blanks (also those that do not break) and apostrophes do nothing else
1,500                is for the user to say
"""

from __future__ import annotations

import re

MAY_BE_THOUSANDS = re.compile(r"^[+-]?[1-9]\d{0,2},\d{3}$")
_POINT_GROUPS = re.compile(r"^[+-]?[1-9]\d{0,2}(\.\d{3})+$")
# Surely thousands set apart, by the decimal sign that is left.
_SURELY = {
    ",": re.compile(r"^[+-]?\d{1,3}((\.\d{3})+,\d+|(\.\d{3}){2,})$"),
    ".": re.compile(r"^[+-]?\d{1,3}((,\d{3})+\.\d+|(,\d{3}){2,})$"),
}
_THOUSANDS = {
    ",": re.compile(r"^[+-]?\d{1,3}(\.\d{3})+(,\d+)?$"),
    ".": re.compile(r"^[+-]?\d{1,3}(,\d{3})+(\.\d+)?$"),
}
_APART = "[ \u00a0\u2009\u202f'\u2019]"  # blanks and apostrophes
_SET_APART = re.compile(rf"^[+-]?\d{{1,3}}({_APART}\d{{3}})+([.,]\d+)?$")
_WITH_COMMA = re.compile(r"^[+-]?\d+,\d+(e[+-]?\d+)?$", re.I)
_WITH_POINT = re.compile(r"^[+-]?\d+\.\d*(e[+-]?\d+)?$", re.I)
_MINUS = re.compile(r"^[\u2212\u2013](?=[\d.,])|(?<=\de)[\u2212\u2013](?=\d)", re.I)


def plainly(text: str) -> str:
    """A number without the minus of print (or an en dash, as Word makes of it) and without blanks
    or apostrophes between its thousands, as programs write it.

    Examples
    --------
    >>> [plainly(text) for text in ("\u22120.5", "\u20132,5", "\u2013", "1\u2013a", "1 234,5")]
    ['-0.5', '-2,5', '–', '1–a', '1234,5']
    """
    if not text.isascii():
        text = _MINUS.sub("-", text)
    return re.sub(_APART, "", text) if _SET_APART.match(text) else text


def decimal_sign(text: str, *, thousands: bool = True) -> str | None:
    """The decimal sign that a number is written with; None where it has none, or is no number.

    1,500 may have thousands set apart, if such are to be expected: it does not tell.

    Examples
    --------
    >>> [decimal_sign(text) for text in ("1,5", "0,125", "1,500", "1.5", "12", "x")]
    [',', ',', None, '.', None, None]
    """
    text = plainly(text.strip())
    if _SURELY[","].match(text):
        return ","
    if _WITH_COMMA.match(text):
        return None if thousands and MAY_BE_THOUSANDS.match(text) else ","
    return "." if _WITH_POINT.match(text) else None


def as_float(text: str, decimal: str = ".") -> float | None:
    """The number that a text is, written with this decimal sign, or None.

    Examples
    --------
    >>> as_float("1,5", ","), as_float("1.5"), as_float("1,5"), as_float("1.5", ",")
    (1.5, 1.5, None, None)
    """
    text = plainly(text)
    if "_" in text or (decimal == "," and "." in text):
        return None
    try:
        return float(text.replace(",", ".") if decimal == "," else text)
    except ValueError:
        return None


def grouped(texts: list[str]) -> str | None:
    """The decimal sign of a column some of whose numbers surely have thousands set apart.

    Examples
    --------
    >>> grouped(["1,234,567", "1,500"]), grouped(["1.234,5"]), grouped(["1,500"])
    ('.', ',', None)
    """
    return next((sign for sign in _SURELY if any(map(_SURELY[sign].match, texts))), None)


def without_groups(text: str, decimal: str) -> str:
    """A number whose thousands are not set apart any more."""
    apart = "." if decimal == "," else ","
    return text.replace(apart, "") if _THOUSANDS[decimal].match(text) else text


def decimal_of(texts: list[str], usual: str) -> str:
    """The decimal sign of a column, which may be written otherwise than the rest of the file."""
    signs = {decimal_sign(text) for text in texts}
    if usual == ".":
        return "," if "," in signs and "." not in signs else "."
    if any("," in text and as_float(text, ",") is not None for text in texts):
        return ","
    # Without a comma 1.234 is a thousand or a fraction, and not for us to say; 1.5 beside it tells.
    sure = any(_WITH_POINT.match(text) and not _POINT_GROUPS.match(text) for text in texts)
    return "," if not sure and any(map(_POINT_GROUPS.match, texts)) else "."
