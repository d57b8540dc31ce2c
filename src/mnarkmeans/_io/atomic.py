"""Files appear whole or not at all.

A file is written under a hidden name beside its place, flushed to the disk, and takes its place by
one rename. Whatever happens on the way, a reader finds the old file or the new one.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

MARK = ".mnarkmeans-"  # how names of what is not yet whole begin


@contextmanager
def replacing(target: str | os.PathLike[str], hidden: Path | None = None) -> Iterator[Path]:
    """A hidden path to write to; when the block ends well, the file there becomes `target`.

    A link is followed: the file it points to is replaced. The hidden name (another one each time,
    unless it is given) has no ending, so that a writer must be told the format.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "numbers.txt"
    >>> with replacing(path) as hidden:
    ...     _ = hidden.write_text("1 2 3")
    ...     path.exists()
    False
    >>> path.read_text()
    '1 2 3'
    """
    place = Path(os.path.realpath(target))
    # Short, whatever the name is: nearly all of the 255 bytes a name may have are the user's.
    hidden = hidden or place.with_name(f"{MARK}{uuid.uuid4().hex[:12]}")
    try:
        yield hidden
        flush(hidden)
        os.replace(hidden, place)
    except BaseException:
        hidden.unlink(missing_ok=True)
        raise
    flush_folder(place.parent)


def write_bytes(target: str | os.PathLike[str], content: bytes) -> None:
    """Write a file at once."""
    with replacing(target) as hidden:
        hidden.write_bytes(content)


def write_together(contents: Mapping[Path, bytes]) -> None:
    """Write files that belong together: none takes its place before all are on the disk."""
    with ExitStack() as places:
        for target, content in contents.items():
            hidden = places.enter_context(replacing(target))
            hidden.write_bytes(content)
            flush(hidden)


def write_text(target: str | os.PathLike[str], text: str) -> None:
    """Write a text file at once, as UTF-8."""
    write_bytes(target, text.encode())


def flush(path: Path) -> None:
    """Return when the bytes of a file are on the disk."""
    with open(path, "rb+") as stream:
        os.fsync(stream.fileno())


def flush_folder(path: Path) -> None:
    """Return when the names in a folder are on the disk."""
    try:
        handle = os.open(path, os.O_RDONLY)
    except OSError:  # Windows cannot open a folder, and need not
        return
    try:
        os.fsync(handle)
    except OSError:  # nor can some network drives flush one
        pass
    finally:
        os.close(handle)
