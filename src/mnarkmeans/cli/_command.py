"""The command as it was typed, and the one to type next."""

from __future__ import annotations

import re
import shlex
import sys

_PLAIN = re.compile(r"^[\w@%+=:,./\\-]+$")
_IN_QUOTES = re.compile(r'^[^"$`\\!]*$')


def quoted(text: str) -> str:
    """A word as every shell takes it: double quotes where that is enough, also on Windows.

    Examples
    --------
    >>> quoted("n.d."), quoted("<LOD"), quoted("LFQ intensity *")
    ('n.d.', '"<LOD"', '"LFQ intensity *"')
    """
    if _PLAIN.match(text):
        return text
    return f'"{text}"' if _IN_QUOTES.match(text) else shlex.quote(text)


def command_line() -> str:
    """The command as it was typed."""
    return shlex.join(["mnarkmeans", *sys.argv[1:]])


def again(*more: str) -> str:
    """The same command with something more, ready to run."""
    return " ".join(map(quoted, ["mnarkmeans", *sys.argv[1:], *more]))
