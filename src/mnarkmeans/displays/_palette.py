"""Colours that stay apart for colour-blind eyes, on light and on dark ground.

The first six are Okabe and Ito's, the next six from Tol's muted scheme, the rest the points of
OKLab furthest from all before them, neither pale nor dark. After 36 clusters the colours repeat and
the shape of the marker tells them apart. On dark ground those that would sink into it are mixed
with as much white as it takes (`on_dark`).
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
DARK_GROUND, LEAST_CONTRAST = "#222a35", 2.5  # lightest ground of the dark page; of a colour to it


def color(cluster: int) -> str:
    """The colour of a cluster.

    Examples
    --------
    >>> color(0), color(36) == color(0)
    ('#0072B2', True)
    """
    return CLUSTERS[cluster % len(CLUSTERS)]


def on_dark(tone: str) -> str:
    """The colour, as light as it must be to be seen on dark ground.

    Examples
    --------
    >>> on_dark("#E69F00"), on_dark("#332288")
    ('#E69F00', '#685ba7')
    """
    parts = [int(tone[i : i + 2], 16) for i in (1, 3, 5)]
    light, needed = tone, LEAST_CONTRAST * (_luminance(DARK_GROUND) + 0.05) - 0.05
    for white in range(1, 101):
        if _luminance(light) >= needed:
            break
        light = "#" + "".join(f"{round(c + (255 - c) * white / 100):02x}" for c in parts)
    return light


def _luminance(tone: str) -> float:
    """Relative luminance of an sRGB colour, 0 to 1, as contrast is measured by."""
    parts = (int(tone[i : i + 2], 16) / 255 for i in (1, 3, 5))
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


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
