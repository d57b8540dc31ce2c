"""k-means for data with holes, where small values are the likeliest to be missing."""

__version__ = "0.1.0"
