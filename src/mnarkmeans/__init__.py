"""k-means for data with holes, where values near a reference are the likeliest to be missing."""

from ._data.validation import MissingDataWarning
from ._estimators.kmeans import MNARKMeans
from ._estimators.minibatch import MiniBatchMNARKMeans
from ._selection import MNARKMeansCV, SelectionWarning

__version__ = "0.1.0"

__all__ = [
    "MNARKMeans",
    "MNARKMeansCV",
    "MiniBatchMNARKMeans",
    "MissingDataWarning",
    "SelectionWarning",
    "__version__",
]
