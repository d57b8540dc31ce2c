"""Run many commands in processes of their own without importing everything each time.

A parent imports the package once and forks for every command: a real process with its own exit
code, standard streams and folder, but started in milliseconds. Where there is no fork, every
command is started anew.
"""

from __future__ import annotations

import contextlib
import csv
import json
import os
import subprocess
import sys
import tempfile
import traceback
import warnings
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

import pytest

COMMAND = [sys.executable, "-m", "mnarkmeans"]  # the real thing, started anew
FILES = {"labels.csv", "centers.csv", "markers.csv", "summary.json", "model.json", "model.npz",
         "report.json", "report.html"}  # fmt: skip
IMPORTED = ("pydantic", "jinja2", "pyarrow.parquet", "matplotlib.backends.backend_agg", "anndata",
            "matplotlib.figure", "narwhals", "rich.markdown", "openpyxl")  # fmt: skip


class Done(NamedTuple):
    """What a command left behind."""

    code: int
    out: str
    err: str


class CommandServer:
    """Start once, then `run(*arguments)`."""

    def __init__(self) -> None:
        self._process = None
        if hasattr(os, "fork"):
            self._process = subprocess.Popen(
                [sys.executable, "-W", "error", __file__], stdin=subprocess.PIPE,
                stdout=subprocess.PIPE, text=True, encoding="utf-8",
            )  # fmt: skip

    def run(self, *arguments: object, cwd: Path | None = None, file_limit: int = 0) -> Done:
        """Run `mnarkmeans ARGUMENTS` in `cwd`; `file_limit` is the most bytes a file may have."""
        words = [str(word) for word in arguments]
        if self._process is None:
            if file_limit:
                pytest.skip("this system has no limit for the size of files")
            done = subprocess.run(
                [*COMMAND, *words], cwd=cwd, stdin=subprocess.DEVNULL, capture_output=True,
                encoding="utf-8", env=os.environ | {"PYTHONUTF8": "1"},
            )  # fmt: skip
            return Done(done.returncode, done.stdout, done.stderr)
        request = {"argv": words, "cwd": str(cwd or "."), "limit": file_limit}
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        return Done(*json.loads(self._process.stdout.readline()))

    def do(self, *arguments: object, cwd: Path | None = None) -> Done:
        """Run a command that must succeed."""
        done = self.run(*arguments, cwd=cwd)
        assert done.code == 0, done.err
        return done

    def close(self) -> None:
        if self._process is not None:
            self._process.stdin.close()
            self._process.wait(timeout=30)
            self._process.stdout.close()


def serve() -> None:
    import mnarkmeans.__main__
    from mnarkmeans.cli._main import VERBS

    # As in pyproject.toml: anndata sets options that the newest pandas will drop.
    warnings.filterwarnings("ignore", "The '[a-z_.]+' option is deprecated")
    for verb in VERBS:
        import_module(f"mnarkmeans.cli.{verb}")
    for module in IMPORTED:  # by some command, sooner or later
        with contextlib.suppress(ImportError):
            import_module(module)
    for line in sys.stdin:
        request = json.loads(line)
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            child = os.fork()
            if child == 0:
                os.dup2(out.fileno(), 1)
                os.dup2(err.fileno(), 2)
                os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
                os.chdir(request["cwd"])
                sys.argv = ["mnarkmeans", *request["argv"]]
                if request["limit"]:
                    import resource

                    resource.setrlimit(resource.RLIMIT_FSIZE, (request["limit"],) * 2)
                code = 1
                try:
                    mnarkmeans.__main__.main()
                    code = 0
                except SystemExit as stop:
                    code = stop.code if isinstance(stop.code, int) else int(stop.code is not None)
                except BaseException:
                    traceback.print_exc()
                finally:
                    sys.stdout.flush()
                    sys.stderr.flush()
                    os._exit(code)
            _, status = os.waitpid(child, 0)
            texts = []
            for stream in (out, err):
                stream.seek(0)
                texts.append(stream.read().decode("utf-8"))
        print(json.dumps([os.waitstatus_to_exitcode(status), *texts]), flush=True)


def rows(path):
    with open(path, newline="", encoding="utf-8") as stream:
        return list(csv.reader(stream))


def names(folder):
    return {path.name for path in folder.iterdir()}


if __name__ == "__main__":
    serve()
