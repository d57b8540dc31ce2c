"""Which versions run here: what has to be known to repeat a result, or to report a mistake."""

from __future__ import annotations

import platform

import numpy
import scipy
import sklearn

from . import __version__, _core


def versions() -> dict[str, str]:
    """By name: this package, Python and what it computes with."""
    used = {module.__name__: module.__version__ for module in (numpy, scipy)}
    python = {"mnarkmeans": __version__, "python": platform.python_version()}
    return python | used | {"scikit-learn": sklearn.__version__}


def describe_versions() -> str:
    """A line each, and the instruction set of the core with those this machine has."""
    lines = versions() | {
        "instruction set": f"{_core.level()} (this machine has "
        f"{', '.join(_core.available_levels())})",
        "system": f"{platform.system()} {platform.machine()}",
    }
    return "\n".join(f"{name} {value}" for name, value in lines.items())


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
    print(describe_versions())
