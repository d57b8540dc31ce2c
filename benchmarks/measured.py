"""One figure of the benchmark: what was measured, against what, and the goal."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from datetime import date
from pathlib import Path

HISTORY = Path(__file__).with_name("history.csv")


@dataclass(frozen=True)
class Measured:
    """`ours` and `theirs` in seconds (or bytes); the goal is a bound on their ratio."""

    name: str
    ours: float
    theirs: float
    against: str  # who "theirs" is
    goal: float | None = None
    faster: bool = False  # the ratio is theirs / ours, and the goal is the least
    bytes: bool = False

    @property
    def ratio(self) -> float:
        return self.theirs / self.ours if self.faster else self.ours / self.theirs

    @property
    def reached(self) -> bool | None:
        if self.goal is None:
            return None
        return self.ratio >= self.goal if self.faster else self.ratio <= self.goal

    def size(self, value: float) -> str:
        if self.bytes:
            return f"{value / 1e6:.3g} MB"
        return f"{1e3 * value:.3g} ms" if value < 10 else f"{value:.3g} s"

    def line(self) -> str:
        goal = ""
        if self.goal is not None:
            goal = f"  (goal: at {'least' if self.faster else 'most'} {self.goal:g} x"
            goal += ")" if self.reached else "; MISSED)"
        return (
            f"  {self.name:44s} {self.size(self.ours):>9s}  {self.against} "
            f"{self.size(self.theirs)}: {self.ratio:.3g} x{goal}"
        )


def best_in_turns(contenders: dict, repeats: int, clock) -> dict[str, float]:
    """Least seconds of each of some functions. They take turns; the first turn warms up."""
    best: dict[str, float] = {}
    for turn in range(repeats + 1):
        for name, work in contenders.items():
            begin = clock()
            work()
            taken = clock() - begin
            if turn:
                best[name] = min(best.get(name, taken), taken)
    return best


def append_history(figures: list[Measured], threads: int, path: Path = HISTORY) -> None:
    """Add a row per figure. Ratios can be followed from machine to machine, seconds only on one."""
    from mnarkmeans import __version__
    from mnarkmeans._core import level

    is_new = not path.exists()
    with path.open("a", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        if is_new:
            writer.writerow(
                [
                    "date",
                    "version",
                    "level",
                    "threads",
                    "name",
                    "ours",
                    "against",
                    "theirs",
                    "ratio",
                ]
            )
        for f in figures:
            writer.writerow(
                [date.today().isoformat(), __version__, level(), threads, f.name, f"{f.ours:.6g}",
                 f.against, f"{f.theirs:.6g}", f"{f.ratio:.4g}"]
            )  # fmt: skip
