"""Colours that stay apart for colour-blind eyes, on light and on dark ground.

The first six are Okabe and Ito's, the others from Tol's muted scheme; after twelve clusters the
colours repeat and the shape of the marker tells them apart.
"""

from __future__ import annotations

CLUSTERS = (
    "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9",
    "#882255", "#999933", "#332288", "#44AA99", "#AA4499", "#117733",
)  # fmt: skip
MARKERS = ("o", "s", "^", "D", "v", "P")
INK, MUTED, ACCENT, WARM = "#1d2733", "#6b7785", "#0072B2", "#D55E00"
DIVERGING = ("#2166ac", "#92c5de", "#f7f7f7", "#f4a582", "#b2182b")
GAP = "#d7dbe0"


def color(cluster: int) -> str:
    """The colour of a cluster.

    Examples
    --------
    >>> color(0), color(12) == color(0)
    ('#0072B2', True)
    """
    return CLUSTERS[cluster % len(CLUSTERS)]


def marker(cluster: int) -> str:
    """The marker of a cluster, a new shape each time the colours begin again.

    Examples
    --------
    >>> marker(0), marker(12)
    ('o', 's')
    """
    return MARKERS[(cluster // len(CLUSTERS)) % len(MARKERS)]
