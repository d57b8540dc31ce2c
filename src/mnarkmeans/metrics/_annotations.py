"""Which annotation of the rows (batch, run, plate, group) agrees with the clusters.

ARI    adjusted Rand index: 1 the same partition, 0 what chance gives
nested adjusted mutual information over the smaller of the two entropies: 1 where one partition is a
       refinement of the other, 0 what chance gives
p      of the mutual information under independence, 2 n MI ~ chi^2

A clustering may split every batch in two and still be the batches: that is why `nested` warns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import chi2
from sklearn.metrics import adjusted_mutual_info_score, adjusted_rand_score, mutual_info_score

MOST_GROUPS = 30
FEW_VALUES = 12  # a number with no more is a name of a group
WARNS, LEVEL = 0.5, 0.01  # half of what could be shared; p


class Agreement(NamedTuple):
    """How far one annotation agrees with the clusters."""

    name: str
    ari: float
    nested: float
    p: float
    warns: bool
    sentence: str


class Grouped(NamedTuple):
    """The values of an annotation as groups: -1 where unknown."""

    codes: np.ndarray
    names: list[str]
    numbers: np.ndarray | None  # where the values are numbers, cut into quarters


def annotation_agreement(annotations: Mapping[str, Sequence[Any]], labels: Any) -> list[Agreement]:
    """Annotations against clusters, the closest first.

    Parameters
    ----------
    annotations : mapping
        Name -> one value per row; None, NaN or "" where unknown. Numbers of many values are cut
        into quarters.
    labels : array-like of shape (n_samples,)

    Returns
    -------
    list of Agreement
        `warns` where the clusters follow the annotation as they would follow a batch. Whether it is
        one (a run, a plate) or the answer (a treatment) only the user knows: the sentence says so.

    Examples
    --------
    >>> from mnarkmeans.metrics import annotation_agreement
    >>> found = annotation_agreement({"run": ["a"] * 8 + ["b"] * 8}, [0] * 8 + [1] * 8)
    >>> print(found[0].sentence)
    The clusters follow 'run' (adjusted Rand index 1.00, chance 0.00). If it is a batch, cluster \
again with --batch run; if it is what you look for, it is found.
    """
    labels = np.unique(np.asarray(labels), return_inverse=True)[1]
    found = [_agreement(str(name), values, labels) for name, values in annotations.items()]
    return sorted((one for one in found if one is not None), key=lambda one: -one.nested)


def _agreement(name: str, values: Any, labels: np.ndarray) -> Agreement | None:
    codes, names, _ = grouped(name, values, labels)
    if not names or names[-1].endswith(" others"):
        return None  # names of rows rather than of groups
    known = codes >= 0
    codes, labels = codes[known], labels[known]
    groups, clusters = len(np.unique(codes)), len(np.unique(labels))
    if min(groups, clusters) < 2 or groups > len(codes) / 2:
        return None
    ari = float(adjusted_rand_score(codes, labels))
    nested = float(adjusted_mutual_info_score(codes, labels, average_method="min"))
    shared = 2.0 * len(codes) * mutual_info_score(codes, labels)
    p = float(chi2.sf(shared, (groups - 1) * (clusters - 1)))
    warns = nested >= WARNS and p < LEVEL
    if warns:
        how = (
            f"adjusted Rand index {ari:.2f}" if ari >= WARNS
            else f"one refines the other to {100 * nested:.0f} %"
        )  # fmt: skip
        sentence = (
            f"The clusters follow {name!r} ({how}, chance 0.00). If it is a batch, cluster again "
            f"with --batch {name}; if it is what you look for, it is found."
        )
    else:
        sentence = f"The clusters do not follow {name!r} (adjusted Rand index {ari:.2f})."
    return Agreement(name, ari, nested, p, warns, sentence)


def grouped(name: str, values: Any, labels: np.ndarray) -> Grouped:
    """Groups of an annotation; numbers of many values in quarters.

    Examples
    --------
    >>> grouped("batch", ["b", "a", None], np.zeros(3))
    Grouped(codes=array([ 1,  0, -1]), names=['a', 'b'], numbers=None)
    """
    values = np.asarray(values, dtype=object)
    if values.shape != labels.shape:
        raise ValueError(
            f"annotation {name!r} has {values.size} values for {labels.size} rows; give one per "
            "row."
        )
    numbers = _as_numbers(values)
    if numbers is None:
        return Grouped(*_named(values), None)
    return Grouped(*_quarters(numbers), numbers)


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


def _named(values: np.ndarray) -> tuple[np.ndarray, list[str]]:
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
    return f"{value:.4g}" if isinstance(value, float) and value != round(value) else str(value)


def _quarters(numbers: np.ndarray) -> tuple[np.ndarray, list[str]]:
    known = np.isfinite(numbers)
    edges = np.unique(np.quantile(numbers[known], [0.0, 0.25, 0.5, 0.75, 1.0]))
    codes = np.full(len(numbers), -1)
    inside = np.searchsorted(edges, numbers[known], side="right") - 1
    codes[known] = np.clip(inside, 0, len(edges) - 2)
    return codes, [f"{a:.4g} to {b:.4g}" for a, b in pairwise(edges)]
