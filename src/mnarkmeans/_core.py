"""The compiled core (``src/core``): the library, what goes into it, and its functions.

The library lies beside this module in wheels, and in ``src/mnarkmeans`` after a build in place. It
holds the text of the ``core.h`` it was compiled from, which documents its structs and functions.
They are made of that text, and the type of every array is checked against it, so Python and the
core cannot differ; shapes are checked here. ``MNARKMEANS_CPU`` (baseline, avx2, avx512) forces an
instruction set; otherwise the best one is used.
"""

from __future__ import annotations

import _thread
import contextlib
import ctypes as ct
import math
import os
import re
import sys
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar, NamedTuple

import numpy as np

NAME = "libmnarkmeans_core" + {"win32": ".dll", "darwin": ".dylib"}.get(sys.platform, ".so")
REBUILD = (
    "Install the package again (in a clone: pip install --force-reinstall --no-deps .), or to work "
    "on the sources run\n"
    "    cmake -S . -B build -DMNARKMEANS_INPLACE=ON && cmake --build build"
)
# The types of core.h: of a number, and of an array of them. An array of void may be any: its caller
# sees to the type and the strides.
TYPES: dict[str, tuple[Any, type]] = {
    "void": (None, object),
    "int32_t": (ct.c_int32, np.int32),
    "Label": (ct.c_int32, np.int32),
    "Index": (ct.c_int64, np.int64),
    "uint64_t": (ct.c_uint64, np.uint64),
    "uint8_t": (ct.c_uint8, np.bool_),
    "float": (ct.c_float, np.float32),
    "double": (ct.c_double, np.float64),
}


# --- the header -----------------------------------------------------------------------------------


def as_argument(value: Any, kind: Any) -> Any:
    """What ctypes passes for a number (kind None), an array of a dtype (by its address; None is
    null), or a struct (by reference; also given as the tuple of its fields)."""
    if kind is None:
        return value
    if issubclass(kind, Struct):
        value = kind(*value) if isinstance(value, tuple) else value
        if not isinstance(value, kind):
            raise TypeError(f"the core takes a {kind.__name__} here; got {type(value).__name__}")
        return ct.byref(value)
    if value is None:
        return None
    if kind is not object and (value.dtype != kind or not value.flags.c_contiguous):
        raise TypeError(
            f"the core takes a contiguous array of {np.dtype(kind)} here; "
            f"got {value.dtype} with strides {value.strides}"
        )
    # A fit asks for hundreds: by its buffer an address takes half the time, which arrays that are
    # empty, or not to be written to, do not have.
    if value.flags.carray and value.size:
        return ct.addressof(ct.c_char.from_buffer(value))
    return value.__array_interface__["data"][0]


class Struct(ct.Structure):
    """A struct of core.h. Arrays are checked as they go in, and can be read again: their addresses
    are in fields of their names with an underscore."""

    _kinds_: ClassVar[dict[str, Any]]  # of its fields, as in ``as_argument``

    def __init__(self, *values: Any, **named: Any) -> None:
        for name, value in (dict(zip(self._kinds_, values, strict=False)) | named).items():
            setattr(self, name, value)

    def __setattr__(self, name: str, value: Any) -> None:
        kind = self._kinds_.get(name)
        if kind is not None:
            self.__dict__[name] = value
            is_struct = issubclass(kind, Struct)
            name, value = name + "_", kind(*value) if is_struct else as_argument(value, kind)
        elif not hasattr(type(self), name):
            raise TypeError(f"{type(self).__name__} of core.h has no field {name}")
        super().__setattr__(name, value)

    def __reduce__(self) -> Any:
        return _restore, (type(self), *(getattr(self, name) for name in self._kinds_))


def _restore(cls: type[Struct], *values: Any) -> Struct:
    struct = cls.__new__(cls)
    Struct.__init__(struct, *values)
    return struct


def _type_of(word: str, known: dict[str, Any]) -> tuple[Any, Any]:
    """The ctypes type that a word of the header means, and its kind as in ``as_argument``."""
    name = word.rstrip("*&")
    if name in known:
        return (known[name] if word == name else ct.c_void_p), known[name]
    number, dtype = TYPES[name]
    return (number, None) if word == name else (ct.c_void_p, dtype)


