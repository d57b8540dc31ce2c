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
# The types of core.h: a number, and an array of them.
TYPES: dict[str, tuple[Any, type]] = {
    "int32_t": (ct.c_int32, np.int32),
    "Label": (ct.c_int32, np.int32),
    "Index": (ct.c_int64, np.int64),
    "uint64_t": (ct.c_uint64, np.uint64),
    "uint8_t": (ct.c_uint8, np.bool_),
    "float": (ct.c_float, np.float32),
    "double": (ct.c_double, np.float64),
}


# --- addresses ------------------------------------------------------------------------------------


def address_of(value: Any, kind: Any) -> int | None:
    """The address of a contiguous array of this dtype (None: of any array, however it lies: its
    caller sees to the strides), or of a struct of a kind. None is null."""
    if isinstance(kind, type) and issubclass(kind, Struct):
        if not isinstance(value, kind):
            raise TypeError(f"the core takes a {kind.__name__} here; got {type(value).__name__}")
        return ct.addressof(value)
    if value is None:
        return None
    if kind is not None and (value.dtype != kind or not value.flags.c_contiguous):
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
    """A struct of core.h. Arrays go in as they are: their type is checked, and they are kept."""

    _pointers_: ClassVar[dict[str, Any]]  # field -> dtype of its array, None for any

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in self._names_:
            raise TypeError(f"{type(self).__name__} of core.h has no field {name}")
        if name in self._pointers_ or isinstance(value, Struct):
            self.__dict__.setdefault("_kept", {})[name] = value
        if name in self._pointers_:
            value = address_of(value, self._pointers_[name])
        super().__setattr__(name, value)


# --- the header -----------------------------------------------------------------------------------


def _kind(word: str, known: dict[str, Any]) -> tuple[Any, Any]:
    """The ctypes type that a word of the header means, and what ``address_of`` is to check (... for
    a number)."""
    kind = word.rstrip("*&")
    number, dtype = TYPES.get(kind, (known.get(kind), None))
    return (number, ...) if word == kind else (ct.c_void_p, known.get(kind, dtype))


def _struct_class(name: str, body: str, known: dict[str, Any]) -> type[Struct]:
    fields: list[tuple[str, Any]] = []
    pointers: dict[str, Any] = {}
    for declaration in filter(str.strip, body.split(";")):
        word, *names = declaration.replace("const ", "").split()
        kind, check = _kind(word, known)
        for field in "".join(names).split(","):
            fields.append((field, kind))
            if check is not ...:
                pointers[field] = check
    members = {"_fields_": fields, "_pointers_": pointers, "_names_": {name for name, _ in fields}}
    return type(name, (Struct,), members)


def read_header(text: str) -> tuple[dict[str, type[Struct]], dict[str, tuple]]:
    """The structs of core.h, and its functions: what they return, take and are checked for."""
    text = re.sub(r"//[^\n]*", "", text)
    structs: dict[str, type[Struct]] = {}
    functions = {}
    for name, body in re.findall(r"^struct (\w+) \{(.*?)^\};", text, re.S | re.M):
        if name != "Kernels":
            structs[name] = _struct_class(name, body, structs)
            continue
        for returned, function, declared in re.findall(r"(\w+) \(\*(\w+)\)\((.*?)\);", body, re.S):
            words = (argument.replace("const ", "").split()[0] for argument in declared.split(","))
            kinds, checks = zip(*(_kind(word, structs) for word in words), strict=True)
            functions[function] = None if returned == "void" else TYPES[returned][0], kinds, checks
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


def prepare(name: str, arguments: tuple[Any, ...]) -> tuple[Any, list[Any]]:
    """A function of the core and its arguments, checked; arrays and structs by their address."""
    each = zip(arguments, _functions[name][2], strict=True)
    ready = [value if check is ... else address_of(value, check) for value, check in each]
    return _in_use[name], ready


def invoke(name: str, *arguments: Any) -> Any:
    """Call a function of the core that takes no time to speak of."""
    function, ready = prepare(name, arguments)
    return function(*ready)


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


