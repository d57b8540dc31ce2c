"""The functions of the core, one by one.

ctypes lets other threads run during a call. A call that may take long is made from a thread of its
own while this one waits, so that Ctrl-C ends it within a moment.
"""

from __future__ import annotations

import _thread
import contextlib
import ctypes as ct
import threading
from typing import NamedTuple

import numpy as np

from . import library as structs
from .arrays import (
    Centers,
    Known,
    Starts,
    Stats,
    Table,
    at,
    bounds_struct,
    check_labels,
    stats_struct,
)
from .library import library

SHORT = 1 << 24  # multiply-adds that are over before anyone could press Ctrl-C
PATIENCE = 20  # tenths of a second until a thread has begun
DONE, OUT_OF_MEMORY, CANCELLED = range(3)


def _call(name: str, *arguments, threads: int, work: float = 0.0, watch=None) -> None:
    """Call a function whose last argument is a ``Control``; raise what its status says.

    ``work``: about how many multiply-adds it takes. ``watch`` is told now and then how much of a
    long call is done.
    """
    control = structs.Control(threads=threads)
    function = getattr(library, f"mnarkmeans_{name}")
    arguments = (*arguments, ct.addressof(control))
    if work <= SHORT or threading.current_thread() is not threading.main_thread():
        status = function(*arguments)
    else:
        status = _wait_for(function, arguments, control, watch)
    if status == OUT_OF_MEMORY:
        raise MemoryError("not enough memory for the tables of this fit")
    if status == CANCELLED:
        raise KeyboardInterrupt


def _wait_for(function, arguments, control, watch) -> int:
    """Call from another thread; an exception here (Ctrl-C) cancels the call and waits for its end.

    Not by joining the thread: a ``join`` that a signal interrupts takes it for finished (Python
    3.11, 3.12), and the core would go on writing to arrays that are gone. Nor by ``Thread.start``:
    it waits for ever for a thread that dies of little memory before it has begun. Whoever holds
    ``claim`` makes the call, here after a while if nobody else does.
    """
    result: list[int] = []
    claim, done = threading.Lock(), threading.Event()

    def work() -> None:
        if claim.acquire(blocking=False):
            try:
                result.append(function(*arguments))
            finally:
                done.set()

    try:
        _thread.start_new_thread(work, ())
    except RuntimeError:  # no room for another thread: without Ctrl-C, but with a result
        return function(*arguments)
    try:
        turns = 0
        while not done.wait(0.1):
            turns += 1
            if turns == PATIENCE and claim.acquire(blocking=False):
                break
            if watch is not None:
                watch(control.done)
    except BaseException:
        control.cancel = 1
        while not done.is_set() and not claim.acquire(blocking=False):
            with contextlib.suppress(KeyboardInterrupt, SystemExit):  # asked for again
                done.wait()
        raise
    if not done.is_set():
        return function(*arguments)
    return result[0] if result else OUT_OF_MEMORY


def _address(struct) -> int:
    return ct.addressof(struct)


class FirstPass(NamedTuple):
    """What one look at a table tells."""

    counts: np.ndarray  # (p,) weight of the rows that observe the feature
    sums: np.ndarray  # (p,) weighted sum of its values
    least: np.ndarray  # (p,) of the rows with a weight; +inf where none observes it
    most: np.ndarray  # (p,) likewise, -inf
    observed: np.ndarray  # (p,) number of rows that observe the feature
    seen: np.ndarray  # (n,) observed entries of each row
    infinite: int  # the first row with an infinite value, or -1
    malformed: int  # CSR: the first row whose features do not rise within 0 .. p - 1, or -1


def first_pass(table: Table, threads: int) -> FirstPass:
    p = table.p
    counts, sums, least, most = np.empty((4, p))
    observed, seen = np.empty(p, np.int64), np.empty(table.n, np.int32)
    arrays = counts, sums, least, most, observed, seen
    out = structs.FirstPass(*(array.ctypes.data for array in arrays), -1, -1)
    _call("first_pass", _address(table.struct), _address(out), threads=threads, work=table.entries)
    return FirstPass(*arrays, out.infinite, out.malformed)


def content_keys(table: Table, threads: int) -> np.ndarray:
    """(n,) a number of the observed values of each row, whatever the order of the columns."""
    return _for_each_row("content_keys", table, np.empty(table.n, np.uint64), threads)


def content_order(table: Table, threads: int) -> np.ndarray:
    """(n,) the rows ordered by these numbers; equal ones as they stand."""
    return _for_each_row("content_order", table, np.empty(table.n, np.int64), threads)


def _for_each_row(name: str, table: Table, out: np.ndarray, threads: int) -> np.ndarray:
    pointers = _address(table.struct), out.ctypes.data
    _call(name, *pointers, threads=threads, work=table.entries)
    return out


