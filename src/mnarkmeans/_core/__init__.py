"""The compiled core (``src/core``): what goes in (tables, centres, sums, starts) and its functions.

``src/core/core.h`` documents the structs and functions; ``library`` loads them and checks the type
of every array. Shapes are checked here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from .library import available_levels as available_levels
from .library import call, invoke, structs
from .library import level as level
from .library import set_level as set_level

# --- what goes in ---------------------------------------------------------------------------------

# The cut into chunks depends on the shape of a problem only, so that threads change nothing.
ENTRIES_OF_ONE_CHUNK = 1 << 19
ENTRIES_PER_CHUNK = 1 << 18
FEW_ROWS = 256  # of a wide table, cut into chunks, hardly fill the lanes of a panel

# glibc hands memory back to the system when more of it lies free than twice the largest block it
# has seen freed, up to 32 MB: in a process that had no large array yet, every step of a search
# among wide tables would ask for the same pages anew. Nobody touches this block; it is freed at
# once.
np.empty(31 << 20, np.uint8)


def shaped(array: Any, *shape: int) -> Any:
    """An array (or None) of the shape that the core takes it for; its type is checked later."""
    if array is not None and array.shape != shape:
        raise TypeError(f"the core takes an array of shape {shape} here; got {array.shape}")
    return array


def check_numbers(numbers, limit: int) -> np.ndarray:
    """Row or start numbers as the core reads them: contiguous int64 within 0 .. limit - 1.

    NumPy's own integers are int32 on some systems (Windows with NumPy 1).
    """
    numbers = np.ascontiguousarray(numbers)
    if numbers.dtype.kind not in "iu" or numbers.ndim != 1:
        raise TypeError(
            f"the core takes a list of whole numbers; got {numbers.dtype} of shape {numbers.shape}"
        )
    numbers = numbers.astype(np.int64, copy=False)
    if len(numbers) and not (numbers.min() >= 0 and numbers.max() < limit):
        raise IndexError(f"numbers must be from 0 to {limit - 1}")
    return numbers


def check_labels(labels: np.ndarray, n: int, k: int) -> np.ndarray:
    """Labels (n,) from 0 to k - 1."""
    shaped(labels, n)
    if n and not (labels.min() >= 0 and labels.max() < k):
        raise ValueError(f"labels must be from 0 to {k - 1}")
    return labels


class Table:
    """Rows with gaps and their weights, as the core reads them. Values are not copied."""

    def __init__(self, source: Any, missing: float, weights: np.ndarray, *, has_gaps=None, first=0):
        self.source, (n, p) = source, source.shape
        self.n, self.p = n, p
        is_sparse = not isinstance(source, np.ndarray)
        values = source.data if is_sparse else source
        if values.dtype not in (np.float32, np.float64):
            raise TypeError(f"the core takes float32 and float64; got {values.dtype}")
        own = self.struct = structs.Table(
            is_sparse=is_sparse, is_double=values.dtype == np.float64, n=n, p=p, missing=missing,
            weights=shaped(weights, n), has_gaps=shaped(has_gaps, p), first=first,
            one_chunk=ENTRIES_OF_ONE_CHUNK, per_chunk=ENTRIES_PER_CHUNK,
        )  # fmt: skip
        if is_sparse:
            stored, starts = len(values), source.indptr.astype(np.int64)
            if starts[0] < 0 or starts[-1] > stored:
                raise ValueError("a CSR matrix points beyond its stored entries")
            own.starts, own.values = shaped(starts, n + 1), values
            own.indices = shaped(source.indices.astype(np.int32, copy=False), stored)
            self.entries = int(starts[-1] - starts[0])
        else:
            size = source.itemsize
            if any(stride % size for stride in source.strides) or not source.flags.aligned:
                source = self.source = np.ascontiguousarray(source)
            own.values = source
            own.row_stride, own.column_stride = (stride // size for stride in source.strides)
            if p == 1:  # the stride of a single column says nothing
                own.column_stride = 1
            self.entries = n * p

    @property
    def is_small(self) -> bool:
        """Whether its starts run in one call, side by side (``lloyd.h``), not chunk by chunk."""
        most = self.struct.one_chunk
        return self.entries <= (4 * most if self.n <= FEW_ROWS else most)


class Centers:
    """Centres (G, k, p) of G starts with their penalties (G, p), in the units of the data."""

    def __init__(self, mu, lam, reference, shift):
        self.groups, self.k, p = mu.shape
        lam, reference, shift = shaped(lam, self.groups, p), shaped(reference, p), shaped(shift, p)
        self.struct = structs.Centers(self.groups, self.k, mu, lam, reference, shift)


class Stats(NamedTuple):
    """Sums over rows, for R starts of k clusters each. They add up over any split of the rows."""

    sums: np.ndarray  # (R, k, p) of the observed values, less the shift
    counts: np.ndarray  # (R, k, p) weight of the rows that observe the feature
    sizes: np.ndarray  # (R, k) weight of the rows
    keys: np.ndarray  # (R, k) uint64, sum of the rows' keys: tells partitions apart
    squares: np.ndarray  # (R,) of all observed values, less the shift, squared

    @classmethod
    def zeros(cls, n_starts: int, k: int, p: int) -> Stats:
        shape = n_starts, k
        return cls(
            np.zeros((*shape, p)), np.zeros((*shape, p)), np.zeros(shape),
            np.zeros(shape, np.uint64), np.zeros(n_starts),
        )  # fmt: skip

    def add(self, part: Stats) -> None:
        for total, piece in zip(self, part, strict=True):
            total += piece

    @property
    def struct(self) -> Any:
        return structs.Stats(*self)


class BoundArrays(NamedTuple):
    """The bounds of the rows of one start (``pass.h``)."""

    certain_until: np.ndarray  # (n,) float32
    drop: np.ndarray  # (k,)


def bounds_struct(known: BoundArrays | None, n: int, k: int):
    if known is None:
        return structs.Bounds()
    return structs.Bounds(shaped(known.certain_until, n), shaped(known.drop, k))


class Starts:
    """R starts of Lloyd's loop that run side by side, wherever the rows are."""

    def __init__(self, mu, lam, reference, shift, *, n_rows, max_iter, tol, weights):
        """``n_rows``: rows whose labels are kept here; 0 if they are elsewhere."""
        count, k, p = mu.shape
        self.mu = np.array(mu, dtype=np.float64, order="C")
        self.lam = shaped(np.ascontiguousarray(lam, dtype=np.float64), count, p)
        self.reference, self.shift = shaped(reference, p), shaped(shift, p)
        self.stats = Stats.zeros(count, k, p)
        self.labels = np.full((count, n_rows), -1, np.int32)
        self.paths = np.zeros((count, max_iter))
        self.n_iter = np.zeros(count, np.int64)
        self.merged_into = np.full(count, -1, np.int64)
        self.seen = np.zeros(count, np.uint64)
        self.max_iter, self.tol = max_iter, tol
        self.whole_weights, self.total_weight = weights

    def centers(self, which: np.ndarray) -> Centers:
        """The centres of some of the starts as they are now."""
        return Centers(self.mu[which], self.lam[which], self.reference, self.shift)

    @property
    def struct(self):
        return structs.Starts(
            *self.mu.shape[:2], self.mu, self.lam, self.reference, self.shift, self.stats.struct,
            self.labels, self.paths, self.n_iter, self.merged_into, self.seen, self.max_iter,
            self.tol, self.whole_weights, self.total_weight,
        )  # fmt: skip


