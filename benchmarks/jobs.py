"""The jobs: tables with gaps, a start, and how often to repeat.

Everybody solves the same problem: with lam = 1 and the reference 0 the penalised loss is the
ordinary k-means loss of the zero-filled table, so the rivals get that table (filled beforehand,
at no cost to them) and, where one start is given, take the same steps to the same centres.
Our kernels do the same work for every lam.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy import sparse


@dataclass(frozen=True)
class Job:
    """One table and what to do with it."""

    name: str
    n: int
    p: int
    k: int
    missing: float = 0.3
    dtype: str = "float64"
    sparse: bool = False
    starts: int = 0  # 0: one given start, the same for everybody; otherwise n_init with k-means++
    spread: float = 1.0  # distance of the true centres from each other, in units of the noise
    telling: int | None = None  # features in which the centres differ (None: all)
    goal: float | None = None  # how many times faster than the rivals
    goal_rival: str = ""  # than this one only; "": than the best

    @property
    def shape(self) -> str:
        return f"{self.n:,} x {self.p:,}"

    def make(self) -> Data:
        rng = np.random.default_rng(0)
        centers = self.spread * rng.normal(size=(self.k, self.p))
        if self.telling is not None:
            centers[:, self.telling :] = 0.0
        if self.sparse:
            X = self._make_sparse(rng, centers)
            return Data(self, X, X[rng.choice(self.n, self.k, replace=False)].toarray())
        X = np.empty((self.n, self.p), self.dtype)
        for rows in np.array_split(np.arange(self.n), max(1, self.n * self.p // 5_000_000)):
            labels = rng.integers(self.k, size=len(rows))
            X[rows] = centers[labels] + rng.normal(size=(len(rows), self.p))
            X[rows] = np.where(rng.random((len(rows), self.p)) < self.missing, np.nan, X[rows])
        return Data(self, X, self._start(rng, X))

    def _start(self, rng, X):
        rows = X[rng.choice(self.n, self.k, replace=False)]
        return np.nan_to_num(rows).astype(np.float64)

    def _make_sparse(self, rng, centers):
        stored = round((1 - self.missing) * self.p)
        indices = np.concatenate(
            [np.sort(rng.choice(self.p, stored, replace=False)) for _ in range(self.n)]
        ).astype(np.int32)
        labels = np.repeat(rng.integers(self.k, size=self.n), stored)
        values = centers[labels, indices] + rng.normal(size=self.n * stored)
        indptr = np.arange(self.n + 1, dtype=np.int32) * stored
        return sparse.csr_matrix((values, indices, indptr), shape=(self.n, self.p))

    def smaller(self, factor: int) -> Job:
        """The job with fewer rows, for a quick look."""
        return replace(self, n=max(self.n // factor, min(self.n, 20 * self.k)))


@dataclass(frozen=True)
class Data:
    """A job's table with gaps, the same table zero-filled, and the given start."""

    job: Job
    X: np.ndarray | sparse.csr_matrix
    start: np.ndarray

    @cached_property
    def filled(self):
        return self.X if self.job.sparse else np.nan_to_num(self.X)

    def loss(self, centers: np.ndarray, most_rows: int = 20_000) -> float:
        """Mean k-means loss of zero-filled rows (the first ones), computed here for everybody."""
        rows = self.filled[:most_rows]
        rows = rows.toarray() if self.job.sparse else rows.astype(np.float64)
        distances = (rows**2).sum(1)[:, None] - 2 * rows @ centers.T + (centers**2).sum(1)
        return float(distances.min(1).mean())


SKLEARN = "scikit-learn lloyd"
JOBS = [
    Job("dense", 1_000_000, 50, 10, goal=3.0),
    Job("dense, separated", 1_000_000, 50, 10, spread=3.0),
    Job("k=100", 200_000, 50, 100, goal=3.0),
    Job("CSR", 100_000, 2000, 10, missing=0.9, sparse=True, goal=3.0, goal_rival=SKLEARN),
    Job("100 starts", 300, 50, 3, starts=100, spread=2.0, telling=2, goal=15.0, goal_rival=SKLEARN),
    Job("complete", 1_000_000, 50, 10, missing=0.0),
    Job("90 % missing", 1_000_000, 50, 10, missing=0.9),
    Job("float32", 1_000_000, 50, 10, dtype="float32"),
    Job("wide, 100 starts", 62, 4026, 3, starts=100),
    Job("tall and thin", 5_000_000, 4, 5),
    Job("k=1000", 100_000, 32, 1000),
]
