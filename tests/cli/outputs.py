"""What the command writes, as the tests look at it."""

from __future__ import annotations

import csv
import gzip

FILES = {"labels.csv", "centers.csv", "markers.csv", "summary.json", "model.json", "model.npz",
         "report.json", "report.html"}  # fmt: skip


def rows(path):
    with open(path, newline="", encoding="utf-8") as stream:
        return list(csv.reader(stream))


def leftovers(folder):
    return sorted(p.name for p in folder.iterdir() if p.name.startswith(".mnarkmeans"))


def write(folder, name, content):
    path = folder / name
    if isinstance(content, str):
        content = content.encode()
    path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    return path
