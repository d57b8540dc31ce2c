"""Any file of a laboratory as a table: read, tidy, prepare, advise.

_read     a file to a frame or a matrix (`_text`: text files and headers)
_tidy     that to a `Table`: row names, features, numbers, missing values (`_cells`)
_prepare  normalise, logarithm, centre, scale, batches; remembered by a model
_advise   what a table seems to need before it is clustered, and why
"""

from .._batch import BatchCenter
from ._advise import Advice, advise
from ._prepare import Preparation
from ._table import ReadOptions, Table, TableError
from ._tidy import read_table

__all__ = [
    "Advice",
    "BatchCenter",
    "Preparation",
    "ReadOptions",
    "Table",
    "TableError",
    "advise",
    "read_table",
]
