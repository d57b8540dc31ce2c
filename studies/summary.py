"""Paired differences and tables, for all studies."""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy.stats import t as student


def paired(a, b) -> str:
    """Mean of a - b with its 95 % interval (Student's t over the pairs that are complete)."""
    difference = np.asarray(a, dtype=float) - np.asarray(b, dtype=float)
    difference = difference[np.isfinite(difference)]
    if len(difference) < 2:
        return "" if not len(difference) else f"{difference[0]:+.3f}"
    half = student.ppf(0.975, len(difference) - 1) * difference.std(ddof=1)
    return f"{difference.mean():+.3f} ± {half / np.sqrt(len(difference)):.3f}"


def markdown(frame: pd.DataFrame, digits: int = 3) -> str:
    """The frame as a Markdown table, its index as the first column."""

    def text(value) -> str:
        if isinstance(value, str):
            return value
        if pd.isna(value):
            return ""
        return str(value) if float(value).is_integer() else f"{value:.{digits}f}"

    head = [str(frame.index.name or ""), *map(str, frame.columns)]
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for name, row in zip(frame.index, frame.to_numpy(dtype=object), strict=True):
        lines.append("| " + " | ".join([str(name), *map(text, row)]) + " |")
    return "\n".join(lines)
