"""How good is a partition: against the truth, or by itself in the geometry of the fitted model.

    CER = share of row pairs on which two partitions disagree = 1 - Rand index
    MSE = sum over true centres of the squared distance to the nearest estimated one

scikit-learn's indices refuse missing values; those below take them, and equal scikit-learn's where
nothing is missing. Between a row and a point (lam and reference c being the model's)

    d2(x_i, y) = sum_{j observed} (x_ij - y_j)^2 + lam * sum_{j missing} (y_j - c_j)^2

For labels without a model, missing values stand at the means of their features: lam = 1, and c the
means.
"""

from __future__ import annotations

import copy
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
import sklearn.metrics as skm
from numpy.typing import ArrayLike
from sklearn.utils import check_array, check_consistent_length

from .._kmeans import MNARKMeans
from .._validation import observe


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
    check_consistent_length(labels_true, labels_pred)
    return 1.0 - float(skm.rand_score(labels_true, labels_pred))


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
    return float(skm.pairwise_distances(truth, found, metric="sqeuclidean").min(axis=1).sum())


def silhouette_score(X: Any, labels_or_model: Any) -> float:
    """Mean silhouette of the rows of `X`, which may have missing values.

    A row's silhouette is ``(b - a) / max(a, b)``: a is its distance to its own cluster, b to the
    nearest other one. Rows alone in their cluster count as 0, rows without any observed value are
    left out.

    Parameters
    ----------
    X : array-like or CSR/CSC matrix of shape (n_samples, n_features)
        Rows to judge, in the form the model was fitted on.
    labels_or_model : array-like of shape (n_samples,) or fitted model
        Labels: distances are means over the rows of a cluster, as scikit-learn's, with missing
        values at the mean of their feature. A fitted model: distances are those to its centres
        (the simplified silhouette), linear in the number of rows.

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
    rows = _partition(X, labels_or_model)
    if not hasattr(labels_or_model, "cluster_centers_"):
        return float(skm.silhouette_score(rows.values, rows.labels))
    clusters, labels = np.unique(rows.labels, return_inverse=True)  # without empty ones
    distance = np.asarray(rows.model.transform(X), dtype=np.float64)[rows.used][:, clusters]
    return float(silhouettes(distance, labels)[0].mean())


def silhouettes(distance: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, ...]:
    """Of each row its silhouette by distances (n, k) to centres, the nearest other cluster and the
    distance to it. 0, None and NaN with one cluster; a row alone in its cluster has silhouette 0.
    """
    n, k = distance.shape
    if k == 1:
        return np.zeros(n), np.full(n, None), np.full(n, np.nan)
    at = np.arange(n), labels
    others = distance.copy()
    others[at] = np.inf
    own, other = distance[at], others.min(axis=1)
    largest = np.maximum(own, other)
    with np.errstate(invalid="ignore"):
        values = np.where(largest > 0, (other - own) / largest, 0.0)
    alone = np.bincount(labels)[labels] == 1
    return np.where(alone, 0.0, values), others.argmin(axis=1), other


def calinski_harabasz_score(X: Any, labels_or_model: Any) -> float:
    """Calinski-Harabasz index ``[(T - W) / (k - 1)] / [W / (n - k)]``; larger is better.

    W is the penalised loss of the partition, T that of all rows in one cluster.

    Parameters
    ----------
    X : array-like or CSR/CSC matrix of shape (n_samples, n_features)
    labels_or_model : array-like of shape (n_samples,) or fitted model
        As for `silhouette_score`.

    Examples
    --------
    >>> import numpy as np
    >>> from mnarkmeans.metrics import calinski_harabasz_score
    >>> X = np.array([[1.0, 1.0], [1.2, np.nan], [5.0, 5.0], [np.nan, 5.2], [5.1, 4.9]])
    >>> calinski_harabasz_score(X, [0, 0, 1, 1, 1]) > 0
    True
    """
    rows = _partition(X, labels_or_model)
    n, k = len(rows.labels), len(np.unique(rows.labels))
    within, total = _loss(X, rows), _loss(X, rows._replace(labels=np.zeros(n, dtype=int)))
    if within == 0:
        return 1.0  # scikit-learn's convention
    return float((total - within) * (n - k) / (within * (k - 1)))


def _loss(X: Any, rows: Rows) -> float:
    """The least loss of a partition; a centre is at the reference where no value pulls."""
    n, model = len(rows.labels), copy.copy(rows.model)
    member = sp.csr_array((np.ones(n), (rows.labels, np.arange(n))))
    products = (member @ rows.values, member @ rows.observed)
    sums, counts = (p.toarray() if sp.issparse(p) else p for p in products)
    pull = counts + model.lam_ * (np.bincount(rows.labels)[:, None] - counts)
    centers = np.divide(sums, pull, out=np.zeros_like(pull), where=pull > 0)
    model.cluster_centers_ = centers + model.reference_
    distance = np.asarray(model.transform(X), dtype=np.float64)  # by direct differences
    return float(np.square(distance[rows.used, rows.labels]).sum())


class Rows(NamedTuple):
    """The rows of X with at least one observed value, as a model sees them."""

    model: Any
    used: np.ndarray  # which rows of X
    values: Any  # minus the reference, 0 where missing
    observed: Any  # 1 or 0; both dense, or both CSR with the same structure
    labels: np.ndarray


def rows_of(X: Any, model: Any, labels: Any = None) -> Rows:
    """The rows as the model reads them, in its clusters or in given ones."""
    values, mask = model._observe(X).zero_filled()
    used = np.flatnonzero(np.asarray(mask.sum(axis=1)).ravel() > 0)
    labels = np.asarray(model.predict(X) if labels is None else labels)
    return Rows(model, used, values[used], mask[used], labels[used])


def _partition(X: Any, labels_or_model: Any) -> Rows:
    """The rows to judge; labels without a model are judged with missing values at the means."""
    if hasattr(labels_or_model, "cluster_centers_"):
        rows = rows_of(X, labels_or_model)
    else:
        labels, model = np.asarray(labels_or_model), MNARKMeans(lam=1.0)
        observed = observe(X, estimator=model, fits=False, reset=True)
        if labels.shape != (observed.n_rows,):
            raise ValueError(
                f"Give a fitted model, or one label per row: {observed.n_rows} rows, and labels of "
                f"shape {labels.shape}."
            )
        model.lam_, model.reference_ = 1.0, observed.means
        model.cluster_centers_ = observed.means[None]
        rows = rows_of(X, model, np.unique(labels, return_inverse=True)[1])
    found = len(np.unique(rows.labels))
    if not 2 <= found < len(rows.labels):
        raise ValueError(
            f"The rows fall into {found} cluster(s) and there are {len(rows.labels)} usable "
            "rows; the index needs at least 2 clusters and more rows than clusters."
        )
    return rows
