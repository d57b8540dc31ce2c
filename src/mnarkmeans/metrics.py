"""How good is a partition: against the truth, or by itself when the data have gaps.

Against the truth

    CER = share of row pairs on which two partitions disagree = 1 - Rand index
    MSE = sum over true centres of the squared distance to the nearest estimated one

By itself, in the geometry of the fitted model (penalty lam, reference c): between a row and a point

    d2(x_i, y) = sum_{j observed} (x_ij - y_j)^2 + lam * sum_{j missing} (y_j - c_j)^2

and between two rows the same rule with "a gap costs lam times the distance from c" read from
either side: both observed (x - y)^2, one observed lam (x - c)^2, both missing 0.
Without gaps all of these are the ordinary Euclidean ones, whatever lam.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from sklearn.metrics import pairwise_distances
from sklearn.metrics.cluster import pair_confusion_matrix
from sklearn.utils import check_array, check_consistent_length, check_random_state

__all__ = [
    "calinski_harabasz_score",
    "center_mse",
    "clustering_error_rate",
    "davies_bouldin_score",
    "silhouette_score",
]

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
    model: Any,
    *,
    method: str = "simplified",
    sample_size: int | None = None,
    random_state: Any = None,
) -> float:
    """Mean silhouette of the rows of `X` under a fitted model; gaps are welcome.

    A row's silhouette is ``(b - a) / max(a, b)``: a is its distance to its own cluster, b to the
    nearest other one. Rows alone in their cluster count as 0, rows without any observed value are
    left out.

    Parameters
    ----------
    X : array-like or CSR/CSC matrix of shape (n_samples, n_features)
        Rows to judge, in the form the model was fitted on.
    model : MNARKMeans
        A fitted model.
    method : {"simplified", "full"}
        "simplified": distances to the centres, linear in the number of rows. "full": mean distances
        to all rows of a cluster, as scikit-learn's; quadratic in time (not in memory), so consider
        `sample_size`.
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
    """
    if method not in ("simplified", "full"):
        raise ValueError(f'method must be "simplified" or "full", found {method!r}.')
    rows = _rows(X, model)
    if sample_size is not None:
        rows = _sample(rows, sample_size, random_state)
    _check_number_of_labels(rows.labels)
    if method == "simplified":
        own, other = _distances_to_centers(rows, model)
    else:
        own, other = _mean_distances_to_rows(rows, float(model.lam_))
    largest = np.maximum(own, other)
    with np.errstate(invalid="ignore"):
        values = np.where(largest > 0, (other - own) / largest, 0.0)
    alone = np.bincount(rows.labels)[rows.labels] == 1
    return float(np.where(alone, 0.0, values).mean())


def calinski_harabasz_score(X: Any, model: Any) -> float:
    """Calinski-Harabasz index ``[(T - W) / (k - 1)] / [W / (n - k)]`` in the penalised geometry.

    W is the penalised loss of the partition, T that of all rows in one cluster. Without gaps
    T - W is the between-cluster sum of squares, so the index is scikit-learn's.

    Parameters
    ----------
    X : array-like or CSR/CSC matrix of shape (n_samples, n_features)
    model : MNARKMeans
        A fitted model.

    Returns
    -------
    float
        Larger is better.

    Examples
    --------
    >>> import numpy as np
    >>> from mnarkmeans import MNARKMeans
    >>> from mnarkmeans.metrics import calinski_harabasz_score
    >>> X = np.array([[1.0, 1.0], [1.2, np.nan], [5.0, 5.0], [np.nan, 5.2], [5.1, 4.9]])
    >>> model = MNARKMeans(2, lam=0.5, random_state=0).fit(X)
    >>> calinski_harabasz_score(X, model) > 0
    True
    """
    rows = _rows(X, model)
    labels = _consecutive(rows.labels)
    _check_number_of_labels(labels)
    lam = float(model.lam_)
    n, k = len(labels), labels.max() + 1
    together = np.zeros_like(labels)
    within = _squared_distances_to_own_center(rows, labels, lam).sum()
    total = _squared_distances_to_own_center(rows, together, lam).sum()
    if within == 0:
        return 1.0  # scikit-learn's convention
    return float((total - within) * (n - k) / (within * (k - 1)))


def davies_bouldin_score(X: Any, model: Any) -> float:
    """Davies-Bouldin index in the penalised geometry: mean over clusters of the worst overlap.

    The overlap of clusters l and m is ``(s_l + s_m) / d_lm``: s_l is the mean distance of the rows
    of l to its centre, d_lm the distance of the two centres as the rows of l and m see it, that is
    with each feature weighted by its observed share in them plus lam times its missing share.
    Without gaps every weight is 1 and the index is scikit-learn's.

    Parameters
    ----------
    X : array-like or CSR/CSC matrix of shape (n_samples, n_features)
    model : MNARKMeans
        A fitted model.

    Returns
    -------
    float
        Smaller is better.

    Examples
    --------
    >>> import numpy as np
    >>> from mnarkmeans import MNARKMeans
    >>> from mnarkmeans.metrics import davies_bouldin_score
    >>> X = np.array([[1.0, 1.0], [1.2, np.nan], [5.0, 5.0], [np.nan, 5.2], [5.1, 4.9]])
    >>> model = MNARKMeans(2, lam=0.5, random_state=0).fit(X)
    >>> davies_bouldin_score(X, model) > 0
    True
    """
    rows = _rows(X, model)
    labels = _consecutive(rows.labels)
    _check_number_of_labels(labels)
    lam = float(model.lam_)
    sums = _cluster_sums(rows, labels)
    centers = _centers(sums, lam)
    k = len(centers)
    to_own = np.sqrt(_squared_distances_to_own_center(rows, labels, lam))
    spread = np.bincount(labels, weights=to_own) / np.bincount(labels)

    worst = np.zeros(k)
    for one in range(k):
        for other in range(k):
            if one == other:
                continue
            size = sums.sizes[one] + sums.sizes[other]
            observed = (sums.counts[one] + sums.counts[other]) / size
            weight = observed + lam * (1 - observed)
            apart = np.sqrt(weight @ (centers[one] - centers[other]) ** 2)
            overlap = (spread[one] + spread[other]) / apart if apart > 0 else 0.0
            worst[one] = max(worst[one], overlap)
    return float(worst.mean())


# --- what the indices above see --------------------------------------------------------------


class _Rows(NamedTuple):
    """Rows with at least one observed value.

    `values` are shifted by the reference and 0 in the gaps, `observed` is 1 or 0 (both dense, or
    both CSR with the same structure); `labels` are the model's.
    """

    values: Any
    observed: Any
    labels: np.ndarray


class _Sums(NamedTuple):
    sums: np.ndarray  # (k, p) of shifted observed values
    counts: np.ndarray  # (k, p) observed
    sizes: np.ndarray  # (k,)


def _rows(X: Any, model: Any) -> _Rows:
    reference = np.broadcast_to(np.asarray(model.reference_, dtype=float), (model.n_features_in_,))
    labels = np.asarray(model.predict(X))
    source = check_array(X, accept_sparse="csr", dtype=np.float64, ensure_all_finite="allow-nan")
    if sp.issparse(source):
        source = _without_stored_nan(sp.csr_array(source))
        values, observed = source.copy(), source.copy()
        values.data -= reference[source.indices]
        observed.data[:] = 1.0
        seen = np.diff(source.indptr) > 0
    else:
        gaps = _gaps(source, getattr(model, "missing_values", np.nan))
        values = np.where(gaps, 0.0, source - reference)
        observed = (~gaps).astype(np.float64)
        seen = ~gaps.all(axis=1)
    return _Rows(values[seen], observed[seen], labels[seen])


def _gaps(X: np.ndarray, missing_values: Any) -> np.ndarray:
    gaps = np.isnan(X)
    if missing_values is not None and missing_values == missing_values:  # a number, not NaN
        gaps |= np.equal(X, missing_values)
    return gaps


def _without_stored_nan(X: sp.csr_array) -> sp.csr_array:
    keep = ~np.isnan(X.data)
    if keep.all():
        return X
    rows, columns = sp.coo_array(X).coords
    return sp.csr_array((X.data[keep], (rows[keep], columns[keep])), shape=X.shape)


def _sample(rows: _Rows, size: int, random_state: Any) -> _Rows:
    n = len(rows.labels)
    if not 2 <= size <= n:
        raise ValueError(f"sample_size must lie between 2 and the {n} usable rows, found {size}.")
    chosen = check_random_state(random_state).choice(n, size, replace=False)
    return _Rows(*(part[chosen] for part in rows))


def _consecutive(labels: np.ndarray) -> np.ndarray:
    return np.unique(labels, return_inverse=True)[1]


def _check_number_of_labels(labels: np.ndarray) -> None:
    found = len(np.unique(labels))
    if not 2 <= found < len(labels):
        raise ValueError(
            f"The rows fall into {found} cluster(s) and there are {len(labels)} usable rows; "
            "the index needs at least 2 clusters and more rows than clusters."
        )


def _distances_to_centers(rows: _Rows, model: Any) -> tuple[np.ndarray, np.ndarray]:
    """Distance to the own centre and to the nearest other one that has members."""
    lam, reference = float(model.lam_), np.asarray(model.reference_, dtype=float)
    centers = np.asarray(model.cluster_centers_, dtype=np.float64) - reference
    distance = np.full((len(rows.labels), len(centers)), np.inf)
    for label in np.unique(rows.labels):
        distance[:, label] = np.sqrt(_squared_distances(rows, centers[label], lam))
    own = distance[np.arange(len(distance)), rows.labels]
    distance[np.arange(len(distance)), rows.labels] = np.inf
    return own, distance.min(axis=1)


def _squared_distances(rows: _Rows, center: np.ndarray, lam: float) -> np.ndarray:
    """Squared distance of every row to one (shifted) centre, by direct differences."""
    if sp.issparse(rows.values):
        entry = rows.values.copy()
        column = center[entry.indices]
        entry.data = (entry.data - column) ** 2 - lam * column**2
        return np.maximum(np.asarray(entry.sum(axis=1)).ravel() + lam * (center @ center), 0.0)
    return np.where(rows.observed > 0, (rows.values - center) ** 2, lam * center**2).sum(axis=1)


def _cluster_sums(rows: _Rows, labels: np.ndarray) -> _Sums:
    member = sp.csr_array((np.ones(len(labels)), (labels, np.arange(len(labels)))))
    sums, counts = member @ rows.values, member @ rows.observed
    return _Sums(_dense(sums), _dense(counts), np.bincount(labels).astype(float))


def _centers(sums: _Sums, lam: float) -> np.ndarray:
    """Best (shifted) centres of a partition; the reference where no value pulls."""
    pull = sums.counts + lam * (sums.sizes[:, None] - sums.counts)
    return np.divide(sums.sums, pull, out=np.zeros_like(pull), where=pull > 0)


def _squared_distances_to_own_center(rows: _Rows, labels: np.ndarray, lam: float) -> np.ndarray:
    centers = _centers(_cluster_sums(rows, labels), lam)
    squared = np.empty(len(labels))
    for label, center in enumerate(centers):
        members = labels == label
        squared[members] = _squared_distances(_Rows(*(part[members] for part in rows)), center, lam)
    return squared


def _mean_distances_to_rows(rows: _Rows, lam: float) -> tuple[np.ndarray, np.ndarray]:
    """Mean distance to the other rows of the own cluster, and to the nearest other cluster.

    With V the shifted zero-filled values and O the 0/1 pattern, A = V^2 O' holds the squares of
    row i over what row j observes, and r_i = |v_i|^2:

        D^2 = (1 - lam) (A + A') - 2 V V' + lam (r_i + r_j)
    """
    values = _recentered(rows, lam)
    labels = _consecutive(rows.labels)
    n, k = len(labels), labels.max() + 1
    member = np.zeros((n, k))
    member[np.arange(n), labels] = 1.0
    sizes = member.sum(axis=0)
    squares = values.multiply(values).tocsr() if sp.issparse(values) else values**2
    norms = np.asarray(squares.sum(axis=1)).ravel()

    own, other = np.empty(n), np.empty(n)
    step = max(1, _BLOCK_ENTRIES // n)
    for start in range(0, n, step):
        block = slice(start, min(start + step, n))
        shared = _dense(squares[block] @ rows.observed.T)
        shared += _dense(rows.observed[block] @ squares.T)
        squared = (1 - lam) * shared - 2 * _dense(values[block] @ values.T)
        squared += lam * (norms[block, None] + norms[None, :])
        squared[np.arange(len(squared)), np.arange(block.start, block.stop)] = 0.0
        means = np.sqrt(np.maximum(squared, 0.0)) @ member
        here = np.arange(len(means)), labels[block]
        own[block] = means[here] / np.maximum(sizes[labels[block]] - 1, 1)
        means /= sizes
        means[here] = np.inf
        other[block] = means.min(axis=1)
    return own, other


def _recentered(rows: _Rows, lam: float) -> Any:
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
