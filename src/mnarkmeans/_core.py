"""The door to the compiled core (``src/core``): ctypes, which lets other threads run during a call.

The library lies beside this file in wheels, and in ``src/mnarkmeans`` after a build in place.
``MNARKMEANS_CPU=baseline|avx2|avx512`` forces an instruction set; otherwise the best one is used.
"""

import ctypes as ct
import os
import sys
from contextlib import ExitStack
from pathlib import Path

ABI = 1  # as in core.h
ALL_LEVELS = ("baseline", "avx2", "avx512")
NAME = "libmnarkmeans_core" + {"win32": ".dll", "darwin": ".dylib"}.get(sys.platform, ".so")
REBUILD = (
    "Install the package again (pip install --force-reinstall --no-deps mnarkmeans), "
    "or in a checkout run\n"
    "    cmake -S . -B build -DMNARKMEANS_INPLACE=ON && cmake --build build"
)


class Control(ct.Structure):
    """One flag and one counter: set ``cancel`` to stop a call, read ``done`` of ``total``."""

    _fields_ = [("cancel", ct.c_int32), ("done", ct.c_int64), ("total", ct.c_int64)]


STRUCTS = (Control,)  # in the order of mnarkmeans_struct_sizes
_unpacked = ExitStack()  # keeps a library that came out of a zip file until the process ends


def find_library() -> Path:
    """The library's file: in a folder of the package, or unpacked.

    Editable installs have two folders, and perhaps a build in place: the last one built is meant.
    """
    folders = [Path(folder) for folder in sys.modules[__package__].__path__]
    if built := [folder / NAME for folder in folders if (folder / NAME).is_file()]:
        return max(built, key=lambda file: file.stat().st_mtime)
    from importlib.resources import as_file, files

    inside = files(__package__) / NAME
    if inside.is_file():
        return _unpacked.enter_context(as_file(inside))
    raise ImportError(
        f"mnarkmeans is not built: no {NAME} in {' or '.join(map(str, folders))}. {REBUILD}"
    )


def load(path: Path) -> ct.CDLL:
    """The library at ``path``, if it is one that this module knows how to call."""
    try:
        library = ct.CDLL(str(path))
    except OSError as error:
        raise ImportError(f"{path} cannot be loaded: {error}. {REBUILD}") from error
    try:
        version = int(library.mnarkmeans_abi())
        sizes = (ct.c_int64 * len(STRUCTS))()
        n_structs = library.mnarkmeans_struct_sizes(sizes, len(STRUCTS))
    except AttributeError:
        raise ImportError(f"{path} is not the library of mnarkmeans. {REBUILD}") from None
    expected = [ct.sizeof(struct) for struct in STRUCTS]
    if version != ABI or n_structs != len(STRUCTS) or list(sizes) != expected:
        raise ImportError(
            f"{path} belongs to another version of mnarkmeans: its interface is {version} with "
            f"structs of {list(sizes[:n_structs])} bytes, and {ABI} with {expected} is needed. "
            f"{REBUILD}"
        )
    library.mnarkmeans_level.restype = ct.c_char_p
    library.mnarkmeans_levels.restype = ct.c_char_p
    library.mnarkmeans_set_level.argtypes = [ct.c_char_p]
    library.mnarkmeans_multiply_add.argtypes = [ct.c_double] * 3
    library.mnarkmeans_multiply_add.restype = ct.c_double
    library.mnarkmeans_multiply_add_certified.argtypes = [ct.c_float] * 3
    library.mnarkmeans_multiply_add_certified.restype = ct.c_float
    return library


def level() -> str:
    """The instruction set in use."""
    return _library.mnarkmeans_level().decode()


def available_levels() -> tuple[str, ...]:
    """The instruction sets this machine can run, the best one last."""
    return tuple(_library.mnarkmeans_levels().decode().split())


def set_level(name: str) -> None:
    """Use this instruction set from now on, in all threads."""
    if name not in ALL_LEVELS:
        raise ValueError(f"the instruction set is one of {', '.join(ALL_LEVELS)}, not {name!r}")
    if not _library.mnarkmeans_set_level(name.encode()):
        raise ValueError(f"this machine cannot run {name}, only {', '.join(available_levels())}")


_library = load(find_library())
if os.environ.get("MNARKMEANS_CPU"):
    try:
        set_level(os.environ["MNARKMEANS_CPU"])
    except ValueError as error:
        raise ImportError(f"MNARKMEANS_CPU: {error}") from None
