"""A mistake the user can mend: one sentence, exit code 2."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class UserError(Exception):
    """What was found and what to do, in one sentence."""


class UnreadColumns(UserError):
    """Columns that seem to hold numbers and cannot be read; perhaps nobody needs them."""

    def __init__(self, told: str, columns: list[str], names: list[str]) -> None:
        super().__init__(told)
        self.columns, self.names = columns, names  # those, and all of the table


class OtherEncoding(UserError):
    """A text file in an encoding that was not named."""


def unknown_name(kind: str, name: str, known: Iterable[str]) -> UserError:
    """Say that `name` is not among `known`, with the nearest one or the first few."""
    known = [str(k) for k in known]
    near = difflib.get_close_matches(name, known, n=1)
    if near:
        hint = f"did you mean {near[0]!r}?"
    elif known:
        more = ", ..." if len(known) > 5 else ""
        hint = "there are " + ", ".join(repr(k) for k in known[:5]) + more
    else:
        hint = "there are none"
    return UserError(f"there is no {kind} called {name!r}; {hint}")


def one_line(message: object) -> str:
    """The message with all white space runs turned into single blanks."""
    return " ".join(str(message).split())
