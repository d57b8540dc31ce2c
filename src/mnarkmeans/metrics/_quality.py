"""How good is a partition: against the truth, or by itself where values are missing.

    CER = share of row pairs on which two partitions disagree = 1 - Rand index
    MSE = sum over true centres of the squared distance to the nearest estimated one

scikit-learn's indices refuse missing values. Those below put them at the means of their features,
and equal scikit-learn's where nothing is missing.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
import sklearn.metrics as skm
from numpy.typing import ArrayLike

from .._observed import zero_filled
from .._validation import observe


def clustering_error_rate(labels_true: ArrayLike, labels_pred: ArrayLike) -> float:
    """Share of row pairs on which two partitions disagree (1 - Rand index).

    0 for equal partitions, whatever the names of the clusters; 1 when every pair is judged
    differently.

    Examples
    --------
    >>> from mnarkmeans.metrics import clustering_error_rate
    >>> clustering_error_rate([0, 0, 1, 1], ["b", "b", "a", "a"])
    0.0
    >>> round(clustering_error_rate([0, 0, 1, 1], [0, 0, 0, 1]), 3)
    0.5
    """
    return 1.0 - float(skm.rand_score(labels_true, labels_pred))


def center_mse(centers_true: ArrayLike, centers_pred: ArrayLike) -> float:
    """Sum over true centres of the squared distance to the nearest estimated centre.

    Examples
    --------
    >>> from mnarkmeans.metrics import center_mse
    >>> center_mse([[0, 0], [3, 0]], [[3, 1], [0, 0]])
    1.0
    """
    distances = skm.pairwise_distances(centers_true, centers_pred, metric="sqeuclidean")
    return float(distances.min(axis=1).sum())


def silhouette_score(X: Any, labels_or_model: Any) -> float:
    """Mean silhouette of the rows of `X`, which may have missing values.

    A row's silhouette is ``(b - a) / max(a, b)``, between -1 and 1: a is its distance to its own
    cluster, b to the nearest other one. Rows alone in their cluster count as 0, rows without any
    observed value are left out.

    Parameters
    ----------
    X : array-like or CSR/CSC matrix of shape (n_samples, n_features)
        Rows to judge, in the form the model was fitted on.
    labels_or_model : array-like of shape (n_samples,) or fitted model
        Labels: distances are means over the rows of a cluster, as scikit-learn's. A fitted model:
        distances are those of its `transform` to its centres (the simplified silhouette), linear in
        the number of rows.

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
    if not hasattr(labels_or_model, "cluster_centers_"):
        return float(skm.silhouette_score(*_filled(X, labels_or_model)))
    rows = rows_of(X, labels_or_model)
    clusters, labels = np.unique(rows.labels, return_inverse=True)  # without empty ones
    if len(clusters) < 2:
        raise ValueError("All rows fall into one cluster; a silhouette needs at least two.")
    distances = np.asarray(labels_or_model.transform(X), dtype=np.float64)[rows.used]
    return float(silhouettes(distances[:, clusters], labels)[0].mean())


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
    """Calinski-Harabasz index of rows with missing values; larger is better.

    Parameters
    ----------
    X : array-like or CSR/CSC matrix of shape (n_samples, n_features)
    labels_or_model : array-like of shape (n_samples,) or fitted model, which labels the rows

    Examples
    --------
    >>> import numpy as np
    >>> from mnarkmeans.metrics import calinski_harabasz_score
    >>> X = np.array([[1.0, 1.0], [1.2, np.nan], [5.0, 5.0], [np.nan, 5.2], [5.1, 4.9]])
    >>> calinski_harabasz_score(X, [0, 0, 1, 1, 1]) > 0
    True
    """
    return float(skm.calinski_harabasz_score(*_filled(X, labels_or_model)))


def davies_bouldin_score(X: Any, labels_or_model: Any) -> float:
    """Davies-Bouldin index of rows with missing values; smaller is better.

    Parameters
    ----------
    X : array-like or CSR/CSC matrix of shape (n_samples, n_features)
    labels_or_model : array-like of shape (n_samples,) or fitted model, which labels the rows

    Examples
    --------
    >>> import numpy as np
    >>> from mnarkmeans.metrics import davies_bouldin_score
    >>> X = np.array([[1.0, 1.0], [1.2, np.nan], [5.0, 5.0], [np.nan, 5.2], [5.1, 4.9]])
    >>> round(davies_bouldin_score(X, [0, 0, 1, 1, 1]), 1)
    0.6
    """
    return float(skm.davies_bouldin_score(*_filled(X, labels_or_model)))


class Rows(NamedTuple):
    """The rows of X with at least one observed value, as a model sees them."""

    used: np.ndarray  # which rows of X
    values: Any  # minus the reference, 0 where missing
    observed: Any  # 1 or 0; both dense, or both CSR with the same structure
    labels: np.ndarray


def rows_of(X: Any, model: Any) -> Rows:
    return _seen(model._observe(X), np.asarray(model.predict(X)))


def _seen(observed: Any, labels: np.ndarray) -> Rows:
    values, mask = zero_filled(observed.source, observed.reference, observed.missing)
    used = np.flatnonzero(np.asarray(mask.sum(axis=1)).ravel() > 0)
    return Rows(used, values[used], mask[used], labels[used])


def _filled(X: Any, labels_or_model: Any) -> tuple[np.ndarray, np.ndarray]:
    """Rows less the means of their features, with missing values at the means, and labels."""
    if hasattr(labels_or_model, "predict"):
        observed, labels = labels_or_model._observe(X), labels_or_model.predict(X)
    else:
        observed, labels = observe(X, fits=False), labels_or_model
    if np.shape(labels) != (observed.n_rows,):
        raise ValueError(
            f"Give a fitted model, or one label per row: {observed.n_rows} rows, and labels of "
            f"shape {np.shape(labels)}."
        )
    rows = _seen(replace(observed, reference=observed.means), np.asarray(labels))
    return rows.values.toarray() if sp.issparse(rows.values) else rows.values, rows.labels
