"""Files appear whole or not at all.

Everything is first written and flushed to the disk under a hidden name beside its target, then
renamed. A new (or empty) folder appears by one rename; in a folder that exists already, files
appear one rename each, after the last byte of all of them is on the disk. Nothing that exists is
replaced without `force`, which is asked before any work begins.
"""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from .._io import atomic
from ._errors import UserError

_MARK = ".mnarkmeans-"


@contextmanager
def told(target: Path) -> Iterator[None]:
    """Turn what the operating system says about a target into one sentence."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            reason = "there is no space left for it"
        elif error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
            reason = "its folder may not be written to"
        elif error.errno == errno.ENAMETOOLONG:
            reason = "its name is too long"
        else:
            reason = error.strerror or str(error)
        raise UserError(f"{target} could not be written: {reason}; nothing was left") from error


def check_file(target: Path, force: bool) -> None:
    """Fail before the work begins if the file could not be put in place after it."""
    if target.is_dir():
        raise UserError(f"{target} is a folder; name a file to write")
    if target.exists() and not force:
        raise UserError(f"{target} exists; add --force to replace it")
    _check_parent(target)


def check_folder(target: Path, names: list[str], force: bool) -> None:
    """Fail before the work begins if these files could not be put into the folder after it."""
    if target.exists() and not target.is_dir():
        raise UserError(f"{target} is a file; name a folder to write to")
    present = [name for name in names if (target / name).exists()]
    if present and not force:
        raise UserError(f"{target / present[0]} exists; add --force to replace it")
    _check_parent(target)
    if target.is_dir():
        _check_writable(target, target)


def _check_parent(target: Path) -> None:
    parent = target.absolute().parent
    while not parent.exists():
        parent = parent.parent
    if not parent.is_dir():
        raise UserError(f"{target} could not be written: {parent} is a file, not a folder")
    _check_writable(parent, target)


def _check_writable(folder: Path, target: Path) -> None:
    with told(target):
        probe = folder / f"{_MARK}probe-{os.getpid()}"
        # A real attempt: access rights alone do not tell about read-only or full disks.
        os.mkdir(probe)
        os.rmdir(probe)


def write_file(target: Path, write: Callable[[Path], None], *, force: bool = False) -> None:
    """Let `write(path)` write the file under a hidden name, then rename it into place."""
    check_file(target, force)
    with told(target):
        made = _make_folders(target.absolute().parent)
        # The ending is kept, because writers choose the format by it.
        hidden = target.absolute().parent / f"{_MARK}{os.getpid()}-{target.name}"
        try:
            write(hidden)
            atomic.flush(hidden)
            os.replace(hidden, target)
        except BaseException:
            hidden.unlink(missing_ok=True)
            _remove_folders(made)
            raise
        atomic.flush_folder(target.absolute().parent)


@contextmanager
def folder(target: Path, names: list[str], *, force: bool = False) -> Iterator[Path]:
    """A hidden folder to write into; its files reach `target` when the block ends well."""
    check_folder(target, names, force)
    with told(target):
        absolute = target.absolute()
        made = _make_folders(absolute.parent)
        hidden = absolute.parent / f"{_MARK}{os.getpid()}-{absolute.name}"
        shutil.rmtree(hidden, ignore_errors=True)
        try:
            hidden.mkdir()
            yield hidden
            for path in sorted(hidden.rglob("*")):
                if path.is_file():
                    atomic.flush(path)
            atomic.flush_folder(hidden)
            if not absolute.exists() or not any(absolute.iterdir()):
                os.replace(hidden, absolute)
            else:
                for path in sorted(hidden.iterdir()):
                    os.replace(path, absolute / path.name)
                hidden.rmdir()
                atomic.flush_folder(absolute)
            atomic.flush_folder(absolute.parent)
        except BaseException:
            shutil.rmtree(hidden, ignore_errors=True)
            _remove_folders(made)
            raise
    sweep(absolute.parent)


def sweep(parent: Path) -> None:
    """Remove hidden leftovers of processes that were killed and no longer run."""
    for path in parent.glob(f"{_MARK}*-*"):
        owner = path.name.removeprefix(_MARK).split("-")[0]
        if not owner.isdigit() or _runs(int(owner)):
            continue
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


def _runs(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def _make_folders(parent: Path) -> list[Path]:
    """Create missing parents; those created are returned, the deepest first."""
    missing = []
    while not parent.exists():
        missing.append(parent)
        parent = parent.parent
    for path in reversed(missing):
        path.mkdir()
    return missing


def _remove_folders(made: list[Path]) -> None:
    for path in made:
        try:
            path.rmdir()
        except OSError:
            return
