"""SIGTERM ends a run as Ctrl-C does: what was begun is cleaned up, one sentence is said."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

TERMINATED = 128 + signal.SIGTERM


@contextmanager
def polite_end() -> Iterator[None]:
    """Within the block SIGTERM raises SystemExit; after it the system's way is back.

    The signal may arrive in a place from which nothing can be raised (a finaliser, a callback of a
    library); Python would print a traceback there and go on. It is sent again instead.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before, hook = signal.getsignal(signal.SIGTERM), sys.unraisablehook
    signal.signal(signal.SIGTERM, _end)
    sys.unraisablehook = _again
    try:
        yield
    finally:
        sys.unraisablehook = hook
        signal.signal(signal.SIGTERM, before)


def _end(number: int, frame: Any) -> None:
    raise SystemExit(TERMINATED)


def _again(lost: Any) -> None:
    ends = {SystemExit: signal.SIGTERM, KeyboardInterrupt: signal.SIGINT}
    number = ends.get(lost.exc_type)
    if number is None:
        sys.__unraisablehook__(lost)
    else:  # a little later: here it would be lost as well
        threading.Timer(0.01, os.kill, (os.getpid(), number)).start()
