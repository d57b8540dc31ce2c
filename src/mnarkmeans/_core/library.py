"""Find and load the compiled core, and make its structs and functions of the header it carries.

The library lies beside this package in wheels, and in ``src/mnarkmeans`` after a build in place. It
holds the text of the ``core.h`` it was compiled from: types and addresses of what goes in are
checked against that text, so Python and the core cannot differ. ``MNARKMEANS_CPU`` (baseline, avx2,
avx512) forces an instruction set; otherwise the best one is used.
"""

from __future__ import annotations

import _thread
import contextlib
import ctypes as ct
import os
import re
import sys
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np

PACKAGE = "mnarkmeans"
ALL_LEVELS = ("baseline", "avx2", "avx512")
NAME = "libmnarkmeans_core" + {"win32": ".dll", "darwin": ".dylib"}.get(sys.platform, ".so")
REBUILD = (
    "Install the package again (in a clone: pip install --force-reinstall --no-deps .), or to work "
    "on the sources run\n"
    "    cmake -S . -B build -DMNARKMEANS_INPLACE=ON && cmake --build build"
)
# The types of core.h: a number, and an array of them.
TYPES: dict[str, tuple[Any, type]] = {
    "int32_t": (ct.c_int32, np.int32),
    "Label": (ct.c_int32, np.int32),
    "Index": (ct.c_int64, np.int64),
    "uint64_t": (ct.c_uint64, np.uint64),
    "uint8_t": (ct.c_uint8, np.bool_),
    "float": (ct.c_float, np.float32),
    "double": (ct.c_double, np.float64),
}


# --- addresses ------------------------------------------------------------------------------------


def address_of(value: Any, kind: Any) -> int | None:
    """The address of a contiguous array of this dtype (None: of any array, however it lies: its
    caller sees to the strides), or of one or several structs of a kind. None is null."""
    if isinstance(kind, type) and issubclass(kind, Struct):
        if not isinstance(value, kind) and getattr(value, "_type_", None) is not kind:
            raise TypeError(f"the core takes a {kind.__name__} here; got {type(value).__name__}")
        return ct.addressof(value)
    if value is None:
        return None
    if kind is not None and (value.dtype != kind or not value.flags.c_contiguous):
        raise TypeError(
            f"the core takes a contiguous array of {np.dtype(kind)} here; "
            f"got {value.dtype} with strides {value.strides}"
        )
    # A fit asks for hundreds: by its buffer an address takes half the time, which arrays that are
    # empty, or not to be written to, do not have.
    if value.flags.carray and value.size:
        return ct.addressof(ct.c_char.from_buffer(value))
    return value.__array_interface__["data"][0]


class Struct(ct.Structure):
    """A struct of core.h. Arrays go in as they are: their type is checked, and they are kept."""

    _pointers_: ClassVar[dict[str, Any]]  # field -> dtype of its array, None for any

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in self._names_:
            raise TypeError(f"{type(self).__name__} of core.h has no field {name}")
        if name in self._pointers_ or isinstance(value, Struct):
            self.__dict__.setdefault("_kept", {})[name] = value
        if name in self._pointers_:
            value = address_of(value, self._pointers_[name])
        super().__setattr__(name, value)


# --- the header -----------------------------------------------------------------------------------


def _kind(word: str, known: dict[str, Any]) -> tuple[Any, Any]:
    """The ctypes type that a word of the header means, and what ``address_of`` is to check (... for
    a number)."""
    kind = word.rstrip("*&")
    number, dtype = TYPES.get(kind, (known.get(kind), None))
    return (number, ...) if word == kind else (ct.c_void_p, known.get(kind, dtype))


def _struct(name: str, body: str, known: dict[str, Any]) -> type[Struct]:
    fields: list[tuple[str, Any]] = []
    pointers: dict[str, Any] = {}
    for declaration in filter(str.strip, body.split(";")):
        word, *names = declaration.replace("const ", "").split()
        kind, check = _kind(word, known)
        for field in "".join(names).split(","):
            fields.append((field, kind))
            if check is not ...:
                pointers[field] = check
    own = {"_fields_": fields, "_pointers_": pointers, "_names_": {field for field, _ in fields}}
    return type(name, (Struct,), own)


def read_header(text: str) -> tuple[dict[str, type[Struct]], dict[str, tuple[Any, list, list]]]:
    """The structs of core.h, and its functions: what they return, take and are checked for."""
    text = re.sub(r"//[^\n]*", "", text)
    structs: dict[str, type[Struct]] = {}
    functions = {}
    for name, body in re.findall(r"^struct (\w+) \{(.*?)^\};", text, re.S | re.M):
        if name != "Kernels":
            structs[name] = _struct(name, body, structs)
            continue
        for returned, function, declared in re.findall(r"(\w+) \(\*(\w+)\)\((.*?)\);", body, re.S):
            words = (one.replace("const ", "").split()[0] for one in declared.split(","))
            kinds = [_kind(word, structs) for word in words]
            result = None if returned == "void" else TYPES[returned][0]
            functions[function] = result, [kind for kind, _ in kinds], [check for _, check in kinds]
    return structs, functions


# --- the library ----------------------------------------------------------------------------------


def find_library() -> Path:
    """The library's file. Editable installs have two folders, and perhaps a build in place: the
    last one built is meant."""
    folders = [Path(folder) for folder in sys.modules[PACKAGE].__path__]
    built = [folder / NAME for folder in folders if (folder / NAME).is_file()]
    if not built:
        where = " or ".join(map(str, folders))
        raise ImportError(f"mnarkmeans is not built: no {NAME} in {where}. {REBUILD}")
    return max(built, key=lambda file: file.stat().st_mtime)


