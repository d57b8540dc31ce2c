"""kPOD from PyPI: one start of its own choosing, in interpreted loops."""

import contextlib
import io

import numpy as np

NAME = "kPOD (one start)"
MODULE = "kPOD"


def supports(job):
    return job.n <= 1000 and job.p <= 100


def fit(data, iterations):
    from kPOD import k_pod

    with contextlib.redirect_stdout(io.StringIO()):
        _, centers = k_pod(data.X.copy(), data.job.k)
    return np.asarray(centers), 0
