"""MNARKMeans on Dask: the same loss and the same step, for tables larger than memory.

    S, C, N of all rows  =  sum over blocks of S, C, N of the block

so every iteration sends the centres out, runs the in-memory step on each block where the block
is, and brings k x p sums back, which are added in a tree of fixed shape.
"""

from ._estimator import MNARKMeans

__all__ = ["MNARKMeans"]
