"""How long the methods to come will take, from tries of each on a few rows.

Methods differ a hundredfold: the mean of those that ran says nothing of those to come. Seconds on
l and m rows become seconds on n rows,

    T(n) = T(l) + (T(m) - T(l)) (n^e - l^e) / (m^e - l^e)

with e = 2 for methods that compare rows with rows, otherwise 1, times how far the methods that are
done were off (`Forecast.left`). It is a guess, and told as one.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

ROWS_OF_A_TRY = 120
FEWER = 3  # of so many times fewer rows is the other try
FEWEST_TIMES = 4  # a table of fewer tries' rows is done before a forecast is worth its time
SECONDS_FOR_TRIES = 10.0
COMPARE_ROWS = ("knn", "fwpd", "scimpute")

Run = Callable[[str, Any], object]  # name and rows


class Forecast:
    """Seconds of every method; those there was no time to try have none."""

    def __init__(self, seconds: dict[str, float], limit: float | None = None) -> None:
        self.seconds, self.limit = seconds, limit
        self._taken: dict[str, float] = {}
        self._beside = 0.0  # seconds around the last method: with a limit, a process begins

    def finished(self, name: str, seconds: float, whole: float | None = None) -> None:
        """What a method took in truth; whole: and what was around it."""
        self._taken[name] = seconds
        self._beside = 0.0 if whole is None else whole - seconds

    def left(self, names: list[str]) -> str:
        """How long these methods will take, in words; empty where nothing is known."""
        known = [self.seconds[name] for name in names if name in self.seconds]
        unknown = len(names) - len(known)
        beside = self._beside * len(names)
        most = 0.0 if self.limit is None else self.limit * len(names) + beside
        limited = "" if self.limit is None else f"{round(most, 1):g} s at most"
        if not known:
            return limited
        off = self._off()
        parts = [second * off for second in known]
        if self.limit is not None:
            parts = [min(part, self.limit) for part in parts]
        more = "" if not unknown else f" and {unknown} not guessed"
        guess = f"about {spoken_time(sum(parts) + beside)} left{more}"
        return f"{guess}, {limited}" if limited else guess

    def _off(self) -> float:
        """Seconds taken for each second that was forecast, by the methods that are done."""
        done = [name for name in self._taken if name in self.seconds]
        forecast = sum(self.seconds[name] for name in done)
        return sum(self._taken[name] for name in done) / forecast if forecast > 0 else 1.0


def forecast(names: list[str], X: Any, k: int, run: Run, limit: float | None = None) -> Forecast:
    """Try every method on a few rows, as long as that takes no more than a few seconds."""
    n, rows = X.shape[0], max(ROWS_OF_A_TRY, 5 * k)
    if n < FEWEST_TIMES * rows:
        return Forecast({}, limit)
    many, few = (X[np.linspace(0, n - 1, m).astype(np.intp)] for m in (rows, rows // FEWER))
    seconds: dict[str, float] = {}
    begin = time.perf_counter()
    for name in names:
        if time.perf_counter() - begin > SECONDS_FOR_TRIES:
            break
        run(name, few)  # what it has to load is loaded
        taken = []
        for part in (few, many):
            before = time.perf_counter()
            run(name, part)
            taken.append(time.perf_counter() - before)
        l, m, e = rows // FEWER, rows, 2.0 if name in COMPARE_ROWS else 1.0
        slope = max(taken[1] - taken[0], 0.0) / (m**e - l**e)
        seconds[name] = max(taken[0] + slope * (n**e - l**e), taken[1])
    return Forecast(seconds, limit)


def spoken_time(seconds: float) -> str:
    """
    >>> spoken_time(0.4), spoken_time(42.1), spoken_time(400), spoken_time(9000)
    ('1 s', '42 s', '7 min', '2.5 h')
    """
    if seconds < 90:
        return f"{max(seconds, 1.0):.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