def _struct_class(name: str, body: str, known: dict[str, Any]) -> type[Struct]:
    fields: list[tuple[str, Any]] = []
    kinds: dict[str, Any] = {}
    for declaration in filter(str.strip, body.split(";")):
        word, *names = declaration.replace("const ", "").split()
        for field in "".join(names).split(","):
            number, kinds[field] = _type_of(word, known)
            fields.append((field if kinds[field] is None else field + "_", number))
    return type(name, (Struct,), {"_fields_": fields, "_kinds_": kinds})


def read_header(text: str) -> tuple[dict[str, type[Struct]], dict[str, tuple]]:
    """The structs of core.h, and its functions: the types they return and take, and their kinds."""
    text = re.sub(r"//[^\n]*", "", text)
    structs: dict[str, type[Struct]] = {}
    functions = {}
    for name, body in re.findall(r"^struct (\w+) \{(.*?)^\};", text, re.S | re.M):
        if name != "Kernels":
            structs[name] = _struct_class(name, body, structs)
            continue
        for returned, function, declared in re.findall(r"(\w+) \(\*(\w+)\)\((.*?)\);", body, re.S):
            words = (argument.replace("const ", "").split()[0] for argument in declared.split(","))
            types, kinds = zip(*(_type_of(word, structs) for word in words), strict=True)
            functions[function] = TYPES[returned][0], types, kinds
    return structs, functions


# --- the library ----------------------------------------------------------------------------------


def find_library() -> Path:
    """The library's file. Editable installs have two folders, and perhaps a build in place: the
    last one built is meant."""
    folders = [Path(folder) for folder in sys.modules["mnarkmeans"].__path__]
    built = [folder / NAME for folder in folders if (folder / NAME).is_file()]
    if not built:
        where = " or ".join(map(str, folders))
        raise ImportError(f"mnarkmeans is not built: no {NAME} in {where}. {REBUILD}")
    return max(built, key=lambda file: file.stat().st_mtime)


def load(path: Path) -> ct.CDLL:
    """The library at ``path``, if it is of this version of the package."""
    try:
        library = ct.CDLL(str(path))
    except OSError as error:
        raise ImportError(f"{path} cannot be loaded: {error}. {REBUILD}") from error
    for name in ("header", "levels", "kernels"):
        function = getattr(library, f"mnarkmeans_{name}", None)
        if function is None:
            raise ImportError(f"{path} is not the library of this version of mnarkmeans. {REBUILD}")
        function.restype = ct.c_void_p if name == "kernels" else ct.c_char_p
    source = Path(__file__).parents[1] / "core" / "core.h"  # of a checkout
    if source.is_file() and source.read_text() != library.mnarkmeans_header().decode():
        raise ImportError(
            f"{path} belongs to another version of mnarkmeans: it was built from another core.h "
            f"than {source}. {REBUILD}"
        )
    return library


def level() -> str:
    """The instruction set in use."""
    return _level


def available_levels() -> tuple[str, ...]:
    """The instruction sets this machine can run, the best one last."""
    return tuple(_library.mnarkmeans_levels().decode().split())


def set_level(name: str) -> None:
    """Use this instruction set from now on, in all threads."""
    global _level, _in_use
    if name not in available_levels():
        runs = ", ".join(available_levels())
        raise ValueError(f"this machine cannot run the instruction set {name!r}, only {runs}")
    first = _library.mnarkmeans_kernels(name.encode())
    addresses = (ct.c_void_p * (1 + len(_functions))).from_address(first)[1:]
    each = zip(_functions.items(), addresses, strict=True)
    _in_use = {
        function: ct.CFUNCTYPE(result, *types)(address or 0)
        for (function, (result, types, _)), address in each
    }
    _level = name


_level: str  # the instruction set in use
_in_use: dict[str, Any]  # its functions
_library = load(find_library())
_structs, _functions = read_header(_library.mnarkmeans_header().decode())
structs: Any = SimpleNamespace(**_structs)
try:
    set_level(os.environ.get("MNARKMEANS_CPU") or available_levels()[-1])
except ValueError as error:
    raise ImportError(f"MNARKMEANS_CPU: {error}") from None


# --- calls ----------------------------------------------------------------------------------------

