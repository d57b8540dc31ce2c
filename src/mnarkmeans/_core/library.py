"""Find and load the compiled core, check that it fits, choose the instruction set.

The library lies beside this file in wheels, and in ``src/mnarkmeans`` after a build in place.
``MNARKMEANS_CPU=baseline|avx2|avx512`` forces an instruction set; otherwise the best one is used.
"""

import ctypes as ct
import os
import sys
from contextlib import ExitStack
from pathlib import Path

INTERFACE = "1b1d0102d87ad523"  # of core.h: the build says what to write here
PACKAGE = "mnarkmeans"
ALL_LEVELS = ("baseline", "avx2", "avx512")
NAME = "libmnarkmeans_core" + {"win32": ".dll", "darwin": ".dylib"}.get(sys.platform, ".so")
REBUILD = (
    "Install the package again (pip install --force-reinstall --no-deps mnarkmeans), "
    "or in a checkout run\n"
    "    cmake -S . -B build -DMNARKMEANS_INPLACE=ON && cmake --build build"
)


P, I32, I64, F64 = ct.c_void_p, ct.c_int32, ct.c_int64, ct.c_double


def _struct(name: str, **fields) -> type[ct.Structure]:
    """A struct of core.h, which says what its fields mean."""
    return type(name, (ct.Structure,), {"_fields_": list(fields.items())})


Control = _struct("Control", cancel=I32, threads=I32, done=I64)
Table = _struct(
    "Table", is_sparse=I32, is_double=I32, n=I64, p=I64, values=P, row_stride=I64,
    column_stride=I64, indices=P, starts=P, missing=F64, weights=P, has_gaps=P, first=I64,
    one_slab=I64, per_slab=I64,
)  # fmt: skip
Centers = _struct("Centers", groups=I64, k=I64, mu=P, lam=P, reference=P, shift=P)
Stats = _struct("Stats", sums=P, counts=P, sizes=P, keys=P, squares=P)
Bounds = _struct("Bounds", expiry=P, drop=P)
Pass = _struct(
    "Pass", active=P, fresh=I32, labels=P, label_stride=I64, bounds=Bounds, changed=I64,
    largest_move=F64,
)  # fmt: skip
FirstPass = _struct(
    "FirstPass", counts=P, sums=P, least=P, most=P, observed=P, seen=P, infinite=I64,
    malformed=I64,
)  # fmt: skip
Starts = _struct(
    "Starts", count=I64, k=I64, mu=P, lam=P, reference=P, shift=P, stats=Stats, labels=P, paths=P,
    n_iter=P, twins=P, settled=P, seen=P, max_iter=I64, tol=F64, whole_weights=I32,
    total_weight=F64,
)  # fmt: skip
Active = _struct("Active", count=I64, numbers=P, losses=P, doubtful=P, afresh=I32)
Seeds = _struct(
    "Seeds", count=I64, k=I64, trials=I64, means=P, order=P, draws=P, centers=P,
)  # fmt: skip
Partitions = _struct("Partitions", labels=P, kept=P, n=I64, candidates=I64, k=I64)
Moving = _struct(
    "Moving", X=P, n=I64, p=I64, count=I64, k=I64, max_iter=I64, centers=P, labels=P,
)  # fmt: skip
Mixture = _struct(
    "Mixture", k=I64, log_weight=P, mean=P, variance=P, log_missing=P, log_observed=P, shift=P,
    freedom=F64, log_peak=F64,
)  # fmt: skip
Softened = _struct(
    "Softened", sizes=P, sums=P, counts=P, squares=P, pulls=P, memberships=P, row_likelihoods=P,
    labels=P, log_likelihood=F64, tail=F64,
)  # fmt: skip
Decay = _struct(
    "Decay", n_squares=I64, n_gaps=I64, squares=P, weights=P, gap_squares=P, gap_weights=P,
    gap_spreads=P, observed=F64, residual=F64,
)  # fmt: skip
Lost = _struct(
    "Lost", k=I64, p=I64, mean=P, variance=P, common=I32, has_gaps=P, tau=P, t=F64, c=F64, r=F64,
    log_missing=P, lost_mean=P, lost_variance=P,
)  # fmt: skip
Maximised = _struct(
    "Maximised", k=I64, p=I64, sums=Softened, hidden=P, lost_mean=P, lost_variance=P, lost_pull=P,
    weights=P, mean=P, residuals=P, entries=P, gaps=P,
)  # fmt: skip
Rounds = _struct(
    "Rounds", k=I64, reference=P, n_rows=F64, scale=F64, decay=Decay, lost=Lost, starts=P,
    n_starts=I64, free=P, placed=I32, equal_sizes=I32, max_rounds=I64, tol=F64, at_least=F64,
    weights=P, mean=P, theta=P, hidden=P, gaps=P, sums=Softened, bound=F64, count=I64,
    converged=I32,
)  # fmt: skip
Shares = _struct(
    "Shares", count=I64, k=I64, p=I64, gaps=P, observed=P, z=P, max_steps=I64, slope_given=I32,
    slopes=P, alphas=P, values=P, each=P,
)  # fmt: skip
Magnitudes = _struct(
    "Magnitudes", reference=P, has_gaps=P, bins=I64, least_share=F64, per_row=P, least=P,
    weights=P, logs=P, total=F64, square=F64, below=F64,
)  # fmt: skip
# In the order of mnarkmeans_struct_sizes.
STRUCTS = (
    Control, Table, Centers, Stats, Bounds, Pass, FirstPass, Starts, Active, Seeds, Partitions,
    Moving, Mixture, Softened, Decay, Lost, Maximised, Rounds, Shares, Magnitudes,
)  # fmt: skip

