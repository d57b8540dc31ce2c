"""How good is a partition: against the truth, or by itself in the geometry of the fitted model.

    CER = share of row pairs on which two partitions disagree = 1 - Rand index
    MSE = sum over true centres of the squared distance to the nearest estimated one

The indices of scikit-learn refuse gaps; those below take them, and equal scikit-learn's without
any. Between a row and a point (lam and reference c being the model's)

    d2(x_i, y) = sum_{j observed} (x_ij - y_j)^2 + lam * sum_{j missing} (y_j - c_j)^2

and between two rows the same rule with "a gap costs lam times the distance from c" read from
either side: both observed (x - y)^2, one observed lam (x - c)^2, both missing 0.
"""

from __future__ import annotations

import copy
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from sklearn.metrics import pairwise_distances
from sklearn.metrics.cluster import pair_confusion_matrix
from sklearn.utils import check_array, check_consistent_length, check_random_state

from .._kmeans import MNARKMeans
from .._validation import observe, read_table

_BLOCK_ENTRIES = 4_000_000  # scratch of a block of pairwise distances: 32 MB


def clustering_error_rate(labels_true: ArrayLike, labels_pred: ArrayLike) -> float:
    """Share of row pairs on which two partitions disagree (1 - Rand index).

    Parameters
    ----------
    labels_true, labels_pred : array-like of shape (n_samples,)
        Two partitions of the same rows; the names of the clusters do not matter.

    Returns
    -------
    float
        0 for equal partitions; 1 when every pair is judged differently.

    Examples
    --------
    >>> from mnarkmeans.metrics import clustering_error_rate
    >>> clustering_error_rate([0, 0, 1, 1], ["b", "b", "a", "a"])
    0.0
    >>> round(clustering_error_rate([0, 0, 1, 1], [0, 0, 0, 1]), 3)
    0.5
    """
    labels_true, labels_pred = np.asarray(labels_true), np.asarray(labels_pred)
    check_consistent_length(labels_true, labels_pred)
    if len(labels_true) < 2:
        return 0.0
    pairs = pair_confusion_matrix(labels_true, labels_pred)
    return float((pairs[0, 1] + pairs[1, 0]) / pairs.sum())


def center_mse(centers_true: ArrayLike, centers_pred: ArrayLike) -> float:
    """Sum over true centres of the squared distance to the nearest estimated centre.

    Parameters
    ----------
    centers_true : array-like of shape (k, n_features)
    centers_pred : array-like of shape (m, n_features)

    Returns
    -------
    float

    Examples
    --------
    >>> from mnarkmeans.metrics import center_mse
    >>> center_mse([[0, 0], [3, 0]], [[3, 1], [0, 0]])
    1.0
    """
    truth = check_array(centers_true, dtype=np.float64)
    found = check_array(centers_pred, dtype=np.float64)
    if truth.shape[1] != found.shape[1]:
        raise ValueError(
            f"centers_true has {truth.shape[1]} features and centers_pred has {found.shape[1]}; "
            "give both in the same features."
        )
    return float(pairwise_distances(truth, found, metric="sqeuclidean").min(axis=1).sum())


