"""Numbers for people, colours of clusters, long names cut short.

The first six colours are Okabe and Ito's, the next six from Tol's muted scheme, the rest the points
of OKLab furthest from all before them, neither pale nor dark. After 36 clusters they repeat.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

CLUSTERS = (
    "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9",
    "#882255", "#999933", "#332288", "#44AA99", "#AA4499", "#117733",
    "#00DD00", "#6600FF", "#FF00FF", "#DDAAFF", "#8877FF", "#66DDBB",
    "#885522", "#FF0066", "#225566", "#7700AA", "#BB00EE", "#FF9999",
    "#0022DD", "#CC0022", "#BBCC00", "#2266FF", "#DD77FF", "#8877AA",
    "#00BB44", "#4444AA", "#7755CC", "#775577", "#DD33BB", "#997755",
)  # fmt: skip
INK, MUTED, ACCENT, WARM = "#1d2733", "#6b7785", "#0072B2", "#D55E00"
DIVERGING = ("#2166ac", "#92c5de", "#f7f7f7", "#f4a582", "#b2182b")
GAP = "#d7dbe0"
_RAISED = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")


def color(cluster: int) -> str:
    """The colour of a cluster."""
    return CLUSTERS[cluster % len(CLUSTERS)]


def brief(name: str, most: int) -> str:
    """A long name cut in the middle: names of columns often differ only at the end.

    Examples
    --------
    >>> brief("LFQ intensity patient 17", 16)
    'LFQ int…tient 17'
    """
    if len(name) <= most:
        return name
    end = most // 2
    return name[: most - end - 1] + "…" + name[-end:]


def number(value: float | None) -> str:
    """A number with four significant digits and separated thousands.

    Examples
    --------
    >>> number(1234567), number(1234567.8), number(0.12345), number(3.2e20), number(None)
    ('1,234,567', '1,234,568', '0.1235', '3.2 × 10²⁰', '–')
    """
    if value is None:
        return "\u2013"
    size = abs(value)
    if size >= 1e9 or 0 < size < 1e-4:
        front, _, exponent = f"{value:.2e}".partition("e")
        return f"{float(front):g} × 10{str(int(exponent)).translate(_RAISED)}"
    if value == int(value):
        return f"{int(value):,}"
    return f"{value:,.0f}" if size >= 1e5 else f"{value:,.1f}" if size >= 1000 else f"{value:.4g}"


def percent(share: float | None) -> str:
    """A share in percent, with one more digit near 0 and 1; 100% only where it is exact.

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


def lam_ticks(lams: Sequence[float]) -> list[float]:
    """Even steps on a logarithmic scale, and 0 where it is a candidate.

    Examples
    --------
    >>> lam_ticks([0.0, 0.06, 0.39, 0.4, 1.0, 16.0]), lam_ticks([0.5, 1.0, 3.0])
    ([0.0, 0.1, 1.0, 10.0], [0.5, 1.0, 2.0])
    """
    positive = [lam for lam in lams if lam > 0]
    zero = [0.0] if 0.0 in lams else []
    if not positive:
        return zero
    low, high = min(positive), max(positive)
    base = 2.0 if high / low <= 40 else 10.0
    first = math.ceil(math.log(low, base) - 1e-9)
    last = math.floor(math.log(high, base) + 1e-9)
    steps = [float(f"{base**i:.6g}") for i in range(first, last + 1)]
    return zero + (steps[:: math.ceil(len(steps) / 8)] or [low])


def sample(n: int, most: int) -> np.ndarray:
    """All of n rows, or a random sample of `most` of them, in their order."""
    if n <= most:
        return np.arange(n)
    return np.sort(np.random.default_rng(0).choice(n, most, replace=False))


def rounded(values: Any, digits: int = 4) -> list[float | None]:
    """Floats with `digits` significant digits: a page of 50,000 rows should stay small."""
    array = np.asarray(values, dtype=float)
    return [float(f"{v:.{digits}g}") if np.isfinite(v) else None for v in array.ravel()]