# What the functions of core.h take; structs by their address. They return a status unless said.
FUNCTIONS: dict[str, list] = {
    "first_pass": [P, P, P],
    "content_keys": [P, P, P],
    "content_order": [P, P, P],
    "fill_rows": [P, P, I64, P, P],
    "impute": [P, P, P, P, I64, P],
    "pass": [P, P, P, P, P],
    "assign": [P, P, I32, P, P],
    "add_rows": [P, P, P, P, P],
    "loss_of": [P, P, P, P, P, P],
    "last_look": [P, P, P, P, P, P, P],
    "distances": [P, P, I32, I32, P, P],
    "rescue": [P, P, I32, P, P, P, P],
    "choose_rescued": [P, P, P, I64, I64, P, P],
    "update": [P, I64, P],
    "decide": [P, I64, I64, F64, P],
    "centers_of": [P, P, P],
    "lloyd": [P, P, I64, P],
    "hartigan": [P, P, P, I64, P],
    "seed": [P, P, I64, P],
    "soften": [P, P, P, P],
    "decay_value": [P, P, P],
    "decay_fit": [P, P, I64, P, I64, P],
    "lost_around": [P],
    "hidden_rows": [I64, I64, P, P, P],
    "maximise": [P],
    "em_rounds": [P, P, P],
    "fit_shares": [P],
    "magnitudes": [P, P, P],
    "count_pairs": [P, P, I64, P, P],
    "move_rows": [P, P],
}
RETURNS = {
    "choose_rescued": None, "update": None, "decide": None, "decay_value": F64, "decay_fit": F64,
    "lost_around": None, "hidden_rows": F64, "maximise": None,
}  # fmt: skip

_unpacked = ExitStack()  # keeps a library that came out of a zip file until the process ends


def find_library() -> Path:
    """The library's file: in a folder of the package, or unpacked.

    Editable installs have two folders, and perhaps a build in place: the last one built is meant.
    """
    folders = [Path(folder) for folder in sys.modules[PACKAGE].__path__]
    if built := [folder / NAME for folder in folders if (folder / NAME).is_file()]:
        return max(built, key=lambda file: file.stat().st_mtime)
    from importlib.resources import as_file, files

    inside = files(PACKAGE) / NAME
    if inside.is_file():
        return _unpacked.enter_context(as_file(inside))
    raise ImportError(
        f"mnarkmeans is not built: no {NAME} in {' or '.join(map(str, folders))}. {REBUILD}"
    )


def load(path: Path) -> ct.CDLL:
    """The library at ``path``, if it is one that this module knows how to call."""
    try:
        library = ct.CDLL(str(path))
    except OSError as error:
        raise ImportError(f"{path} cannot be loaded: {error}. {REBUILD}") from error
    try:
        library.mnarkmeans_interface.restype = ct.c_char_p
        interface = library.mnarkmeans_interface().decode()
        sizes = (ct.c_int64 * len(STRUCTS))()
        n_structs = library.mnarkmeans_struct_sizes(sizes, len(STRUCTS))
    except AttributeError:
        raise ImportError(
            f"{path} is not the library of this version of mnarkmeans. {REBUILD}"
        ) from None
    expected = [ct.sizeof(struct) for struct in STRUCTS]
    if interface != INTERFACE or n_structs != len(STRUCTS) or list(sizes) != expected:
        raise ImportError(
            f"{path} belongs to another version of mnarkmeans: its interface is {interface} with "
            f"structs of {list(sizes[:n_structs])} bytes, and {INTERFACE} with {expected} is "
            f"needed. {REBUILD}"
        )
    library.mnarkmeans_level.restype = ct.c_char_p
    library.mnarkmeans_levels.restype = ct.c_char_p
    library.mnarkmeans_set_level.argtypes = [ct.c_char_p]
    for name, arguments in FUNCTIONS.items():
        function = getattr(library, f"mnarkmeans_{name}", None)
        if function is None:
            raise ImportError(
                f"{path} belongs to another version of mnarkmeans: it has no {name}. {REBUILD}"
            )
        function.argtypes, function.restype = arguments, RETURNS.get(name, I32)
    return library


def level() -> str:
    """The instruction set in use."""
    return library.mnarkmeans_level().decode()


def available_levels() -> tuple[str, ...]:
    """The instruction sets this machine can run, the best one last."""
    return tuple(library.mnarkmeans_levels().decode().split())


def set_level(name: str) -> None:
    """Use this instruction set from now on, in all threads."""
    if name not in ALL_LEVELS:
        raise ValueError(f"the instruction set is one of {', '.join(ALL_LEVELS)}, not {name!r}")
    if not library.mnarkmeans_set_level(name.encode()):
        raise ValueError(f"this machine cannot run {name}, only {', '.join(available_levels())}")


library = load(find_library())
if os.environ.get("MNARKMEANS_CPU"):
    try:
        set_level(os.environ["MNARKMEANS_CPU"])
    except ValueError as error:
        raise ImportError(f"MNARKMEANS_CPU: {error}") from None
