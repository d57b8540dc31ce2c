"""Runs of the app: each is the command that the page shows, in a process of its own.

Commands wait in a queue and run one at a time. What a command prints becomes its progress. A run
that is stopped is asked to end, and killed if it has not ended after most of a second; the command
line leaves no half-written files, and ``select`` continues where it stopped.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
import sys
import threading
import time
from collections import deque
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..tables._table import quoted

SECONDS_TO_END = 0.8
_STEP = re.compile(r"(?P<done>\d+)/(?P<total>\d+)")
_LEFT = re.compile(r"about (?P<seconds>\d+) s left")


@dataclass
class Run:
    """One command: ``arguments`` of mnarkmeans, in a folder, with results in ``out``."""

    number: int
    title: str  # what is done to which file
    file: str
    arguments: list[str]
    folder: Path
    out: Path
    state: str = "waiting"  # then running, and done, failed or stopped
    lines: deque[str] = field(default_factory=lambda: deque(maxlen=200))
    done: int | None = None
    total: int | None = None
    left: int | None = None  # seconds, as the command estimates it
    began: float | None = None
    ended: float | None = None
    error: str | None = None
    process: subprocess.Popen[str] | None = None

    @property
    def command(self) -> str:
        """What to type for the same result."""
        return "mnarkmeans " + " ".join(quoted(word) for word in self.arguments)

    def follow(self, line: str) -> None:
        """Take progress from a line that the command printed."""
        self.lines.append(line)
        if step := _STEP.search(line):
            self.done, self.total = int(step["done"]), int(step["total"])
        if left := _LEFT.search(line):
            self.left = int(left["seconds"])
        if line.startswith("error: "):
            self.error = line.removeprefix("error: ")

    def files(self) -> list[str]:
        if self.out.is_file():
            return [self.out.name]
        if not self.out.is_dir():
            return []
        found = [file for file in self.out.rglob("*") if file.is_file()]
        return sorted(file.relative_to(self.out).as_posix() for file in found)

    def describe(self) -> dict[str, Any]:
        """For the page."""
        seconds = None if self.began is None else (self.ended or time.monotonic()) - self.began
        return dict(
            number=self.number, title=self.title, table=self.folder.name, command=self.command,
            state=self.state, done=self.done, total=self.total, left=self.left, seconds=seconds,
            error=self.error, line=self.lines[-1] if self.lines else "", verdict=self.verdict(),
            files=self.files() if self.state == "done" else [],
        )  # fmt: skip

    def verdict(self) -> str | None:
        """The headline of a fit that is done."""
        if self.state != "done" or not (self.out / "summary.json").is_file():
            return None
        summary = json.loads((self.out / "summary.json").read_text(encoding="utf-8"))
        return summary["sure"]["headline"]


class Runs:
    """The queue."""

    def __init__(self) -> None:
        self.all: list[Run] = []
        self._changed = threading.Condition()
        self._closed = False
        self._worker = threading.Thread(target=self._work, name="runs", daemon=True)
        self._worker.start()

    def add(self, title: str, file: Path, arguments: list[str], out: Path) -> Run:
        """Queue a command for a file; it runs in the folder of the file."""
        with self._changed:
            run = Run(len(self.all) + 1, title, file.name, arguments, file.parent, out)
            self.all.append(run)
            self._changed.notify()
        return run

    def get(self, number: int) -> Run:
        """KeyError if there is no such run."""
        if not 1 <= number <= len(self.all):
            raise KeyError(number)
        return self.all[number - 1]

    def stop(self, run: Run) -> None:
        with self._changed:
            if run.state == "waiting":
                run.state = "stopped"
                return
            if run.state != "running":
                return
            run.state = "stopped"
        process = run.process
        if process is None:
            return
        with contextlib.suppress(OSError):
            process.terminate()
            try:
                process.wait(SECONDS_TO_END)
            except subprocess.TimeoutExpired:
                process.kill()

    def again(self, run: Run) -> None:
        """Continue a run that was stopped or failed."""
        with self._changed:
            if run.state in ("stopped", "failed"):
                run.state, run.error, run.ended = "waiting", None, None
                self._changed.notify()

    def close(self) -> None:
        """End whatever runs, and the queue."""
        self._closed = True
        for run in self.all:
            self.stop(run)
        with self._changed:
            self._changed.notify()
        self._worker.join(2.0)

    def _work(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._closed or self._next() is not None)
                run = self._next()
                if self._closed or run is None:
                    return
                run.state, run.began = "running", time.monotonic()
                run.lines.clear()
            try:
                self._follow(run)
            except OSError as error:
                run.error = str(error)
                run.state = "failed"
            run.ended = time.monotonic()

    def _next(self) -> Run | None:
        return next((run for run in self.all if run.state == "waiting"), None)

    def _follow(self, run: Run) -> None:
        environment = {**os.environ, "PYTHONUNBUFFERED": "1", "PYTHONIOENCODING": "utf-8"}
        with subprocess.Popen(
            [sys.executable, "-m", "mnarkmeans", *run.arguments], cwd=run.folder, env=environment,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            encoding="utf-8", errors="replace",
        ) as process:  # fmt: skip
            run.process = process
            if run.state == "stopped":  # between the queue and here
                process.terminate()
            assert process.stdout is not None
            for line in process.stdout:
                if text := line.strip():
                    run.follow(text)
        if run.state == "running":
            run.state = "done" if process.returncode == 0 else "failed"
            if run.state == "failed" and run.error is None:
                run.error = run.lines[-1] if run.lines else f"exit code {process.returncode}"