# --- one pass over a table ------------------------------------------------------------------------


def _go(
    name: str, table: Table, *arguments: Any, threads: int, per_entry: float = 1.0, watch=None
) -> None:
    """A call that goes over a table, with so many multiply-adds for each entry."""
    work = table.entries * per_entry
    call(name, table.struct, *arguments, threads=threads, work=work, watch=watch)


class FirstPass(NamedTuple):
    """Counts, sums and extremes of a table."""

    counts: np.ndarray  # (p,) weight of the rows that observe the feature
    sums: np.ndarray  # (p,) weighted sum of its values
    lowest: np.ndarray  # (p,) of the rows with a weight; +inf where none observes it
    highest: np.ndarray  # (p,) likewise, -inf
    observed: np.ndarray  # (p,) number of rows that observe the feature
    seen: np.ndarray  # (n,) observed entries of each row
    infinite: int  # the first row with an infinite value, or -1
    malformed: int  # CSR: the first row whose features do not rise within 0 .. p - 1, or -1


def first_pass(table: Table, threads: int) -> FirstPass:
    p = table.p
    counts, sums, lowest, highest = np.empty((4, p))
    observed, seen = np.empty(p, np.int64), np.empty(table.n, np.int32)
    arrays = counts, sums, lowest, highest, observed, seen
    out = structs.FirstPass(*arrays, -1, -1)
    _go("first_pass", table, out, threads=threads)
    return FirstPass(*arrays, out.infinite, out.malformed)


