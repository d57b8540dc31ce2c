"""What two builds are compared on (``--against``): everything through public names only.

A task is a name and a function that prepares it and returns the work to be timed.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial

import numpy as np

from .jobs import JOBS, Job
from .rivals import ours

# Rows of the large tables: enough for their ways of work, few enough for a busy machine.
ROWS = {"tall and thin": 2_000_000, "k=1000": 20_000}
LARGE = 400_000


def _fit(job: Job) -> Callable[[], object]:
    data = job.make()
    iterations = None if job.starts else ours.fit(data, None)[1]
    return lambda: ours.fit(data, iterations)


def _with_penalty(job: Job) -> Callable[[], object]:
    """The gaps count for something between nothing and the reference observed."""
    from mnarkmeans import MNARKMeans

    data = job.make()
    model = MNARKMeans(job.k, lam=0.5, init=data.start, max_iter=8, tol=0.0, algorithm="lloyd")
    return lambda: model.fit(data.X)


def _use(verb: str, job: Job) -> Callable[[], object]:
    from mnarkmeans import MNARKMeans

    data = job.make()
    model = MNARKMeans(job.k, lam=0.5, init=data.start, max_iter=2).fit(data.X)
    return lambda: getattr(model, verb)(data.X)


def _choice(how: str, n: int, p: int, k: int) -> Callable[[], object]:
    from mnarkmeans import MNARKMeans, MNARKMeansCV

    from .choice import papers_choice, papers_table, table

    if how == "paper":
        X = papers_table()
        return lambda: papers_choice(X)
    X = table(n, p, k)
    model = {
        "fixed": MNARKMeans(k, lam=0.5, random_state=0),
        "auto": MNARKMeans(k, random_state=0),
        "search": MNARKMeansCV(k, random_state=0),
    }[how]
    return lambda: model.fit(X)


def _batches(n: int) -> Callable[[], object]:
    """A stream of twenty batches of n x 50, k=10."""
    from mnarkmeans import MiniBatchMNARKMeans

    X = Job("batches", 20 * n, 50, 10, spread=2.0).make().X
    batches = [X[first : first + n] for first in range(0, len(X), n)]

    def work() -> None:
        model = MiniBatchMNARKMeans(10, lam=0.5, n_init=1, random_state=0)
        for batch in batches:
            model.partial_fit(batch)

    return work


def tasks() -> dict[str, Callable[[], Callable[[], object]]]:
    from .choice import SHAPES

    smaller = {job.name: job.smaller(max(1, job.n // ROWS.get(job.name, LARGE))) for job in JOBS}
    found: dict = {name: partial(_fit, job) for name, job in smaller.items()}
    for name in ("dense", "k=100", "CSR"):
        found[f"{name}, lam=0.5"] = partial(_with_penalty, smaller[name])
    for verb in ("predict", "impute", "transform"):
        found[verb] = partial(_use, verb, smaller["dense"])
    for n, p, k in SHAPES:
        for how in ("fixed", "auto", "search"):
            found[f"{how}, {n:,} x {p:,}"] = partial(_choice, how, n, p, k)
    for n in (100, 1000, 4096):
        found[f"partial_fit, {n:,} x 50"] = partial(_batches, n)
    found["the paper's choice"] = partial(_choice, "paper", 0, 0, 0)
    return found


def quietly(work: Callable[[], object]) -> None:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        work()
