"""k-means for data with missing values that are likelier missing near a reference."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

from ._cv import MNARKMeansCV, SelectionWarning
from ._kmeans import MNARKMeans
from ._minibatch import MiniBatchMNARKMeans
from ._mixture import MNARMixture
from ._model_files import load
from ._validation import MissingDataWarning
from ._versions import show_versions

if TYPE_CHECKING:
    from ._report import report
    from .tables import read_table

# Imported when first asked for, so that `import mnarkmeans` stays quick.
SUBMODULES = (
    "baselines", "dask", "datasets", "displays", "metrics", "missingness", "tables", "tl",
)  # fmt: skip
FUNCTIONS = {"read_table": "tables", "report": "_report"}

__all__ = [
    "MNARKMeans",
    "MNARKMeansCV",
    "MNARMixture",
    "MiniBatchMNARKMeans",
    "MissingDataWarning",
    "SelectionWarning",
    "__version__",
    "load",
    "read_table",
    "report",
    "show_versions",
]


def __getattr__(name: str) -> Any:
    if name in SUBMODULES:
        return import_module(f"{__name__}.{name}")
    if name in FUNCTIONS:
        return getattr(import_module(f"{__name__}.{FUNCTIONS[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *SUBMODULES, *FUNCTIONS})
