"""The functions of the core, one by one."""

from __future__ import annotations

import ctypes as ct
from collections.abc import Sequence
from typing import Any, NamedTuple

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
    check_numbers,
    stats_struct,
    where,
)
from .library import library
from .waiting import DONE, address, call


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
    out = structs.FirstPass(*(where(array) for array in arrays), -1, -1)
    call("first_pass", address(table.struct), address(out), threads=threads, work=table.entries)
    return FirstPass(*arrays, out.infinite, out.malformed)


def content_keys(table: Table, threads: int) -> np.ndarray:
    """(n,) a number of the observed values of each row, whatever the order of the columns."""
    return _for_each_row("content_keys", table, np.empty(table.n, np.uint64), threads)


def content_order(table: Table, threads: int) -> np.ndarray:
    """(n,) the rows ordered by these numbers; equal ones as they stand."""
    return _for_each_row("content_order", table, np.empty(table.n, np.int64), threads)


def _for_each_row(name: str, table: Table, out: np.ndarray, threads: int) -> np.ndarray:
    pointers = address(table.struct), where(out)
    call(name, *pointers, threads=threads, work=table.entries)
    return out


def fill_rows(table: Table, rows: np.ndarray, fill: np.ndarray) -> np.ndarray:
    """(m, p) float64: some rows, their gaps filled from ``fill`` (p,)."""
    rows = check_numbers(rows, table.n)
    out = np.empty((len(rows), table.p))
    status = library.mnarkmeans_fill_rows(
        address(table.struct), where(rows), len(rows), at(fill, np.float64, (table.p,)),
        where(out),
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
    call(
        "impute", address(table.struct), at(mu, np.float64, (len(mu), table.p)),
        where(labels), where(out), out.strides[0] // out.itemsize,
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
    active = check_numbers(active, len(starts.mu))
    centers = starts.centers(active)
    own = structs.Pass(
        active=where(active), fresh=fresh,
        labels=at(starts.labels, np.int32, (len(starts.mu), table.n)),
        label_stride=table.n, bounds=bounds_struct(known, table.n, centers.k),
    )  # fmt: skip
    if fresh:
        for values in starts.stats:
            values[active] = 0
    stats = stats_struct(starts.stats)
    call(
        "pass", address(table.struct), address(centers.struct), address(own), address(stats),
        threads=threads, work=table.entries * centers.groups * centers.k,
    )  # fmt: skip
    return own.changed, own.largest_move


def assign(table: Table, centers: Centers, threads: int, *, plain: bool = False) -> np.ndarray:
    """Labels (G, n); ``plain``: by the loop of direct differences alone."""
    labels = np.empty((centers.groups, table.n), np.int32)
    call(
        "assign", address(table.struct), address(centers.struct), plain, where(labels),
        threads=threads, work=table.entries * centers.groups * centers.k,
    )  # fmt: skip
    return labels


def add_rows(
    table: Table, centers: Centers, labels: np.ndarray, stats: Stats, threads: int
) -> None:
    """OUT stats (of one start) from the labels its rows have."""
    check_labels(labels, table.n, centers.k)
    own = stats_struct(stats)
    call(
        "add_rows", address(table.struct), address(centers.struct), where(labels),
        address(own), threads=threads, work=table.entries,
    )  # fmt: skip


def loss_of(
    table: Table, centers: Centers, labels: np.ndarray, threads: int, each: np.ndarray | None = None
) -> float:
    """The loss of a partition by direct differences; OUT each (n,): of every row, if given."""
    check_labels(labels, table.n, centers.k)
    loss = ct.c_double()
    call(
        "loss_of", address(table.struct), address(centers.struct), where(labels),
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
    call(
        "last_look", address(table.struct), address(centers.struct), address(bounds),
        where(labels), where(members), ct.addressof(loss),
        threads=threads, work=table.entries * centers.k,
    )  # fmt: skip
    return labels, loss.value, members


def distances(table: Table, centers: Centers, dtype, threads: int, *, roots: bool) -> np.ndarray:
    """Loss (n, k) of every row at every centre, or its square root."""
    out = np.empty((table.n, centers.k), dtype)
    call(
        "distances", address(table.struct), address(centers.struct), roots,
        out.dtype == np.float64, where(out), threads=threads, work=table.entries * centers.k,
    )  # fmt: skip
    return out


def rescue(table: Table, starts: Starts, r: int, known: Known | None, threads: int) -> None:
    """Move the costliest rows of start r into its empty clusters. INOUT labels, stats."""
    centers = starts.centers(np.array([r]))
    stats = stats_struct(Stats(*(values[r : r + 1] for values in starts.stats)))
    bounds = bounds_struct(known, table.n, centers.k)
    call(
        "rescue", address(table.struct), address(centers.struct), starts.whole_weights,
        check_labels(starts.labels[r], table.n, centers.k), address(stats), address(bounds),
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
        where(costs), where(weights), where(labels), n, k, where(members),
        where(taken),
    )  # fmt: skip
    return taken


def update(starts: Starts, active: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """New centres of the active starts; their losses, and which of these lost too many digits."""
    active = check_numbers(active, len(starts.mu))
    losses, doubtful = np.empty(len(active)), np.empty(len(active), np.bool_)
    own = starts.struct
    those = structs.Active(len(active), where(active), where(losses), where(doubtful), 0)
    library.mnarkmeans_update(address(own), starts.mu.shape[2], address(those))
    return losses, doubtful


class Decision(NamedTuple):
    active: np.ndarray  # the starts that go on
    afresh: bool  # the next pass has to sum up all rows again


def decide(
    starts: Starts, iteration: int, losses, doubtful, largest_move: float, active: np.ndarray
) -> Decision:
    """Record the losses of an iteration (0, 1, ...), and see who goes on."""
    active = check_numbers(active, len(starts.mu))
    room, own, one = np.concatenate([active, active]), starts.struct, active.shape
    those = structs.Active(
        len(active), where(room), at(losses, np.float64, one), at(doubtful, np.bool_, one), 0
    )
    library.mnarkmeans_decide(
        address(own), starts.mu.shape[2], iteration, largest_move, address(those)
    )
    return Decision(room[: those.count].copy(), bool(those.afresh))


def centers_of(table: Table, starts: Starts, labels: np.ndarray, threads: int) -> None:
    """OUT starts.mu, starts.stats: of the partitions labels (R, n)."""
    count, k, _ = starts.shape
    check_labels(labels.reshape(-1), labels.size, k)
    starts.labels[:] = labels
    own = starts.struct
    call(
        "centers_of", address(table.struct), address(own), threads=threads,
        work=table.entries * count,
    )  # fmt: skip


def lloyd(tables: Sequence[Table], starts: Sequence[Starts], threads: int, watch=None) -> None:
    """Lloyd's loop to its end, on small tables with their starts. INOUT starts."""
    work = sum(
        10.0 * table.entries * own.shape[0] * own.shape[1]
        for table, own in zip(tables, starts, strict=True)
    )
    those = _array(structs.Table, tables), _array(structs.Starts, starts)
    call(
        "lloyd", *map(address, those), len(tables), threads=threads, watch=watch, work=work
    )  # fmt: skip


def _array(kind: Any, holders: Sequence[Any]) -> Any:
    """Their structs one after the other."""
    return (kind * len(holders))(*(holder.struct for holder in holders))


def hartigan(table: Table, starts: Starts, chosen: np.ndarray, threads: int, watch=None) -> None:
    """Hartigan's moves from where Lloyd's loop ended, in the chosen starts. INOUT starts."""
    own = starts.struct
    chosen = check_numbers(chosen, len(starts.mu))
    call(
        "hartigan", address(table.struct), address(own), where(chosen), len(chosen),
        threads=threads, watch=watch, work=10.0 * table.entries * len(chosen) * starts.shape[1],
    )  # fmt: skip


class Seeding:
    """What starts of a table are drawn from: draws (R, k, trials) in [0, 1).

    ``order`` (n,): of the rows along which they are drawn; None: by their content.
    """

    def __init__(self, table: Table, means, draws: np.ndarray, order: np.ndarray | None = None):
        count, k, trials = draws.shape
        self.table, self.arrays = table, (means, draws, order)
        self.centers = np.empty((count, k, table.p))
        self.struct = structs.Seeds(
            count, k, trials, at(means, np.float64, (table.p,)), at(order, np.int64, (table.n,)),
            at(draws, np.float64, draws.shape), where(self.centers),
        )  # fmt: skip


def seed(seedings: Sequence[Seeding], threads: int) -> list[np.ndarray]:
    """Greedy k-means++ on mean-filled rows: centres (R, k, p) for each table."""
    work = sum(float(own.table.entries) * own.arrays[1].size for own in seedings)
    tables = _array(structs.Table, [own.table for own in seedings])
    those = _array(structs.Seeds, seedings)
    call("seed", address(tables), address(those), len(seedings), threads=threads, work=work)
    return [own.centers for own in seedings]
