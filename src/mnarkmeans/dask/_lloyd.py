"""Lloyd's loop over blocks: the centres go out, k x p sums come back.

    step       the centres of the active starts -> S, C, N of the block
    costly     the loss of each row at a start's centres -> rows that could fill an empty cluster
    add_up     the labels of a start, some changed -> S, C, N of the block
    loss_at    the labels of a start, other centres -> the loss, by direct differences
    assess     the final centres -> the loss and the rows of each cluster

Every function is pure as far as results go: a task that runs twice, or on another worker, gives
the same sums. Rows are known by their number in the whole table, so the division into blocks
affects no choice, only the last digits of sums. The loop itself, with its new centres, losses and
stopping rule, is the one used in memory (``_solver``). Checkpoints are ``.npz`` files that
hold arrays only and are replaced atomically.
"""

from __future__ import annotations

import os
import time
import zipfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .. import _core as core
from .._io import replacing
from .._solver import InMemory, StartResults, lloyd
from ._blocks import Block, Blocks, ClusterLostError

# --- one iteration of Lloyd's loop ----------------------------------------------------------------


Job = tuple[int, np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray, bool]
Part = tuple[core.Stats, float]  # sums of the active starts, and how large a row changed cluster


def step(block: Block, first: int, job: Job) -> Part:
    """The sums of the active starts over the block, whose first row has number ``first``.

    A block that has been here before only looks at rows that may change clusters, and moves those
    that do: it does what the whole table does in memory.
    """
    n_starts, active, mu, lam, reference, shift, fresh = job
    known = block.cache.pop("partition", None)  # no other pass may find it half done
    if known is not None:
        rows, starts = known
    else:
        _, k, p = mu.shape
        rows = InMemory(block.table(first), k, threads=1)
        starts = core.Starts(
            np.zeros((n_starts, k, p)), np.zeros((n_starts, p)), reference, shift,
            n_rows=block.n_rows, max_iter=1, tol=0.0, weights=(False, 0.0),
        )  # fmt: skip
    starts.mu[active], starts.lam[active] = mu, lam
    largest = rows.pass_(starts, active, fresh or known is None)
    stats = core.Stats(*(values[active] for values in starts.stats))
    block.cache["partition"] = rows, starts
    return stats, largest


def merge_steps(parts: list[Part]) -> Part:
    return merge_stats([stats for stats, _ in parts]), max(largest for _, largest in parts)


def merge_stats(parts: list[core.Stats]) -> core.Stats:
    total = core.Stats(*(np.array(values) for values in parts[0]))
    for part in parts[1:]:
        total.add(part)
    return total


# --- the partition of one start -------------------------------------------------------------------


class Partition(NamedTuple):
    """The labels of one start: those its centres give, but for some rows."""

    mu: np.ndarray  # (1, k, p)
    lam: np.ndarray  # (1, p)
    reference: np.ndarray  # (p,)
    shift: np.ndarray  # (p,)
    rows: np.ndarray = np.empty(0, np.int64)  # rising: rows that were moved
    clusters: np.ndarray = np.empty(0, np.int32)  # and where to

    @property
    def centers(self) -> core.Centers:
        return core.Centers(self.mu, self.lam, self.reference, self.shift)

    def labels(self, block: Block, first: int) -> np.ndarray:
        """(b,) of a block."""
        labels = core.assign(block.table(first), self.centers, threads=1)[0]
        begin, end = np.searchsorted(self.rows, [first, first + block.n_rows])
        labels[self.rows[begin:end] - first] = self.clusters[begin:end]
        return labels


def add_up(block: Block, first: int, partition: Partition) -> core.Stats:
    """The sums of one start."""
    stats, labels = core.Stats.zeros(*partition.mu.shape), partition.labels(block, first)
    core.add_rows(block.table(first), partition.centers, labels, stats, threads=1)
    return stats


def loss_at(block: Block, first: int, partition: Partition, mu: np.ndarray) -> float:
    """The loss of the block with these labels and the centres mu (1, k, p)."""
    centers, labels = partition._replace(mu=mu).centers, partition.labels(block, first)
    return core.loss_of(block.table(first), centers, labels, threads=1)


