"""A pass by one message to each worker instead of a graph of tasks.

    graph    B tasks that the scheduler plans and follows: some 30 ms, whatever befalls the workers
    message  each worker visits the pieces it holds and answers: some 3 ms, or nothing

A message may fail (a piece was moved, a worker died): then there is no answer, and the pass is run
again as a graph, which finds or makes the pieces anew. Parts come back piece by piece and are added
up here: which worker holds what must not show in the last digit of a sum.
"""

from __future__ import annotations

import asyncio
import pickle
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from .._io.optional import require

# Longer passes are graphs: they lose little by it, and the scheduler sees that the cluster is busy
# (one that looks idle may be shut down or made smaller).
SECONDS_OF_LONG_PASS = 1.0
# If all parts together may be larger (each is taken to be twice its message: sums and counts for
# the centres), they are better added up on the workers, which a graph does.
MOST_BYTES_OF_PARTS = 1 << 25


class Messenger:
    """Knows which worker holds which piece, as long as that is true."""

    def __init__(self, client: Any, lazy: list[Any]) -> None:
        self._client = client
        self._futures = require("distributed", "dask").futures_of(lazy)
        self._keys = [piece.key for piece in lazy]
        self._shares: dict[str, list[int]] | None = None  # address -> numbers of its pieces
        self._seconds = 0.0

    @contextmanager
    def timed(self) -> Iterator[None]:
        """Remembers how long a pass took, however it was run."""
        began = time.perf_counter()
        yield
        self._seconds = time.perf_counter() - began

    def parts(
        self, work: Callable[..., Any], firsts: list[int], common: tuple[Any, ...]
    ) -> list[Any] | None:
        """[work(piece, first, *common) for every piece], or None: then a graph has to do it."""
        order = pickle.dumps((work, common), protocol=pickle.HIGHEST_PROTOCOL)
        too_much = 2 * len(order) * len(self._keys) > MOST_BYTES_OF_PARTS
        if self._seconds > SECONDS_OF_LONG_PASS or too_much:
            return None
        if any(future.status != "finished" for future in self._futures):
            self._shares = None  # some piece is being made again
            return None
        try:
            self._shares = self._shares or self._locate()
            visits = {
                address: [(number, self._keys[number], firsts[number]) for number in numbers]
                for address, numbers in self._shares.items()
            }
            # To all workers the scheduler knows: it would look for one that is gone for long.
            answers = self._client.run(_visit, order, visits, on_error="ignore")
        except Exception:  # whatever is wrong with the cluster, the graph will meet it and say so
            answers = {}
        found = {number: part for answer in answers.values() for number, part in answer}
        if len(found) < len(self._keys):
            self._shares = None
            return None
        return [found[number] for number in range(len(self._keys))]

    def _locate(self) -> dict[str, list[int]]:
        holders = self._client.who_has(self._futures)
        shares: dict[str, list[int]] = {}
        for number, key in enumerate(self._keys):
            for address in holders[key][:1]:
                shares.setdefault(address, []).append(number)
        return shares


async def _visit(
    order: bytes, visits: dict[str, list[tuple[int, Any, int]]], dask_worker: Any
) -> list[tuple[int, Any]]:
    """On a worker: (number, part) of its pieces, worked on in the threads it has for tasks.

    A piece that is no longer here is left out.
    """
    work, common = pickle.loads(order)
    free = asyncio.Semaphore(dask_worker.state.nthreads)
    threads, loop = dask_worker.executors["default"], asyncio.get_running_loop()
    parts = []

    async def visit(number: int, key: Any, first: int) -> None:
        async with free:  # a piece may have to be read from disk: not sooner than it is needed
            if key in dask_worker.data:
                task = partial(work, dask_worker.data[key], first, *common)
                parts.append((number, await loop.run_in_executor(threads, task)))

    await asyncio.gather(*(visit(*one) for one in visits.get(dask_worker.address, ())))
    return parts


def messenger_for(client: Any, lazy: list[Any]) -> Messenger | None:
    """None where messages would not do: without a cluster, or from within one of its tasks."""
    if client is None:
        return None
    try:
        require("distributed", "dask").get_worker()
    except ValueError:
        return Messenger(client, lazy)
    return None  # the task holds a thread that the visit would wait for
