"""Files for the tests of tables."""

from __future__ import annotations

import gzip


def write(folder, name, content):
    path = folder / name
    if isinstance(content, str):
        content = content.encode()
    path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    return path
