"""Lines for people, JSON for machines, progress on a terminal.

Notes and progress go to standard error, results to standard output. With --json, standard output
is one JSON object and nothing else; with --quiet only errors are told.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from rich.console import Console as RichConsole
from rich.markup import escape
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table as RichTable

from ._errors import one_line
from ._options import Telling
from ._spoken import spoken

Step = Callable[[str], None]


class Console:
    """How this run talks."""

    def __init__(self, telling: Telling) -> None:
        self.quiet = telling.quiet
        self.as_json = telling.as_json
        self._out = RichConsole(soft_wrap=True, highlight=False)
        self._err = RichConsole(stderr=True, soft_wrap=True, highlight=False)

    @property
    def talks(self) -> bool:
        return not (self.quiet or self.as_json)

    def say(self, text: str) -> None:
        """A result, on standard output."""
        if self.talks:
            self._out.print(escape(text))

    def note(self, text: str) -> None:
        """Something worth knowing, on standard error."""
        if self.talks:
            self._err.print(f"[dim]note:[/dim] {escape(one_line(text))}")

    def table(self, title: str, columns: list[str], rows: list[list[str]]) -> None:
        """A small table of results: drawn on a terminal, tab-separated in a pipe."""
        if not self.talks:
            return
        if not self._out.is_terminal:
            for row in [columns, *rows]:
                print("\t".join(row))
            return
        drawn = RichTable(title=escape(title), title_justify="left")
        for j, name in enumerate(columns):
            drawn.add_column(escape(name), justify="left" if j == 0 else "right")
        for row in rows:
            drawn.add_row(*map(escape, row))
        self._out.print(drawn)

    def result(self, value: dict[str, Any]) -> None:
        """The JSON object of --json."""
        if self.as_json:
            print(json.dumps(plain(value), indent=2, ensure_ascii=False, allow_nan=False))

    @contextmanager
    def steps(self, what: str, total: int | None, *, brief: bool = False) -> Iterator[Step]:
        """Progress of `total` steps (None: unknown) with the time left.

        The block receives a function to call with a word about each finished step. In a pipe each
        step is a line, unless `brief`.
        """
        if not self.talks:
            yield lambda word: None
        elif self._err.is_terminal:
            yield from self._bar(what, total)
        else:
            yield from self._lines(what, total, brief)

    def _bar(self, what: str, total: int | None) -> Iterator[Step]:
        columns: list[Any] = [SpinnerColumn(), TextColumn("{task.description}")]
        if total is not None:
            columns += [
                BarColumn(),
                MofNCompleteColumn(),
                TextColumn("left"),
                TimeRemainingColumn(),
            ]
        else:
            columns += [TimeElapsedColumn()]
        with Progress(*columns, console=self._err, transient=True) as progress:
            task = progress.add_task(escape(what), total=total)

            def step(word: str) -> None:
                shown = f"{what}: {word}" if word else what
                progress.update(task, advance=1, description=escape(shown))

            yield step

    def _lines(self, what: str, total: int | None, brief: bool) -> Iterator[Step]:
        start, done = time.monotonic(), 0
        self._err.print(escape(f"{what} ..."))
        if brief:
            yield lambda word: None
            return

        def step(word: str) -> None:
            nonlocal done
            done += 1
            spent = time.monotonic() - start
            left = f", about {(total - done) * spent / done:.0f} s left" if total else ""
            of = f"{done}/{total} " if total else ""
            self._err.print(escape(f"{what}: {of}{word}{left}"))

        yield step

    @contextmanager
    def warnings_as_notes(self) -> Iterator[list[str]]:
        """Python warnings become notes, each text once."""
        texts: list[str] = []
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            yield texts
        for warning in caught:
            if issubclass(warning.category, (DeprecationWarning, PendingDeprecationWarning)):
                continue
            text = spoken(one_line(warning.message))
            if text not in texts:
                texts.append(text)
                self.note(text)


def fail(message: object, as_json: bool = False) -> None:
    """The one sentence of an error, on standard error."""
    text = one_line(message)
    if as_json:
        print(json.dumps({"error": text}, ensure_ascii=False))
    print(f"error: {text}", file=sys.stderr)


def plain(value: Any) -> Any:
    """Numbers, strings, lists and dicts that JSON can hold; NaN and infinity become null."""
    if isinstance(value, dict):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, float) and not np.isfinite(value):
        return None
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    return str(value)
