"""Results, notes, progress and errors for people; JSON for programs.

Results go to standard output, notes and progress to standard error. With --json, standard output
is one JSON object and nothing else; with --quiet only errors are printed.
"""

from __future__ import annotations

import json
import re
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console as RichConsole
from rich.markup import escape
from rich.progress import Progress, TimeElapsedColumn
from rich.table import Table as RichTable

from .._io import as_json
from ..tables._table import quoted

Step = Callable[..., None]
SECONDS_BETWEEN_LINES = 1.0  # of progress in a pipe


class UserError(Exception):
    """A mistake the user can correct: one sentence that says what was found and what to do."""


class Console:
    """How this run talks."""

    def __init__(self, quiet: bool, as_json: bool) -> None:
        self.as_json, self.quiet = as_json, quiet or as_json
        self._out = RichConsole(soft_wrap=True, highlight=False, quiet=self.quiet)
        self._err = RichConsole(soft_wrap=True, highlight=False, quiet=self.quiet, stderr=True)

    def say(self, text: str) -> None:
        """A result, on standard output."""
        self._out.print(escape(text))

    def note(self, *texts: str) -> None:
        """What is worth knowing, a line each, on standard error."""
        for text in texts:
            self._err.print(f"[dim]note:[/dim] {escape(one_line(text))}")

    def table(self, title: str, columns: list[str], rows: list[list[str]]) -> None:
        """A small table of results: drawn on a terminal, tab-separated in a pipe."""
        if self.quiet or not rows:
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
            print(as_json(value))

    @contextmanager
    def progress(self, what: str, total: int) -> Iterator[Step]:
        """Progress of `total` steps with the time left: a bar, or lines in a pipe.

        The block receives a function to call after each step, with a few words and, if it was
        more than one step, with the number of steps done so far.
        """
        if not self._err.is_terminal:
            self._err.print(escape(f"{what} ..."))
            yield self._lines(what, total)
        else:
            columns = *Progress.get_default_columns(), TimeElapsedColumn()
            with Progress(*columns, console=self._err, transient=True) as bar:
                task = bar.add_task(escape(what), total=total)
                yield lambda words, done=None: bar.update(
                    task, completed=done, advance=None if done else 1,
                    description=escape(f"{what}: {words}"),
                )  # fmt: skip

    def _lines(self, what: str, total: int) -> Step:
        start = last = time.monotonic()  # the first step says little about the time left
        count = 0

        def step(words: str, done: int | None = None) -> None:
            nonlocal count, last
            count, now = done or count + 1, time.monotonic()
            if now - last < SECONDS_BETWEEN_LINES:
                return
            last, seconds = now, max((now - start) * (total - count) / count, 1.0)
            left = f", about {seconds:.0f} s left" if count < total else ""
            self._err.print(escape(f"{what}: {count}/{total} {words}{left}"))

        return step

    @contextmanager
    def warnings_as_notes(self) -> Iterator[list[str]]:
        """Python warnings become notes, each text once."""
        texts: list[str] = []
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            yield texts
        for warning in caught:
            text = in_options(one_line(warning.message))
            deprecated = DeprecationWarning, PendingDeprecationWarning
            if text not in texts and not issubclass(warning.category, deprecated):
                texts.append(text)
                self.note(text)


def print_error(message: object, as_json: bool = False) -> None:
    """The one sentence of an error, on standard error."""
    text = one_line(message)
    if as_json:
        print(json.dumps({"error": text}, ensure_ascii=False))
    print(f"error: {text}", file=sys.stderr)


def one_line(message: object) -> str:
    """The message with every run of white space turned into one blank."""
    return " ".join(str(message).split())


# --- the words of the command line ------------------------------------------------------------

OPTIONS = {
    "lam": "--lam", "reference": "--reference", "missing_values": "--missing-value",
    "max_iter": "--max-iter", "n_init": "--starts", "n_clusters": "-k", "n_splits": "--splits",
    "random_state": "--seed", "lams": "--lams", "criterion": "--criterion",
}  # fmt: skip
_VALUE = re.compile(rf"\b({'|'.join(OPTIONS)})=(['\"]?)([\w.+-]*\w)\2")
_NAME = re.compile(rf"\b({'|'.join(name for name in OPTIONS if '_' in name)})\b")
_VERBS = {"MNARKMeansCV": "mnarkmeans select", "MNARKMeans": "mnarkmeans fit", "n_samples=": ""}


def in_options(text: str) -> str:
    """A message of the package with its parameters written as options.

    Examples
    --------
    >>> in_options('try reference="min" with lam=0; MNARKMeansCV also tries larger penalties')
    'try --reference min with --lam 0; mnarkmeans select also tries larger penalties'
    >>> in_options("n_samples=3 usable rows should be >= n_clusters=8. Check missing_values.")
    '3 usable rows should be >= -k 8. Check --missing-value.'
    """
    text = _VALUE.sub(lambda match: f"{OPTIONS[match[1]]} {match[3]}", text)
    for name, words in _VERBS.items():
        text = text.replace(name, words)
    return _NAME.sub(lambda match: OPTIONS[match[1]], text)


@contextmanager
def estimator_errors() -> Iterator[None]:
    """What an estimator refuses is the user's to correct: one sentence, in options."""
    try:
        yield
    except (ValueError, TypeError, OSError, RuntimeError) as error:
        raise UserError(in_options(one_line(error))) from error


def typed_command() -> str:
    """The command as it was typed, in the quotes of every shell."""
    return " ".join(map(quoted, ["mnarkmeans", *sys.argv[1:]]))