def fill_rows(table: Table, rows: np.ndarray, fill: np.ndarray) -> np.ndarray:
    """(m, p) float64: some rows, their gaps filled from ``fill`` (p,)."""
    rows = np.ascontiguousarray(rows, dtype=np.int64)
    if len(rows) and not (rows.min() >= 0 and rows.max() < table.n):
        raise IndexError(f"rows must be below {table.n}")
    out = np.empty((len(rows), table.p))
    status = library.mnarkmeans_fill_rows(
        _address(table.struct), rows.ctypes.data, len(rows), at(fill, np.float64, (table.p,)),
        out.ctypes.data,
    )  # fmt: skip
    if status != DONE:
        raise MemoryError
    return out


def impute(table: Table, mu: np.ndarray, labels: np.ndarray, out: np.ndarray, threads: int) -> None:
    """OUT out (n, p), of the table's type: its rows, gaps filled from the centre of the label."""
    if out.shape != (table.n, table.p) or out.dtype != table.source.dtype:
        raise TypeError(f"out must be {table.source.dtype} of shape {(table.n, table.p)}")
    if (out.strides[1] != out.itemsize and table.p > 1) or out.strides[0] % out.itemsize:
        raise TypeError("the rows of out must lie in one piece each")
    check_labels(labels, table.n, len(mu))
    _call(
        "impute", _address(table.struct), at(mu, np.float64, (len(mu), table.p)),
        labels.ctypes.data, out.ctypes.data, out.strides[0] // out.itemsize,
        threads=threads, work=table.entries,
    )  # fmt: skip


def pass_(
    table: Table,
    starts: Starts,
    active: np.ndarray,
    *,
    fresh: bool,
    known: Known | None,
    threads: int,
) -> tuple[int, float]:
    """One assignment pass for the active starts; INOUT starts.labels and starts.stats.

    ``fresh``: sum up all rows, not only those that change. Returns how many labels changed, and the
    largest squared size of a row that did.
    """
    centers = starts.centers(active)
    own = structs.Pass(
        active=active.ctypes.data, fresh=fresh,
        labels=at(starts.labels, np.int32, (len(starts.mu), table.n)),
        label_stride=table.n, bounds=bounds_struct(known, table.n, centers.k),
    )  # fmt: skip
    if fresh:
        for values in starts.stats:
            values[active] = 0
    stats = stats_struct(starts.stats)
    _call(
        "pass", _address(table.struct), _address(centers.struct), _address(own), _address(stats),
        threads=threads, work=table.entries * centers.groups * centers.k,
    )  # fmt: skip
    return own.changed, own.largest_move


def assign(table: Table, centers: Centers, threads: int, *, plain: bool = False) -> np.ndarray:
    """Labels (G, n); ``plain``: by the loop of direct differences alone."""
    labels = np.empty((centers.groups, table.n), np.int32)
    _call(
        "assign", _address(table.struct), _address(centers.struct), plain, labels.ctypes.data,
        threads=threads, work=table.entries * centers.groups * centers.k,
    )  # fmt: skip
    return labels


def add_rows(
    table: Table, centers: Centers, labels: np.ndarray, stats: Stats, threads: int
) -> None:
    """OUT stats (of one start) from the labels its rows have."""
    check_labels(labels, table.n, centers.k)
    own = stats_struct(stats)
    _call(
        "add_rows", _address(table.struct), _address(centers.struct), labels.ctypes.data,
        _address(own), threads=threads, work=table.entries,
    )  # fmt: skip


def loss_of(
    table: Table, centers: Centers, labels: np.ndarray, threads: int, each: np.ndarray | None = None
) -> float:
    """The loss of a partition by direct differences; OUT each (n,): of every row, if given."""
    check_labels(labels, table.n, centers.k)
    loss = ct.c_double()
    _call(
        "loss_of", _address(table.struct), _address(centers.struct), labels.ctypes.data,
        at(each, np.float64, (table.n,)), ct.addressof(loss), threads=threads, work=table.entries,
    )  # fmt: skip
    return loss.value


def last_look(
    table: Table, centers: Centers, threads: int, labels: np.ndarray | None = None,
    known: Known | None = None,
) -> tuple[np.ndarray, float, np.ndarray]:  # fmt: skip
    """Labels (n,) that the centres give, the loss by direct differences, rows of each label.

    With ``known``, INOUT labels: only rows that may have changed are looked at again.
    """
    if labels is None or known is None:
        labels, known = np.empty(table.n, np.int32), None
    else:
        check_labels(labels, table.n, centers.k)
    members, loss = np.zeros(centers.k, np.int64), ct.c_double()
    bounds = bounds_struct(known, table.n, centers.k)
    _call(
        "last_look", _address(table.struct), _address(centers.struct), _address(bounds),
        labels.ctypes.data, members.ctypes.data, ct.addressof(loss),
        threads=threads, work=table.entries * centers.k,
    )  # fmt: skip
    return labels, loss.value, members


