"""One figure of the benchmark: what was measured, against what, and the goal."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Measured:
    """``ours`` and ``theirs`` in seconds (or bytes); the goal is a bound on their ratio."""

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

    @property
    def goal_text(self) -> str:
        if self.goal is None:
            return ""
        return f"at {'least' if self.faster else 'most'} {self.goal:g} x"

    def size(self, value: float) -> str:
        """
        >>> Measured("", 0.0, 0.0, "").size(0.0123), Measured("", 0, 0, "", bytes=True).size(4e8)
        ('12.3 ms', '400 MB')
        """
        if self.bytes:
            return f"{value / 1e6:.3g} MB"
        return f"{1e3 * value:.3g} ms" if value < 10 else f"{value:.3g} s"

    def line(self) -> str:
        reached = {None: "", True: "reached", False: "NOT REACHED"}[self.reached]
        return (
            f"  {self.name:44s} {self.size(self.ours):>9s}  {self.against} "
            f"{self.size(self.theirs)}: {self.ratio:.3g} x  {self.goal_text}  {reached}"
        ).rstrip()


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
