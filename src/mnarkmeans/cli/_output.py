"""An output is claimed before the work begins, and its files appear whole or not at all.

A claim answers everything that can be known beforehand: the place can be written to, its name is
not too long, nothing is replaced without `force`, no file of the output is the table itself, and
nobody else is writing there. The last is a lock that belongs to the place and goes with the
process that holds it, however it ends.

Files are first written and flushed to the disk under a hidden name. A new folder appears by one
rename; in a folder that exists already, files appear one rename each, after the last byte of all
of them is on the disk.
"""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import signal
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout

from .._io import MARK, flush, flush_folder, replacing
from ._errors import UserError

LONGEST_NAME = 200  # bytes of a name that may be repeated in a hidden one
PATIENCE = 0.2  # seconds for a lock whose owner is just leaving


@contextmanager
def told(target: Path) -> Iterator[None]:
    """Turn what the operating system says about a target into one sentence."""
    try:
        yield
    except OSError as error:
        if error.errno is None and isinstance(error, FileNotFoundError):
            raise  # said by ourselves, of a file to read
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            reason = "there is no space left for it"
        elif error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
            reason = "its folder may not be written to"
        elif error.errno == errno.ENAMETOOLONG:
            reason = "its name is too long"
        else:
            reason = error.strerror or str(error)
        raise UserError(
            f"{_short(target)} could not be written: {reason}; nothing was left"
        ) from error


def _short(target: Path) -> str:
    text = str(target)
    return text if len(text) <= 120 else f"{text[:60]}...{text[-40:]}"


class Claim:
    """A place that only this process writes to. `target` is its name, `place` where it leads."""

    def __init__(self, target: Path) -> None:
        self.target = target
        self.place = Path(os.path.realpath(target))
        self._made: list[Path] = []
        self._lock: FileLock | None = None

    def hidden(self, what: str) -> Path:
        """A hidden path for what belongs to this output and is not part of it."""
        name = self.place.name
        if len(os.fsencode(name)) > LONGEST_NAME:
            name = hashlib.sha256(os.fsencode(name)).hexdigest()[:32]
        return self.place.parent / f"{MARK}{what}-{name}"

    def take(self) -> None:
        """Make the folders above, see that the place can be written to, lock it."""
        self._made = _make_folders(self.place.parent, self.target)
        if self.place.is_symlink():
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
        with suppress(FileNotFoundError):
            self.place.lstat()  # a name that is too long shows here
        lock = self.hidden("lock")
        # A real attempt: access rights alone do not tell about read-only or full disks.
        probe = lock.with_name(f"{lock.name}-{os.getpid()}")
        os.mkdir(probe)
        os.rmdir(probe)
        self._lock = FileLock(lock, timeout=PATIENCE)
        try:
            self._lock.acquire()
        except Timeout:
            raise UserError(
                f"another run is writing to {_short(self.target)}; wait for its end, or name "
                "another output"
            ) from None

    def leave(self) -> None:
        """Let others in; folders that were made and stayed empty go."""
        if self._lock is not None and self._lock.is_locked:
            # While it is ours: whoever has opened it meanwhile sees that its name is gone.
            with suppress(FileNotFoundError):
                self.hidden("lock").unlink()
            self._lock.release(force=True)
        for folder in self._made:
            try:
                folder.rmdir()
            except OSError:
                return

    def refuse_inputs(self, outputs: Iterable[Path], inputs: Iterable[Path]) -> None:
        """No file that is read may be written to."""
        for path in inputs:
            for output in outputs:
                if path.exists() and output.exists() and output.samefile(path):
                    raise UserError(
                        f"{output.name} of the output is {path}, which is read here; name another "
                        "output"
                    )


class FileClaim(Claim):
    """One file."""

    def check(self, force: bool, inputs: Iterable[Path]) -> None:
        if self.place.is_dir():
            raise UserError(f"{self.target} is a folder; name a file to write")
        self.refuse_inputs([self.place], inputs)
        if self.place.exists() and not force:
            raise UserError(f"{self.target} exists; add --force to replace it")

    @contextmanager
    def file(self) -> Iterator[Path]:
        """A hidden path to write to; the file reaches its place when the block ends well."""
        with told(self.target), replacing(self.place, self.hidden("new")) as hidden:
            yield hidden


