"""Finished parts of long work, kept beside the output until it is whole.

The parts lie in a hidden folder next to the output folder, one JSON file each, written by rename.
They belong to one job: its table (by checksum) and its settings. Another job finds another folder
key and starts afresh.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from pathlib import Path
from typing import Any

from .._io import atomic
from ._console import plain
from ._output import told


class Parts:
    """Parts of the job described by `key`; without an output folder nothing is kept."""

    def __init__(self, out: Path | None, key: dict[str, Any]) -> None:
        text = json.dumps(plain(key), sort_keys=True)
        self._key = hashlib.sha256(text.encode()).hexdigest()
        self._target = out
        self._folder = None
        if out is not None:
            absolute = out.absolute()
            self._folder = absolute.parent / f".mnarkmeans-parts-{absolute.name}"

    def load(self, name: str) -> dict[str, Any] | None:
        """A part finished before, or None."""
        if self._folder is None:
            return None
        try:
            stored = json.loads(self._path(name).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        return stored["part"] if stored.get("key") == self._key else None

    def save(self, name: str, part: dict[str, Any]) -> dict[str, Any]:
        """Keep a finished part; returns it as `load` would."""
        part = plain(part)
        if self._folder is not None and self._target is not None:
            with told(self._target):
                self._folder.mkdir(parents=True, exist_ok=True)
                text = json.dumps({"key": self._key, "part": part})
                atomic.write_text(self._path(name), text)
        return part

    def clear(self) -> None:
        """The work is whole: its parts are no longer needed."""
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)

    def _path(self, name: str) -> Path:
        assert self._folder is not None
        return self._folder / (re.sub(r"[^A-Za-z0-9._-]", "_", name) + ".json")
