"""Time every contender on every job: warmed, taking turns, best of several."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from importlib.util import find_spec

from .jobs import Data, Job
from .limits import Limits
from .measured import Measured
from .rivals import ours

PAUSE = 0.3  # seconds: threads of the one before spin for up to 0.2 s in wait of more work


@dataclass
class Timing:
    """The best run of one contender on one job."""

    job: str
    shape: str
    k: int
    rival: str
    seconds: float
    iterations: int
    loss: float  # mean per row of the zero-filled table, computed by the benchmark
    ratio: float = float("nan")  # its time divided by ours
    limit_share: float = float("nan")  # least time the machine allows / time, ours only

    def row(self) -> dict:
        return asdict(self)


def installed(rivals: Iterable) -> list:
    return [rival for rival in rivals if find_spec(rival.MODULE) is not None]


def compare(job: Job, rivals, limits: Limits, repeats: int, clock) -> list[Timing]:
    """All contenders on one job. They take turns, so that a busy moment hits everybody."""
    data = job.make()
    data.filled  # noqa: B018  filled beforehand: it costs the rivals nothing
    contenders = [r for r in rivals if r.supports(job)]
    done = ours.fit(data, None)[1]  # tells how many iterations the job takes
    iterations = None if job.starts else done
    best: dict[str, Timing] = {}
    slow: set[str] = set()
    for turn in range(repeats + 1):  # the first turn warms up, unless it is too slow to repeat
        for rival in contenders:
            if rival.NAME in slow:
                continue
            timing = _time(rival, data, iterations, clock)
            if timing.seconds > 20.0:
                slow.add(rival.NAME)
            elif turn == 0:
                continue
            known = best.get(rival.NAME)
            if known is None or timing.seconds < known.seconds:
                best[rival.NAME] = timing
    mine = best[ours.NAME]
    for timing in best.values():
        timing.ratio = timing.seconds / mine.seconds
    if not job.starts:
        mine.limit_share = _least_seconds(data, limits) * mine.iterations / mine.seconds
    return list(best.values())


def _time(rival, data: Data, iterations: int | None, clock) -> Timing:
    time.sleep(PAUSE)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # max_iter reached, on purpose
        seconds, spent = math.inf, 0.0
        while spent < PAUSE:  # short fits again and again, so that nobody is timed half asleep
            begin = clock()
            centers, done = rival.fit(data, iterations)
            taken = clock() - begin
            seconds, spent = min(seconds, taken), spent + taken
    job = data.job
    return Timing(job.name, job.shape, job.k, rival.NAME, seconds, int(done), data.loss(centers))


def _least_seconds(data: Data, limits: Limits) -> float:
    """One pass over all rows and centres: read the table once; one multiply-add per entry and
    centre, gaps included since lam is 1; two per stored entry of a CSR matrix."""
    job = data.job
    if job.sparse:
        n_bytes = data.X.data.nbytes + data.X.indices.nbytes
        return limits.seconds(n_bytes, 4.0 * data.X.nnz * job.k)
    return limits.seconds(data.X.nbytes, 2.0 * job.n * job.p * job.k)


def figures(job: Job, timings: list[Timing]) -> list[Measured]:
    """The job against the best rival, and against the one that its goal names."""
    by_name = {t.rival: t for t in timings}
    mine = by_name.pop(ours.NAME)
    by_name.pop("NumPy", None)
    if not by_name:
        return []
    best = min(by_name.values(), key=lambda t: t.seconds).rival
    found = []
    for rival in dict.fromkeys([job.goal_rival, best]):
        if rival in by_name:
            goal = job.goal if rival == (job.goal_rival or best) else None
            theirs = by_name[rival].seconds
            found.append(Measured(job.name, mine.seconds, theirs, rival, goal, faster=True))
    return found


def compare_all(jobs, rivals, limits: Limits, repeats: int, clock) -> Iterator[tuple]:
    for job in jobs:
        timings = compare(job, installed(rivals), limits, repeats, clock)
        yield timings, figures(job, timings)
