"""Whether memory was flat, and the table for the documentation.

The first quarter is warming up. Growth is the median of the last quarter less that of the second.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median

MB = 1e6
# Allocators wobble: so much growth is allowed.
SHARE, ALLOWANCE = 0.05, 10 * MB


@dataclass
class Seen:
    """What was seen of one kind of work."""

    kind: str
    turns: int = 0
    compared: int = 0
    memory: list[int] = field(default_factory=list)  # bytes after each turn
    handles: list[int] = field(default_factory=list)  # open files and the like
    counts: dict[str, int] = field(default_factory=dict)
    trouble: str = ""

    @property
    def problems(self) -> list[str]:
        found = [self.trouble] if self.trouble else []
        if self.turns == 0:
            found.append("not one turn was finished")
        if not is_flat(self.memory, SHARE, ALLOWANCE):
            found.append(f"memory grew by {growth(self.memory) / MB:.0f} MB")
        if not is_flat(self.handles, 0.1, 8):
            found.append(f"open files grew by {growth(self.handles):.0f}")
        return [f"{self.kind}: {problem}" for problem in found]


def quarters(values: Sequence[float]) -> tuple[float, float]:
    """Medians of the second and of the last quarter.

    >>> quarters([9, 9, 1, 1, 5, 5, 2, 2])
    (1.0, 2.0)
    """
    n = len(values)
    second = values[n // 4 : n // 2] or values
    return float(median(second)), float(median(values[-max(1, n // 4) :]))


def growth(values: Sequence[float]) -> float:
    second, last = quarters(values)
    return last - second


def is_flat(values: Sequence[float], share: float, allowance: float) -> bool:
    """
    >>> is_flat([5, 100, 101, 100, 103, 101, 104, 104], 0.05, 0)
    True
    >>> is_flat([5, 100, 101, 110, 120, 130, 140, 150], 0.05, 0)
    False
    """
    return len(values) < 4 or growth(values) <= share * quarters(values)[0] + allowance


def table(seen: Sequence[Seen]) -> list[str]:
    lines = [
        "| | turns | answers compared | memory, second and last quarter | files open, the same |",
        "|---|---|---|---|---|",
    ]
    for s in seen:
        memory = [f"{value / MB:.0f}" for value in quarters(s.memory or [0])]
        handles = [f"{value:.0f}" for value in quarters(s.handles or [0])]
        cells = [s.kind, f"{s.turns:,}", f"{s.compared:,}"]
        cells += [f"{', '.join(memory)} MB", ", ".join(handles)]
        lines.append(f"| {' | '.join(cells)} |")
    return lines
