"""Run commands in this process, as `python -m mnarkmeans` would, and look at what they left."""

import contextlib
import csv
import io
import json
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from mnarkmeans.__main__ import main

COMMAND = [sys.executable, "-m", "mnarkmeans"]  # the real thing, started anew
FILES = {"labels.csv", "centers.csv", "markers.csv", "summary.json", "model.json", "model.npz",
         "report.json", "report.html"}  # fmt: skip


class Done(NamedTuple):
    code: int
    out: str
    err: str


def run(*arguments: object) -> Done:
    """Run `mnarkmeans ARGUMENTS`."""
    out, err = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as changed:
        changed.setattr(sys, "argv", ["mnarkmeans", *map(str, arguments)])
        with (
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
            pytest.raises(SystemExit) as end,
        ):
            main()
    return Done(end.value.code, out.getvalue(), err.getvalue())


def do(*arguments: object) -> Done:
    """Run a command that must succeed."""
    done = run(*arguments)
    assert done.code == 0, done.err
    return done


def refused(*arguments: object) -> str:
    """The one sentence of a command that must fail, with nothing on standard output."""
    done = run(*arguments)
    assert done.code == 2, (done.out, done.err)
    assert done.err.startswith("error: ")
    assert done.err.count("\n") == 1
    assert done.out == ""
    return done.err


def rows(path):
    with open(path, newline="", encoding="utf-8") as stream:
        return list(csv.reader(stream))


def labels(path):
    """The column "cluster" of a labels.csv."""
    return [int(row[1]) for row in rows(path)[1:]]


def read_json(path):
    return json.loads(Path(path).read_text("utf8"))


def names(folder="."):
    return {path.name for path in Path(folder).iterdir()}
