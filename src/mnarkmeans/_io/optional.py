"""Optional dependencies are imported on use; a missing one is answered with the command to run."""

from __future__ import annotations

import importlib
from types import ModuleType


def require(module: str, extra: str) -> ModuleType:
    """Import `module`, or say which extra of this package brings it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        if not isinstance(error, ModuleNotFoundError):
            raise ImportError(f"{module} is needed here and cannot be imported: {error}") from error
        raise ImportError(
            f"{module} is needed here and is not installed. "
            f'Install it with: pip install "mnarkmeans[{extra}]"'
        ) from error
