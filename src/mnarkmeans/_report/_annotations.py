"""What is known of the rows besides the table: batch, group, time. Crossed with the clusters.

An annotation is a name and one value per row, None or NaN where unknown. Numbers of many values are
cut into quarters for the table and keep their scale in the picture.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

from ..displays._numbers import rounded
from ..metrics._annotations import grouped


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
    codes, groups, numbers = grouped(name, values, labels)
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
