"""A case from a seed and a number. The same pair gives the same case, on every machine."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

WIDTHS = (8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096)  # of registers, panels and runs
SIZES = {"tiny": 3e4, "small": 1e6, "large": 3e7, "huge": 1e9}  # most n p k
SHARES = {"tiny": 0.8, "small": 0.17, "large": 0.028, "huge": 0.002}
DENSE_FORMS = (
    "rows", "columns", "every other", "rows apart", "backwards", "columns backwards", "unaligned",
    "mapped", "read-only", "swapped bytes",
)  # fmt: skip
SPARSE_FORMS = (
    "csr",
    "csc",
    "csr long indices",
    "csr unsorted",
    "csr twice",
    "csr stored gaps",
    "csr matrix",
)
PLACES = ("block", "chunks", "dask", "batches")


@dataclass(frozen=True)
class Case:
    """A table X with NaN in its gaps, and all that a fit needs beside it."""

    seed: int
    number: int
    most: str
    X: np.ndarray  # (n, p) float32 or float64
    weights: np.ndarray | None
    init: np.ndarray  # (k, p)
    lam: Any
    reference: Any
    form: str
    missing: float  # how gaps are marked in dense forms
    place: str
    algorithm: str
    max_iter: int

    @property
    def k(self) -> int:
        return len(self.init)

    @property
    def size(self) -> float:
        n, p = self.X.shape
        return float(n) * p * self.k

    @property
    def is_sparse(self) -> bool:
        return self.form in SPARSE_FORMS

    def describe(self) -> str:
        n, p = self.X.shape
        lam = f"{self.lam:g}" if np.ndim(self.lam) == 0 else "one per feature"
        return (
            f"{n} x {p} {self.X.dtype} {self.form}, k={self.k}, lam: {lam}, {self.place}, "
            f"{self.algorithm}, {self.max_iter} iterations"
        )

    def rows(self, which) -> Case:
        """The same with some of the rows only."""
        weights = None if self.weights is None else self.weights[which]
        return replace(self, X=self.X[which], weights=weights)

    def table(self, X: np.ndarray | None = None):
        """The table, or other rows, in the form of this case."""
        X = self.X if X is None else X
        return in_form(X, self.form, self.missing, np.random.default_rng(self.number))


# --- what it is made of -----------------------------------------------------------------------


def make(seed: int, number: int, most: str = "huge") -> Case:
    """Case ``number`` of ``seed``; ``most``: the largest size class."""
    rng = np.random.default_rng([seed, number])
    n, p, k = _shape(rng, most)
    dtype = rng.choice([np.float64, np.float32], p=[0.7, 0.3])
    scale = _scale(rng, dtype)
    X, centers = _values(rng, n, p, k, scale)
    X[_gaps(rng, X, scale)] = np.nan
    X = X.astype(dtype)
    if np.isnan(X).all():
        X[rng.integers(n), rng.integers(p)] = scale
    reference = _reference(rng, X, scale)
    weights = _weights(rng, X)
    usable = np.flatnonzero(~np.isnan(X).all(axis=1) & (True if weights is None else weights > 0))
    if not len(usable):
        weights, usable = None, np.flatnonzero(~np.isnan(X).all(axis=1))
    k = min(k, len(usable))
    place = str(rng.choice(PLACES, p=[0.44, 0.44, 0.04, 0.08]))
    forms = DENSE_FORMS if rng.random() < 0.6 else SPARSE_FORMS
    form = str(rng.choice(forms))
    if form == "swapped bytes" and dtype == np.float32:
        form = "rows"  # scikit-learn reads it as float64
    missing = np.nan
    if forms is DENSE_FORMS and rng.random() < 0.2:
        missing = float(dtype(rng.choice([-999.0, 1.0]) * scale * 1.37))
        X[missing == X] = np.nan
        usable = np.flatnonzero(~np.isnan(X).all(axis=1))
        weights, k = None, max(1, min(k, len(usable)))
        if not len(usable):
            X[0, 0], usable = scale, np.array([0])
    init = _init(rng, X, centers, usable, k)
    algorithm = "lloyd" if place in ("dask", "batches") else str(rng.choice(["lloyd", "hartigan"]))
    return Case(
        seed, number, most, X, weights, init, _lam(rng, p), reference, form, missing, place,
        algorithm, int(rng.integers(2, 12)),
    )  # fmt: skip


def _near(rng, widths) -> int:
    return max(1, int(rng.choice(widths)) + int(rng.integers(-1, 2)))


def _shape(rng, most: str) -> tuple[int, int, int]:
    names = list(SIZES)[: list(SIZES).index(most) + 1]
    shares = np.array([SHARES[name] for name in names])
    room = SIZES[str(rng.choice(names, p=shares / shares.sum()))]
    widest = min(5000.0, room / 4)
    p = int(np.exp(rng.uniform(0, np.log(min(40.0, widest)))))
    if rng.random() < 0.4:
        p = _near(rng, [w for w in WIDTHS if w < widest])
    elif rng.random() < 0.1:
        p = int(np.exp(rng.uniform(0, np.log(widest))))
    left = room / p
    k = int(np.exp(rng.uniform(0, np.log(min(left, 300.0)))))
    if rng.random() < 0.4:
        k = _near(rng, (1, 2, 3, 8, 16, 32, 64))
    n = int(np.clip(np.exp(rng.uniform(np.log(left / k) - 2, np.log(left / k))), 1, 500_000))
    if rng.random() < 0.05:
        n = k = max(1, int(min(left, 2000.0) ** 0.5))
    return n, p, min(k, n)


def _scale(rng, dtype) -> float:
    if rng.random() < 0.6:
        return 1.0
    most = 100.0 if dtype == np.float64 else 25.0
    return float(10.0 ** rng.uniform(-most, most))


def _values(rng, n: int, p: int, k: int, scale: float) -> tuple[np.ndarray, np.ndarray]:
    """Values (n, p) and the centres (k, p) they scatter around."""
    spread = rng.choice([0.0, 1.0, 5.0, 100.0])
    centers = spread * rng.normal(size=(k, p))
    X = centers[rng.integers(0, k, n)] + rng.normal(size=(n, p))
    kind = rng.random()
    if kind < 0.25:  # whole numbers: many ties
        X, centers = np.round(X), np.round(centers)
    elif kind < 0.3:  # the same few rows again and again
        X = X[rng.integers(0, min(n, 5), n)]
    elif kind < 0.35:
        X[rng.random(n) < 0.02] *= 10.0 ** rng.integers(3, 12)
    elif kind < 0.4:
        X[:] = X[0]
    if rng.random() < 0.2:  # features of different sizes
        units = 10.0 ** rng.integers(-4, 5, p)
        X, centers = X * units, centers * units
    if rng.random() < 0.3:  # far from zero
        far = 10.0 ** rng.integers(1, 10) * (
            rng.choice([-1.0, 1.0], p) if rng.random() < 0.5 else 1.0
        )
        X, centers = X + far, centers + far
    return X * scale, centers * scale


def _gaps(rng, X: np.ndarray, scale: float) -> np.ndarray:
    n, p = X.shape
    share = float(rng.choice([0.02, 0.3, 0.7, 0.97]))
    kind = rng.integers(0, 8)
    if kind <= 1:
        return np.zeros((n, p), bool)
    if kind == 2:  # small values
        return np.abs(X) < share * np.abs(X).mean()
    if kind == 3:  # some features never observed
        return np.broadcast_to(rng.random(p) < min(share, 0.7), (n, p)) & (p > 1)
    if kind == 4:  # some rows never observed, others whole
        return np.broadcast_to(rng.random((n, 1)) < min(share, 0.7), (n, p))
    if kind == 5:  # in one feature only
        gaps = np.zeros((n, p), bool)
        gaps[:, rng.integers(p)] = rng.random(n) < share
        return gaps
    return rng.random((n, p)) < share


def _reference(rng, X: np.ndarray, scale: float):
    kind = rng.random()
    if kind < 0.4:
        return 0.0
    if kind < 0.5:
        return "min"
    if kind < 0.7:
        return float(scale * rng.normal())
    if kind < 0.8:
        return float(scale * rng.normal() * 1e6)
    return scale * rng.normal(size=X.shape[1]) * rng.choice([1.0, 100.0])


def _weights(rng, X: np.ndarray) -> np.ndarray | None:
    n, kind = len(X), rng.random()
    if kind < 0.5:
        return None
    if kind < 0.65:
        return rng.integers(0, 4, n).astype(float)
    if kind < 0.8:
        return np.round(rng.random(n), 1)
    if kind < 0.9:
        return rng.random(n)
    return 10.0 ** rng.uniform(-6, 6, n)


def _lam(rng, p: int):
    kind = rng.random()
    if kind < 0.2:
        return 0.0
    if kind < 0.35:
        return 1.0
    if kind < 0.75:
        return float(10.0 ** rng.uniform(-6, 6))
    if kind < 0.8:
        return 1e-15
    lam = 10.0 ** rng.uniform(-3, 3, p)
    lam[rng.random(p) < 0.3] = 0.0
    return lam


def _init(rng, X: np.ndarray, centers: np.ndarray, usable: np.ndarray, k: int) -> np.ndarray:
    kind = rng.random()
    if kind < 0.4:
        return np.array(centers[:k], np.float64)
    rows = X[rng.choice(usable, k, replace=False)].astype(np.float64)
    fill = X[usable[:1000]].astype(np.float64)
    seen = ~np.isnan(fill)
    means = np.where(seen, fill, 0.0).sum(axis=0) / np.maximum(seen.sum(axis=0), 1)
    rows = np.where(np.isnan(rows), means, rows)
    if kind < 0.5 and k > 1:  # two starting centres in one place
        rows[-1] = rows[0]
    return rows


# --- in memory --------------------------------------------------------------------------------


def in_form(X: np.ndarray, form: str, missing: float, rng: np.random.Generator):
    """The same table, laid out in another way."""
    if form in SPARSE_FORMS:
        return _sparse(X, form, rng)
    n, p = X.shape
    X = X if np.isnan(missing) else np.where(np.isnan(X), X.dtype.type(missing), X)
    if form == "columns":
        return np.asfortranarray(X)
    if form == "every other":
        wide = np.full((n, 2 * p + 3), 9.0, X.dtype)
        wide[:, 1 : 2 * p + 1 : 2] = X
        return wide[:, 1 : 2 * p + 1 : 2]
    if form == "rows apart":
        apart = np.full((2 * n, p + 5), 8.0, X.dtype)
        apart[::2, :p] = X
        return apart[::2, :p]
    if form == "backwards":
        return np.ascontiguousarray(X[::-1])[::-1]
    if form == "columns backwards":
        return np.ascontiguousarray(X[:, ::-1])[:, ::-1]
    if form == "unaligned":
        room = np.empty(X.nbytes + 1, np.uint8)[1:].view(np.uint8)
        own = np.frombuffer(room.data, X.dtype, X.size).reshape(n, p)
        own[:] = X
        return own
    if form == "mapped":
        with tempfile.TemporaryDirectory() as folder:
            np.save(Path(folder) / "X.npy", X)
            return np.load(
                Path(folder) / "X.npy", mmap_mode="r"
            )  # lives on though its name is gone
    if form == "read-only":
        X = X.copy()
        X.flags.writeable = False
        return X
    if form == "swapped bytes":
        return X.astype(X.dtype.newbyteorder())
    return np.ascontiguousarray(X)


def _sparse(X: np.ndarray, form: str, rng: np.random.Generator):
    seen = ~np.isnan(X)
    stored = np.ones_like(seen) if form == "csr stored gaps" else seen
    starts = np.concatenate([[0], np.cumsum(stored.sum(axis=1))])
    values, columns = X[stored], np.nonzero(stored)[1]
    kind = sparse.csr_matrix if form == "csr matrix" else sparse.csr_array
    if form == "csr long indices":
        made = kind((values, columns.astype(np.int64), starts.astype(np.int64)), shape=X.shape)
        made.indices, made.indptr = columns.astype(np.int64), starts.astype(np.int64)
        return made
    if form == "csr unsorted":
        order = np.lexsort([rng.random(len(values)), np.repeat(np.arange(len(X)), np.diff(starts))])
        values, columns = values[order], columns[order]
    if form == "csr twice":
        values, columns = np.repeat(values / 2, 2), np.repeat(columns, 2)
        starts = 2 * starts
    made = kind((values, columns, starts), shape=X.shape)
    return made.tocsc() if form == "csc" else made
