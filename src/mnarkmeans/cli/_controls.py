"""Rows and columns that are no samples: pools and blanks, totals and means, rows without a name.

    QC_pool_3   Blank 1          told by a word of their name, or of a column such as Sample Type
    Total   Mittelwert   LOD     told by their name, where the last or first rows are called so
    (empty)                      a row without a name among rows that have one

Clustered with the samples, they are the clusters.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase

import numpy as np

from ._numbering import words_of
from ._table import Table

CONTROLS = {
    "qc", "qcs", "pool", "pools", "pooled", "blank", "blanks", "blk", "calibrator", "calibrators",
    "calibrant", "empty",
}  # fmt: skip
MOST_CONTROLS = 0.5  # of the samples; where there are more, they are what the table is about
SUMMARIES = {
    "total", "totals", "sum", "mean", "average", "avg", "median", "sd", "std", "stdev", "std dev",
    "standard deviation", "cv", "cv %", "rsd", "min", "max", "minimum", "maximum", "n", "count",
    "lod", "loq", "lloq", "uloq", "grand total",
    "summe", "gesamt", "mittelwert", "mittel", "standardabweichung", "anzahl",
    "moyenne", "somme", "ecart-type", "totale", "media", "somma", "promedio", "suma", "gemiddelde",
    "totaal",
}  # fmt: skip
NEAR_THE_END = 6  # rows at the top and the bottom in which summaries stand


def is_control(name: str) -> bool:
    """Whether a sample of this name is a pool or a blank.

    Examples
    --------
    >>> [is_control(name) for name in ("QC_01", "PooledQC-3.raw", "Blank 2", "Patient 3", "QCA")]
    [True, True, True, False, False]
    """
    return not CONTROLS.isdisjoint(words_of(name))


def control_patterns(names: Sequence[str]) -> list[str]:
    """Patterns that match the pools and blanks among samples and nothing else.

    Examples
    --------
    >>> control_patterns(["S1", "S2", "S3", "S4", "QC_1", "QC_2"])
    ['*QC*']
    """
    found = [name for name in names if is_control(name)]
    if not found or len(found) >= MOST_CONTROLS * len(names):
        return []
    others = [name for name in names if not is_control(name)]
    patterns: list[str] = []
    for name in found:
        if any(fnmatchcase(name, pattern) for pattern in patterns):
            continue
        word = next(w for w in words_of(name, lower=False) if w.lower() in CONTROLS)
        fits = not any(fnmatchcase(other, f"*{word}*") for other in others)
        patterns.append(f"*{word}*" if fits else name)
    return patterns


def control_rows(table: Table) -> list[str]:
    """Rules that drop the pools and blanks where rows are samples."""
    for column, values in table.words.items():
        marked = [value for value in values if is_control(value)]
        if marked and len(marked) < len(values):
            return [f"{column}={value}" for value in marked]
    named_by = table.source.get("id_column")
    if not named_by:
        return []
    return [f"{named_by}={pattern}" for pattern in control_patterns([str(i) for i in table.ids])]


def summary_rows(table: Table, names: Iterable[str]) -> list[str]:
    """Rules that drop totals, means and rows without a name from the rows of a file."""
    named_by, names = table.source.get("id_column"), list(names)
    if not named_by or len(names) <= 2 * NEAR_THE_END:
        return []
    ends = np.r_[names[:NEAR_THE_END], names[-NEAR_THE_END:]].tolist()
    found = [name for name in ends if name.strip().rstrip(":.").lower() in SUMMARIES]
    rules = [f"{named_by}={name}" for name in dict.fromkeys(found)]
    return rules + ([f"{named_by}="] if table.source.get("unnamed_rows") else [])
