"""A tidy table on disk that is always whole: rows of finished tasks, one file, replaced at once."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from .. import _io
from .._io import require

SECONDS_BETWEEN_SAVES = 2.0


class Store:
    """Rows by task. Saved every few seconds and at the end, so an interruption costs little."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.rows: dict[str, list[dict[str, Any]]] = {}
        self._saved_at = 0.0
        if path.exists() and path.stat().st_size > 0:
            for row in self._read().to_dict("records"):
                self.rows.setdefault(row["task"], []).append(row)

    def _read(self) -> Any:
        pandas = require("pandas", "cli")
        try:
            found = pandas.read_csv(self.path)
        except ValueError:
            found = pandas.DataFrame()
        if "task" not in found:
            raise ValueError(
                f"{self.path} does not hold the results of an earlier run. Remove it, or write to "
                "another folder."
            )
        return found

    def add(self, task: str, rows: list[dict[str, Any]]) -> None:
        self.rows[task] = rows
        if time.monotonic() - self._saved_at > SECONDS_BETWEEN_SAVES:
            self.save()

    def save(self) -> None:
        write_table(self.table(list(self.rows)), self.path)
        self._saved_at = time.monotonic()

    def table(self, tasks: list[str]) -> Any:
        """The rows of `tasks`, in their order, as a frame."""
        pandas = require("pandas", "cli")
        return pandas.DataFrame([row for task in tasks for row in self.rows[task]])


def write_table(table: Any, path: Path) -> None:
    write_text(table.to_csv(index=False), path)


def write_text(text: str, path: Path) -> None:
    """Write whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    _io.write_text(path, text)
