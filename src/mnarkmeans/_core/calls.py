"""The functions of the core, one by one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from .arrays import (
    Centers,
    Known,
    Starts,
    Stats,
    Table,
    bounds_struct,
    check_labels,
    check_numbers,
    shaped,
    stats_struct,
)
from .library import invoke, structs
from .waiting import DONE, call


class FirstPass(NamedTuple):
    """Counts, sums and extremes of a table."""

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
    out = structs.FirstPass(*(array for array in arrays), -1, -1)
    call("first_pass", table.struct, out, threads=threads, work=table.entries)
    return FirstPass(*arrays, out.infinite, out.malformed)


def fill_rows(table: Table, rows: np.ndarray, fill: np.ndarray) -> np.ndarray:
    """(m, p) float64: some rows, their gaps filled from ``fill`` (p,)."""
    rows = check_numbers(rows, table.n)
    out = np.empty((len(rows), table.p))
    status = invoke(
        "fill_rows", table.struct, rows, len(rows), shaped(fill, table.p),
        out,
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
        "impute", table.struct, shaped(mu, len(mu), table.p),
        labels, out, out.strides[0] // out.itemsize,
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
        active=active, fresh=fresh,
        labels=shaped(starts.labels, len(starts.mu), table.n),
        label_stride=table.n, bounds=bounds_struct(known, table.n, centers.k),
    )  # fmt: skip
    if fresh:
        for values in starts.stats:
            values[active] = 0
    stats = stats_struct(starts.stats)
    call(
        "pass", table.struct, centers.struct, own, stats,
        threads=threads, work=table.entries * centers.groups * centers.k,
    )  # fmt: skip
    return own.changed, own.largest_move


def assign(table: Table, centers: Centers, threads: int, *, plain: bool = False) -> np.ndarray:
    """Labels (G, n); ``plain``: by the loop of direct differences alone."""
    labels = np.empty((centers.groups, table.n), np.int32)
    call(
        "assign_plain" if plain else "assign", table.struct, centers.struct, labels,
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
        "add_rows", table.struct, centers.struct, labels,
        own, threads=threads, work=table.entries,
    )  # fmt: skip


def loss_of(
    table: Table, centers: Centers, labels: np.ndarray, threads: int, each: np.ndarray | None = None
) -> float:
    """The loss of a partition by direct differences; OUT each (n,): of every row, if given."""
    check_labels(labels, table.n, centers.k)
    loss = np.empty(1)
    call(
        "loss_of", table.struct, centers.struct, labels,
        shaped(each, table.n), loss, threads=threads, work=table.entries,
    )  # fmt: skip
    return float(loss[0])


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
    members, loss = np.zeros(centers.k, np.int64), np.empty(1)
    bounds = bounds_struct(known, table.n, centers.k)
    call(
        "last_look", table.struct, centers.struct, bounds,
        labels, members, loss,
        threads=threads, work=table.entries * centers.k,
    )  # fmt: skip
    return labels, float(loss[0]), members


def distances(table: Table, centers: Centers, dtype, threads: int, *, roots: bool) -> np.ndarray:
    """Loss (n, k) of every row at every centre, or its square root."""
    out = np.empty((table.n, centers.k), dtype)
    call(
        "distances", table.struct, centers.struct, roots,
        out.dtype == np.float64, out, threads=threads, work=table.entries * centers.k,
    )  # fmt: skip
    return out


def rescue(table: Table, starts: Starts, r: int, known: Known | None, threads: int) -> None:
    """Move the costliest rows of start r into its empty clusters. INOUT labels, stats."""
    centers = starts.centers(np.array([r]))
    stats = stats_struct(Stats(*(values[r : r + 1] for values in starts.stats)))
    bounds = bounds_struct(known, table.n, centers.k)
    call(
        "rescue", table.struct, centers.struct,
        check_labels(starts.labels[r], table.n, centers.k), stats, bounds,
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
    invoke(
        "choose_rescued", costs, weights, labels, n, k, members,
        taken,
    )  # fmt: skip
    return taken


def update(starts: Starts, active: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """New centres of the active starts; their losses, and which of these lost too many digits."""
    active = check_numbers(active, len(starts.mu))
    losses, doubtful = np.empty(len(active)), np.empty(len(active), np.bool_)
    own = starts.struct
    those = structs.Active(len(active), active, losses, doubtful, 0)
    invoke("update", own, starts.mu.shape[2], those)
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
    those = structs.Active(len(active), room, shaped(losses, *one), shaped(doubtful, *one), 0)
    invoke("decide", own, starts.mu.shape[2], iteration, largest_move, those)
    return Decision(room[: those.count].copy(), bool(those.afresh))


def lloyd(tables: Sequence[Table], starts: Sequence[Starts], threads: int, watch=None) -> None:
    """Lloyd's loop to its end, on small tables with their starts. INOUT starts."""
    work = sum(
        10.0 * table.entries * own.shape[0] * own.shape[1]
        for table, own in zip(tables, starts, strict=True)
    )
    those = _array(structs.Table, tables), _array(structs.Starts, starts)
    call(
        "lloyd", *those, len(tables), threads=threads, watch=watch, work=work
    )  # fmt: skip


def _array(kind: Any, holders: Sequence[Any]) -> Any:
    """Their structs one after the other."""
    return (kind * len(holders))(*(holder.struct for holder in holders))


def hartigan(table: Table, starts: Starts, chosen: np.ndarray, threads: int, watch=None) -> None:
    """Hartigan's moves from where Lloyd's loop ended, in the chosen starts. INOUT starts."""
    own = starts.struct
    chosen = check_numbers(chosen, len(starts.mu))
    call(
        "hartigan", table.struct, own, chosen, len(chosen),
        threads=threads, watch=watch, work=10.0 * table.entries * len(chosen) * starts.shape[1],
    )  # fmt: skip


class Seeding:
    """What starts of a table are drawn from: draws (R, k, trials) in [0, 1)."""

    def __init__(self, table: Table, means, draws: np.ndarray):
        count, k, trials = draws.shape
        self.table, self.arrays = table, (means, draws)
        self.centers = np.empty((count, k, table.p))
        self.struct = structs.Seeds(
            count, k, trials, shaped(means, table.p), draws, self.centers,
        )  # fmt: skip


def seed(seedings: Sequence[Seeding], threads: int) -> list[np.ndarray]:
    """Greedy k-means++ on mean-filled rows: centres (R, k, p) for each table."""
    work = sum(float(own.table.entries) * own.arrays[1].size for own in seedings)
    tables = _array(structs.Table, [own.table for own in seedings])
    those = _array(structs.Seeds, seedings)
    call("seed", tables, those, len(seedings), threads=threads, work=work)
    return [own.centers for own in seedings]