class Costly(NamedTuple):
    """The costliest rows of every cluster, and how many rows each cluster has."""

    members: np.ndarray  # (k,)
    costs: np.ndarray
    rows: np.ndarray
    labels: np.ndarray


def costly(block: Block, first: int, partition: Partition, most: int) -> Costly:
    """Up to ``most`` rows per cluster that count and cost anything."""
    labels, costs = partition.labels(block, first), np.empty(block.n_rows)
    core.loss_of(block.table(first), partition.centers, labels, threads=1, each=costs)
    counted = block.weights > 0.0
    members = np.bincount(labels[counted], minlength=partition.mu.shape[1])
    rows = np.flatnonzero(counted & (costs > 0.0))
    return merge_costly([Costly(members, costs[rows], rows + first, labels[rows])], most)


def merge_costly(parts: list[Costly], most: int) -> Costly:
    """The rows stay in the order of their numbers."""
    columns = zip(*(part[1:] for part in parts), strict=True)
    costs, rows, labels = (np.concatenate(column) for column in columns)
    order = np.lexsort((rows, -costs, labels))
    rank = np.arange(len(order)) - np.searchsorted(labels[order], labels[order])
    kept = order[rank < most]
    kept = kept[np.argsort(rows[kept])]
    members = np.sum([part.members for part in parts], axis=0)
    return Costly(members, costs[kept], rows[kept], labels[kept])


def assess(block: Block, first: int, partition: Partition) -> tuple[float, np.ndarray]:
    """The loss of the block, and the number of its rows in each cluster."""
    _, loss, members = core.label_and_loss(block.table(first), partition.centers, threads=1)
    return loss, members


def merge_assessed(parts: list[tuple[float, np.ndarray]]) -> tuple[float, np.ndarray]:
    return sum(loss for loss, _ in parts), np.sum([members for _, members in parts], axis=0)


# --- the loop -------------------------------------------------------------------------------------


class BlockRows:
    """The rows of all blocks, behind the interface of ``_solver``."""

    def __init__(self, blocks: Blocks):
        self.blocks = blocks
        self._partitions: dict[int, Partition] = {}  # of the last pass
        self._moved = False  # rows, since that pass

    def pass_(self, starts: core.Starts, active: np.ndarray, fresh: bool) -> float:
        """Blocks remember the labels their centres gave. Where rows were moved since, sums are made
        afresh: the rows that were moved cost most, and would leave their rounding behind."""
        reference, shift = starts.reference, starts.shift
        mu, lam = starts.mu[active], starts.lam[active]
        job = len(starts.mu), active, mu, lam, reference, shift, fresh or self._moved
        stats, largest = self.blocks.reduce(step, merge_steps, job)
        for kept, new in zip(starts.stats, stats, strict=True):
            kept[active] = new
        self._partitions = {
            int(r): Partition(mu[[a]], lam[[a]], reference, shift) for a, r in enumerate(active)
        }
        self._moved = False
        return largest

    def rescue(self, starts: core.Starts, r: int) -> None:
        most, partition = int(np.sum(starts.stats.sizes[r] <= 0.0)), self._partitions[r]
        found = self.blocks.reduce(costly, partial(merge_costly, most=most), partition, most)
        taken = core.choose_rescued(found.costs, found.labels, found.members)
        clusters = np.flatnonzero(taken >= 0).astype(np.int32)
        rows = found.rows[taken[clusters]]
        by_row = np.argsort(rows)
        partition = partition._replace(rows=rows[by_row], clusters=clusters[by_row])
        stats = self.blocks.reduce(add_up, merge_stats, partition)
        for kept, new in zip(starts.stats, stats, strict=True):
            kept[r] = new[0]
        self._partitions[r], self._moved = partition, True

    def loss_of(self, starts: core.Starts, r: int) -> float:
        return self.blocks.reduce(loss_at, sum, self._partitions[r], starts.mu[[r]])


class Iteration(NamedTuple):
    """What a callback gets after every iteration."""

    number: int  # the first is 1
    loss: float  # the smallest among the starts
    n_active: int  # starts that go on
    seconds: float  # of this iteration


