"""Ctrl-C ends a long call of the core, and nobody goes on before it has ended."""

from __future__ import annotations

import _thread
import os
import threading
import time
from types import SimpleNamespace

import pytest

from mnarkmeans import _core
from mnarkmeans._core import wait_for


@pytest.mark.parametrize("times", [1, 3])
def test_an_interrupted_call_has_ended_when_its_caller_hears_of_it(times):
    control = SimpleNamespace(cancel=0, done=0)
    ended = []

    def call():
        while not control.cancel:
            time.sleep(0.01)
        time.sleep(0.3)  # the end of a stretch of rows
        ended.append(True)
        return 2

    def interrupt():
        for _ in range(times):
            time.sleep(0.1)
            _thread.interrupt_main()

    threading.Thread(target=interrupt).start()
    with pytest.raises(KeyboardInterrupt):
        wait_for(call, (), control, None)
    assert ended
    time.sleep(0.1 * times)


def test_a_thread_that_never_begins_does_not_keep_anyone_waiting(monkeypatch):
    """Little memory: threads are made, and die before their first line."""
    monkeypatch.setattr(_core, "PATIENCE", 2)
    monkeypatch.setattr(_core._thread, "start_new_thread", lambda *_: 1)
    assert _core.wait_for(lambda: 7, (), SimpleNamespace(cancel=0, done=0), None) == 7


@pytest.mark.skipif(os.name == "nt", reason="signals are sent in another way")
def test_a_signal_while_the_thread_is_started_waits_for_the_call(monkeypatch):
    control, ended, start = _core.structs.Control(threads=1), [], _thread.start_new_thread
    running = threading.Event()

    def function():
        running.set()
        while not control.cancel:
            time.sleep(0.001)
        time.sleep(0.05)
        ended.append(True)
        return _core.CANCELLED

    def starting(work, arguments):
        start(work, arguments)
        running.wait()
        raise KeyboardInterrupt

    monkeypatch.setattr(_core._thread, "start_new_thread", starting)
    with pytest.raises(KeyboardInterrupt):
        _core.wait_for(function, (), control, None)
    assert ended
