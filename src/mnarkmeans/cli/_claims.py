"""Outputs are claimed before the work begins, and their files appear whole or not at all.

A claim finds out beforehand what can be known: whether the place can be written to, whether its
name is too long, whether something would be replaced without --force or a file that is read would
be overwritten, and whether another run is writing there (a lock that ends with its process).

Files are first written to a hidden folder and flushed to the disk. A new folder appears by one
rename; in an existing folder files appear by one rename each, once all of them are on the disk.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
from filelock import FileLock, Timeout

from .. import _io
from .._io import MARK, as_json
from ._console import UserError

PATIENCE = 0.2  # seconds to wait for a lock whose owner is just leaving


@contextmanager
def claimed(
    target: Path | None, names: Iterable[str] = (), *, force: bool, inputs: Iterable[Path] = ()
) -> Iterator[Any]:
    """Claim a file, or a folder for the files `names`; nothing (None) without a target."""
    if target is None:
        yield None
        return
    claim = Claim(target, names)
    with ExitStack() as held:
        with claim.errors():
            claim.check(force, inputs)
            claim.take(held)
        yield claim


class Claim:
    """Files of a folder that only this process writes."""

    def __init__(self, target: Path, names: Iterable[str]) -> None:
        self.target, self.place = target, Path(os.path.realpath(target))  # where links lead
        self.folder, self.names = self.place, [*names]
        if not names:
            self.folder, self.names = self.place.parent, [self.place.name]
        self._beside = self.folder if self.folder.is_dir() else self.folder.parent

    def hidden(self, what: str) -> Path:
        """A hidden path in the folder, or beside it if it does not exist yet."""
        return self._beside / f"{MARK}{what}-{self.place.name[:50]}"

    def check(self, force: bool, inputs: Iterable[Path]) -> None:
        """Refuse to replace files without --force, and files that are read in any case."""
        if self.folder == self.place and self.place.is_file():
            raise UserError(f"{self.target} is a file; give the name of a folder")
        for name in self.names:
            path = self.folder / name
            shown = self.target if path == self.place else self.target / name
            if path.is_dir():
                raise UserError(f"{shown} is a folder; choose another output")
            if not path.exists():
                continue
            for source in inputs:
                if source.exists() and path.samefile(source):
                    raise UserError(
                        f"the output {shown} is the same file as the input {source}; choose "
                        "another output"
                    )
            if not force:
                raise UserError(f"{shown} exists; add --force to replace it")

    def take(self, held: ExitStack) -> None:
        """Create the folders above, test that the place can be written to, lock it.

        In the end the lock is released, and folders that were created and stayed empty go.
        """
        for folder in reversed([above for above in self.folder.parents if not above.exists()]):
            folder.mkdir()
            held.callback(_attempt, folder.rmdir)
        with suppress(FileNotFoundError):
            self.place.stat()  # fails for a name that is too long, or a link to itself
        probe = self.hidden(f"probe-{os.getpid()}")
        probe.mkdir()  # access rights alone say nothing about read-only or full disks
        probe.rmdir()
        lock = FileLock(self.hidden("lock"), timeout=PATIENCE)
        try:
            lock.acquire()
        except Timeout:
            raise UserError(
                f"another run is writing to {self.target}; wait until it ends, or choose another "
                "output"
            ) from None
        held.callback(lock.release, force=True)
        held.callback(_attempt, self.hidden("lock").unlink)  # while nobody else can have locked it

    @contextmanager
    def writing(self) -> Iterator[Path]:
        """A hidden folder to write to; its files take their places when the block ends well."""
        hidden = self.hidden("new")
        with self.errors():
            shutil.rmtree(hidden, ignore_errors=True)  # left by a run that was killed
            try:
                hidden.mkdir()
                yield hidden
                _io.put_in_place(hidden, self.folder)
            finally:
                shutil.rmtree(hidden, ignore_errors=True)

    @contextmanager
    def errors(self) -> Iterator[None]:
        """Turn an error of the operating system into one sentence about the output."""
        try:
            yield
        except OSError as error:
            raise UserError(
                f"{self.target} could not be written: {error.strerror or error}"
            ) from error


def _attempt(action: Callable[[], None]) -> None:
    with suppress(OSError):
        action()


class Parts:
    """Finished parts of the job described by `key`, kept beside the output until it is whole.

    Another job has another key and starts afresh.
    """

    def __init__(self, claim: Claim, key: dict[str, Any]) -> None:
        self._key = hashlib.sha256(as_json(key).encode()).hexdigest()
        self._claim, self._folder = claim, claim.hidden("parts")

    def get(self, name: str) -> Any:
        """A part finished before (numbers, words and arrays), or None."""
        try:
            arrays = _io.unpack((self._folder / f"{name}.npz").read_bytes())
            stored = json.loads(arrays.pop("json").tobytes())
            if stored["key"] == self._key:
                return _io.join(stored["part"], name, arrays)
        except (OSError, ValueError, KeyError, TypeError):  # absent or damaged
            pass
        return None

    def __setitem__(self, name: str, part: Any) -> None:
        """Keep a finished part."""
        arrays: dict[str, np.ndarray] = {}
        text = json.dumps({"key": self._key, "part": _io.split(part, name, arrays)})
        content = _io.pack(arrays | {"json": np.frombuffer(text.encode(), np.uint8)})
        with self._claim.errors():
            self._folder.mkdir(exist_ok=True)
            _io.write_bytes(self._folder / f"{name}.npz", content)

    def clear(self) -> None:
        """The work is done: its parts are no longer needed."""
        shutil.rmtree(self._folder, ignore_errors=True)