def distances(table: Table, centers: Centers, dtype, threads: int, *, roots: bool) -> np.ndarray:
    """Loss (n, k) of every row at every centre, or its square root."""
    out = np.empty((table.n, centers.k), dtype)
    _call(
        "distances", _address(table.struct), _address(centers.struct), roots,
        out.dtype == np.float64, out.ctypes.data, threads=threads, work=table.entries * centers.k,
    )  # fmt: skip
    return out


def rescue(table: Table, starts: Starts, r: int, known: Known | None, threads: int) -> None:
    """Move the costliest rows of start r into its empty clusters. INOUT labels, stats."""
    centers = starts.centers(np.array([r]))
    stats = stats_struct(Stats(*(values[r : r + 1] for values in starts.stats)))
    bounds = bounds_struct(known, table.n, centers.k)
    _call(
        "rescue", _address(table.struct), _address(centers.struct), starts.whole_weights,
        check_labels(starts.labels[r], table.n, centers.k), _address(stats), _address(bounds),
        threads=threads, work=table.entries,
    )  # fmt: skip


def choose_rescued(costs: np.ndarray, labels: np.ndarray, members: np.ndarray) -> np.ndarray:
    """Which of some rows fill the empty clusters: their places (k,), or -1.

    ``members`` (k,): rows of each cluster in all. Earlier rows win over later ones of equal cost.
    """
    n, k = len(costs), len(members)
    check_labels(labels, n, k)
    costs, members = np.array(costs, np.float64), np.array(members, np.int64)
    taken, weights = np.empty(k, np.int64), np.ones(n)
    library.mnarkmeans_choose_rescued(
        costs.ctypes.data, weights.ctypes.data, labels.ctypes.data, n, k, members.ctypes.data,
        taken.ctypes.data,
    )  # fmt: skip
    return taken


def update(starts: Starts, active: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """New centres of the active starts; their losses, and which of these lost too many digits."""
    losses, doubtful = np.empty(len(active)), np.empty(len(active), np.bool_)
    own = starts.struct
    library.mnarkmeans_update(
        _address(own), starts.mu.shape[2], active.ctypes.data, len(active), losses.ctypes.data,
        doubtful.ctypes.data,
    )  # fmt: skip
    return losses, doubtful


class Decision(NamedTuple):
    active: np.ndarray  # the starts that go on
    afresh: bool  # the next pass has to sum up all rows again


def decide(
    starts: Starts, iteration: int, losses, doubtful, largest_move: float, active: np.ndarray
) -> Decision:
    """Record the losses of an iteration (0, 1, ...), and see who goes on."""
    room, afresh = np.concatenate([active, active]), ct.c_int32()
    own = starts.struct
    left = library.mnarkmeans_decide(
        _address(own), starts.mu.shape[2], iteration, losses.ctypes.data, doubtful.ctypes.data,
        largest_move, room.ctypes.data, len(active), ct.addressof(afresh),
    )  # fmt: skip
    return Decision(room[:left].copy(), bool(afresh.value))


def lloyd(table: Table, starts: Starts, threads: int, watch=None) -> None:
    """Lloyd's loop to its end, on a small table. INOUT starts."""
    own = starts.struct
    count, k, _ = starts.shape
    _call(
        "lloyd", _address(table.struct), _address(own), threads=threads, watch=watch,
        work=10.0 * table.entries * count * k,
    )  # fmt: skip


def hartigan(table: Table, starts: Starts, chosen: np.ndarray, threads: int) -> None:
    """Hartigan's moves from where Lloyd's loop ended, in the chosen starts. INOUT starts."""
    own = starts.struct
    chosen = np.ascontiguousarray(chosen, dtype=np.int64)
    _call(
        "hartigan", _address(table.struct), _address(own), chosen.ctypes.data, len(chosen),
        threads=threads, work=10.0 * table.entries * len(chosen) * starts.shape[1],
    )  # fmt: skip


def seed(table: Table, means, order, draws: np.ndarray, threads: int) -> np.ndarray:
    """Greedy k-means++ on mean-filled rows: draws (R, k, trials) in [0, 1) -> centres (R, k, p)."""
    count, k, trials = draws.shape
    centers = np.empty((count, k, table.p))
    _call(
        "seed", _address(table.struct), at(means, np.float64, (table.p,)),
        at(order, np.int64, (table.n,)), count, k, trials, at(draws, np.float64, draws.shape),
        centers.ctypes.data, threads=threads, work=float(table.entries) * count * k * trials,
    )  # fmt: skip
    return centers