SHORT = 1 << 27  # multiply-adds that are over before anyone could press Ctrl-C
PATIENCE = 20  # tenths of a second until a thread has begun
DONE, OUT_OF_MEMORY, CANCELLED = range(3)


def call(name: str, *arguments: Any, threads: int = 1, work: float = 0.0, progress=None) -> None:
    """Call a function of the core (without its ``Control``); raise what its status says.

    ``work``: about how many multiply-adds it takes. A long call is made from a thread of its own
    while this one waits, so that Ctrl-C ends it within a moment; ``progress`` is called now and
    then with how much of it is done.
    """
    function, kinds, control = _in_use[name], _functions[name][2], structs.Control(threads=threads)
    if kinds[-1] is _structs["Control"]:
        arguments = (*arguments, control)
    ready = [as_argument(value, kind) for value, kind in zip(arguments, kinds, strict=True)]
    if work <= SHORT or threading.current_thread() is not threading.main_thread():
        status = function(*ready)
    else:
        status = wait_for(function, ready, control, progress)
    if status == OUT_OF_MEMORY:
        raise MemoryError("not enough memory for the tables of this fit")
    if status == CANCELLED:
        raise KeyboardInterrupt


def wait_for(function, arguments, control, progress) -> int:
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

    try:  # from here on: a signal may come while the thread is being started
        try:
            _thread.start_new_thread(work, ())
        except RuntimeError:  # no room for another thread: without Ctrl-C, but with a result
            return function(*arguments)
        turns = 0
        while not done.wait(0.1):
            turns += 1
            if turns == PATIENCE and claim.acquire(blocking=False):
                break
            if progress is not None:
                progress(control.done)
    except BaseException:
        while True:
            with contextlib.suppress(KeyboardInterrupt, SystemExit):  # asked for again
                control.cancel = 1
                while not done.is_set() and not claim.acquire(blocking=False):
                    done.wait(0.1)
                break
        raise
    if not done.is_set():
        return function(*arguments)
    return result[0] if result else OUT_OF_MEMORY


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
        raise TypeError(f"the core takes a list of whole numbers; got {numbers!r:.80}")
    if len(numbers) and not (numbers.min() >= 0 and numbers.max() < limit):
        raise IndexError(f"numbers must be from 0 to {limit - 1}")
    return numbers.astype(np.int64, copy=False)


def check_labels(labels: np.ndarray, n: int, k: int) -> np.ndarray:
    """Labels (n,) from 0 to k - 1."""
    shaped(labels, n)
    if n and not (labels.min() >= 0 and labels.max() < k):
        raise ValueError(f"labels must be from 0 to {k - 1}")
    return labels


