"""Where rows lie in a picture, computed from their values and gaps, never from their labels.

A picture of rows filled from their own centres would show islands whatever the data. This is a
plane through the rows in the method's loss.

With y = x - c where observed and 0 in a gap, w = 1 where observed and lam_j in a gap:

    L = sum_ij w_ij (y_ij - m_j - u_i' v_j)^2 + s sum_i |u_i|^2

u_i are the coordinates of a row, standard normal beforehand, and s is the noise, so a row that
tells little stays near the middle instead of flying off. lam = 0 fits the observed entries alone,
lam = 1 the table filled with the reference. Solved by EM, one row and one feature at a time:

    A_i = s I + sum_j w_ij v_j v_j',   u_i = A_i^-1 sum_j w_ij (y_ij - m_j) v_j,   cov_i = s A_i^-1
    (m_j, v_j) = [sum_i w_ij E z_i z_i']^-1 sum_i w_ij y_ij E z_i,   z = (1, u)

Without gaps this is principal component analysis, which is then done directly. The model's
covariance is V V' + s I: its eigenvalues give the share of the variance along each direction.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import svds

from ._io import require

FIT_ENTRIES, FIT_ROWS = 1_000_000, (400, 5_000)  # of the sample that the plane is fitted to
BLOCK_ENTRIES = 4_000_000
MOST_STEPS = 40
CLOSE_ENOUGH = 5e-3  # relative change of the directions
DIRECTIONS_FOR_UMAP = 15


class Plane(NamedTuple):
    """Coordinates (n, q) along orthogonal directions (p, q), and the share each explains."""

    points: np.ndarray
    directions: np.ndarray
    explained: np.ndarray


class _Part(NamedTuple):
    """Rows as the loss sees them: y with 0 in the gaps, 1 where observed, lam per feature."""

    y: Any
    seen: Any
    lam: np.ndarray

    def weigh_rows(self, A: np.ndarray) -> np.ndarray:
        """sum_j w_ij A_j for every row."""
        return np.asarray(self.seen @ ((1.0 - self.lam)[:, None] * A)) + self.lam @ A

    def weigh_features(self, A: np.ndarray) -> np.ndarray:
        """sum_i w_ij A_i for every feature."""
        total = A.sum(axis=0)
        return (1.0 - self.lam)[:, None] * np.asarray(self.seen.T @ A) + np.outer(self.lam, total)


def fit_plane(X: Any, lam: Any = 0.0, reference: Any = 0.0, q: int = 2) -> Plane:
    """q directions that explain most of the rows, and where each row lies along them.

    X has NaN in the gaps, or is a sparse matrix whose unstored entries are missing.
    """
    n, p = X.shape
    q = min(q, n, p)
    X = X.tocsr() if sp.issparse(X) else np.asarray(X)
    lam = np.broadcast_to(np.asarray(lam, dtype=float), p)
    reference = np.broadcast_to(np.asarray(reference, dtype=float), p)
    rows = int(np.clip(FIT_ENTRIES // max(p, 1), *FIT_ROWS))
    kept: Any = slice(None)
    if n > rows:
        kept = np.sort(np.random.default_rng(0).choice(n, rows, replace=False))
    part = _read(X[kept], lam, reference)
    mean, V, noise = _start(part, q)
    if not _complete(part):
        mean, V, noise = _improve(part, mean, V, noise)
    points = _place(X, (lam, reference), mean, V, noise)
    return _along_axes(points, V, noise)


def _read(X: Any, lam: np.ndarray, reference: np.ndarray) -> _Part:
    if sp.issparse(X):
        y = sp.csr_array(X, dtype=np.float64, copy=True)
        y.data[y.data == 0.0] = np.inf  # a stored zero is observed; NaN is not
        y.data[np.isnan(y.data)] = 0.0
        y.eliminate_zeros()
        y.data[np.isinf(y.data)] = 0.0
        seen = y.copy()
        seen.data = np.ones(len(seen.data))
        y.data = y.data - reference[y.indices]
        return _Part(y, seen, lam)
    mask = ~np.isnan(X)
    return _Part(np.where(mask, X - reference, 0.0), mask.astype(np.float64), lam)


def _complete(part: _Part) -> bool:
    return float(part.seen.sum()) == part.seen.shape[0] * part.seen.shape[1]


def _start(part: _Part, q: int) -> tuple[np.ndarray, np.ndarray, float]:
    """Principal components with gaps at the means: exact where there are none."""
    n, p = part.y.shape
    count = np.asarray(part.seen.sum(axis=0)).ravel()
    mean = np.asarray(part.y.sum(axis=0)).ravel() / np.maximum(count, 1.0)
    if sp.issparse(part.y):
        centred = part.y.copy()
        centred.data = centred.data - mean[centred.indices]
        total = float(np.square(centred.data).sum())
    else:
        centred = part.y - part.seen * mean
        total = float(np.square(centred).sum())
    if min(n, p) <= q + 1 or total == 0.0:
        # ARPACK needs room; so small a matrix is decomposed whole.
        whole = centred.toarray() if sp.issparse(centred) else centred
        _, size, right = np.linalg.svd(whole, full_matrices=False)
    else:
        first = np.random.default_rng(0).normal(size=min(n, p))
        _, size, right = svds(centred, k=q, v0=first)
        order = np.argsort(size)[::-1]
        size, right = size[order], right[order]
    size, right = size[:q], right[:q]
    rest = max(total - float(np.square(size).sum()), 1e-9 * total)
    noise = rest * p / (max(p - q, 1) * max(count.sum(), 1.0)) or 1.0
    along = np.square(size) / n
    return mean, right.T * np.sqrt(np.maximum(along - noise, 1e-6 * along)), noise


def _improve(
    part: _Part, mean: np.ndarray, V: np.ndarray, noise: float
) -> tuple[np.ndarray, np.ndarray, float]:
    """EM until the directions rest."""
    q = V.shape[1]
    squares = float((part.y.multiply(part.y) if sp.issparse(part.y) else part.y**2).sum())
    weight = float(part.weigh_rows(np.ones((len(mean), 1))).sum())
    upper = np.triu_indices(q + 1)
    for _ in range(MOST_STEPS):
        u, covariance = _coordinates(part, mean, V, noise)
        z = np.column_stack([np.ones(len(u)), u])
        second = z[:, :, None] * z[:, None, :]
        second[:, 1:, 1:] += covariance
        gram = _symmetric(part.weigh_features(second[:, upper[0], upper[1]]), q + 1)
        right = np.asarray(part.y.T @ z)
        # A feature that nobody observes has no equation of its own: it stays at the middle.
        gram += 1e-9 * (1.0 + np.trace(gram, axis1=1, axis2=2))[:, None, None] * np.eye(q + 1)
        b = np.linalg.solve(gram, right[:, :, None])[:, :, 0]
        moved = np.linalg.norm(b[:, 1:] - V) / (np.linalg.norm(V) or 1.0)
        mean, V = b[:, 0], b[:, 1:]
        noise = max((squares - float((b * right).sum())) / weight, 1e-9 * squares / weight) or 1.0
        if moved < CLOSE_ENOUGH:
            break
    return mean, V, noise


def _coordinates(
    part: _Part, mean: np.ndarray, V: np.ndarray, noise: float
) -> tuple[np.ndarray, np.ndarray]:
    """Expected coordinates (n, q) of the rows, and their covariances (n, q, q)."""
    q = V.shape[1]
    upper = np.triu_indices(q)
    products = V[:, upper[0]] * V[:, upper[1]]
    A = _symmetric(part.weigh_rows(products), q) + noise * np.eye(q)
    right = np.asarray(part.y @ V) - part.weigh_rows(mean[:, None] * V)
    inverse = np.linalg.inv(A)
    return np.einsum("nab,nb->na", inverse, right), noise * inverse


def _symmetric(packed: np.ndarray, q: int) -> np.ndarray:
    """(n, q, q) from the upper triangles (n, q (q + 1) / 2)."""
    full = np.empty((len(packed), q, q))
    row, column = np.triu_indices(q)
    full[:, row, column] = packed
    full[:, column, row] = packed
    return full


def _place(X: Any, geometry: Any, mean: np.ndarray, V: np.ndarray, noise: float) -> np.ndarray:
    """Coordinates of all rows, in blocks."""
    n, p = X.shape
    step = max(1, BLOCK_ENTRIES // max(p, 1))
    points = np.empty((n, V.shape[1]))
    tiny = 1e-12 * (float(np.square(V).sum()) or 1.0)
    for begin in range(0, n, step):
        block = slice(begin, min(begin + step, n))
        part = _read(X[block], *geometry)
        shrunk = 0.0 if _complete(part) else noise
        points[block], _ = _coordinates(part, mean, V, shrunk + tiny)
    return points


def _along_axes(points: np.ndarray, V: np.ndarray, noise: float) -> Plane:
    """Rotate: orthogonal directions, the first along the widest spread of the points."""
    directions, size, turn = np.linalg.svd(V, full_matrices=False)
    stretch = turn.T * size  # V = directions @ stretch.T, so u' V' = (u @ stretch) directions'
    placed = points @ stretch
    placed -= placed.mean(axis=0)
    _, _, axes = np.linalg.svd(placed, full_matrices=False)
    placed, directions = placed @ axes.T, directions @ axes.T
    # The sign of a direction is arbitrary: its largest loading points up.
    q = directions.shape[1]
    sign = np.sign(directions[np.abs(directions).argmax(axis=0), np.arange(q)])
    sign = np.where(sign == 0.0, 1.0, sign)
    # Of the variance V V' + s I of the model, not of the points, which are shrunk by their gaps.
    along = np.square(axes) @ np.square(size) + noise
    total = np.square(size).sum() + len(V) * noise
    explained = along / total if total > 0 else np.zeros(q)
    return Plane(placed * sign, directions * sign, np.clip(explained, 0.0, 1.0))


class Embedding(NamedTuple):
    """Two coordinates per row, what the axes are called, how much of the variance they hold."""

    points: np.ndarray
    axis_names: tuple[str, str]
    explained: tuple[float, float] | None


def embed(
    X: Any,
    lam: Any = 0.0,
    reference: Any = 0.0,
    method: str = "pca",
    random_state: int | None = 0,
) -> Embedding:
    """Two coordinates per row: main directions of a table with gaps, or UMAP of them.

    Examples
    --------
    >>> X = np.array([[0.0, 0.0], [1.0, 1.0], [2.0, np.nan]])
    >>> embed(X).axis_names
    ('PC 1', 'PC 2')
    """
    if method == "umap":
        umap = require("umap", "umap")
        plane = fit_plane(X, lam, reference, DIRECTIONS_FOR_UMAP)
        reducer = umap.UMAP(random_state=random_state, n_jobs=1)
        return Embedding(reducer.fit_transform(plane.points), ("UMAP 1", "UMAP 2"), None)
    if method != "pca":
        raise ValueError(f"method must be 'pca' or 'umap', got {method!r}")
    plane = fit_plane(X, lam, reference)
    points, share = plane.points, plane.explained
    if points.shape[1] < 2:
        points, share = np.column_stack([points, np.zeros(len(points))]), np.append(share, 0.0)
    return Embedding(points, ("PC 1", "PC 2"), (float(share[0]), float(share[1])))
