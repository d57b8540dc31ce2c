"""What is known of the rows besides the table: a second file, joined by the names of the rows.

How far a column agrees with the clusters is told by

    groups     the adjusted Rand index: 1 the same partition, 0 as by chance
    numbers    eta squared, the share of the variance that lies between clusters,
               1 - sum_i (x_i - mean of its cluster)^2 / sum_i (x_i - mean)^2

and annotations.csv has the rows of each cluster in each group (numbers in quarters).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path, PureWindowsPath
from typing import Any

import numpy as np

from ._console import Console
from ._csv import write_csv
from ._errors import UserError
from ._formats import read_frame
from ._marks import is_sure_mark, read_cells

FILE = "annotations.csv"


@dataclass(frozen=True)
class Annotations:
    """Columns with one value for each row of the table, None where nothing is known."""

    columns: dict[str, list[Any]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def read_annotations(path: Path | None, ids: np.ndarray) -> Annotations:
    """Read a file of annotations and bring it into the order of the rows."""
    if path is None:
        return Annotations()
    frame, decimal = read_frame(path)
    names = [str(i) for i in ids]
    key, place = _joined(path, frame, names)
    where = [place.get(name) for name in names]
    columns = {
        str(name): [None if i is None else values[i] for i in where]
        for name, values in ((n, _values(frame[n], decimal)) for n in frame.columns if n != key)
    }
    if not columns:
        raise UserError(f"{path} has no column besides {key!r}, which names the rows")
    absent = sum(i is None for i in where)
    told = [f"{absent:,} of {len(names):,} rows are not in {path.name}"] if absent else []
    return Annotations(columns, told)


def _joined(path: Path, frame: Any, names: list[str]) -> tuple[str, dict[str, int]]:
    """The column that names the rows, and where each row of the table is in the file."""
    best: tuple[int, str, dict[str, int]] = (0, "", {})
    twice = ""
    for alike in WAYS:
        ours = alike(names)
        wanted = set(ours)
        for column in frame.columns:
            texts = ["" if text is None else str(text).strip() for text in frame[column]]
            for theirs in (texts, alike(texts)):
                times = Counter(text for text in theirs if text and text in wanted)
                if len(times) > best[0] and max(times.values()) > 1:
                    twice = twice or f"{max(times, key=lambda t: times[t])!r} in column {column!r}"
                elif len(times) > best[0]:
                    place = {text: i for i, text in enumerate(theirs)}
                    where = {n: place[o] for n, o in zip(names, ours, strict=True) if o in place}
                    best = len(times), str(column), where
        if best[0] >= 0.5 * len(names):
            break
    if not best[0] and twice:
        raise UserError(f"{path} has more than one row for {twice}; give one for each")
    if not best[0]:
        raise UserError(
            f"no column of {path} has the names of the rows, such as {names[0]!r}; give it one"
        )
    return best[1], best[2]


def _same(names: list[str]) -> list[str]:
    return [name.strip() for name in names]


def _without_folder(names: list[str]) -> list[str]:
    """Names of raw files without their folder and ending."""
    return [PureWindowsPath(name.strip()).stem for name in names]


def _without_common_ends(names: list[str]) -> list[str]:
    """'LFQ intensity A1' and 'LFQ intensity A2' are called A1 and A2: whole words only."""
    if len(set(names)) < 2:
        return names
    begin = _whole_words(_shared_begin(names))
    end = _whole_words(_shared_begin([name[len(begin) :][::-1] for name in names]))
    return [name[len(begin) : len(name) - len(end)].strip() for name in names]


def _shared_begin(names: list[str]) -> str:
    first, last = min(names), max(names)  # those between share what these two do
    same = (i for i, (a, b) in enumerate(zip(first, last, strict=False)) if a != b)
    return first[: next(same, min(len(first), len(last)))]


def _whole_words(text: str) -> str:
    """The text up to its last separator."""
    return text[: max(map(text.rfind, " _.-:/\\")) + 1]


WAYS: tuple[Callable[[list[str]], list[str]], ...] = (_same, _without_common_ends, _without_folder)


def _values(column: Any, decimal: str) -> list[Any]:
    """Numbers where the column holds nothing else, words otherwise."""
    cells = read_cells(column, decimal, ())
    if cells.words or not cells.count:
        return [None if v is None or is_sure_mark(str(v)) else str(v).strip() for v in column]
    return [None if np.isnan(v) else int(v) if v == round(v) else v for v in cells.numbers.tolist()]


def agreements(annotations: Annotations, labels: np.ndarray) -> list[dict[str, Any]]:
    """How far each column agrees with the clusters; groups and their counts beside it."""
    from ..report._annotations import crossed  # on use: the report is slow to import

    told = []
    for found in crossed(annotations.columns, labels, np.arange(len(labels))):
        numbers = found["values"]
        eta = None if numbers is None else eta_squared(np.array(numbers, dtype=float), labels)
        told.append(
            {
                "column": found["name"],
                "kind": "groups" if numbers is None else "numbers",
                "measure": "adjusted Rand" if numbers is None else "eta squared",
                "agreement": found["ari"] if numbers is None else eta,
                "unknown": found["unknown"],
                "groups": found["groups"],
                "rows_by_cluster": found["counts"],
            }
        )
    return told


def eta_squared(values: np.ndarray, labels: np.ndarray) -> float | None:
    """The share of the variance of `values` that lies between clusters; None without variance.

    Examples
    --------
    >>> eta_squared(np.array([1.0, 1.0, 5.0, 5.0]), np.array([0, 0, 1, 1]))
    1.0
    """
    known = np.isfinite(values)
    values, labels = values[known], labels[known]
    total = float(np.square(values - values.mean()).sum()) if values.size else 0.0
    if total <= 0:
        return None
    sums, sizes = np.bincount(labels, values), np.bincount(labels)
    means = sums / np.maximum(sizes, 1)
    return 1.0 - float(np.square(values - means[labels]).sum()) / total


def tell_annotations(console: Console, told: list[dict[str, Any]]) -> None:
    """A line for each column, on the terminal."""
    rows = []
    for one in told:
        worth = "" if one["agreement"] is None else f"{one['agreement']:.2f}"
        rows.append([one["column"], one["measure"], worth, f"{one['unknown']:,}"])
    if rows:
        console.table(
            "agreement with the clusters", ["annotation", "measure", "", "rows unknown"], rows
        )


def write_annotations(path: Path, told: list[dict[str, Any]], safe: bool) -> None:
    """annotations.csv: how many rows of each cluster are in each group of each column."""
    lines = (
        [one["column"], group, cluster, count]
        for one in told
        for cluster, counts in enumerate(one["rows_by_cluster"])
        for group, count in zip(one["groups"], counts, strict=True)
    )
    write_csv(path, ["annotation", "group", "cluster", "rows"], lines, safe=safe)