def load(path: Path) -> ct.CDLL:
    """The library at ``path``, if it is of this version of the package."""
    try:
        library = ct.CDLL(str(path))
    except OSError as error:
        raise ImportError(f"{path} cannot be loaded: {error}. {REBUILD}") from error
    for name in ("header", "levels", "kernels"):
        function = getattr(library, f"mnarkmeans_{name}", None)
        if function is None:
            raise ImportError(f"{path} is not the library of this version of mnarkmeans. {REBUILD}")
        function.restype = ct.c_void_p if name == "kernels" else ct.c_char_p
    source = Path(__file__).parents[2] / "core" / "core.h"  # of a checkout
    if source.is_file() and source.read_text() != library.mnarkmeans_header().decode():
        raise ImportError(
            f"{path} belongs to another version of mnarkmeans: it was built from another core.h "
            f"than {source}. {REBUILD}"
        )
    return library


_level: str  # the instruction set in use
_in_use: dict[str, Any]  # its functions


def functions_of(name: str) -> dict[str, Any]:
    """The functions of one instruction set."""
    first = _library.mnarkmeans_kernels(name.encode())
    addresses = (ct.c_void_p * (1 + len(_functions))).from_address(first)
    return {
        function: ct.CFUNCTYPE(result, *types)(address or 0)
        for (function, (result, types, _)), address in zip(
            _functions.items(), addresses[1:], strict=True
        )
    }


def prepare(name: str, arguments: tuple[Any, ...]) -> tuple[Any, list[Any]]:
    """A function of the core and its arguments, checked; arrays and structs by their address."""
    each = zip(arguments, _functions[name][2], strict=True)
    return _in_use[name], [one if check is ... else address_of(one, check) for one, check in each]


def invoke(name: str, *arguments: Any) -> Any:
    """Call a function of the core that takes no time to speak of."""
    function, ready = prepare(name, arguments)
    return function(*ready)


def level() -> str:
    """The instruction set in use."""
    return _level


def available_levels() -> tuple[str, ...]:
    """The instruction sets this machine can run, the best one last."""
    return tuple(_library.mnarkmeans_levels().decode().split())


def set_level(name: str) -> None:
    """Use this instruction set from now on, in all threads."""
    global _level, _in_use
    if name not in ALL_LEVELS:
        raise ValueError(f"the instruction set is one of {', '.join(ALL_LEVELS)}, not {name!r}")
    if name not in available_levels():
        raise ValueError(f"this machine cannot run {name}, only {', '.join(available_levels())}")
    _level, _in_use = name, functions_of(name)


_library = load(find_library())
_structs, _functions = read_header(_library.mnarkmeans_header().decode())
structs: Any = SimpleNamespace(**_structs)
try:
    set_level(os.environ.get("MNARKMEANS_CPU") or available_levels()[-1])
except ValueError as error:
    raise ImportError(f"MNARKMEANS_CPU: {error}") from None


# --- calls that may take long ---------------------------------------------------------------------

# Each is made from a thread of its own while this one waits. ctypes lets other threads run during a
# call, so Ctrl-C ends a long one within a moment.
SHORT = 1 << 27  # multiply-adds that are over before anyone could press Ctrl-C
PATIENCE = 20  # tenths of a second until a thread has begun
DONE, OUT_OF_MEMORY, CANCELLED = range(3)


def call(name: str, *arguments, threads: int, work: float = 0.0, watch=None) -> None:
    """Call a function whose last argument is a ``Control``; raise what its status says.

    ``work``: about how many multiply-adds it takes. ``watch`` is called now and then with how much
    of a long call is done.
    """
    control = structs.Control(threads=threads)
    function, ready = prepare(name, (*arguments, control))
    if work <= SHORT or threading.current_thread() is not threading.main_thread():
        status = function(*ready)
    else:
        status = wait_for(function, ready, control, watch)
    if status == OUT_OF_MEMORY:
        raise MemoryError("not enough memory for the tables of this fit")
    if status == CANCELLED:
        raise KeyboardInterrupt


def wait_for(function, arguments, control, watch) -> int:
    """Call from another thread; an exception here (Ctrl-C) cancels the call and waits for its end.

    Not by joining the thread: a ``join`` that a signal interrupts takes it for finished (Python
    3.11, 3.12), and the core would go on writing to arrays that are gone. Nor by ``Thread.start``:
    it waits for ever for a thread that dies of little memory before it has begun. Whoever holds
    ``claim`` makes the call, here after a while if nobody else does.
    """
    result: list[int] = []
    claim, done = threading.Lock(), threading.Event()

    def work() -> None:
        if claim.acquire(blocking=False):
            try:
                result.append(function(*arguments))
            finally:
                done.set()

    try:  # from here on: a signal may come while the thread is being started
        try:
            _thread.start_new_thread(work, ())
        except RuntimeError:  # no room for another thread: without Ctrl-C, but with a result
            return function(*arguments)
        turns = 0
        while not done.wait(0.1):
            turns += 1
            if turns == PATIENCE and claim.acquire(blocking=False):
                break
            if watch is not None:
                watch(control.done)
    except BaseException:
        while True:
            with contextlib.suppress(KeyboardInterrupt, SystemExit):  # asked for again
                control.cancel = 1
                while not done.is_set() and not claim.acquire(blocking=False):
                    done.wait(0.1)
                break
        raise
    if not done.is_set():
        return function(*arguments)
    return result[0] if result else OUT_OF_MEMORY