class FolderClaim(Claim):
    """A folder and the names of the files that will be in it."""

    def __init__(self, target: Path, names: Iterable[str], force: bool) -> None:
        super().__init__(target)
        self.names = list(names)
        self.force = force
        self.is_new = not os.path.isdir(self.place)

    def hidden(self, what: str) -> Path:
        """Beside a folder that is not there yet, inside one that is (`.` may have no beside)."""
        return super().hidden(what) if self.is_new else self.place / f"{MARK}{what}"

    def check(self, inputs: Iterable[Path]) -> None:
        if self.place.exists() and not self.place.is_dir():
            raise UserError(f"{self.target} is a file; name a folder to write to")
        files = [self.place / name for name in self.names]
        self.refuse_inputs(files, inputs)
        for path in files:
            if path.is_dir():
                raise UserError(f"{self.target / path.name} is a folder; name another output")
            if path.exists() and not self.force:
                raise UserError(f"{self.target / path.name} exists; add --force to replace it")

    @contextmanager
    def files(self) -> Iterator[Path]:
        """A hidden folder to write into; its files reach their place when the block ends well."""
        staging = self.hidden("new")
        with told(self.target):
            shutil.rmtree(staging, ignore_errors=True)  # of a run that was killed
            try:
                staging.mkdir()
                yield staging
                for path in sorted(staging.rglob("*")):
                    if path.is_file():
                        flush(path)
                flush_folder(staging)
                with _undisturbed():
                    self._put_in_place(staging)
            finally:
                shutil.rmtree(staging, ignore_errors=True)

    def _put_in_place(self, staging: Path) -> None:
        if self.is_new:
            if self.place.exists():
                raise UserError(
                    f"{self.target} has appeared since this run began; nothing was left"
                )
            os.rename(staging, self.place)
            flush_folder(self.place.parent)
            return
        self.check([])
        for path in sorted(staging.iterdir()):
            os.replace(path, self.place / path.name)
        flush_folder(self.place)


@contextmanager
def maybe_claimed_folder(
    target: Path | None, names: Iterable[str], *, force: bool, inputs: Iterable[Path] = ()
) -> Iterator[FolderClaim | None]:
    """Claim a folder, if anything is to be written."""
    if target is None:
        yield None
    else:
        with claimed_folder(target, names, force=force, inputs=inputs) as claim:
            yield claim


@contextmanager
def claimed_folder(
    target: Path, names: Iterable[str], *, force: bool, inputs: Iterable[Path] = ()
) -> Iterator[FolderClaim]:
    """Claim a folder for the files `names`."""
    claim = FolderClaim(target, names, force)
    try:
        with told(target):
            if os.path.exists(claim.place):  # before a lock is put into what may be a file
                claim.check(inputs)
            claim.take()
            claim.check(inputs)
        yield claim
    finally:
        claim.leave()


@contextmanager
def claimed_file(target: Path, *, force: bool, inputs: Iterable[Path] = ()) -> Iterator[FileClaim]:
    """Claim one file."""
    claim = FileClaim(target)
    try:
        with told(target):
            claim.take()
            claim.check(force, inputs)
        yield claim
    finally:
        claim.leave()


def _make_folders(parent: Path, target: Path) -> list[Path]:
    """Create missing parents; those created are returned, the deepest first."""
    missing = []
    while not parent.exists():
        missing.append(parent)
        parent = parent.parent
    if not parent.is_dir():
        raise UserError(f"{target} could not be written: {parent} is a file, not a folder")
    made: list[Path] = []
    try:
        for path in reversed(missing):
            path.mkdir()
            made.insert(0, path)
    except OSError:
        for path in made:
            path.rmdir()
        raise
    return made


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Hold Ctrl-C and the like back, so that old and new files do not mix."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    held = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, held)
