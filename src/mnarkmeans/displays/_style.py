"""One look for all displays."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from .._io import require
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


def lam_axis(ax: Any, lams: Any) -> None:
    """lam on a scale that shows 0 beside values of several magnitudes."""
    lams = np.unique(np.asarray(lams, dtype=float))
    positive = lams[lams > 0]
    if positive.size > 1 and positive[-1] / positive[0] > 20:
        if lams[0] > 0:
            ax.set_xscale("log")
        else:
            ax.set_xscale("symlog", linthresh=positive[0])
        shown = lam_ticks(lams.tolist())
        ax.set_xticks(shown, [f"{value:g}" for value in shown])
        ax.minorticks_off()
    ax.set_xlabel("penalty lam", color=INK)
