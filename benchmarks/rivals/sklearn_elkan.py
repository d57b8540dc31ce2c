"""scikit-learn's KMeans, algorithm="elkan", on the zero-filled table."""

from . import _sklearn

NAME = "scikit-learn elkan"
MODULE = "sklearn"


def supports(job):
    return job.k < 1000  # its bounds need n x k numbers


def fit(data, iterations):
    from sklearn.cluster import KMeans

    return _sklearn.run(KMeans, data, iterations, "elkan")