def fill_rows(table: Table, rows: np.ndarray, fill: np.ndarray) -> np.ndarray:
    """(m, p) float64: some rows, their gaps filled from ``fill`` (p,)."""
    rows = check_numbers(rows, table.n)
    out = np.empty((len(rows), table.p))
    invoke("fill_rows", table.struct, rows, len(rows), shaped(fill, table.p), out)
    return out


def impute(table: Table, mu: np.ndarray, labels: np.ndarray, threads: int) -> np.ndarray:
    """(n, p) of the table's type: its rows, gaps filled from the centre (k, p) of the label."""
    check_labels(labels, table.n, len(mu))
    out = np.empty((table.n, table.p), table.source.dtype)
    _go("impute", table, shaped(mu, len(mu), table.p), labels, out, table.p, threads=threads)
    return out


def pass_(
    table: Table, starts: Starts, active: np.ndarray, *, fresh: bool, known: BoundArrays | None,
    threads: int,
) -> tuple[int, float]:  # fmt: skip
    """One assignment pass for the active starts; INOUT starts.labels and starts.stats.

    ``fresh``: sum up all rows, not only those that change. Returns how many labels changed, and the
    largest squared size of a row that did.
    """
    active = check_numbers(active, len(starts.mu))
    centers = starts.centers(active)
    labels = shaped(starts.labels, len(starts.mu), table.n)
    own = structs.Pass(active, fresh, labels, bounds_struct(known, table.n, centers.k))
    if fresh:
        for values in starts.stats:
            values[active] = 0
    each = centers.groups * centers.k
    _go("pass", table, centers.struct, own, starts.stats.struct, threads=threads, per_entry=each)
    return own.changed, own.largest_move


def assign(table: Table, centers: Centers, threads: int, *, plain: bool = False) -> np.ndarray:
    """Labels (G, n); ``plain``: by the loop of direct differences alone."""
    labels, name = (
        np.empty((centers.groups, table.n), np.int32),
        "assign_plain" if plain else "assign",
    )
    each = centers.groups * centers.k
    _go(name, table, centers.struct, labels, threads=threads, per_entry=each)
    return labels


def add_rows(
    table: Table, centers: Centers, labels: np.ndarray, stats: Stats, threads: int
) -> None:
    """OUT stats (of one start) from the labels its rows have."""
    check_labels(labels, table.n, centers.k)
    _go("add_rows", table, centers.struct, labels, stats.struct, threads=threads)


def loss_of(
    table: Table, centers: Centers, labels: np.ndarray, threads: int, each: np.ndarray | None = None
) -> float:
    """The loss of a partition by direct differences; OUT each (n,): of every row, if given."""
    check_labels(labels, table.n, centers.k)
    loss, each = np.empty(1), shaped(each, table.n)
    _go("loss_of", table, centers.struct, labels, each, loss, threads=threads)
    return float(loss[0])


