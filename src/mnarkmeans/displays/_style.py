"""One look for all displays."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._io.optional import require
from ._palette import DIVERGING, GAP, INK, MUTED


def axes(ax: Any = None, size: tuple[float, float] = (6.4, 4.2)) -> tuple[Any, Any]:
    """The figure and axes to draw on, dressed the same way everywhere."""
    plt = require("matplotlib.pyplot", "plot")
    if ax is None:
        _, ax = plt.subplots(figsize=size, layout="constrained")
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        ax.spines[side].set_color(MUTED)
    ax.tick_params(colors=INK, labelsize=9)
    ax.set_axisbelow(True)
    return ax.figure, ax


def title(ax: Any, text: str, below: str = "") -> None:
    """A title on the left, and what one sees in smaller grey letters below it."""
    ax.set_title(
        text, loc="left", fontsize=11.5, fontweight="bold", color=INK, pad=20 if below else 8
    )
    if below:
        ax.text(0, 1.02, below, transform=ax.transAxes, fontsize=9, color=MUTED, va="bottom")


def diverging() -> Any:
    """Blue below the reference, red above it, gaps in grey."""
    colors = require("matplotlib.colors", "plot")
    cmap = colors.LinearSegmentedColormap.from_list("mnarkmeans", DIVERGING)
    return cmap.with_extremes(bad=GAP)


def lam_axis(ax: Any, lams: Any) -> None:
    """lam on a scale that shows 0 beside values of several magnitudes."""
    lams = np.unique(np.asarray(lams, dtype=float))
    positive = lams[lams > 0]
    if positive.size > 1 and positive[-1] / positive[0] > 20:
        if lams[0] > 0:
            ax.set_xscale("log")
        else:
            ax.set_xscale("symlog", linthresh=positive[0])
        shown = lams if lams.size <= 9 else lams[:: int(np.ceil(lams.size / 9))]
        ax.set_xticks(shown, [f"{value:g}" for value in shown])
        ax.minorticks_off()
    ax.set_xlabel("penalty lam", color=INK)