# --- calls that may take long ---------------------------------------------------------------------

SHORT = 1 << 27  # multiply-adds that are over before anyone could press Ctrl-C
PATIENCE = 20  # tenths of a second until a thread has begun
DONE, OUT_OF_MEMORY, CANCELLED = range(3)


def call(name: str, *arguments, threads: int, work: float = 0.0, progress=None) -> None:
    """Call a function whose last argument is a ``Control``; raise what its status says.

    ``work``: about how many multiply-adds it takes. A long call is made from a thread of its own
    while this one waits, so that Ctrl-C ends it within a moment; ``progress`` is called now and
    then with how much of it is done.
    """
    control = structs.Control(threads=threads)
    function, ready = prepare(name, (*arguments, control))
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
        struct = self.struct = structs.Table(
            is_sparse=is_sparse, is_double=values.dtype == np.float64, n=n, p=p, missing=missing,
            weights=shaped(weights, n), has_gaps=shaped(has_gaps, p), first=first,
            one_chunk=ENTRIES_OF_ONE_CHUNK, per_chunk=ENTRIES_PER_CHUNK,
        )  # fmt: skip
        if is_sparse:
            stored, starts = len(values), source.indptr.astype(np.int64)
            if starts[0] < 0 or starts[-1] > stored:
                raise ValueError("a CSR matrix points beyond its stored entries")
            struct.starts, struct.values = shaped(starts, n + 1), values
            struct.indices = shaped(source.indices.astype(np.int32, copy=False), stored)
            self.entries = int(starts[-1] - starts[0])
        else:
            size = source.itemsize
            if any(stride % size for stride in source.strides) or not source.flags.aligned:
                source = self.source = np.ascontiguousarray(source)
            struct.values = source
            struct.row_stride, struct.column_stride = (stride // size for stride in source.strides)
            if p == 1:  # the stride of a single column is arbitrary
                struct.column_stride = 1
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


def bounds_struct(bounds: Any, n: int, k: int) -> Any:
    """Of the bounds that are kept of one start's rows (``_solver.Bounds``), or of none."""
    if bounds is None:
        return structs.Bounds()
    return structs.Bounds(shaped(bounds.certain_until, n), shaped(bounds.drop, k))


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


def _over(
    table: Table, name: str, *arguments: Any, threads: int, per_entry: float = 1.0, progress=None
) -> None:
    """Call a function that goes over a table, with ``per_entry`` multiply-adds for each entry."""
    work = table.entries * per_entry
    call(name, table.struct, *arguments, threads=threads, work=work, progress=progress)


class FirstPass(NamedTuple):
    """Counts, sums and extremes of a table."""

    counts: np.ndarray  # (p,) weight of the rows that observe the feature
    sums: np.ndarray  # (p,) weighted sum of its values
    lowest: np.ndarray  # (p,) of the rows with a weight; +inf where none observes it
    highest: np.ndarray  # (p,) likewise, -inf
    observed: np.ndarray  # (p,) number of rows that observe the feature
    row_counts: np.ndarray  # (n,) observed entries of each row
    infinite: int  # the first row with an infinite value, or -1
    malformed: int  # CSR: the first row whose features do not increase within 0 .. p - 1, or -1


def first_pass(table: Table, threads: int) -> FirstPass:
    p = table.p
    counts, sums, lowest, highest = np.empty((4, p))
    observed, row_counts = np.empty(p, np.int64), np.empty(table.n, np.int32)
    arrays = counts, sums, lowest, highest, observed, row_counts
    out = structs.FirstPass(*arrays, -1, -1)
    _over(table, "first_pass", out, threads=threads)
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
    _over(table, "impute", shaped(mu, len(mu), table.p), labels, out, table.p, threads=threads)
    return out


def pass_(
    table: Table, starts: Starts, active: np.ndarray, *, fresh: bool, bounds: Any, threads: int
) -> tuple[int, float]:
    """One assignment pass for the active starts; INOUT starts.labels and starts.stats.

    ``fresh``: sum up all rows, not only those that change. Returns how many labels changed, and the
    largest squared size of a row that did.
    """
    active = check_numbers(active, len(starts.mu))
    centers = starts.centers(active)
    labels = shaped(starts.labels, len(starts.mu), table.n)
    one_pass = structs.Pass(active, fresh, labels, bounds_struct(bounds, table.n, centers.k))
    if fresh:
        for values in starts.stats:
            values[active] = 0
    arguments, each = (centers.struct, one_pass, starts.stats.struct), centers.groups * centers.k
    _over(table, "pass", *arguments, threads=threads, per_entry=each)
    return one_pass.changed, one_pass.largest_move


def assign(table: Table, centers: Centers, threads: int, *, plain: bool = False) -> np.ndarray:
    """Labels (G, n); ``plain``: by the loop of direct differences alone."""
    labels = np.empty((centers.groups, table.n), np.int32)
    name = "assign_plain" if plain else "assign"
    each = centers.groups * centers.k
    _over(table, name, centers.struct, labels, threads=threads, per_entry=each)
    return labels


def add_rows(
    table: Table, centers: Centers, labels: np.ndarray, stats: Stats, threads: int
) -> None:
    """OUT stats (of one start) from the labels its rows have."""
    check_labels(labels, table.n, centers.k)
    _over(table, "add_rows", centers.struct, labels, stats.struct, threads=threads)


def loss_of(
    table: Table, centers: Centers, labels: np.ndarray, threads: int, each: np.ndarray | None = None
) -> float:
    """The loss of a partition by direct differences; OUT each (n,): of every row, if given."""
    check_labels(labels, table.n, centers.k)
    loss, each = np.empty(1), shaped(each, table.n)
    _over(table, "loss_of", centers.struct, labels, each, loss, threads=threads)
    return float(loss[0])


def label_and_loss(
    table: Table, centers: Centers, threads: int
) -> tuple[np.ndarray, float, np.ndarray]:
    """Labels (n,) that the centres give, the loss by direct differences, rows of each label."""
    labels, k = np.empty(table.n, np.int32), centers.k
    arrays = labels, np.zeros(k, np.int64), np.empty(1)
    _over(table, "label_and_loss", centers.struct, *arrays, threads=threads, per_entry=k)
    return labels, float(arrays[2][0]), arrays[1]


def distances(table: Table, centers: Centers, dtype, threads: int, *, roots: bool) -> np.ndarray:
    """Loss (n, k) of every row at every centre, or its square root."""
    out = np.empty((table.n, centers.k), dtype)
    arguments = centers.struct, roots, out.dtype == np.float64, out
    _over(table, "distances", *arguments, threads=threads, per_entry=centers.k)
    return out


def rescue(table: Table, starts: Starts, r: int, bounds: Any, threads: int) -> None:
    """Relocate the empty clusters of start r to its costliest rows. INOUT labels, stats."""
    centers = starts.centers(np.array([r]))
    stats = Stats(*(values[r : r + 1] for values in starts.stats))
    labels = check_labels(starts.labels[r], table.n, centers.k)
    struct = bounds_struct(bounds, table.n, centers.k)
    _over(table, "rescue", centers.struct, labels, stats.struct, struct, threads=threads)


def choose_rescued(costs: np.ndarray, labels: np.ndarray, members: np.ndarray) -> np.ndarray:
    """The rows to which empty clusters are relocated: their places (k,), or -1.

    ``members`` (k,): rows of each cluster in all. Earlier rows win over later ones of equal cost.
    """
    n, k = len(costs), len(members)
    check_labels(labels, n, k)
    costs, members = np.array(costs, np.float64), np.array(members, np.int64)
    rows, weights = np.empty(k, np.int64), np.ones(n)
    invoke("choose_rescued", costs, weights, labels, n, k, members, rows)
    return rows


def update(starts: Starts, active: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """New centres of the active starts; their losses, and which of these lost too many digits."""
    active = check_numbers(active, len(starts.mu))
    losses, inexact = np.empty(len(active)), np.empty(len(active), np.bool_)
    struct = structs.Active(len(active), active, losses, inexact, 0)
    invoke("update", starts.struct, starts.mu.shape[2], struct)
    return losses, inexact


def decide(
    starts: Starts, iteration: int, losses, inexact, largest_move: float, active: np.ndarray
) -> tuple[np.ndarray, bool]:
    """Record the losses of an iteration (0, 1, ...). Returns the starts that go on, and whether
    the next pass has to sum up all rows again."""
    active = check_numbers(active, len(starts.mu))
    room, count = np.concatenate([active, active]), len(active)
    struct = structs.Active(count, room, shaped(losses, count), shaped(inexact, count), 0)
    invoke("decide", starts.struct, starts.mu.shape[2], iteration, largest_move, struct)
    return room[: struct.count].copy(), bool(struct.fresh)


def lloyd(table: Table, starts: Starts, threads: int, progress=None) -> None:
    """Lloyd's loop to its end, on a small table. INOUT starts."""
    each = 10.0 * math.prod(starts.mu.shape[:2])
    _over(table, "lloyd", starts.struct, threads=threads, per_entry=each, progress=progress)


def hartigan(table: Table, starts: Starts, chosen: np.ndarray, threads: int, progress=None) -> None:
    """Hartigan's moves from where Lloyd's loop ended, in the chosen starts. INOUT starts."""
    chosen = check_numbers(chosen, len(starts.mu))
    arguments, each = (starts.struct, chosen, len(chosen)), 10.0 * len(chosen) * starts.mu.shape[1]
    _over(table, "hartigan", *arguments, threads=threads, per_entry=each, progress=progress)


def seed(table: Table, means: np.ndarray, draws: np.ndarray, threads: int) -> np.ndarray:
    """Greedy k-means++ on mean-filled rows: centres (R, k, p), from draws (R, k, trials) in
    [0, 1)."""
    centers = np.empty((*draws.shape[:2], table.p))
    seeds = structs.Seeds(*draws.shape, shaped(means, table.p), draws, centers)
    _over(table, "seed", seeds, threads=threads, per_entry=draws.size)
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


def _mixture_struct(mixture: Mixture, shift: np.ndarray, p: int) -> Any:
    k = len(mixture.log_weight)
    arrays = [None if a is None else np.ascontiguousarray(a) for a in mixture[1:5]]
    freedom, log_peak = mixture.freedom, 0.0
    if freedom > 0:  # log density of Student's t at its centre, for scale 1
        log_peak = math.lgamma(0.5 * freedom + 0.5) - math.lgamma(0.5 * freedom)
        log_peak -= 0.5 * math.log(freedom * math.pi)
    return structs.Mixture(
        k, shaped(mixture.log_weight, k), *(shaped(values, k, p) for values in arrays),
        shaped(shift, p), freedom, log_peak,
    )  # fmt: skip


def soft_sums(table: Table, mixture: Mixture, shift: np.ndarray, threads: int) -> SoftSums:
    """The E-step: the sums that an M-step needs."""
    k, p, heavy = len(mixture.log_weight), table.p, mixture.freedom > 0
    sizes, sums = np.zeros(k), np.zeros((4 if heavy else 3, k, p))
    out = structs.Softened(sizes, *sums)
    each = (20.0 if heavy else 3.0) * k
    _over(table, "soften", _mixture_struct(mixture, shift, p), out, threads=threads, per_entry=each)
    pulls = sums[3] if heavy else sums[1]
    return SoftSums(sizes, sums[0], sums[1], sums[2], out.log_likelihood, pulls)


def soft_rows(table: Table, mixture: Mixture, threads: int) -> SoftRows:
    """Memberships, log-likelihood and likeliest cluster of every row, whatever its weight."""
    n, k = table.n, len(mixture.log_weight)
    struct = _mixture_struct(mixture, np.zeros(table.p), table.p)
    rows = SoftRows(np.empty((n, k)), np.empty(n), np.empty(n, np.int32))
    out = structs.Softened(*[None] * 5, *rows)
    _over(table, "soften", struct, out, threads=threads, per_entry=2.0 * k)
    return rows
