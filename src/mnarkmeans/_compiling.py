"""Say so while the kernels are compiled, know how long it took, and do without a disk.

Kernels are compiled when they are first used and kept on disk, so the first fit after an
installation takes a while and later processes do not. Whoever waits for it is told, once, on the
standard error stream (unless ``MNARKMEANS_QUIET`` is set); whoever measures can subtract it.

Where compiled code cannot be kept (a full disk, a limit on the size of files, no folder that can be
written to) it still works, so a fit goes on and says once that the next process will compile again.
numba has no setting for this: the compilation raises ``OSError`` when it saves its finished result,
and the decorator raises ``RuntimeError`` on import when no folder can be written to. Two small
things are therefore changed, for our functions only: how the cache of a function takes an
``OSError`` while saving, and, as the very last place to look for a folder, `_Nowhere`. Should numba
rearrange what they rely on, they do nothing and its errors are back; tests would tell.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from numba.core import caching, event

PATIENCE = 2.0  # seconds of compiling before it is worth a word
NOTICE = (
    "mnarkmeans: compiling for this machine, once; it may take half a minute. "
    "Later runs start at once."
)
UNKEPT = (
    "mnarkmeans: compiled code could not be kept on disk ({reason}), so the next run will compile "
    "again, half a minute. Results are not affected. Make room, or set NUMBA_CACHE_DIR to a folder "
    "that can be written to."
)


class _Watch(event.Listener):
    """Compilations nest (a kernel compiles what it calls); only the outermost counts."""

    def __init__(self) -> None:
        self.depth, self.began, self.seconds = 0, 0.0, 0.0
        self.told = self.told_unkept = bool(os.environ.get("MNARKMEANS_QUIET"))
        self.timer: threading.Timer | None = None

    def on_start(self, event: event.Event) -> None:
        if not _is_ours(event):
            return
        _save_if_possible(event.data["dispatcher"], self._tell_unkept)
        self.depth += 1
        if self.depth == 1:
            self.began = time.perf_counter()
            if not self.told:
                self.timer = threading.Timer(PATIENCE, self._tell)
                self.timer.daemon = True
                self.timer.start()

    def on_end(self, event: event.Event) -> None:
        if not _is_ours(event):
            return
        self.depth -= 1
        if self.depth == 0:
            self.seconds += time.perf_counter() - self.began
            if self.timer is not None:
                self.timer.cancel()

    def _tell(self) -> None:
        if not self.told:
            self.told = True
            _say(NOTICE)

    def _tell_unkept(self, error: OSError) -> None:
        if not self.told_unkept:
            self.told = self.told_unkept = True  # that later runs start at once is now untrue
            _say(UNKEPT.format(reason=error.strerror or error))


class _Nowhere:
    """The folder of functions that have none: nothing is found in it and nothing kept."""

    def __init__(self, py_file: str) -> None:
        self._py_file = py_file  # numba names it in its warnings

    @classmethod
    def from_function(cls, py_func: Any, py_file: str) -> _Nowhere | None:
        return cls(py_file) if _is_our_function(py_func) else None

    def get_cache_path(self) -> str:
        return os.path.join(os.path.dirname(self._py_file), "nowhere")

    def ensure_cache_path(self) -> None:
        raise OSError("no folder can be written to")

    def get_source_stamp(self) -> str:
        return ""

    def get_disambiguator(self) -> str:
        return ""


def _save_if_possible(dispatcher: Any, tell: Callable[[OSError], None]) -> None:
    """Let a compilation succeed although its result cannot be saved."""
    cache = getattr(dispatcher, "_cache", None)
    save = getattr(cache, "save_overload", None)
    if save is None or hasattr(save, "may_fail"):
        return

    def save_overload(*arguments: Any) -> None:
        try:
            save(*arguments)
        except OSError as error:
            tell(error)

    save_overload.may_fail = True  # type: ignore[attr-defined]
    cache.save_overload = save_overload  # type: ignore[union-attr]


def _say(text: str) -> None:
    # The stream may be a file on the disk that is full.
    with contextlib.suppress(OSError):
        print(text, file=sys.stderr, flush=True)


def _is_ours(event: event.Event) -> bool:
    return _is_our_function(getattr(event.data["dispatcher"], "py_func", None))


def _is_our_function(function: Any) -> bool:
    return str(getattr(function, "__module__", "")).split(".")[0] == __package__


_watch = _Watch()
event.register("numba:compile", _watch)
with contextlib.suppress(AttributeError):
    caching.CacheImpl._locator_classes.append(_Nowhere)


def seconds_spent() -> float:
    """Time this process has spent on compiling so far."""
    return _watch.seconds
