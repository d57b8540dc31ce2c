"""The programs that are timed: each fits a job and returns (centres, iterations done).

`iterations` is None where every program seeds its own starts and stops by its own rule. A program
that is not installed is left out.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec

import numpy as np

from .jobs import Data

OURS = "mnarkmeans"


def mnarkmeans(data: Data, iterations: int | None):
    """On the table with its missing values."""
    from mnarkmeans import MNARKMeans

    job = data.job
    common = {"lam": 1.0, "reference": 0.0, "algorithm": "lloyd", "random_state": 0}
    if job.starts:
        model = MNARKMeans(job.k, n_init=job.starts, **common)
    elif iterations is None:  # the run that finds how many iterations the job takes
        model = MNARKMeans(job.k, init=data.start, max_iter=100, **common)
    else:
        model = MNARKMeans(job.k, init=data.start, max_iter=iterations, tol=0.0, **common)
    model.fit(data.X)
    return model.cluster_centers_, model.n_iter_


def scikit_learn(module: str, algorithm: str) -> Callable:
    """KMeans of scikit-learn, or of its accelerated copy, on the zero-filled table."""

    def fit(data: Data, iterations: int | None):
        KMeans = import_module(module).KMeans
        job = data.job
        if job.starts:
            model = KMeans(job.k, n_init=job.starts, algorithm=algorithm, random_state=0)
        else:
            start = data.start.astype(job.dtype)
            model = KMeans(
                job.k, init=start, n_init=1, max_iter=iterations, tol=0.0, algorithm=algorithm
            )
        model.fit(data.filled)
        return model.cluster_centers_, model.n_iter_

    return fit


def faiss(data: Data, iterations: int | None):
    """In float32, on the zero-filled table; the conversion to float32 counts."""
    import faiss

    job = data.job
    kmeans = faiss.Kmeans(
        job.p, job.k, niter=iterations or 25, nredo=max(job.starts, 1),
        min_points_per_centroid=1, max_points_per_centroid=job.n,
    )  # fmt: skip
    start = None if job.starts else data.start.astype(np.float32)
    kmeans.train(np.ascontiguousarray(data.filled, np.float32), init_centroids=start)
    return kmeans.centroids.astype(np.float64), iterations or 25


PROGRAMS: dict[str, tuple[str, Callable]] = {  # name -> (module it needs, fit)
    OURS: ("mnarkmeans", mnarkmeans),
    "scikit-learn lloyd": ("sklearn", scikit_learn("sklearn.cluster", "lloyd")),
    "scikit-learn elkan": ("sklearn", scikit_learn("sklearn.cluster", "elkan")),
    "scikit-learn-intelex": ("sklearnex", scikit_learn("sklearnex.cluster", "lloyd")),
    "faiss": ("faiss", faiss),
}


def programs(data: Data, names: list[str] | None = None) -> dict[str, Callable]:
    """Those that are installed and can do the job."""
    wanted = {OURS, *(names or PROGRAMS)}
    if data.job.sparse:
        wanted.discard("faiss")
    if data.job.k >= 1000:
        wanted.discard("scikit-learn elkan")  # its bounds need n x k numbers
    return {n: fit for n, (m, fit) in PROGRAMS.items() if n in wanted and find_spec(m)}
