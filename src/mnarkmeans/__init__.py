"""k-means for data with holes, where values near a reference are the likeliest to be missing."""

from . import _compiling as _compiling  # watches from the first kernel on
from ._estimator import MNARKMeans
from ._minibatch import MiniBatchMNARKMeans
from ._selection import MNARKMeansCV, SelectionWarning
from ._validation import MissingDataWarning

__version__ = "0.1.0"

__all__ = [
    "MNARKMeans",
    "MNARKMeansCV",
    "MiniBatchMNARKMeans",
    "MissingDataWarning",
    "SelectionWarning",
    "__version__",
]
