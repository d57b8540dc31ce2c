"""A plane through rows with gaps that knows no labels: the method's loss, a plane for the centres.

With y = x - c where observed and 0 in a gap, w = 1 where observed and lam_j in a gap:

    L = sum_ij w_ij (y_ij - m_j - u_i' v_j)^2 + s sum_i |u_i|^2

u_i are the coordinates of a row, standard normal beforehand, and s is the noise, so a row that
tells little stays near the middle instead of flying off. lam = 0 fits the observed entries alone,
lam = 1 the table filled with the reference. Solved by EM, one row and one feature at a time:

    A_i = s I + sum_j w_ij v_j v_j',   u_i = A_i^-1 sum_j w_ij (y_ij - m_j) v_j,   cov_i = s A_i^-1
    (m_j, v_j) = [sum_i w_ij E z_i z_i']^-1 sum_i w_ij y_ij E z_i,   z = (1, u)

Without gaps this is principal component analysis, which is then done directly.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import svds

FIT_ENTRIES, FIT_ROWS = 1_000_000, (400, 5_000)  # of the sample that the plane is fitted to
BLOCK_ENTRIES = 4_000_000
MOST_STEPS = 40
CLOSE_ENOUGH = 5e-3  # relative change of the directions


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
    """Directions that explain most of the rows, and where each row lies along them.

    Parameters
    ----------
    X : array with NaN, or CSR/CSC matrix whose unstored entries are missing
    lam, reference : number or array of n_features
    q : number of directions

    Examples
    --------
    >>> X = np.array([[0.0, 0.0], [1.0, 1.0], [2.0, np.nan], [3.0, 3.0]])
    >>> plane = fit_plane(X, q=1)
    >>> plane.points[:, 0].argsort().tolist()
    [0, 1, 2, 3]
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
    points, reach, total = _place(X, (lam, reference), mean, V, noise)
    return _along_axes(points, V, reach, total)


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
    noise = max(total - float(np.square(size).sum()), 1e-9 * total) / max(count.sum(), 1.0)
    return mean, right.T * (size / np.sqrt(n)), noise or 1.0


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


def _place(
    X: Any, geometry: Any, mean: np.ndarray, V: np.ndarray, noise: float
) -> tuple[np.ndarray, np.ndarray, float]:
    """Coordinates of all rows, in blocks; reach_i = sum_j w_ij v_j v_j'; the loss without them."""
    n, p = X.shape
    step = max(1, BLOCK_ENTRIES // max(p, 1))
    q = V.shape[1]
    points, reach, total = np.empty((n, q)), np.zeros((n, q, q)), 0.0
    upper = np.triu_indices(q)
    for begin in range(0, n, step):
        block = slice(begin, min(begin + step, n))
        part = _read(X[block], *geometry)
        shrunk = noise if not _complete(part) else 0.0
        tiny = 1e-12 * (float(np.square(V).sum()) or 1.0)
        points[block], _ = _coordinates(part, mean, V, shrunk + tiny)
        reach[block] = _symmetric(part.weigh_rows(V[:, upper[0]] * V[:, upper[1]]), q)
        total += _around_the_mean(part, mean)
    return points, reach, total


def _around_the_mean(part: _Part, mean: np.ndarray) -> float:
    """sum_ij w_ij (y_ij - m_j)^2."""
    square = part.y.multiply(part.y) if sp.issparse(part.y) else part.y**2
    cross = np.asarray(part.y @ mean).sum()
    return float(square.sum() - 2.0 * cross + part.weigh_rows(mean[:, None] ** 2).sum())


def _along_axes(points: np.ndarray, V: np.ndarray, reach: np.ndarray, total: float) -> Plane:
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
    # In the basis of the directions, how much of each a row observes (1 without gaps).
    back = np.linalg.pinv(stretch).T @ axes.T
    seen = np.einsum("ap,nab,bp->np", back, reach, back)
    explained = (placed**2 * seen).sum(axis=0) / total if total > 0 else np.zeros(q)
    return Plane(placed * sign, directions * sign, np.clip(explained, 0.0, 1.0))
