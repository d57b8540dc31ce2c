"""Runs of the app: each is the command that the page shows, in a process of its own.

Commands wait in a queue and run one at a time. What a command prints becomes its progress. A run
that is stopped is asked to end, and killed if it has not ended after most of a second; the command
line leaves no half-written files, and ``select`` continues where it stopped.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..tables._table import quoted

SECONDS_TO_END = 0.8


@dataclass
class Run:
    """One command: ``arguments`` of mnarkmeans for a file, with results in ``out`` beside it."""

    number: int
    title: str  # what is done to which file
    file: Path
    arguments: list[str]
    out: Path
    state: str = "waiting"  # then running, and done, failed or stopped
    line: str = ""  # the last one it printed
    began: float = 0.0
    ended: float | None = None
    error: str | None = None
    process: subprocess.Popen[str] | None = None

    def files(self) -> dict[str, Path]:
        """The results by name."""
        if self.out.is_file():
            return {self.out.name: self.out}
        return {path.name: path for path in sorted(self.out.glob("*")) if path.is_file()}

    def describe(self) -> dict[str, Any]:
        """For the page."""
        files = self.files() if self.state == "done" else {}
        verdict = None
        if "summary.json" in files:
            summary = json.loads(files["summary.json"].read_text(encoding="utf-8"))
            verdict = summary["sure"]["headline"]
        return dict(
            number=self.number, title=self.title, table=self.file.parent.name, state=self.state,
            line=self.line, error=self.error,
            seconds=(self.ended or time.monotonic()) - self.began, verdict=verdict,
            files=list(files), command=" ".join(map(quoted, ["mnarkmeans", *self.arguments])),
        )  # fmt: skip


class Runs:
    """The queue."""

    def __init__(self) -> None:
        self.all: list[Run] = []
        self._lock = threading.Lock()  # of states
        self._worker = ThreadPoolExecutor(1)

    def add(self, title: str, file: Path, arguments: list[str], out: str) -> Run:
        """Queue a command for a file; it runs in the folder of the file."""
        run = Run(len(self.all) + 1, title, file, arguments, file.parent / out)
        self.all.append(run)
        self._worker.submit(self._execute, run)
        return run

    def stop(self, run: Run) -> None:
        with self._lock:
            if run.state not in ("waiting", "running"):
                return
            run.state, process = "stopped", run.process
        if process is not None:
            process.terminate()
            try:
                process.wait(SECONDS_TO_END)
            except subprocess.TimeoutExpired:
                process.kill()

    def resume(self, run: Run) -> None:
        """Queue a run again that was stopped."""
        with self._lock:
            if run.state == "stopped":
                run.state = "waiting"
                self._worker.submit(self._execute, run)

    def close(self) -> None:
        """End whatever runs, and the queue."""
        for run in reversed(self.all):
            self.stop(run)
        self._worker.shutdown(cancel_futures=True)

    def _execute(self, run: Run) -> None:
        with self._lock:
            if run.state != "waiting":  # it was stopped before its turn
                return
            run.state, run.began, run.ended = "running", time.monotonic(), None
            run.process = process = subprocess.Popen(
                [sys.executable, "-m", "mnarkmeans", *run.arguments], cwd=run.file.parent,
                env={**os.environ, "PYTHONUNBUFFERED": "1", "PYTHONIOENCODING": "utf-8"},
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                text=True, encoding="utf-8", errors="replace",
            )  # fmt: skip
        with process:
            assert process.stdout is not None
            for line in filter(None, map(str.strip, process.stdout)):
                run.line = line
                if line.startswith("error: "):
                    run.error = line.removeprefix("error: ")
        with self._lock:
            run.ended, run.process = time.monotonic(), None
            if run.state == "running" and process.returncode:
                run.state = "failed"
                run.error = run.error or run.line or f"exit code {process.returncode}"
            elif run.state == "running":
                run.state = "done"
