"""Figures over time: ``python -m benchmarks --history`` adds its own to ``benchmarks/history.csv``.

Ratios can be followed from machine to machine, seconds only on one.
"""

from __future__ import annotations

import csv
from datetime import date
from pathlib import Path

from mnarkmeans import __version__
from mnarkmeans._core import level

from .measured import Measured

FILE = Path(__file__).with_name("history.csv")
FIELDS = [
    "date", "version", "machine", "level", "threads", "name", "ours", "against", "theirs", "ratio",
]  # fmt: skip


def append(figures: list[Measured], machine: str, threads: int, path: Path = FILE) -> None:
    """``ours`` and ``theirs`` are seconds, or bytes where the name says memory."""
    is_new = not path.exists()
    with path.open("a", newline="") as file:
        writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
        if is_new:
            writer.writeheader()
        for figure in figures:
            writer.writerow(
                {
                    "date": date.today().isoformat(),
                    "version": __version__,
                    "machine": machine,
                    "level": level(),
                    "threads": threads,
                    "name": figure.name,
                    "ours": f"{figure.ours:.6g}",
                    "against": figure.against,
                    "theirs": f"{figure.theirs:.6g}",
                    "ratio": f"{figure.ratio:.4g}",
                }
            )
