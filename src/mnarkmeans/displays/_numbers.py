"""Numbers as people read them: in texts, in tables, on axes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

_RAISED = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")


def power(value: float, digits: int = 3) -> str:
    """A number too large or too small to write out.

    Examples
    --------
    >>> power(3.2e20), power(-5.078e-182)
    ('3.2 × 10²⁰', '-5.08 × 10⁻¹⁸²')
    """
    front, _, exponent = f"{value:.{digits - 1}e}".partition("e")
    front = front.rstrip("0").rstrip(".") if "." in front else front
    return f"{front} × 10{str(int(exponent)).translate(_RAISED)}"


def number(value: float | None) -> str:
    """A number for people: four significant digits, thousands apart.

    Examples
    --------
    >>> number(1234567), number(1234567.8), number(0.12345), number(3.2e20), number(None)
    ('1,234,567', '1,234,568', '0.1235', '3.2 × 10²⁰', '–')
    """
    if value is None:
        return "\u2013"
    size = abs(value)
    if size >= 1e9 or 0 < size < 1e-4:
        return power(value)
    if value == int(value):
        return f"{int(value):,}"
    return f"{value:,.0f}" if size >= 1e5 else f"{value:,.1f}" if size >= 1000 else f"{value:.4g}"


def short(value: float) -> str:
    """A number where room is scarce: axes and tiles.

    Examples
    --------
    >>> short(1234567.0), short(25000), short(3.2e11), short(3.2e20), short(512)
    ('1.235M', '25k', '320G', '3.2 × 10²⁰', '512')
    """
    size = abs(value)
    if size >= 1e15:
        return power(value)
    for unit, letter in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if size >= 10 * unit or (unit > 1e3 and size >= unit):
            return f"{value / unit:.4g}{letter}"
    return number(value)


def percent(share: float | None) -> str:
    """A share in percent, with a digit more where it is small; only what is all is 100 %.

    Examples
    --------
    >>> percent(0.123), percent(0.0123), percent(0.99999), percent(1.0)
    ('12%', '1.2%', '>99.9%', '100%')
    """
    if share is None:
        return "\u2013"
    if 0.9995 <= share < 1:
        return ">99.9%"
    return f"{share:.1%}" if 0 < share < 0.1 or 0.9 < share < 1 else f"{share:.0%}"


def ticks(low: float, high: float, count: int = 5) -> list[float]:
    """Round numbers between low and high.

    Examples
    --------
    >>> ticks(0.0, 10.0), ticks(0.0, 5e-182, 2)
    ([0.0, 2.0, 4.0, 6.0, 8.0, 10.0], [0.0, 2.5e-182, 5e-182])
    """
    if not high > low:
        return [low]
    raw = (high - low) / count
    base = 10.0 ** math.floor(math.log10(raw))
    step = next(m * base for m in (1, 2, 2.5, 5, 10) if m * base >= raw * 0.999)
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return [float(f"{i * step:.12g}") for i in range(first, last + 1)]


def labelled(
    low: float, high: float, name: str, count: int = 5
) -> tuple[list[tuple[float, str]], str]:
    """Ticks with their texts, and the name of the axis, which takes the power of very large or
    very small numbers.

    Examples
    --------
    >>> labelled(0.0, 3e20, "loss", 3)
    ([(0.0, '0'), (1e+20, '1'), (2e+20, '2'), (3e+20, '3')], 'loss (× 10²⁰)')
    """
    places = ticks(low, high, count)
    largest = max(abs(low), abs(high))
    if largest == 0.0 or 1e-3 <= largest < 1e6:
        return [(v, short(v)) for v in places], name
    exponent = math.floor(math.log10(largest))
    unit = 10.0**exponent
    texts = [(v, f"{v / unit:.5g}") for v in places]
    return texts, f"{name} (× 10{str(exponent).translate(_RAISED)})"


def rounded(values: Any, digits: int = 4) -> list[float | None]:
    """Floats with so many significant digits: a page of 50,000 rows should stay small."""
    array = np.asarray(values, dtype=float)
    return [float(f"{v:.{digits}g}") if np.isfinite(v) else None for v in array.ravel()]
