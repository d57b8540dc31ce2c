"""Finished parts of long work, kept beside the output until it is whole.

The parts lie in a hidden folder of the output's claim, one archive each, written by rename. They
belong to one job: its table (by checksum) and its settings. Another job finds another key and
starts afresh.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np

from .._io import join, pack, split, unpack, write_bytes
from ._console import plain
from ._output import Claim, told

WORDS = "words"  # the array of the archive that holds the JSON


class Parts:
    """Parts of the job described by `key`; without an output nothing is kept."""

    def __init__(self, claim: Claim | None, key: dict[str, Any]) -> None:
        text = json.dumps(plain(key), sort_keys=True)
        self._key = hashlib.sha256(text.encode()).hexdigest()
        self._claim = claim

    def load(self, name: str) -> Any:
        """A part finished before (numbers, words and arrays), or None."""
        if self._claim is None:
            return None
        try:
            arrays = unpack(self._path(name).read_bytes())
            stored = json.loads(arrays.pop(WORDS).tobytes())
            return join(stored["part"], name, arrays) if stored["key"] == self._key else None
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def save(self, name: str, part: Any) -> None:
        """Keep a finished part."""
        if self._claim is None:
            return
        arrays: dict[str, np.ndarray] = {}
        text = json.dumps({"key": self._key, "part": split(part, name, arrays)})
        packed = pack(arrays | {WORDS: np.frombuffer(text.encode(), np.uint8)})
        with told(self._claim.target):
            path = self._path(name)
            path.parent.mkdir(exist_ok=True)
            write_bytes(path, packed)

    def clear(self) -> None:
        """The work is whole: its parts are no longer needed."""
        if self._claim is not None:
            shutil.rmtree(self._claim.hidden("parts"), ignore_errors=True)

    def _path(self, name: str) -> Path:
        assert self._claim is not None
        return self._claim.hidden("parts") / (re.sub(r"[^A-Za-z0-9._-]", "_", name) + ".npz")
