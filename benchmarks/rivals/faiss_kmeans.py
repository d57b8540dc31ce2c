"""faiss, float32, on the zero-filled table; its conversion to float32 counts."""

import numpy as np

NAME = "faiss"
MODULE = "faiss"


def supports(job):
    return not job.sparse


def fit(data, iterations):
    import faiss

    job = data.job
    X = np.ascontiguousarray(data.filled, np.float32)
    kmeans = faiss.Kmeans(
        job.p,
        job.k,
        niter=iterations or 25,
        nredo=max(job.starts, 1),
        min_points_per_centroid=1,
        max_points_per_centroid=job.n,
    )
    kmeans.train(X, init_centroids=None if job.starts else data.start.astype(np.float32))
    return kmeans.centroids.astype(np.float64), iterations or 25
