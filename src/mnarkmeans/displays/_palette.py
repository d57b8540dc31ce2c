"""Colours that stay apart for colour-blind eyes, on light and on dark ground.

The first six are Okabe and Ito's, the next six from Tol's muted scheme, the rest the points of
OKLab furthest from all before them, neither pale nor dark. After 36 clusters the colours repeat and
the shape of the marker tells them apart.
"""

from __future__ import annotations

CLUSTERS = (
    "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9",
    "#882255", "#999933", "#332288", "#44AA99", "#AA4499", "#117733",
    "#00DD00", "#6600FF", "#FF00FF", "#DDAAFF", "#8877FF", "#66DDBB",
    "#885522", "#FF0066", "#225566", "#7700AA", "#BB00EE", "#FF9999",
    "#0022DD", "#CC0022", "#BBCC00", "#2266FF", "#DD77FF", "#8877AA",
    "#00BB44", "#4444AA", "#7755CC", "#775577", "#DD33BB", "#997755",
)  # fmt: skip
MARKERS = ("o", "s", "^", "D", "v", "P")
INK, MUTED, ACCENT, WARM = "#1d2733", "#6b7785", "#0072B2", "#D55E00"
DIVERGING = ("#2166ac", "#92c5de", "#f7f7f7", "#f4a582", "#b2182b")
GAP = "#d7dbe0"


def color(cluster: int) -> str:
    """The colour of a cluster.

    Examples
    --------
    >>> color(0), color(36) == color(0)
    ('#0072B2', True)
    """
    return CLUSTERS[cluster % len(CLUSTERS)]


def marker(cluster: int) -> str:
    """The marker of a cluster, a new shape each time the colours begin again.

    Examples
    --------
    >>> marker(0), marker(36)
    ('o', 's')
    """
    return MARKERS[(cluster // len(CLUSTERS)) % len(MARKERS)]


def brief(name: str, most: int) -> str:
    """A long name cut in the middle: beginnings repeat (LFQ intensity ...), ends tell apart.

    Examples
    --------
    >>> brief("LFQ intensity patient 17", 16)
    'LFQ int…tient 17'
    """
    if len(name) <= most:
        return name
    end = most // 2
    return name[: most - end - 1] + "…" + name[-end:]