class Table(structs.Table):
    """Rows with gaps and their weights, as the core reads them. Values are not copied."""

    source: Any = None  # an ndarray or a CSR array
    entries = 0  # that are stored

    def __init__(self, source: Any, missing: float, weights: np.ndarray, *, has_gaps=None, first=0):
        (n, p), is_sparse = source.shape, not isinstance(source, np.ndarray)
        values = source.data if is_sparse else source
        if values.dtype not in (np.float32, np.float64):
            raise TypeError(f"the core takes float32 and float64; got {values.dtype}")
        super().__init__(
            is_sparse=is_sparse, is_double=values.dtype == np.float64, n=n, p=p, missing=missing,
            weights=shaped(weights, n), has_gaps=shaped(has_gaps, p), first=first,
            one_chunk=ENTRIES_OF_ONE_CHUNK, per_chunk=ENTRIES_PER_CHUNK,
        )  # fmt: skip
        if is_sparse:
            starts = source.indptr.astype(np.int64)
            if starts[0] < 0 or starts[-1] > len(values):
                raise ValueError("a CSR matrix points beyond its stored entries")
            self.starts, self.entries = shaped(starts, n + 1), int(starts[-1] - starts[0])
            self.indices = shaped(source.indices.astype(np.int32, copy=False), len(values))
        else:
            size, self.entries = source.itemsize, n * p
            if any(stride % size for stride in source.strides) or not source.flags.aligned:
                source = values = np.ascontiguousarray(source)
            self.row_stride, self.column_stride = (stride // size for stride in source.strides)
            if p == 1:  # the stride of a single column is arbitrary
                self.column_stride = 1
        self.source, self.values = source, values

    @property
    def is_small(self) -> bool:
        """Whether its starts run in one call, side by side (``lloyd.h``), not chunk by chunk."""
        return self.entries <= self.one_chunk * (4 if self.n <= FEW_ROWS else 1)


class Centers(structs.Centers):
    """Centres (G, k, p) of G starts with their penalties (G, p), in the units of the data."""

    def __init__(self, mu, lam, reference, shift):
        groups, k, p = mu.shape
        lam, reference, shift = shaped(lam, groups, p), shaped(reference, p), shaped(shift, p)
        super().__init__(groups, k, mu, lam, reference, shift)


class Stats(NamedTuple):
    """Sums over rows, for R starts of k clusters each. They add up over any split of the rows."""

    sums: np.ndarray  # (R, k, p) of the observed values, less the shift
    counts: np.ndarray  # (R, k, p) weight of the rows that observe the feature
    sizes: np.ndarray  # (R, k) weight of the rows
    keys: np.ndarray  # (R, k) uint64, sum of the rows' keys: tells partitions apart
    squares: np.ndarray  # (R,) of all observed values, less the shift, squared

    @classmethod
    def zeros(cls, n_starts: int, k: int, p: int) -> Stats:
        sums, counts = np.zeros((2, n_starts, k, p))
        sizes = np.zeros((n_starts, k))
        return cls(sums, counts, sizes, sizes.astype(np.uint64), np.zeros(n_starts))

    def add(self, part: Stats) -> None:
        for total, piece in zip(self, part, strict=True):
            total += piece


class Starts(structs.Starts):
    """R starts of Lloyd's loop that run side by side, wherever the rows are."""

    def __init__(
        self, mu, lam, reference, shift, *, n_rows=0, max_iter=1, tol=0.0, weights=(False, 0.0)
    ):
        """``n_rows``: rows whose labels are kept here; 0 if they are elsewhere. ``weights``: as
        ``Summary.total_weight``."""
        count, k, p = mu.shape
        super().__init__(
            count, k, np.array(mu, dtype=np.float64, order="C"),
            shaped(np.ascontiguousarray(lam, dtype=np.float64), count, p), shaped(reference, p),
            shaped(shift, p), Stats.zeros(count, k, p), np.full((count, n_rows), -1, np.int32),
            np.zeros((count, max_iter)), np.zeros(count, np.int64), np.full(count, -1, np.int64),
            np.zeros(count, np.uint64), max_iter, tol, *weights,
        )  # fmt: skip

    def centers(self, which: Any) -> Centers:
        """The centres of some of the starts as they are now."""
        return Centers(self.mu[which], self.lam[which], self.reference, self.shift)


# --- one pass over a table ------------------------------------------------------------------------


def first_pass(table: Table, threads: int) -> Any:
    """Counts, sums and extremes of a table: a ``FirstPass`` of core.h."""
    p = table.p
    observed, row_counts = np.empty(p, np.int64), np.empty(table.n, np.int32)
    out = structs.FirstPass(*np.empty((4, p)), observed, row_counts)
    call("first_pass", table, out, threads=threads, work=table.entries)
    return out


def fill_rows(table: Table, rows: np.ndarray, fill: np.ndarray) -> np.ndarray:
    """(m, p) float64: some rows, their gaps filled from ``fill`` (p,)."""
    rows = check_numbers(rows, table.n)
    out = np.empty((len(rows), table.p))
    call("fill_rows", table, rows, len(rows), shaped(fill, table.p), out)
    return out


def impute(table: Table, mu: np.ndarray, labels: np.ndarray, threads: int) -> np.ndarray:
    """(n, p) of the table's type: its rows, gaps filled from the centre (k, p) of the label."""
    k, out = len(mu), np.empty((table.n, table.p), table.source.dtype)
    arguments = table, shaped(mu, k, table.p), k, check_labels(labels, table.n, k), out
    call("impute", *arguments, threads=threads, work=table.entries)
    return out


def pass_(
    table: Table, starts: Starts, active: Any, *, fresh: bool, bounds: Any, threads: int
) -> tuple[int, float]:
    """One assignment pass for the active starts; INOUT starts.labels and starts.stats.

    ``fresh``: sum up all rows, not only those that change. Returns how many labels changed, and the
    largest squared size of a row that did.
    """
    active = check_numbers(active, starts.count)
    centers, labels = starts.centers(active), shaped(starts.labels, starts.count, table.n)
    one_pass = structs.Pass(active, fresh, labels, _fields_of(bounds, table.n, centers.k))
    if fresh:
        for values in starts.stats:
            values[active] = 0
    work = table.entries * centers.groups * centers.k
    call("pass", table, centers, one_pass, starts.stats, threads=threads, work=work)
    return one_pass.changed, one_pass.largest_move


def _fields_of(bounds: Any, n: int, k: int) -> tuple[Any, Any]:
    """Of the bounds that are kept of one start's rows (``_solver.Bounds``), or of none."""
    if bounds is None:
        return None, None
    return shaped(bounds.margins, n), shaped(bounds.drift, k)


def assign(table: Table, centers: Centers, threads: int, *, plain: bool = False) -> np.ndarray:
    """Labels (G, n); ``plain``: by the loop of direct differences alone."""
    labels = np.empty((centers.groups, table.n), np.int32)
    work = table.entries * centers.groups * centers.k
    name = "assign_plain" if plain else "assign"
    call(name, table, centers, labels, threads=threads, work=work)
    return labels


def add_rows(
    table: Table, centers: Centers, labels: np.ndarray, stats: Stats, threads: int
) -> None:
    """OUT stats (of one start) from the labels its rows have."""
    check_labels(labels, table.n, centers.k)
    call("add_rows", table, centers, labels, stats, threads=threads, work=table.entries)


def loss_of(
    table: Table, centers: Centers, labels: np.ndarray, threads: int, each: np.ndarray | None = None
) -> float:
    """The loss of a partition by direct differences; OUT each (n,): of every row, if given."""
    check_labels(labels, table.n, centers.k)
    loss, each = np.empty(1), shaped(each, table.n)
    call("loss_of", table, centers, labels, each, loss, threads=threads, work=table.entries)
    return float(loss[0])


def label_and_loss(
    table: Table, centers: Centers, threads: int
) -> tuple[np.ndarray, float, np.ndarray]:
    """Labels (n,) that the centres give, the loss by direct differences, rows of each label."""
    labels, members = np.empty(table.n, np.int32), np.zeros(centers.k, np.int64)
    loss, work = np.empty(1), table.entries * centers.k
    call("label_and_loss", table, centers, labels, members, loss, threads=threads, work=work)
    return labels, float(loss[0]), members


def distances(table: Table, centers: Centers, dtype, threads: int, *, roots: bool) -> np.ndarray:
    """Loss (n, k) of every row at every centre, or its square root."""
    out = np.empty((table.n, centers.k), dtype)
    is_double, work = out.dtype == np.float64, table.entries * centers.k
    call("distances", table, centers, roots, is_double, out, threads=threads, work=work)
    return out


def relocate_empty(table: Table, starts: Starts, r: int, bounds: Any, threads: int) -> None:
    """Relocate the empty clusters of start r to its costliest rows. INOUT labels, stats."""
    centers = starts.centers([r])
    stats = Stats(*(values[r : r + 1] for values in starts.stats))
    labels = check_labels(starts.labels[r], table.n, centers.k)
    fields = _fields_of(bounds, table.n, centers.k)
    arguments = table, centers, labels, stats, fields
    call("relocate_empty", *arguments, threads=threads, work=table.entries)


def choose_relocated(costs: np.ndarray, labels: np.ndarray, members: np.ndarray) -> np.ndarray:
    """The rows to which empty clusters are relocated: their places (k,), or -1.

    ``members`` (k,): rows of each cluster in all. Earlier rows win over later ones of equal cost.
    """
    n, k = len(costs), len(members)
    check_labels(labels, n, k)
    costs, members = np.array(costs, np.float64), np.array(members, np.int64)
    rows = np.empty(k, np.int64)
    call("choose_relocated", costs, np.ones(n), labels, n, k, members, rows)
    return rows


def update(starts: Starts, active: Any) -> tuple[np.ndarray, np.ndarray]:
    """New centres of the active starts; their losses, and which of these lost too many digits."""
    active = check_numbers(active, starts.count)
    losses, inexact = np.empty(len(active)), np.empty(len(active), np.bool_)
    call("update", starts, starts.mu.shape[2], (len(active), active, losses, inexact, 0))
    return losses, inexact


def decide(
    starts: Starts, iteration: int, losses, inexact, largest_move: float, active: np.ndarray
) -> tuple[np.ndarray, bool]:
    """Record the losses of an iteration (0, 1, ...). Returns the starts that go on, and whether
    the next pass has to sum up all rows again."""
    active, count = check_numbers(active, starts.count), len(active)
    numbers = np.concatenate([active, active])
    goes_on = structs.Active(count, numbers, shaped(losses, count), shaped(inexact, count), 0)
    call("decide", starts, starts.mu.shape[2], iteration, largest_move, goes_on)
    return numbers[: goes_on.count].copy(), bool(goes_on.fresh)


def lloyd(table: Table, starts: Starts, threads: int, progress=None) -> None:
    """Lloyd's loop to its end, on a small table. INOUT starts."""
    work = 10.0 * table.entries * starts.count * starts.k
    call("lloyd", table, starts, threads=threads, work=work, progress=progress)


def hartigan(table: Table, starts: Starts, chosen: np.ndarray, threads: int, progress=None) -> None:
    """Hartigan's moves from where Lloyd's loop ended, in the chosen starts. INOUT starts."""
    chosen = check_numbers(chosen, starts.count)
    arguments, work = (table, starts, chosen, len(chosen)), 10.0 * table.entries * len(chosen)
    call("hartigan", *arguments, threads=threads, work=work * starts.k, progress=progress)


def seed(table: Table, means: np.ndarray, draws: np.ndarray, threads: int) -> np.ndarray:
    """Greedy k-means++ on mean-filled rows: centres (R, k, p), from draws (R, k, trials) in
    [0, 1)."""
    centers = np.empty((*draws.shape[:2], table.p))
    seeds = *draws.shape, shaped(means, table.p), draws, centers
    call("seed", table, seeds, threads=threads, work=table.entries * draws.size)
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
    pulls: np.ndarray  # (k, p) what counts became


class SoftRows(NamedTuple):
    """Memberships, likelihoods and labels of rows."""

    memberships: np.ndarray  # (n, k)
    log_likelihoods: np.ndarray  # (n,)
    labels: np.ndarray  # (n,) int32


def _mixture_fields(mixture: Mixture, shift: np.ndarray, p: int) -> tuple[Any, ...]:
    k = len(mixture.log_weight)
    arrays = [None if a is None else np.ascontiguousarray(a) for a in mixture[1:5]]
    freedom, log_peak = mixture.freedom, 0.0
    if freedom > 0:  # log density of Student's t at its centre, for scale 1
        log_peak = math.lgamma(0.5 * freedom + 0.5) - math.lgamma(0.5 * freedom)
        log_peak -= 0.5 * math.log(freedom * math.pi)
    arrays = [shaped(mixture.log_weight, k), *(shaped(values, k, p) for values in arrays)]
    return k, *arrays, shaped(shift, p), freedom, log_peak


def soft_sums(table: Table, mixture: Mixture, shift: np.ndarray, threads: int) -> SoftSums:
    """The E-step: the sums that an M-step needs."""
    k, p, heavy = len(mixture.log_weight), table.p, mixture.freedom > 0
    sizes, sums = np.zeros(k), np.zeros((4 if heavy else 3, k, p))
    out = structs.Expectation(sizes, *sums)
    each = (20.0 if heavy else 3.0) * k
    fields, work = _mixture_fields(mixture, shift, p), each * table.entries
    call("e_step", table, fields, out, threads=threads, work=work)
    pulls = sums[3] if heavy else sums[1]
    return SoftSums(sizes, sums[0], sums[1], sums[2], out.log_likelihood, pulls)


def soft_rows(table: Table, mixture: Mixture, threads: int) -> SoftRows:
    """Memberships, log-likelihood and likeliest cluster of every row, whatever its weight."""
    n, k = table.n, len(mixture.log_weight)
    fields = _mixture_fields(mixture, np.zeros(table.p), table.p)
    rows = SoftRows(np.empty((n, k)), np.empty(n), np.empty(n, np.int32))
    work = 2.0 * k * table.entries
    call("e_step", table, fields, (*[None] * 5, *rows), threads=threads, work=work)
    return rows