def label_and_loss(
    table: Table, centers: Centers, threads: int
) -> tuple[np.ndarray, float, np.ndarray]:
    """Labels (n,) that the centres give, the loss by direct differences, rows of each label."""
    labels, k = np.empty(table.n, np.int32), centers.k
    arrays = labels, np.zeros(k, np.int64), np.empty(1)
    _go("label_and_loss", table, centers.struct, *arrays, threads=threads, per_entry=k)
    return labels, float(arrays[2][0]), arrays[1]


def distances(table: Table, centers: Centers, dtype, threads: int, *, roots: bool) -> np.ndarray:
    """Loss (n, k) of every row at every centre, or its square root."""
    out = np.empty((table.n, centers.k), dtype)
    those = centers.struct, roots, out.dtype == np.float64, out
    _go("distances", table, *those, threads=threads, per_entry=centers.k)
    return out


def rescue(table: Table, starts: Starts, r: int, known: BoundArrays | None, threads: int) -> None:
    """Move the costliest rows of start r into its empty clusters. INOUT labels, stats."""
    centers = starts.centers(np.array([r]))
    stats = Stats(*(values[r : r + 1] for values in starts.stats))
    labels = check_labels(starts.labels[r], table.n, centers.k)
    bounds = bounds_struct(known, table.n, centers.k)
    _go("rescue", table, centers.struct, labels, stats.struct, bounds, threads=threads)


def choose_rescued(costs: np.ndarray, labels: np.ndarray, members: np.ndarray) -> np.ndarray:
    """Which of some rows fill the empty clusters: their places (k,), or -1.

    ``members`` (k,): rows of each cluster in all. Earlier rows win over later ones of equal cost.
    """
    n, k = len(costs), len(members)
    check_labels(labels, n, k)
    costs, members = np.array(costs, np.float64), np.array(members, np.int64)
    taken, weights = np.empty(k, np.int64), np.ones(n)
    invoke("choose_rescued", costs, weights, labels, n, k, members, taken)
    return taken


