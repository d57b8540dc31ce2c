"""How sure a fitted k-means is of each row: the margin to the next centre, in units of the noise.

    confidence_i = exp(-d_i own / 2s) / sum_l exp(-d_il / 2s),  s = sum_i d_i own / observed entries

with d the penalised distance: the memberships of a mixture of equal normal clusters at the fitted
centres. The likeliest cluster is then always the label, which a mixture with sizes and variances of
its own would not promise; and with two clusters it is the margin d_next - d_own on a scale from 1/2
to 1.
"""

from __future__ import annotations

from typing import Any

import numpy as np

BETWEEN = 0.6  # rows below it are listed as lying between clusters


def confidence(X: Any, model: Any, *, noise: float | None = None) -> np.ndarray:
    """Probability of the own cluster for each row, from 1/k (between all) to 1.

    Parameters
    ----------
    X : array-like or CSR/CSC matrix of shape (n_samples, n_features)
        Rows to judge, gaps and all.
    model : fitted MNARKMeans or MNARMixture
        A mixture gives its own probabilities.
    noise : float, default=None
        The s above; None estimates it from these rows. For a few new rows, give that of the rows
        the model was fitted on, `noise_of(X, model)`.

    Returns
    -------
    ndarray of shape (n_samples,)

    Examples
    --------
    >>> from mnarkmeans import MNARKMeans
    >>> X = [[0.0], [0.2], [2.4], [5.0], [5.2]]
    >>> model = MNARKMeans(2, lam=0.0, random_state=0).fit(X)
    >>> confidence(X, model).round(2)
    array([1.  , 1.  , 0.97, 1.  , 1.  ])
    """
    if hasattr(model, "predict_proba"):
        return model.predict_proba(X).max(axis=1)
    if noise is None:
        noise = noise_of(X, model)
    return confidence_of(np.asarray(model.transform(X), dtype=np.float64), noise)


def noise_of(X: Any, model: Any) -> float:
    """The variance of an observed entry around its centre, as `confidence` takes it.

    Examples
    --------
    >>> from mnarkmeans import MNARKMeans
    >>> from mnarkmeans.metrics import noise_of
    >>> X = [[0.0], [1.0], [10.0], [11.0]]
    >>> noise_of(X, MNARKMeans(2, lam=0.0, random_state=0).fit(X))
    0.25
    """
    return -model.score(X) / max(float(model._observe(X).observed_weight.sum()), 1.0)


def confidence_of(distances: np.ndarray, noise: float) -> np.ndarray:
    """From distances (n, k) as `transform` gives them."""
    square = np.square(distances)
    least = square.min(axis=1, keepdims=True)
    if noise <= 0.0:  # every row is a centre: sure, unless two centres are as near
        return 1.0 / (square <= least).sum(axis=1)
    return 1.0 / np.exp((least - square) / (2.0 * noise)).sum(axis=1)
