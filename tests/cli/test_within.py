"""Work in a process of its own: its answer, its own seconds, its end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

from mnarkmeans.cli._within import within


def test_the_answer_comes_with_the_seconds_of_the_work_alone():
    begin = time.perf_counter()
    answer, seconds = within(60.0, sum, [1, 2])
    assert answer == 3
    assert 0.0 <= seconds < 0.5 * (time.perf_counter() - begin)  # the rest is Python's beginning


def die():
    os._exit(3)


def test_work_that_is_late_or_dies_is_told():
    with pytest.raises(TimeoutError, match=r"not done after 0.1 s"):
        within(0.1, time.sleep, 600.0)
    with pytest.raises(ChildProcessError, match="ended without a word"):
        within(60.0, die)


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
@pytest.mark.parametrize("after", [0.3, 3.0])  # while the process begins; while it works
def test_ctrl_c_ends_the_process_in_silence(after):
    code = """
import time
from mnarkmeans.cli._within import within
if __name__ == "__main__":
    print("begins", flush=True)
    try:
        within(600.0, time.sleep, 600.0)
    except KeyboardInterrupt:
        print("stopped")
"""
    run = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        start_new_session=True,
    )  # fmt: skip
    assert run.stdout is not None
    assert run.stdout.readline() == "begins\n"
    time.sleep(after)
    os.killpg(run.pid, signal.SIGINT)
    assert run.communicate(timeout=60)[0] == "stopped\n"
