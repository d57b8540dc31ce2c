"""Where compiled code cannot be kept on disk the work goes on, and says so once."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import mnarkmeans
from mnarkmeans._compiling import NOTICE, _Watch

pytest.importorskip("resource", reason="limits on the size of files are a matter of POSIX")

PACKAGE = Path(mnarkmeans.__file__).parent
# Two small kernels, one calling the other, stand for all: a fit would compile for half a minute.
WORK = """
import resource, sys
import numpy as np
from mnarkmeans._selection.agreement import adjusted_rand
if limit := int(sys.argv[1]):
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
a = np.array([0, 0, 1, 1])
print(adjusted_rand(a, a, a >= 0, 2))
"""


def compile_and_run(cache, *, limit=0, package=PACKAGE, stderr=subprocess.PIPE, **variables):
    """A new process that finds no compiled code but in `cache`."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("NUMBA_", "MNARK"))}
    variables |= {"NUMBA_CACHE_DIR": str(cache), "PYTHONPATH": str(package.parent)}
    done = subprocess.run(
        [sys.executable, "-B", "-W", "error", "-c", WORK, str(limit)],
        env=environment | variables, stdout=subprocess.PIPE, stderr=stderr, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "1.0\n"), done.stderr
    return done.stderr


def assert_told_once(told):
    (line,) = (x for x in told.splitlines() if x != NOTICE)  # which a slow machine adds
    assert line.startswith("mnarkmeans: compiled code could not be kept on disk (")


def test_a_full_disk_does_not_stop_the_work(tmp_path):
    assert_told_once(compile_and_run(tmp_path, limit=2000))
    left = {p.suffix for p in tmp_path.rglob("*") if p.is_file()}
    assert left == {".nbi"}  # the index is small enough; what it points to is not there
    if os.path.exists("/dev/full"):  # the notice itself cannot be written
        with open("/dev/full", "w") as stream:
            compile_and_run(tmp_path, limit=2000, stderr=stream)
    # With room it is kept, and the next process has nothing to compile or write.
    assert "could not be kept" not in compile_and_run(tmp_path)
    assert len(list(tmp_path.rglob("*.nbc"))) == 2
    assert compile_and_run(tmp_path, limit=1) == ""


def test_quiet_is_quiet(monkeypatch, capsys):
    monkeypatch.setenv("MNARKMEANS_QUIET", "1")
    _Watch()._tell_unkept(OSError("full"))
    assert capsys.readouterr().err == ""


def test_no_folder_that_can_be_written_to(tmp_path):
    """Not the one asked for, not that of the package, not that of the user."""
    package = tmp_path / "mnarkmeans"
    shutil.copytree(PACKAGE, package, ignore=shutil.ignore_patterns("__pycache__"))
    # Root may write into a read-only folder, but nobody into one whose name is taken.
    for folder in [package, *(p for p in package.rglob("*") if p.is_dir())]:
        (folder / "__pycache__").symlink_to("nowhere")
    taken = tmp_path / "taken"
    taken.touch()
    before = sorted(tmp_path.rglob("*"))
    told = compile_and_run(taken, package=package, HOME=str(taken), XDG_CACHE_HOME=str(taken))
    assert_told_once(told)
    assert "no folder can be written to" in told
    assert sorted(tmp_path.rglob("*")) == before