def silhouette_score(
    X: Any,
    labels_or_model: Any,
    *,
    method: str | None = None,
    sample_size: int | None = None,
    random_state: Any = None,
) -> float:
    """Mean silhouette of the rows of `X`; gaps are welcome.

    A row's silhouette is ``(b - a) / max(a, b)``: a is its distance to its own cluster, b to the
    nearest other one. Rows alone in their cluster count as 0, rows without any observed value are
    left out.

    Parameters
    ----------
    X : array-like or CSR/CSC matrix of shape (n_samples, n_features)
        Rows to judge, in the form the model was fitted on.
    labels_or_model : array-like of shape (n_samples,) or fitted model
        Labels, as for scikit-learn (gaps then stand at the mean of their feature), or a fitted
        model, whose lam and reference say what a gap costs.
    method : {"simplified", "full"}, default=None
        "simplified": distances to the centres, linear in the number of rows; the default for a
        model. "full": mean distances to all rows of a cluster, as scikit-learn's, the default for
        labels; quadratic in time (not in memory), so consider `sample_size`.
    sample_size : int, optional
        Judge a random sample of this many rows.
    random_state : int, RandomState or None
        Seed of that sample.

    Returns
    -------
    float
        Between -1 and 1; larger is better.

    Examples
    --------
    >>> import numpy as np
    >>> from mnarkmeans import MNARKMeans
    >>> from mnarkmeans.metrics import silhouette_score
    >>> X = np.array([[1.0, 1.0], [1.2, np.nan], [5.0, 5.0], [np.nan, 5.2]])
    >>> model = MNARKMeans(2, lam=0.5, random_state=0).fit(X)
    >>> -1 <= silhouette_score(X, model) <= 1
    True
    >>> round(silhouette_score(X, [0, 0, 1, 1]), 2)
    0.29
    """
    if method is None:
        method = "simplified" if hasattr(labels_or_model, "cluster_centers_") else "full"
    if method not in ("simplified", "full"):
        raise ValueError(f'method must be "simplified" or "full", found {method!r}.')
    rows = _partition(X, labels_or_model)
    labels, kept = rows.labels, np.arange(len(rows.labels))
    if sample_size is not None:
        if not 2 <= sample_size <= len(kept):
            raise ValueError(
                f"sample_size must lie between 2 and the {len(kept)} usable rows, found "
                f"{sample_size}."
            )
        kept = check_random_state(random_state).choice(kept, sample_size, replace=False)
        labels = np.unique(labels[kept], return_inverse=True)[1]
        _check_number_of_labels(labels)
    if method == "simplified":
        numbers = np.unique(rows.clusters)  # of the centres that have members
        distance = np.sqrt(rows.to_centers(rows.model.cluster_centers_)[kept][:, numbers])
        at = np.arange(len(kept)), rows.labels[kept]
        own = distance[at]
        distance[at] = np.inf
        other = distance.min(axis=1)
    else:
        own, other = _mean_distances(rows.values[kept], rows.observed[kept], labels, rows.lam)
    return float(silhouettes(own, other, labels).mean())


