"""Which features make a cluster, gaps taken into account.

A row tells about a feature twice: whether it was observed, and if so, its value. With q1, q0 the
observed shares inside and outside the cluster, m1, m0 the means and s the pooled deviation of what
was observed (c1 and c0 entries of n1 and n0 rows):

    d = J (m1 - m0) / s,  J = 1 - 3 / (4 f - 1)        difference of the values
    h = 2 arcsin sqrt q1 - 2 arcsin sqrt q0            difference of the observed shares
    effect^2 = (q1 + q0) / 2 * [d^2 - 1/c1 - 1/c0]+  +  [h^2 - 1/n1 - 1/n0]+

d and h are Cohen's effect sizes, both on the same scale (0.2 small, 0.5 medium, 0.8 large); the
values count as often as they are seen, and what chance alone gives to so few entries is taken off.
J is Hedges' correction with f = c1 + c0 - 2: a deviation of few values is often far too small, and
two or three say nothing of it (J = 0). Without gaps effect is |d|, less that. The clusters were
made from these very numbers, so there is no p-value to be had.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from sklearn.utils import Bunch, check_array, check_consistent_length

from .._io import require
from .._observed import with_nan
from .._validation import native

LARGEST = 1e3  # of |d|, where the values do not vary at all
DIRECTIONS = ("higher", "lower", "seen more often", "seen less often")
_BLOCK_ENTRIES = 4_000_000


class Markers(Bunch):
    """Columns of a table, one entry per cluster and feature, the strongest of each cluster first.

    Each is an array, as item or attribute; `to_frame()` makes a pandas DataFrame of them.
    """

    def to_frame(self) -> Any:
        """The table as a pandas DataFrame."""
        return require("pandas", "cli").DataFrame(dict(self))


class Contrasts(NamedTuple):
    """Each cluster against the rest: arrays (k, p)."""

    effect: np.ndarray
    direction: np.ndarray  # index into DIRECTIONS
    mean_inside: np.ndarray  # NaN where nothing was observed
    mean_outside: np.ndarray
    observed_inside: np.ndarray
    observed_outside: np.ndarray

    @property
    def signed(self) -> np.ndarray:
        """The effect, negative where values are lower or seen less often."""
        return np.where(self.direction % 2 == 0, self.effect, -self.effect)


def cluster_markers(
    X: Any,
    labels: ArrayLike,
    *,
    top: int | None = None,
    feature_names: Any = None,
    missing_values: float = np.nan,
) -> Markers:
    """The features that make each cluster: how it differs from all other rows.

    Parameters
    ----------
    X : array-like or CSR/CSC matrix of shape (n_samples, n_features)
        Rows with gaps; in a sparse matrix what is not stored is missing.
    labels : array-like of shape (n_samples,)
        Cluster of each row.
    top : int, default=None
        So many features of each cluster; None: all.
    feature_names : sequence of str, default=None
        None: those of a data frame, or x0, x1, ...
    missing_values : float, default=nan
        How gaps are marked in dense input.

    Returns
    -------
    Markers
        ``cluster``, ``rank`` (from 1), ``feature``, ``effect`` (values and gaps together, on the
        scale of Cohen's d), ``direction`` ("higher", "lower", "seen more often", "seen less
        often": the stronger of the two reasons), ``mean_inside``, ``mean_outside`` (of observed
        values), ``observed_inside``, ``observed_outside`` (shares). `to_frame()` gives a DataFrame.

    Notes
    -----
    The effect describes the clusters that were found. It is no test: the same numbers made the
    clusters. With one cluster there is nothing to compare, and the table is empty.

    Examples
    --------
    >>> import numpy as np
    >>> from mnarkmeans.metrics import cluster_markers
    >>> rng = np.random.default_rng(0)
    >>> labels = np.repeat([0, 1], 50)
    >>> X = rng.normal(size=(100, 3))
    >>> X[labels == 1, 0] += 4.0                # b is higher in cluster 1 ...
    >>> X[:40, 2] = np.nan                      # ... and c is hardly seen in cluster 0
    >>> found = cluster_markers(X, labels, top=2, feature_names=["b", "a", "c"])
    >>> for line in zip(found.cluster, found.feature, found.direction):
    ...     print(*line)
    0 b lower
    0 c seen less often
    1 b higher
    1 c seen more often
    """
    if top is not None and top < 1:
        raise ValueError(f"top must be at least 1, or None for all features; found {top!r}.")
    X = native(X)
    names = getattr(X, "columns", None) if feature_names is None else feature_names
    values = _table(X, missing_values)
    labels = np.asarray(labels)
    if labels.ndim != 1:
        raise ValueError(f"labels must have one entry per row; found an array {labels.shape}.")
    check_consistent_length(values, labels)
    names = [f"x{j}" for j in range(values.shape[1])] if names is None else list(names)
    if len(names) != values.shape[1]:
        raise ValueError(f"{len(names)} feature_names for {values.shape[1]} features.")
    clusters, index = np.unique(labels, return_inverse=True)
    found = contrasts(values, index, len(clusters))
    return ranked(found, clusters, np.asarray(names, dtype=object), top)


def contrasts(X: Any, labels: np.ndarray, k: int) -> Contrasts:
    """Every cluster 0..k-1 against the rest; a cluster without rows, or the only one, has none."""
    shift, count, total, square = _moments(X, labels, k)
    n1 = np.bincount(labels, minlength=k).astype(float)[:, None]
    n0 = n1.sum() - n1
    c1, c0 = count, count.sum(axis=0) - count
    m1, s1 = _mean_and_squares(c1, total, square)
    m0, s0 = _mean_and_squares(c0, total.sum(axis=0) - total, square.sum(axis=0) - square)
    with np.errstate(divide="ignore", invalid="ignore"):
        freedom = np.maximum(c1 + c0 - 2.0, 1.0)
        deviation = np.sqrt((s1 + s0) / freedom)
        difference = np.where((c1 > 0) & (c0 > 0), m1 - m0, 0.0)
        difference *= 1.0 - 3.0 / (4.0 * freedom - 1.0)
        d = np.clip(np.where(difference == 0.0, 0.0, difference / deviation), -LARGEST, LARGEST)
        q1, q0 = np.minimum(c1 / n1, 1.0), np.minimum(c0 / n0, 1.0)
        h = 2.0 * (np.arcsin(np.sqrt(q1)) - np.arcsin(np.sqrt(q0)))
        by_value = (q1 + q0) / 2.0 * np.maximum(d**2 - 1.0 / c1 - 1.0 / c0, 0.0)
        by_gaps = np.maximum(h**2 - 1.0 / n1 - 1.0 / n0, 0.0)
        effect = np.sqrt(by_value + by_gaps)
    apart = (n1 > 0) & (n0 > 0)
    effect = np.where(apart & np.isfinite(effect), effect, 0.0)
    gaps_first = by_gaps > by_value
    direction = np.where(gaps_first, 2 + (h < 0), (d < 0).astype(int))
    nothing = np.nan
    return Contrasts(
        effect, direction,
        np.where(c1 > 0, m1 + shift, nothing), np.where(c0 > 0, m0 + shift, nothing),
        np.where(n1 > 0, q1, nothing), np.where(n0 > 0, q0, nothing),
    )  # fmt: skip


def ranked(found: Contrasts, clusters: Any, names: Any, top: int | None) -> Markers:
    """The strongest features of each cluster, as columns; those that say nothing are left out."""
    columns: dict[str, list[Any]] = {"cluster": [], "rank": [], "j": [], "l": []}
    for l, name in enumerate(clusters):
        order = np.argsort(-found.effect[l], kind="stable")
        order = order[found.effect[l][order] > 0][:top]
        columns["cluster"] += [name] * len(order)
        columns["rank"] += range(1, len(order) + 1)
        columns["j"] += order.tolist()
        columns["l"] += [l] * len(order)
    at = np.array(columns["l"], int), np.array(columns["j"], int)
    return Markers(
        cluster=np.array(columns["cluster"], dtype=np.asarray(clusters).dtype),
        rank=np.array(columns["rank"], dtype=int),
        feature=np.asarray(names)[at[1]],
        effect=found.effect[at],
        direction=np.array(DIRECTIONS, dtype=object)[found.direction[at]],
        mean_inside=found.mean_inside[at],
        mean_outside=found.mean_outside[at],
        observed_inside=found.observed_inside[at],
        observed_outside=found.observed_outside[at],
    )


def _table(X: Any, missing_values: float) -> Any:
    """Numbers with NaN for gaps; the unstored entries of a sparse matrix are gaps too."""
    values = check_array(
        X, accept_sparse="csr", dtype=[np.float64, np.float32], ensure_all_finite="allow-nan"
    )
    return with_nan(values, missing_values)


def _moments(X: Any, labels: np.ndarray, k: int) -> tuple[np.ndarray, ...]:
    """Shift (p,); counts, sums and squares (k, p) of the observed values minus the shift."""
    n, p = X.shape
    shift = _first_means(X)  # values far from 0 would lose their digits in the squares
    count, total, square = (np.zeros((k, p)) for _ in range(3))
    step = n if sp.issparse(X) else max(1, _BLOCK_ENTRIES // max(p, 1))
    for begin in range(0, n, step):
        rows = X[begin : begin + step]
        own = labels[begin : begin + step]
        member = sp.csr_array((np.ones(len(own)), (own, np.arange(len(own)))), shape=(k, len(own)))
        for into, part in zip((count, total, square), _parts(rows, shift), strict=True):
            product = member @ part
            into += product.toarray() if sp.issparse(product) else product
    return shift, count, total, square


def _first_means(X: Any) -> np.ndarray:
    """Observed mean of each feature; 0 where it has none."""
    if sp.issparse(X):
        seen = ~np.isnan(X.data)
        count = np.bincount(X.indices[seen], minlength=X.shape[1])
        total = np.bincount(
            X.indices[seen], weights=X.data[seen].astype(float), minlength=X.shape[1]
        )
    else:
        part = X[: max(1, _BLOCK_ENTRIES // max(X.shape[1], 1))]  # any value nearby will do
        count = (~np.isnan(part)).sum(axis=0)
        total = np.nansum(part, axis=0, dtype=np.float64)
    return total / np.maximum(count, 1)


def _parts(rows: Any, shift: np.ndarray) -> tuple[Any, Any, Any]:
    """Mask, values and squares of a block, 0 in the gaps."""
    if sp.issparse(rows):
        mask = sp.csr_array(rows, dtype=np.float64, copy=True)
        seen = ~np.isnan(mask.data)
        value, square = mask.copy(), mask.copy()
        value.data = np.where(seen, mask.data - shift[mask.indices], 0.0)
        square.data = value.data**2
        mask.data = seen.astype(np.float64)
        return mask, value, square
    seen = ~np.isnan(rows)
    value = np.where(seen, rows - shift, 0.0)
    return seen.astype(np.float64), value, value**2


def _mean_and_squares(count: Any, total: Any, square: Any) -> tuple[np.ndarray, np.ndarray]:
    """Mean, and sum of squares around it."""
    mean = total / np.maximum(count, 1.0)
    return mean, np.maximum(square - mean * total, 0.0)
