"""scikit-learn's KMeans, algorithm="lloyd", on the zero-filled table."""

from . import _sklearn

NAME = "scikit-learn lloyd"
MODULE = "sklearn"


def supports(job):
    return True


def fit(data, iterations):
    from sklearn.cluster import KMeans

    return _sklearn.run(KMeans, data, iterations, "lloyd")
