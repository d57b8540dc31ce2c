"""Work in a process of its own, which can be ended after so many seconds.

The clock begins when that process is ready: what Python takes to start and to load the package is
not the work's. Ctrl-C is for us alone; the process is then ended like one that is late.
"""

from __future__ import annotations

import multiprocessing
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing import resource_tracker
from typing import Any

SECONDS_TO_LEAVE = 2.0  # what a process may take to clean up behind itself


def within(limit: float, work: Callable[..., Any], *arguments: Any) -> tuple[Any, float]:
    """What the work returns, and its seconds.

    TimeoutError if it was not done, ChildProcessError if its process ended without a word.
    """
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_answer, args=(theirs,), daemon=True)
    try:
        with _deaf_children():
            process.start()
        theirs.close()
        ours.recv()  # it is ready
        ours.send((work, arguments))
        if not ours.poll(limit):
            raise TimeoutError(f"not done after {limit:g} s")
        answer = ours.recv()
        process.join(SECONDS_TO_LEAVE)
        return answer
    except EOFError:
        raise ChildProcessError("its process ended without a word") from None
    finally:
        if process.pid is not None:
            process.terminate()
            process.join(SECONDS_TO_LEAVE)
            process.kill()
            process.join()


def _answer(pipe: Any) -> None:
    # A process that is killed leaves the semaphores of its libraries behind.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    pipe.send(None)
    work, arguments = pipe.recv()
    begin = time.perf_counter()
    answer = work(*arguments)
    pipe.send((answer, time.perf_counter() - begin))


@contextmanager
def _deaf_children() -> Iterator[None]:
    """Processes begun in the block do not hear Ctrl-C; we hear it at the end of the block."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    resource_tracker.ensure_running()  # it takes the mask away where it begins
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
