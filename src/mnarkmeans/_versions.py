"""Which versions run here: what has to be known to repeat a result, or to report a mistake."""

from __future__ import annotations

import platform

import numpy
import scipy
import sklearn

from . import __version__, _core


def versions() -> dict[str, str]:
    """By name: this package, Python and what it computes with."""
    return {
        "mnarkmeans": __version__, "python": platform.python_version(),
        "numpy": numpy.__version__, "scipy": scipy.__version__,
        "scikit-learn": sklearn.__version__,
    }  # fmt: skip


def show_versions() -> None:
    """Print the versions that matter for repeating a result or reporting a mistake.

    The instruction set in use is the best one the machine has, unless the variable
    ``MNARKMEANS_CPU`` names another.

    Examples
    --------
    >>> import mnarkmeans
    >>> mnarkmeans.show_versions()  # doctest: +ELLIPSIS
    mnarkmeans ...
    instruction set ... (this machine has baseline...)
    system ...
    """
    for name, version in versions().items():
        print(name, version)
    print(
        f"instruction set {_core.level()} (this machine has {', '.join(_core.available_levels())})"
    )
    print("system", platform.system(), platform.machine())
