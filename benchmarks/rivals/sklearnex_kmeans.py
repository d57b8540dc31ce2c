"""scikit-learn-intelex, on the zero-filled table."""

from . import _sklearn

NAME = "scikit-learn-intelex"
MODULE = "sklearnex"


def supports(job):
    return True


def fit(data, iterations):
    from sklearnex.cluster import KMeans

    return _sklearn.run(KMeans, data, iterations, "lloyd")
