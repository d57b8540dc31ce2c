"""Calls that may take long: each is made from a thread of its own while this one waits.

ctypes lets other threads run during a call, so Ctrl-C ends a long one within a moment.
"""

from __future__ import annotations

import _thread
import contextlib
import threading

from .library import prepare, structs

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
