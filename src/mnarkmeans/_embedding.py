"""Where rows lie in a picture, computed from their values, never from their labels.

A picture of rows filled from their own centres would show islands whatever the data. This is
principal component analysis with the weights of the method's loss.

With y = x - reference where observed and 0 where missing, w = 1 where observed and lam_j where
missing:

    L = sum_ij w_ij (y_ij - m_j - u_i' v_j)^2 + s sum_i |u_i|^2

u_i are the coordinates of a row, standard normal a priori, and s is the variance of the noise, so
that a row with few values stays near the middle. lam = 0 fits the observed entries alone, lam = 1
the table filled with the reference. Solved by EM, one row and one feature at a time:

    A_i = s I + sum_j w_ij v_j v_j',   u_i = A_i^-1 sum_j w_ij (y_ij - m_j) v_j,   cov_i = s A_i^-1
    (m_j, v_j) = [sum_i w_ij E z_i z_i']^-1 sum_i w_ij y_ij E z_i,   z = (1, u)

Without missing values this is ordinary principal component analysis, which is then done directly.
The model's covariance is V V' + s I: its eigenvalues give the share of the variance along each
direction.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.utils.extmath import randomized_svd, svd_flip

from ._io import require
from ._observed import zero_filled

FIT_ENTRIES, FIT_ROWS = 1_000_000, (400, 5_000)  # of the sample that the plane is fitted to
BLOCK_ENTRIES = 4_000_000
MAX_ITER = 40
TOL = 5e-3  # relative change of the directions
DIRECTIONS_FOR_UMAP = 15


class Embedding(NamedTuple):
    """Two coordinates per row, what the axes are called, how much of the variance they hold."""

    points: np.ndarray
    axis_names: tuple[str, str]
    explained: tuple[float, float] | None


def embed(X: Any, lam: Any = 0.0, reference: Any = 0.0, method: str = "pca") -> Embedding:
    """Two coordinates per row: principal components of a table with missing values, or their UMAP.

    X has NaN where values are missing, or is a sparse matrix whose unstored entries are missing.

    Examples
    --------
    >>> X = np.array([[0.0, 0.0], [1.0, 1.0], [2.0, np.nan]])
    >>> embed(X).axis_names
    ('PC 1', 'PC 2')
    """
    if method == "umap":
        umap = require("umap", "umap")
        points, _ = fit_plane(X, lam, reference, DIRECTIONS_FOR_UMAP)
        reducer = umap.UMAP(random_state=0, n_jobs=1)
        return Embedding(reducer.fit_transform(points), ("UMAP 1", "UMAP 2"), None)
    if method != "pca":
        raise ValueError(f"method must be 'pca' or 'umap', got {method!r}")
    points, explained = fit_plane(X, lam, reference, 2)
    more = 2 - points.shape[1]  # a table of one feature or row has one direction
    first, second = np.pad(explained, (0, more)).tolist()
    return Embedding(np.pad(points, ((0, 0), (0, more))), ("PC 1", "PC 2"), (first, second))


def fit_plane(X: Any, lam: Any, reference: Any, q: int) -> tuple[np.ndarray, np.ndarray]:
    """Coordinates (n, q) along orthogonal directions that explain most, and the share of each."""
    n, p = X.shape
    X = X.tocsr() if sparse.issparse(X) else np.asarray(X)
    lam, reference = np.broadcast_to(lam, p), np.broadcast_to(reference, p)
    size = int(np.clip(FIT_ENTRIES // max(p, 1), *FIT_ROWS))
    sample: Any = slice(None)
    if n > size:
        sample = np.sort(np.random.default_rng(0).choice(n, size, replace=False))
    rows = _Rows(X[sample], lam, reference)
    mean, V, noise = _principal_components(rows, min(q, n, p))
    is_complete = rows.seen.sum() == rows.seen.shape[0] * p
    if not is_complete:
        mean, V, noise = _by_em(rows, mean, V, noise)
    shrinkage = 1e-12 * (float(np.square(V).sum()) or 1.0) + (0.0 if is_complete else noise)
    step = max(1, BLOCK_ENTRIES // max(p, 1))
    blocks = (_Rows(X[i : i + step], lam, reference) for i in range(0, n, step))
    points = np.vstack([_coordinates(block, mean, V, shrinkage)[0] for block in blocks])
    return _along_axes(points, V, noise)


class _Rows:
    """y of some rows, and 1 where observed; both dense or both sparse."""

    def __init__(self, X: Any, lam: np.ndarray, reference: np.ndarray):
        self.lam = lam
        self.y, self.seen = zero_filled(X, reference)

    def weigh_rows(self, A: np.ndarray) -> np.ndarray:
        """sum_j w_ij A_j for every row."""
        return self.seen @ ((1.0 - self.lam)[:, None] * A) + self.lam @ A

    def weigh_features(self, A: np.ndarray) -> np.ndarray:
        """sum_i w_ij A_i for every feature."""
        return (1.0 - self.lam)[:, None] * (self.seen.T @ A) + np.outer(self.lam, A.sum(axis=0))


def _principal_components(rows: _Rows, q: int) -> tuple[np.ndarray, np.ndarray, float]:
    """m, V and s by principal components with missing values at the means; exact without any."""
    n, p = rows.y.shape
    count = rows.seen.sum(axis=0)
    mean = rows.y.sum(axis=0) / np.maximum(count, 1.0)
    centred = rows.y - rows.seen * mean[None]
    total = float((centred * centred).sum())
    _, size, right = randomized_svd(centred, q, random_state=0)
    rest = max(total - float(np.square(size).sum()), 1e-9 * total)
    noise = rest * p / (max(p - q, 1) * max(count.sum(), 1.0)) or 1.0
    along = np.square(size) / n
    return mean, right.T * np.sqrt(np.maximum(along - noise, 1e-6 * along)), noise


def _by_em(
    rows: _Rows, mean: np.ndarray, V: np.ndarray, noise: float
) -> tuple[np.ndarray, np.ndarray, float]:
    """m, V and s by EM."""
    q = V.shape[1]
    squares = float((rows.y * rows.y).sum())
    weight = float(rows.weigh_rows(np.ones((len(mean), 1))).sum())
    for _ in range(MAX_ITER):
        u, covariance = _coordinates(rows, mean, V, noise)
        z = np.column_stack([np.ones(len(u)), u])
        second = z[:, :, None] * z[:, None, :]
        second[:, 1:, 1:] += covariance
        gram = rows.weigh_features(second.reshape(len(z), -1)).reshape(-1, q + 1, q + 1)
        # Keeps the equations solvable for a feature without any observed value.
        gram += 1e-9 * (1.0 + np.trace(gram, axis1=1, axis2=2))[:, None, None] * np.eye(q + 1)
        right = rows.y.T @ z
        b = np.linalg.solve(gram, right[:, :, None])[:, :, 0]
        change = np.linalg.norm(b[:, 1:] - V) / (np.linalg.norm(V) or 1.0)
        mean, V = b[:, 0], b[:, 1:]
        noise = max((squares - float((b * right).sum())) / weight, 1e-9 * squares / weight) or 1.0
        if change < TOL:
            break
    return mean, V, noise


def _coordinates(
    rows: _Rows, mean: np.ndarray, V: np.ndarray, noise: float
) -> tuple[np.ndarray, np.ndarray]:
    """Expected coordinates (n, q) of the rows, and their covariances (n, q, q)."""
    p, q = V.shape
    products = (V[:, :, None] * V[:, None, :]).reshape(p, -1)
    inverse = np.linalg.inv(rows.weigh_rows(products).reshape(-1, q, q) + noise * np.eye(q))
    right = rows.y @ V - rows.weigh_rows(mean[:, None] * V)
    return np.einsum("nab,nb->na", inverse, right), noise * inverse


def _along_axes(points: np.ndarray, V: np.ndarray, noise: float) -> tuple[np.ndarray, np.ndarray]:
    """Rotate: orthogonal directions, the first along the widest spread of the points."""
    directions, size, turn = np.linalg.svd(V, full_matrices=False)
    placed = points @ (turn.T * size)
    placed -= placed.mean(axis=0)
    _, _, axes = np.linalg.svd(placed, full_matrices=False)
    # The sign of a direction is arbitrary: its largest loading is positive.
    _, axes = svd_flip(directions @ axes.T, axes)
    # Of the model's covariance V V' + s I: missing values draw the points towards the middle.
    along = np.square(axes) @ np.square(size) + noise
    total = np.square(size).sum() + len(V) * noise
    return placed @ axes.T, np.clip(along / total, 0.0, 1.0)
