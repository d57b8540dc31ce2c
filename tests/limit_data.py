"""Tables whose values fall below a detection limit, for tests."""

import numpy as np

from mnarkmeans.missingness import ampute

NOISE = {
    "normal": lambda rng, size: rng.normal(size=size),
    "t3": lambda rng, size: rng.standard_t(3, size) / np.sqrt(3.0),
    "laplace": lambda rng, size: rng.laplace(size=size) / np.sqrt(2.0),
    "skewed": lambda rng, size: (rng.gamma(2.0, size=size) - 2.0) / np.sqrt(2.0),
}


def mixture(noise="normal", n=300, p=6, k=3, seed=0):
    rng = np.random.default_rng(seed)
    centers, classes = 1.5 * rng.normal(size=(k, p)), rng.integers(k, size=n)
    return centers[classes] + NOISE[noise](rng, (n, p)), classes


def lost_below_a_limit(shift=0.0, **options):
    X = mixture(**options)[0]
    X = ampute(X, "limit", strength=0.3, rng=0) + shift
    return X[~np.isnan(X).all(axis=1)]