Callback = Callable[[Iteration], object]


class Checkpoint(NamedTuple):
    path: Any  # of the file, or None
    every: int  # iterations
    resume: bool
    problem: dict[str, Any]  # what is fitted: another fit's file is refused


def run(
    blocks: Blocks, starts: core.Starts, checkpoint: Checkpoint, callback: Callback
) -> StartResults:
    """Run the starts to their ends, from their beginning or from the checkpoint."""
    done, active = 0, None
    if checkpoint.resume and (found := load_checkpoint(checkpoint)) is not None:
        done, active = restore(starts, found)
    begun = time.perf_counter()

    def after(iteration: int, active: np.ndarray) -> None:
        nonlocal done, begun
        done = iteration
        ended = not len(active) or iteration == starts.max_iter
        if checkpoint.path is not None and (ended or iteration % checkpoint.every == 0):
            save_checkpoint(checkpoint, starts, iteration, active)
        loss = float(starts.paths[np.arange(len(starts.mu)), starts.n_iter - 1].min())
        callback(Iteration(iteration, loss, len(active), time.perf_counter() - begun))
        begun = time.perf_counter()

    try:
        lloyd(BlockRows(blocks), starts, iteration=done, active=active, after=after)
    except ClusterLostError as error:
        advice = "With checkpoint=PATH a later fit can go on from where this one stopped"
        if checkpoint.path is not None:
            advice = f"Go on with resume=True: the centres are in {checkpoint.path}"
        raise ClusterLostError(
            f"In iteration {done + 1} the fit was lost. {error} {advice}."
        ) from error
    return StartResults.of(starts)


# --- checkpoints ----------------------------------------------------------------------------------

KEPT = ("mu", "lam", "n_iter", "merged_into", "settled", "seen")
FORMAT = 3


def save_checkpoint(
    checkpoint: Checkpoint, starts: core.Starts, it: int, active: np.ndarray
) -> None:
    kept = {name: getattr(starts, name) for name in KEPT}
    kept |= {"sizes": starts.stats.sizes, "paths": starts.paths[:, :it]}
    kept |= {f"problem_{name}": value for name, value in checkpoint.problem.items()}
    with replacing(checkpoint.path) as draft, open(draft, "wb") as file:
        np.savez(file, format=FORMAT, iteration=it, active=active, **kept)


def load_checkpoint(checkpoint: Checkpoint) -> dict[str, np.ndarray] | None:
    """What was saved, or None if there is no file yet; that of another problem is refused."""
    path = Path(os.fspath(checkpoint.path or ""))
    if not path.exists():
        return None
    try:
        with np.load(path, allow_pickle=False) as archive:
            found = {name: archive[name] for name in archive.files}
            version = int(found["format"])
    except (ValueError, KeyError, OSError, zipfile.BadZipFile) as error:
        raise ValueError(
            f"{path} is not a checkpoint of a fit; name another file or remove it."
        ) from error
    if version != FORMAT:
        raise ValueError(f"{path} has format {version}; this version reads {FORMAT}.")
    for name, value in checkpoint.problem.items():
        kept: Any = found.get(f"problem_{name}")
        # Sums over the rows depend on how they are cut into blocks, in the last digits.
        if kept is None or kept.shape != np.shape(value) or not np.allclose(kept, value, 1e-9, 0.0):
            there, here = (str(one) if np.size(one) == 1 else "an array" for one in (kept, value))
            raise ValueError(
                f"{path} is the checkpoint of another fit: its {name} differs ({there} there, "
                f"{here} here). Use resume=False to start over."
            )
    return found


def restore(starts: core.Starts, found: dict[str, np.ndarray]) -> tuple[int, np.ndarray]:
    """INOUT starts: as they stood. Returns the iterations done and the active starts."""
    it = int(found["iteration"])
    if it > starts.max_iter:  # more than this fit allows: they are kept
        starts.max_iter, starts.paths = it, np.zeros((len(starts.mu), it))
    for name in KEPT:
        getattr(starts, name)[:] = found[name]
    starts.paths[:, :it] = found["paths"]
    starts.stats.sizes[:] = found["sizes"]
    return it, found["active"]
