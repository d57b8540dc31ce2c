"""MNARKMeans on Dask: the same loss, the same step, rows that live elsewhere.

    S, C, N of all rows  =  sum over blocks of S, C, N of the block

so every iteration sends the centres out, runs the in-memory step on each block where the block
is, and brings k x p sums back, which are added up in a tree of fixed shape.

_estimator    MNARKMeans on Dask: checks, starts, the loop, what is kept
_blocks       arrays, frames and tables in memory as lists of lazy blocks
_files        tables on disk as Dask arrays
_pieces       what a block becomes on its worker, read and judged once
_passes       the passes over a piece, and how their results add up
_lloyd        Lloyd's loop with the rows elsewhere
_starts       starting centres, k-means|| among them
_run          passes over all pieces, on whatever scheduler; sums added in a tree
_messages     a pass by one message to each worker
_lazy         labels, distances and filled tables of rows that come later
_checkpoint   where a fit stands, in a file
_out_of_core  what the command line needs for tables larger than memory

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
from ._files import TableFile, open_table
from ._run import ClusterLostError

__all__ = ["ClusterLostError", "MNARKMeans", "TableFile", "open_table"]
