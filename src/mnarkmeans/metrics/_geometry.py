"""Distances between rows with gaps, in the geometry of a fitted model (lam, reference c).

Between a row and a point

    d2(x_i, y) = sum_{j observed} (x_ij - y_j)^2 + lam * sum_{j missing} (y_j - c_j)^2

and between two rows the same rule with "a gap costs lam times the distance from c" read from
either side: both observed (x - y)^2, one observed lam (x - c)^2, both missing 0.
Without gaps all of these are the ordinary Euclidean ones, whatever lam.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state

from .._validation import observe, read_table

_BLOCK_ENTRIES = 4_000_000  # scratch of a block of pairwise distances: 32 MB


class Rows(NamedTuple):
    """Rows with at least one observed value.

    `values` are shifted by the reference and 0 in the gaps, `observed` is 1 or 0 (both dense, or
    both CSR with the same structure); `labels` are the model's.
    """

    values: Any
    observed: Any
    labels: np.ndarray


class Sums(NamedTuple):
    sums: np.ndarray  # (k, p) of shifted observed values
    counts: np.ndarray  # (k, p) observed
    sizes: np.ndarray  # (k,)


class Labelled:
    """Given labels in the form of a fitted model: gaps stand at the mean of their feature.

    That is lam = 1 with the means for reference, and the best centres for these labels.
    """

    def __init__(self, X: Any, labels: Any) -> None:
        self._observed = observe(read_table(_Table(), X, reset=True))
        self._observed = replace(self._observed, reference=self._observed.means)
        self.reference_, self.lam_ = self._observed.reference, 1.0
        labels = np.asarray(labels)
        if labels.shape != (self._observed.n_rows,):
            raise ValueError(
                f"Give a fitted model, or one label per row: {self._observed.n_rows} rows, and "
                f"labels of shape {labels.shape}."
            )
        self._labels = np.unique(labels, return_inverse=True)[1]
        rows, _ = usable_rows(X, self)
        sums = cluster_sums(rows, rows.labels)
        self.cluster_centers_ = optimal_centers(sums, np.ones(len(self.reference_)))
        self.cluster_centers_ += self.reference_

    def _observe(self, X: Any) -> Any:
        return self._observed

    def predict(self, X: Any) -> np.ndarray:
        return self._labels


class _Table(BaseEstimator):
    """Whose table is read."""


def as_model(X: Any, labels_or_model: Any) -> Any:
    """A fitted model as it is; labels as one."""
    fitted = hasattr(labels_or_model, "cluster_centers_")
    return labels_or_model if fitted else Labelled(X, labels_or_model)


def usable_rows(X: Any, model: Any) -> tuple[Rows, np.ndarray]:
    """The rows as the model reads them, and which: those without an observed value are left out."""
    observed = model._observe(X)
    values, mask = observed.zero_filled()
    used = np.flatnonzero(np.asarray(mask.sum(axis=1)).ravel() > 0)
    return Rows(values[used], mask[used], model.predict(X)[used]), used


def sample(rows: Rows, size: int, random_state: Any) -> Rows:
    n = len(rows.labels)
    if not 2 <= size <= n:
        raise ValueError(f"sample_size must lie between 2 and the {n} usable rows, found {size}.")
    chosen = check_random_state(random_state).choice(n, size, replace=False)
    return Rows(*(part[chosen] for part in rows))


def penalties(model: Any) -> np.ndarray:
    """lam of each feature (p,)."""
    p = model.cluster_centers_.shape[1]
    return np.broadcast_to(np.asarray(model.lam_, dtype=np.float64), (p,))


def distances_to_centers(rows: Rows, model: Any) -> tuple[np.ndarray, np.ndarray]:
    """Distance to the own centre and to the nearest other one that has members."""
    lam, reference = penalties(model), np.asarray(model.reference_, dtype=float)
    centers = np.asarray(model.cluster_centers_, dtype=np.float64) - reference
    distance = np.full((len(rows.labels), len(centers)), np.inf)
    for label in np.unique(rows.labels):
        distance[:, label] = np.sqrt(_squared_distances(rows, centers[label], lam))
    own = distance[np.arange(len(distance)), rows.labels]
    distance[np.arange(len(distance)), rows.labels] = np.inf
    return own, distance.min(axis=1)


def _squared_distances(rows: Rows, center: np.ndarray, lam: np.ndarray) -> np.ndarray:
    """Squared distance of every row to one (shifted) centre, by direct differences."""
    if sp.issparse(rows.values):
        entry = rows.values.copy()
        column = center[entry.indices]
        entry.data = (entry.data - column) ** 2 - lam[entry.indices] * column**2
        return np.maximum(np.asarray(entry.sum(axis=1)).ravel() + lam @ center**2, 0.0)
    return np.where(rows.observed > 0, (rows.values - center) ** 2, lam * center**2).sum(axis=1)


def cluster_sums(rows: Rows, labels: np.ndarray) -> Sums:
    member = sp.csr_array((np.ones(len(labels)), (labels, np.arange(len(labels)))))
    sums, counts = member @ rows.values, member @ rows.observed
    return Sums(_dense(sums), _dense(counts), np.bincount(labels).astype(float))


def optimal_centers(sums: Sums, lam: np.ndarray) -> np.ndarray:
    """Best (shifted) centres of a partition; the reference where no value pulls."""
    pull = sums.counts + lam * (sums.sizes[:, None] - sums.counts)
    return np.divide(sums.sums, pull, out=np.zeros_like(pull), where=pull > 0)


def squared_distances_to_own_center(rows: Rows, labels: np.ndarray, lam: np.ndarray) -> np.ndarray:
    centers = optimal_centers(cluster_sums(rows, labels), lam)
    squared = np.empty(len(labels))
    for label, center in enumerate(centers):
        members = labels == label
        squared[members] = _squared_distances(Rows(*(part[members] for part in rows)), center, lam)
    return squared


def mean_distances_to_rows(rows: Rows, lam: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean distance to the other rows of the own cluster, and to the nearest other cluster.

    With V the shifted zero-filled values and O the 0/1 pattern, A = ((1 - lam) V^2) O' holds the
    squares of row i over what row j observes, and r_i = sum_j lam_j v_ij^2:

        D^2 = A + A' - 2 V V' + r_i + r_j
    """
    values = _recentered(rows, lam)
    labels = np.unique(rows.labels, return_inverse=True)[1]
    n, k = len(labels), labels.max() + 1
    member = np.zeros((n, k))
    member[np.arange(n), labels] = 1.0
    sizes = member.sum(axis=0)
    squares = values.multiply(values).tocsr() if sp.issparse(values) else values**2
    norms = np.asarray(squares @ lam).ravel()
    rest = squares @ sp.diags_array(1.0 - lam) if sp.issparse(squares) else squares * (1.0 - lam)

    own, other = np.empty(n), np.empty(n)
    step = max(1, _BLOCK_ENTRIES // n)
    for start in range(0, n, step):
        block = slice(start, min(start + step, n))
        squared = _dense(rest[block] @ rows.observed.T)
        squared += _dense(rows.observed[block] @ rest.T)
        squared -= 2 * _dense(values[block] @ values.T)
        squared += norms[block, None] + norms[None, :]
        squared[np.arange(len(squared)), np.arange(block.start, block.stop)] = 0.0
        means = np.sqrt(np.maximum(squared, 0.0)) @ member
        here = np.arange(len(means)), labels[block]
        own[block] = means[here] / np.maximum(sizes[labels[block]] - 1, 1)
        means /= sizes
        means[here] = np.inf
        other[block] = means.min(axis=1)
    return own, other


def _recentered(rows: Rows, lam: np.ndarray) -> Any:
    """Move features nobody misses (or all, when gaps cost nothing) to mean 0.

    Distances do not change, and data far from the origin keep their digits.
    """
    counts = np.asarray(rows.observed.sum(axis=0)).ravel()
    free = (counts == len(rows.labels)) | (lam == 0)
    total = np.asarray(rows.values.sum(axis=0)).ravel()
    shift = np.where(free & (counts > 0), total / np.maximum(counts, 1), 0.0)
    if sp.issparse(rows.values):
        values = rows.values.copy()
        values.data = values.data - shift[values.indices]
        return values
    return np.where(rows.observed > 0, rows.values - shift, 0.0)


def _dense(product: Any) -> np.ndarray:
    return product.toarray() if sp.issparse(product) else np.asarray(product)
