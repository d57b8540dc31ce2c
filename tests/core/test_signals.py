"""A signal never leaves a call that works on: its arrays would be gone before it ends."""

from __future__ import annotations

import _thread
import os
import threading
import time

import pytest

from mnarkmeans._core import waiting

pytestmark = pytest.mark.skipif(os.name == "nt", reason="signals are sent in another way")


def test_a_signal_while_the_thread_is_started_waits_for_the_call(monkeypatch):
    control, ended, start = waiting.structs.Control(threads=1), [], _thread.start_new_thread
    running = threading.Event()

    def function():
        running.set()
        while not control.cancel:
            time.sleep(0.001)
        time.sleep(0.05)
        ended.append(True)
        return waiting.CANCELLED

    def starting(work, arguments):
        start(work, arguments)
        running.wait()
        raise KeyboardInterrupt

    monkeypatch.setattr(waiting._thread, "start_new_thread", starting)
    with pytest.raises(KeyboardInterrupt):
        waiting.wait_for(function, (), control, None)
    assert ended
