"""How good is a partition when the truth is known.

CER = share of row pairs on which two partitions disagree = 1 - Rand index
MSE = sum over true centres of the squared distance to the nearest estimated one
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from sklearn.metrics import pairwise_distances
from sklearn.metrics.cluster import pair_confusion_matrix
from sklearn.utils import check_array, check_consistent_length


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
