"""How good is a partition by itself, in the geometry of the fitted model.

The indices of scikit-learn refuse gaps; these take them, and equal scikit-learn's without any.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ._geometry import (
    Rows,
    as_model,
    cluster_sums,
    distances_to_centers,
    mean_distances_to_rows,
    optimal_centers,
    penalties,
    sample,
    squared_distances_to_own_center,
    usable_rows,
)


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
    model = as_model(X, labels_or_model)
    if method is None:
        method = "simplified" if model is labels_or_model else "full"
    if method not in ("simplified", "full"):
        raise ValueError(f'method must be "simplified" or "full", found {method!r}.')
    rows, _ = usable_rows(X, model)
    if sample_size is not None:
        rows = sample(rows, sample_size, random_state)
    _check_number_of_labels(rows.labels)
    if method == "simplified":
        own, other = distances_to_centers(rows, model)
    else:
        own, other = mean_distances_to_rows(rows, penalties(model))
    return float(silhouettes(own, other, rows.labels).mean())


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
    >>> from mnarkmeans import MNARKMeans
    >>> from mnarkmeans.metrics import calinski_harabasz_score
    >>> X = np.array([[1.0, 1.0], [1.2, np.nan], [5.0, 5.0], [np.nan, 5.2], [5.1, 4.9]])
    >>> model = MNARKMeans(2, lam=0.5, random_state=0).fit(X)
    >>> calinski_harabasz_score(X, model) > 0
    True
    """
    rows, labels, lam = _partition(X, labels_or_model)
    n, k = len(labels), labels.max() + 1
    together = np.zeros_like(labels)
    within = squared_distances_to_own_center(rows, labels, lam).sum()
    total = squared_distances_to_own_center(rows, together, lam).sum()
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
    >>> from mnarkmeans import MNARKMeans
    >>> from mnarkmeans.metrics import davies_bouldin_score
    >>> X = np.array([[1.0, 1.0], [1.2, np.nan], [5.0, 5.0], [np.nan, 5.2], [5.1, 4.9]])
    >>> model = MNARKMeans(2, lam=0.5, random_state=0).fit(X)
    >>> davies_bouldin_score(X, model) > 0
    True
    """
    rows, labels, lam = _partition(X, labels_or_model)
    sums = cluster_sums(rows, labels)
    centers = optimal_centers(sums, lam)
    k = len(centers)
    to_own = np.sqrt(squared_distances_to_own_center(rows, labels, lam))
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


def _partition(X: Any, labels_or_model: Any) -> tuple[Rows, np.ndarray, np.ndarray]:
    """The rows to judge, their clusters numbered without empty ones, and the penalties."""
    model = as_model(X, labels_or_model)
    rows, _ = usable_rows(X, model)
    _check_number_of_labels(rows.labels)
    return rows, np.unique(rows.labels, return_inverse=True)[1], penalties(model)


def _check_number_of_labels(labels: np.ndarray) -> None:
    found = len(np.unique(labels))
    if not 2 <= found < len(labels):
        raise ValueError(
            f"The rows fall into {found} cluster(s) and there are {len(labels)} usable rows; "
            "the index needs at least 2 clusters and more rows than clusters."
        )
