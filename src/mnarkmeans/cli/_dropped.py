"""--drop-rows COLUMN=VALUE: which rows of a file are left.

Reverse=+            those that have this value there, as text or as the same number
Protein IDs=REV__*   those whose value is like this
Gene=                those that have nothing there
"""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Any

import numpy as np

from ._errors import UserError, unknown_name


def kept_rows(
    rules: Sequence[str], names: Sequence[str], column_of: Any, n_rows: int, *, lenient: bool
) -> tuple[np.ndarray, list[str]]:
    """Positions of the rows that the rules leave, and what was dropped in words.

    lenient : the table may lack the columns of the rules
    """
    keep, told = np.ones(n_rows, bool), []
    for rule in rules:
        name, value = column_and_value(rule)
        if name not in names:
            if lenient:
                continue
            raise unknown_name("column", name, names)
        hit = _equal(column_of(name), value) & keep
        keep &= ~hit
        many = f"{hit.sum():,} row{'' if hit.sum() == 1 else 's'}"
        told.append(f"{many} dropped because {name} is {value!r}")
    if not keep.any():
        raise UserError(f"--drop-rows {rules[0]} leaves no row of the table")
    return np.flatnonzero(keep), told


def column_and_value(rule: str) -> tuple[str, str]:
    name, _, value = rule.rpartition("=")
    if not name:
        raise UserError(f"--drop-rows takes COLUMN=VALUE, such as Reverse=+, not {rule!r}")
    return name, value


def _equal(column: Any, value: str) -> np.ndarray:
    """Where a column holds this value: as text, or as the same number; '' is no value."""
    gap = column.isna().to_numpy()
    texts = column.astype(object)
    if not value:
        return gap | (texts.astype(str).str.strip() == "").to_numpy()
    found = texts.astype(str).str.strip()
    same = (found == value.strip()).to_numpy()
    if "*" in value.strip()[1:] or value.strip()[:1] == "*" != value.strip():
        same = same | np.array([fnmatchcase(text, value.strip()) for text in found], dtype=bool)
    try:
        number = float(value)
    except ValueError:
        return same & ~gap
    import pandas as pd

    return (same | (pd.to_numeric(texts, errors="coerce") == number).to_numpy()) & ~gap
