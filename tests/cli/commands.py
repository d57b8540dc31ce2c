"""Run commands in this process, as `python -m mnarkmeans` would, and look at what they left."""

from __future__ import annotations

import contextlib
import csv
import io
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

COMMAND = [sys.executable, "-m", "mnarkmeans"]  # the real thing, started anew
FILES = {"labels.csv", "centers.csv", "markers.csv", "summary.json", "model.json", "model.npz",
         "report.json", "report.html"}  # fmt: skip


class Done(NamedTuple):
    """What a command left behind."""

    code: int
    out: str
    err: str


class Command:
    """`run(*arguments)` runs a command, `do(*arguments)` one that must succeed."""

    def run(self, *arguments: object, cwd: Path | None = None, file_limit: int = 0) -> Done:
        """Run `mnarkmeans ARGUMENTS` in `cwd`; `file_limit` is the most bytes a file may have."""
        from mnarkmeans.__main__ import main

        out, err = io.StringIO(), io.StringIO()
        with pytest.MonkeyPatch.context() as changed, _file_limit(file_limit):
            changed.setattr(sys, "argv", ["mnarkmeans", *map(str, arguments)])
            changed.chdir(cwd or ".")
            with (
                contextlib.redirect_stdout(out),
                contextlib.redirect_stderr(err),
                pytest.raises(SystemExit) as end,
            ):
                main()
        return Done(end.value.code, out.getvalue(), err.getvalue())

    def do(self, *arguments: object, cwd: Path | None = None) -> Done:
        done = self.run(*arguments, cwd=cwd)
        assert done.code == 0, done.err
        return done


@contextlib.contextmanager
def _file_limit(size: int):
    if not size:
        yield
        return
    resource = pytest.importorskip("resource")  # not on Windows
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def rows(path):
    with open(path, newline="", encoding="utf-8") as stream:
        return list(csv.reader(stream))


def names(folder):
    return {path.name for path in folder.iterdir()}