def silhouettes(own: np.ndarray, other: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """(b - a) / max(a, b) of each row, from its distances a, b; 0 for one alone in its cluster."""
    largest = np.maximum(own, other)
    with np.errstate(invalid="ignore"):
        values = np.where(largest > 0, (other - own) / largest, 0.0)
    alone = np.bincount(labels)[labels] == 1
    return np.where(alone, 0.0, values)


def calinski_harabasz_score(X: Any, labels_or_model: Any) -> float:
    """Calinski-Harabasz index ``[(T - W) / (k - 1)] / [W / (n - k)]`` in the penalised geometry.

    W is the penalised loss of the partition, T that of all rows in one cluster. Without gaps
    T - W is the between-cluster sum of squares, so the index is scikit-learn's.

    Parameters
    ----------
    X : array-like or CSR/CSC matrix of shape (n_samples, n_features)
    labels_or_model : array-like of shape (n_samples,) or fitted model
        As for `silhouette_score`.

    Returns
    -------
    float
        Larger is better.

    Examples
    --------
    >>> import numpy as np
    >>> from mnarkmeans.metrics import calinski_harabasz_score
    >>> X = np.array([[1.0, 1.0], [1.2, np.nan], [5.0, 5.0], [np.nan, 5.2], [5.1, 4.9]])
    >>> calinski_harabasz_score(X, [0, 0, 1, 1, 1]) > 0
    True
    """
    rows = _partition(X, labels_or_model)
    n, k = len(rows.labels), rows.labels.max() + 1
    within = rows.squares_to_own(rows.labels).sum()
    total = rows.squares_to_own(np.zeros_like(rows.labels)).sum()
    if within == 0:
        return 1.0  # scikit-learn's convention
    return float((total - within) * (n - k) / (within * (k - 1)))


def davies_bouldin_score(X: Any, labels_or_model: Any) -> float:
    """Davies-Bouldin index in the penalised geometry: mean over clusters of the worst overlap.

    The overlap of clusters l and m is ``(s_l + s_m) / d_lm``: s_l is the mean distance of the rows
    of l to its centre, d_lm the distance of the two centres as the rows of l and m see it, that is
    with each feature weighted by its observed share in them plus lam times its missing share.
    Without gaps every weight is 1 and the index is scikit-learn's.

    Parameters
    ----------
    X : array-like or CSR/CSC matrix of shape (n_samples, n_features)
    labels_or_model : array-like of shape (n_samples,) or fitted model
        As for `silhouette_score`.

    Returns
    -------
    float
        Smaller is better.

    Examples
    --------
    >>> import numpy as np
    >>> from mnarkmeans.metrics import davies_bouldin_score
    >>> X = np.array([[1.0, 1.0], [1.2, np.nan], [5.0, 5.0], [np.nan, 5.2], [5.1, 4.9]])
    >>> davies_bouldin_score(X, [0, 0, 1, 1, 1]) > 0
    True
    """
    rows = _partition(X, labels_or_model)
    centers, counts, sizes = rows.best_centers(rows.labels)
    spread = np.bincount(rows.labels, np.sqrt(rows.squares_to_own(rows.labels))) / sizes
    worst = np.zeros(len(centers))
    for one in range(len(centers)):
        observed = (counts[one] + counts) / (sizes[one] + sizes)[:, None]
        weight = observed + rows.lam * (1 - observed)
        apart = np.sqrt((weight * np.square(centers[one] - centers)).sum(axis=1))
        overlap = np.divide(spread[one] + spread, apart, out=np.zeros(len(apart)), where=apart > 0)
        worst[one] = np.delete(overlap, one).max()
    return float(worst.mean())


# --- rows in the geometry of a model --------------------------------------------------------------


class Rows(NamedTuple):
    """The rows of X with at least one observed value, as a model sees them."""

    X: Any
    model: Any
    used: np.ndarray  # which rows of X
    values: Any  # minus the reference, 0 in the gaps
    observed: Any  # 1 or 0; both dense, or both CSR with the same structure
    clusters: np.ndarray  # by the model
    labels: np.ndarray  # the same, numbered without empty ones

    @property
    def lam(self) -> np.ndarray:
        """(p,)"""
        return np.broadcast_to(np.asarray(self.model.lam_, dtype=float), self.values.shape[1])

    def to_centers(self, centers: np.ndarray) -> np.ndarray:
        """(n, k) squared distances, by direct differences."""
        model = copy.copy(self.model)
        model.cluster_centers_ = centers
        return np.square(np.asarray(model.transform(self.X), dtype=np.float64)[self.used])

    def best_centers(self, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Of a partition: centres (k, p), observed entries (k, p) and rows (k,).

        A centre is at the reference where no value pulls.
        """
        n = len(labels)
        member = sp.csr_array((np.ones(n), (labels, np.arange(n))))
        sums, counts = _dense(member @ self.values), _dense(member @ self.observed)
        sizes = np.bincount(labels).astype(float)
        pull = counts + self.lam * (sizes[:, None] - counts)
        centers = np.divide(sums, pull, out=np.zeros_like(pull), where=pull > 0)
        return centers + self.model.reference_, counts, sizes

    def squares_to_own(self, labels: np.ndarray) -> np.ndarray:
        """(n,) squared distances to the best centres of a partition."""
        return self.to_centers(self.best_centers(labels)[0])[np.arange(len(labels)), labels]


def usable_rows(X: Any, model: Any) -> Rows:
    """The rows as the model reads them; those without an observed value are left out."""
    values, mask = model._observe(X).zero_filled()
    used = np.flatnonzero(np.asarray(mask.sum(axis=1)).ravel() > 0)
    clusters = np.asarray(model.predict(X))[used]
    labels = np.unique(clusters, return_inverse=True)[1]
    return Rows(X, model, used, values[used], mask[used], clusters, labels)


def _partition(X: Any, labels_or_model: Any) -> Rows:
    """The rows to judge; for labels, gaps stand at the means: lam = 1 with these for reference."""
    if hasattr(labels_or_model, "cluster_centers_"):
        rows = usable_rows(X, labels_or_model)
    else:
        labels = np.asarray(labels_or_model)
        model = MNARKMeans(lam=1.0)
        observed = observe(read_table(model, X, reset=True))
        if labels.shape != (observed.n_rows,):
            raise ValueError(
                f"Give a fitted model, or one label per row: {observed.n_rows} rows, and labels of "
                f"shape {labels.shape}."
            )
        model.lam_, model.reference_ = 1.0, observed.means
        model.cluster_centers_ = observed.means[None]
        rows = usable_rows(X, model)
        numbers = np.unique(labels[rows.used], return_inverse=True)[1]
        model.cluster_centers_ = rows.best_centers(numbers)[0]
        rows = rows._replace(labels=numbers, clusters=numbers)
    _check_number_of_labels(rows.labels)
    return rows


def _check_number_of_labels(labels: np.ndarray) -> None:
    found = len(np.unique(labels))
    if not 2 <= found < len(labels):
        raise ValueError(
            f"The rows fall into {found} cluster(s) and there are {len(labels)} usable rows; "
            "the index needs at least 2 clusters and more rows than clusters."
        )


def _mean_distances(
    values: Any, observed: Any, labels: np.ndarray, lam: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Mean distance to the other rows of the own cluster, and to the nearest other cluster.

    With V the shifted zero-filled values and O the 0/1 pattern, A = ((1 - lam) V^2) O' holds the
    squares of row i over what row j observes, and r_i = sum_j lam_j v_ij^2:

        D^2 = A + A' - 2 V V' + r_i + r_j
    """
    values = _recentered(values, observed, lam)
    n, k = len(labels), labels.max() + 1
    member = np.eye(k)[labels]
    sizes = member.sum(axis=0)
    squares = values.multiply(values).tocsr() if sp.issparse(values) else values**2
    norms = np.asarray(squares @ lam).ravel()
    rest = squares @ sp.diags_array(1.0 - lam) if sp.issparse(squares) else squares * (1.0 - lam)

    own, other = np.empty(n), np.empty(n)
    step = max(1, _BLOCK_ENTRIES // n)
    for start in range(0, n, step):
        block = slice(start, min(start + step, n))
        squared = _dense(rest[block] @ observed.T) + _dense(observed[block] @ rest.T)
        squared += norms[block, None] + norms[None, :] - 2 * _dense(values[block] @ values.T)
        squared[np.arange(len(squared)), np.arange(block.start, block.stop)] = 0.0
        means = np.sqrt(np.maximum(squared, 0.0)) @ member
        here = np.arange(len(means)), labels[block]
        own[block] = means[here] / np.maximum(sizes[labels[block]] - 1, 1)
        means /= sizes
        means[here] = np.inf
        other[block] = means.min(axis=1)
    return own, other


def _recentered(values: Any, observed: Any, lam: np.ndarray) -> Any:
    """Move features nobody misses (or all, when gaps cost nothing) to mean 0.

    Distances do not change, and data far from the origin keep their digits.
    """
    counts = np.asarray(observed.sum(axis=0)).ravel()
    free = (counts == values.shape[0]) | (lam == 0)
    total = np.asarray(values.sum(axis=0)).ravel()
    shift = np.where(free & (counts > 0), total / np.maximum(counts, 1), 0.0)
    if sp.issparse(values):
        moved = values.copy()
        moved.data = moved.data - shift[moved.indices]
        return moved
    return np.where(observed > 0, values - shift, 0.0)


def _dense(product: Any) -> np.ndarray:
    return product.toarray() if sp.issparse(product) else np.asarray(product)