def update(starts: Starts, active: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """New centres of the active starts; their losses, and which of these lost too many digits."""
    active = check_numbers(active, len(starts.mu))
    losses, inexact = np.empty(len(active)), np.empty(len(active), np.bool_)
    those = structs.Active(len(active), active, losses, inexact, 0)
    invoke("update", starts.struct, starts.mu.shape[2], those)
    return losses, inexact


def decide(
    starts: Starts, iteration: int, losses, inexact, largest_move: float, active: np.ndarray
) -> tuple[np.ndarray, bool]:
    """Record the losses of an iteration (0, 1, ...). Returns the starts that go on, and whether
    the next pass has to sum up all rows again."""
    active = check_numbers(active, len(starts.mu))
    room, one = np.concatenate([active, active]), active.shape
    those = structs.Active(len(active), room, shaped(losses, *one), shaped(inexact, *one), 0)
    invoke("decide", starts.struct, starts.mu.shape[2], iteration, largest_move, those)
    return room[: those.count].copy(), bool(those.fresh)


def lloyd(tables: Sequence[Table], starts: Sequence[Starts], threads: int, watch=None) -> None:
    """Lloyd's loop to its end, on small tables with their starts. INOUT starts."""
    each = zip(tables, starts, strict=True)
    work = sum(10.0 * table.entries * math.prod(own.mu.shape[:2]) for table, own in each)
    those = _array(structs.Table, tables), _array(structs.Starts, starts)
    call("lloyd", *those, len(tables), threads=threads, watch=watch, work=work)


def _array(kind: Any, holders: Sequence[Any]) -> Any:
    """Their structs one after the other."""
    return (kind * len(holders))(*(holder.struct for holder in holders))


def hartigan(table: Table, starts: Starts, chosen: np.ndarray, threads: int, watch=None) -> None:
    """Hartigan's moves from where Lloyd's loop ended, in the chosen starts. INOUT starts."""
    chosen = check_numbers(chosen, len(starts.mu))
    each, those = 10.0 * len(chosen) * starts.mu.shape[1], (starts.struct, chosen, len(chosen))
    _go("hartigan", table, *those, threads=threads, per_entry=each, watch=watch)


def seed(
    tables: Sequence[Table], means: Sequence[np.ndarray], draws: Sequence[np.ndarray], threads: int
) -> list[np.ndarray]:
    """Greedy k-means++ on mean-filled rows: centres (R, k, p) of each table, from its means (p,)
    and draws (R, k, trials) in [0, 1)."""
    centers, seeds, work = [], [], 0.0
    for table, mean, draw in zip(tables, means, draws, strict=True):
        centers.append(np.empty((*draw.shape[:2], table.p)))
        seeds.append(structs.Seeds(*draw.shape, shaped(mean, table.p), draw, centers[-1]))
        work += float(table.entries) * draw.size
    those = _array(structs.Table, tables), (structs.Seeds * len(seeds))(*seeds)
    call("seed", *those, len(tables), threads=threads, work=work)
    return centers


# --- mixtures -------------------------------------------------------------------------------------


class Mixture(NamedTuple):
    """Clusters with gaps, normal or Student's t. Arrays are (k, p) float64 but for the first."""

    log_weight: np.ndarray  # (k,)
    mean: np.ndarray
    variance: np.ndarray
    log_missing: np.ndarray  # log P(missing | cluster, feature), finite
    log_observed: np.ndarray | None = None  # added for an observed entry beside its density
    freedom: float = 0.0  # degrees of freedom; 0: normal


class SoftSums(NamedTuple):
    """Sums over rows, weighted by their memberships. They add up over any split of the rows.

    With heavy tails a value far out counts for less in ``sums``, ``squares`` and ``pulls``.
    """

    sizes: np.ndarray  # (k,)
    sums: np.ndarray  # (k, p) of the observed values, less the shift
    counts: np.ndarray  # (k, p) weight of the observed entries
    squares: np.ndarray  # (k, p) of the observed values, less the shift, squared
    log_likelihood: float
    pulls: np.ndarray | None = None  # (k, p) what counts became; None: the same


class SoftRows(NamedTuple):
    """Memberships, likelihoods and labels of rows."""

    memberships: np.ndarray  # (n, k)
    log_likelihoods: np.ndarray  # (n,)
    labels: np.ndarray  # (n,) int32


def _struct(mixture: Mixture, shift: np.ndarray, p: int):
    k = len(mixture.log_weight)
    arrays = [one if one is None else np.ascontiguousarray(one) for one in mixture[1:5]]
    return structs.Mixture(
        k, shaped(mixture.log_weight, k), *(shaped(values, k, p) for values in arrays),
        shaped(shift, p), mixture.freedom, log_peak(mixture.freedom),
    )  # fmt: skip


def log_peak(freedom: float) -> float:
    """Log density of Student's t at its centre, for scale 1."""
    if freedom <= 0:
        return 0.0
    half = 0.5 * freedom
    return math.lgamma(half + 0.5) - math.lgamma(half) - 0.5 * math.log(freedom * math.pi)


def soft_sums(table: Table, mixture: Mixture, shift: np.ndarray, threads: int) -> SoftSums:
    """The E-step: the sums that an M-step needs."""
    k, p, heavy = len(mixture.log_weight), table.p, mixture.freedom > 0
    sizes, sums = np.zeros(k), np.zeros((4 if heavy else 3, k, p))
    out = structs.Softened(sizes, *sums)
    each = (20.0 if heavy else 3.0) * k
    _go("soften", table, _struct(mixture, shift, p), out, threads=threads, per_entry=each)
    pulls = sums[3] if heavy else None
    return SoftSums(sizes, sums[0], sums[1], sums[2], out.log_likelihood, pulls)


def soft_rows(table: Table, mixture: Mixture, threads: int) -> SoftRows:
    """Memberships, log-likelihood and likeliest cluster of every row, whatever its weight."""
    n, k = table.n, len(mixture.log_weight)
    own = _struct(mixture, np.zeros(table.p), table.p)
    rows = SoftRows(np.empty((n, k)), np.empty(n), np.empty(n, np.int32))
    out = structs.Softened(*[None] * 5, *rows)
    _go("soften", table, own, out, threads=threads, per_entry=2.0 * k)
    return rows
