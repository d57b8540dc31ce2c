"""MNARKMeans on Dask: the same loss and the same step, for tables larger than memory.

    S, C, N of all rows  =  sum over blocks of S, C, N of the block

so every iteration sends the centres out, runs the in-memory step on each block where the block
is, and brings k x p sums back, which are added in a tree of fixed shape.

>>> import dask.array as da, numpy as np
>>> from mnarkmeans.dask import MNARKMeans
>>> rng = np.random.default_rng(0)
>>> X = rng.normal(size=(300, 2)) + 6.0 * rng.integers(0, 2, size=(300, 1))
>>> X[::3, 0] = X[1::3, 1] = np.nan
>>> model = MNARKMeans(n_clusters=2, lam=0.5, random_state=0).fit(da.from_array(X, chunks=(100, 2)))
>>> model.labels_.compute().shape
(300,)
"""

from ._estimator import MNARKMeans

__all__ = ["MNARKMeans"]
