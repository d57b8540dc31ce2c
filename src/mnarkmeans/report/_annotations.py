"""What is known of the rows besides the table: batch, group, time. Crossed with the clusters.

An annotation is a name and one value per row, None or NaN where unknown. Numbers of many values are
cut into quarters for the table and keep their scale in the picture.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

from ._numbers import number, rounded

MOST_GROUPS = 30
FEW_VALUES = 12  # a number with no more is a name of a group


def crossed(
    annotations: Mapping[str, Sequence[Any]], labels: np.ndarray, kept: np.ndarray
) -> list[dict[str, Any]]:
    """For each annotation: the values of the rows `kept`, and its groups against the clusters.

    Examples
    --------
    >>> told = crossed({"batch": ["a", "a", "b", None]}, np.array([0, 0, 1, 1]), np.arange(4))[0]
    >>> told["groups"], told["counts"], told["unknown"]
    (['a', 'b'], [[2, 0], [0, 1]], 1)
    """
    return [_one(str(name), values, labels, kept) for name, values in annotations.items()]


def _one(name: str, values: Any, labels: np.ndarray, kept: np.ndarray) -> dict[str, Any]:
    values = np.asarray(values, dtype=object)
    if values.shape != labels.shape:
        raise ValueError(
            f"annotation {name!r} has {values.size} values for {labels.size} rows; give one per "
            "row."
        )
    numbers = _as_numbers(values)
    if numbers is None:
        codes, groups = _groups(values)
    else:
        codes, groups = _quarters(numbers)
    known = codes >= 0
    counts = np.zeros((int(labels.max()) + 1, len(groups)), int)
    np.add.at(counts, (labels[known], codes[known]), 1)
    several = len(groups) > 1 and known.any()
    both = codes[known], labels[known]
    return {
        "name": name,
        "groups": groups,
        "counts": counts.tolist(),
        "unknown": int((~known).sum()),
        "codes": codes[kept].tolist(),
        "values": None if numbers is None else rounded(numbers[kept]),
        "ari": float(adjusted_rand_score(*both)) if several else None,
        "nmi": float(normalized_mutual_info_score(*both)) if several else None,
    }


def _unknown(value: Any) -> bool:
    return value is None or value == "" or (isinstance(value, float) and np.isnan(value))


def _as_numbers(values: np.ndarray) -> np.ndarray | None:
    """Floats with NaN where unknown, if all are numbers and of many values."""
    try:
        numbers = np.array([np.nan if _unknown(v) else float(v) for v in values])
    except (TypeError, ValueError):
        return None
    finite = numbers[np.isfinite(numbers)]
    if len(np.unique(finite)) <= FEW_VALUES:
        return None
    return np.where(np.isfinite(numbers), numbers, np.nan)


def _groups(values: np.ndarray) -> tuple[np.ndarray, list[str]]:
    """Codes (-1 unknown) and names, the rarest beyond so many groups together."""
    texts = np.array(["" if _unknown(v) else _text(v) for v in values], dtype=object)
    names, counts = np.unique(texts[texts != ""].astype(str), return_counts=True)
    if len(names) > MOST_GROUPS:
        most = np.sort(np.argsort(-counts, kind="stable")[: MOST_GROUPS - 1])
        place = {str(name): i for i, name in enumerate(names[most])}
        groups, rest = [*map(str, names[most]), f"{len(names) - len(most)} others"], len(most)
    else:
        place, groups, rest = {str(n): i for i, n in enumerate(names)}, list(map(str, names)), -1
    codes = np.array([-1 if t == "" else place.get(str(t), rest) for t in texts], dtype=int)
    return codes, groups


def _text(value: Any) -> str:
    """A group as it is called; a number that is not whole with four digits."""
    return number(value) if isinstance(value, float) and value != round(value) else str(value)


def _quarters(numbers: np.ndarray) -> tuple[np.ndarray, list[str]]:
    known = np.isfinite(numbers)
    edges = np.unique(np.quantile(numbers[known], [0.0, 0.25, 0.5, 0.75, 1.0]))
    codes = np.full(len(numbers), -1)
    inside = np.searchsorted(edges, numbers[known], side="right") - 1
    codes[known] = np.clip(inside, 0, len(edges) - 2)
    return codes, [f"{number(float(a))} to {number(float(b))}" for a, b in pairwise(edges)]


def agreement(annotations: Mapping[str, Sequence[Any]], labels: np.ndarray) -> list[dict[str, Any]]:
    """How far each annotation agrees with the clusters.

    For groups the adjusted Rand index (1: the same partition, 0: as by chance), for numbers eta
    squared, the share of their variance that lies between clusters.
    """
    found = []
    for one in crossed(annotations, labels, np.arange(len(labels))):
        groups = one["values"] is None
        value = one["ari"] if groups else eta_squared(np.array(one["values"], float), labels)
        found.append(
            {
                "column": one["name"],
                "kind": "groups" if groups else "numbers",
                "measure": "adjusted Rand" if groups else "eta squared",
                "agreement": value,
                "unknown": one["unknown"],
                "groups": one["groups"],
                "rows_by_cluster": one["counts"],
            }
        )
    return found


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
    means = np.bincount(labels, values) / np.maximum(np.bincount(labels), 1)
    return 1.0 - float(np.square(values - means[labels]).sum()) / total
