"""Annotations of the rows (batch, run, plate, group, time) against the clusters.

ARI    adjusted Rand index: 1 the same partition, 0 what chance gives
nested adjusted mutual information over the smaller of the two entropies: 1 where one partition is a
       refinement of the other, 0 what chance gives
p      of the chi-squared test of independence

`nested` decides about warnings, because clusters that split every batch in two still follow it.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import chi2_contingency
from sklearn.metrics import adjusted_mutual_info_score, adjusted_rand_score
from sklearn.metrics.cluster import contingency_matrix

from .._io import plain

MOST_GROUPS = 30
UNKNOWN = {"", "None", "nan", "<NA>", "NaT"}
FEW_VALUES = 12  # numbers with no more different values name groups
WARNS, LEVEL = (
    0.5,
    0.01,
)  # from which `nested`, and below which p, the clusters follow an annotation


class Agreement(NamedTuple):
    """An annotation as groups of rows, and how far they agree with the clusters."""

    name: str
    codes: np.ndarray  # (n,) group of each row, -1 where unknown
    groups: list[str]  # at most MOST_GROUPS, the rarest together
    numbers: np.ndarray | None  # where the values are numbers; their groups are quarters
    counts: np.ndarray  # (clusters, groups) rows
    ari: float  # of the rows that are known; NaN where there is one group
    nested: float  # NaN, as p, where the values are all the same, or nearly all different
    p: float

    @property
    def unknown(self) -> int:
        return int((self.codes < 0).sum())

    @property
    def warns(self) -> bool:
        """Whether the clusters follow the annotation as they would follow a batch."""
        return self.nested >= WARNS and self.p < LEVEL

    @property
    def sentence(self) -> str:
        if not self.warns:
            return f"The clusters do not follow {self.name!r} (adjusted Rand index {self.ari:.2f})."
        how = f"adjusted Rand index {self.ari:.2f}"
        if self.ari < WARNS:
            how = f"one subdivides the other; adjusted mutual information {self.nested:.2f}"
        return (
            f"The clusters follow {self.name!r} ({how}; 0 would be chance). If it is a batch, "
            f"cluster again with --batch {self.name}; if it is the grouping you want, it has been "
            "found."
        )

    def to_dict(self) -> dict[str, Any]:
        """For summary.json."""
        return plain({
            "column": self.name, "agreement": self.ari, "unknown": self.unknown,
            "groups": self.groups, "rows_by_cluster": self.counts,
        })  # fmt: skip


def agreement(name: Any, values: Any, labels: np.ndarray) -> Agreement:
    """One annotation against labels 0, 1, ...

    None, NaN and "" are unknown values; numbers of many values are cut into quarters.
    """
    values = np.asarray(values, dtype=object)
    if values.shape != labels.shape:
        raise ValueError(
            f"annotation {str(name)!r} has {values.size} values for {labels.size} rows; give one "
            "per row."
        )
    known = np.array([str(v) not in UNKNOWN for v in values], dtype=bool)
    numbers = _as_numbers(values, known)
    if numbers is not None:
        known = np.isfinite(numbers)
        edges = np.unique(np.quantile(numbers[known], [0.0, 0.25, 0.5, 0.75, 1.0]))
        codes = np.searchsorted(edges[1:-1], numbers, side="right")
        groups = [f"{a:.4g} to {b:.4g}" for a, b in pairwise(edges)]
        n_groups = len(groups)
    else:
        texts = np.array([f"{v:.4g}" if isinstance(v, float) and v % 1 else str(v) for v in values])
        names, sizes = np.unique(texts[known], return_counts=True)
        n_groups = len(names)
        if n_groups > MOST_GROUPS:
            rare = names[np.argsort(-sizes, kind="stable")[MOST_GROUPS - 1 :]]
            texts = np.where(np.isin(texts, rare), f"{len(rare)} others", texts)
        names = np.unique(texts[known])
        groups, codes = names.tolist(), np.searchsorted(names, texts)
    clusters, codes = labels[known], np.where(known, codes, -1)
    counts = np.zeros((int(labels.max(initial=0)) + 1, len(groups)), int)
    np.add.at(counts, (clusters, codes[known]), 1)
    ari = float(adjusted_rand_score(codes[known], clusters)) if n_groups > 1 else np.nan
    nested = p = np.nan
    if 1 < n_groups <= min(MOST_GROUPS, known.sum() / 2) and len(np.unique(clusters)) > 1:
        nested = float(adjusted_mutual_info_score(codes[known], clusters, average_method="min"))
        p = p_of_independence(codes[known], clusters)
    return Agreement(str(name), codes, groups, numbers, counts, ari, nested, p)


def p_of_independence(one: np.ndarray, two: np.ndarray) -> float:
    """The p-value of the chi-squared test of two partitions; 1 if either has one part only."""
    counts = contingency_matrix(one, two)
    return float(chi2_contingency(counts).pvalue) if min(counts.shape) > 1 else 1.0


def _as_numbers(values: np.ndarray, known: np.ndarray) -> np.ndarray | None:
    """Floats with NaN where unknown, if all are numbers and many are different."""
    try:
        numbers = np.array([float(v) if k else np.nan for v, k in zip(values, known, strict=True)])
    except (TypeError, ValueError):
        return None
    numbers[~np.isfinite(numbers)] = np.nan
    return numbers if len(np.unique(numbers[np.isfinite(numbers)])) > FEW_VALUES else None
