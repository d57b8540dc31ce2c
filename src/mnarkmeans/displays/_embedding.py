"""Two coordinates per row, for maps of the clusters: drawn here and in the report.

The imputed matrix has x_ij where observed and mu_{z_i j} in the gaps; its principal components
(or UMAP) give the coordinates.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import LinearOperator, svds

from .._io.optional import require


class Embedding(NamedTuple):
    """Two coordinates per row, what the axes are called, how much of the variance they hold."""

    points: np.ndarray
    axis_names: tuple[str, str]
    explained: tuple[float, float] | None


def imputed(X: Any, centers: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """The dense matrix with every gap filled from the row's centre.

    Examples
    --------
    >>> imputed(np.array([[1.0, np.nan]]), np.array([[5.0, 6.0]]), np.array([0]))
    array([[1., 6.]])
    """
    filled = np.array(centers[labels], dtype=float)
    if sp.issparse(X):
        coo = X.tocoo()
        seen = ~np.isnan(coo.data)
        filled[coo.row[seen], coo.col[seen]] = coo.data[seen]
        return filled
    X = np.asarray(X, dtype=float)
    seen = ~np.isnan(X)
    filled[seen] = X[seen]
    return filled


def embed(
    X: Any,
    centers: np.ndarray,
    labels: np.ndarray,
    method: str = "pca",
    random_state: int | None = 0,
) -> Embedding:
    """Two coordinates per row: the principal components of the imputed matrix, or UMAP.

    Examples
    --------
    >>> X = np.array([[0.0, 0.0], [1.0, 1.0], [2.0, np.nan]])
    >>> embed(X, np.array([[1.0, 2.0]]), np.array([0, 0, 0])).axis_names
    ('PC 1', 'PC 2')
    """
    if method == "umap":
        umap = require("umap", "umap")
        reducer = umap.UMAP(random_state=random_state, n_jobs=1)
        return Embedding(
            reducer.fit_transform(imputed(X, centers, labels)), ("UMAP 1", "UMAP 2"), None
        )
    if method != "pca":
        raise ValueError(f"method must be 'pca' or 'umap', got {method!r}")
    return _principal_components(X, centers, np.asarray(labels))


def _principal_components(X: Any, centers: np.ndarray, labels: np.ndarray) -> Embedding:
    n, p = X.shape
    matrix, total = _centred_operator(X, centers, labels)
    if min(n, p) <= 3:
        # ARPACK needs room; so small a matrix is decomposed whole.
        left, size, right = np.linalg.svd(matrix @ np.eye(p), full_matrices=False)
    else:
        left, size, right = svds(matrix, k=2, v0=np.ones(min(n, p)) / np.sqrt(min(n, p)))
        order = np.argsort(size)[::-1]
        left, size, right = left[:, order], size[order], right[order]
    # The sign of a component is arbitrary: its largest loading points up.
    sign = np.sign(right[np.arange(right.shape[0]), np.abs(right).argmax(axis=1)])
    points = (left * size * np.where(sign == 0, 1.0, sign))[:, :2]
    if points.shape[1] < 2:
        points = np.column_stack([points, np.zeros(n)])
        size = np.append(size, 0.0)
    share = size[:2] ** 2 / total if total > 0 else np.zeros(2)
    return Embedding(points, ("PC 1", "PC 2"), (float(share[0]), float(share[1])))


def _centred_operator(X: Any, centers: np.ndarray, labels: np.ndarray) -> tuple[Any, float]:
    """The imputed matrix minus its column means, and its sum of squares, sparse where X is.

    Sparse: imputed = R + M[z] with R = x - mu_z on the stored entries, so products need no dense
    n x p matrix.
    """
    n, p = X.shape
    if not sp.issparse(X):
        filled = imputed(X, centers, labels)
        filled -= filled.mean(axis=0)
        return filled, float(np.square(filled).sum())
    coo = sp.coo_matrix(X)
    seen = ~np.isnan(coo.data)
    row, col, data = coo.row[seen], coo.col[seen], coo.data[seen].astype(float)
    own = np.asarray(centers, dtype=float)[labels[row], col]
    R = sp.csr_matrix((data - own, (row, col)), shape=(n, p))
    M = np.asarray(centers, dtype=float)
    member = sp.csr_matrix((np.ones(n), (np.arange(n), labels)), shape=(n, M.shape[0]))
    sizes = np.bincount(labels, minlength=M.shape[0])
    mean = (np.asarray(R.sum(axis=0)).ravel() + sizes @ M) / n

    def matmat(V: np.ndarray) -> np.ndarray:
        return R @ V + member @ (M @ V) - mean @ V

    def rmatmat(U: np.ndarray) -> np.ndarray:
        return R.T @ U + M.T @ (member.T @ U) - np.multiply.outer(mean, U.sum(axis=0))

    operator = LinearOperator(
        (n, p), matvec=matmat, rmatvec=rmatmat, matmat=matmat, rmatmat=rmatmat, dtype=float
    )
    squares = sizes @ np.square(M).sum(axis=1) + np.square(data).sum() - np.square(own).sum()
    return operator, float(squares - n * mean @ mean)
