"""Say so while the kernels are compiled, and know how long it took.

Kernels are compiled when they are first used and kept on disk, so the first fit after an
installation takes a while and later processes do not. Whoever waits for it is told, once, on the
standard error stream (unless ``MNARKMEANS_QUIET`` is set); whoever measures can subtract it.
"""

from __future__ import annotations

import os
import sys
import threading
import time

from numba.core import event

PATIENCE = 2.0  # seconds of compiling before it is worth a word
NOTICE = (
    "mnarkmeans: compiling for this machine, once; it may take half a minute. "
    "Later runs start at once."
)


class _Watch(event.Listener):
    """Compilations nest (a kernel compiles what it calls); only the outermost counts."""

    def __init__(self) -> None:
        self.depth, self.began, self.seconds = 0, 0.0, 0.0
        self.told = bool(os.environ.get("MNARKMEANS_QUIET"))
        self.timer: threading.Timer | None = None

    def on_start(self, event: event.Event) -> None:
        if not _is_ours(event):
            return
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
            print(NOTICE, file=sys.stderr, flush=True)


def _is_ours(event: event.Event) -> bool:
    function = getattr(event.data["dispatcher"], "py_func", None)
    return getattr(function, "__module__", "").startswith("mnarkmeans")


_watch = _Watch()
event.register("numba:compile", _watch)


def seconds_spent() -> float:
    """Time this process has spent on compiling so far."""
    return _watch.seconds
