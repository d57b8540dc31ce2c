"""The tests need no Linux: neither to be imported nor to be run.

1. What belongs to POSIX alone (fork, user numbers, SIGKILL, ...) is taken away, and pytest collects
   the suite: a module that needs it at import is found.
2. A function that names one of those has to look whether it is there, or skip; or another in its
   module asks whether this is POSIX at all.
"""

import ast
import importlib
import os
import re
import signal
import sys
from pathlib import Path

import pytest

# Other people's packages know what system they are on: they are imported before.
PACKAGES = [
    "anndata", "asyncio", "dask.array", "dask.dataframe", "distributed", "filelock",
    "hypothesis", "matplotlib.pyplot", "multiprocessing.popen_spawn_posix", "playwright", "polars",
    "pooch", "pyarrow.parquet", "rich", "scanpy", "skops.io", "typer.testing", "umap", "zarr",
]  # fmt: skip
POSIX = {
    os: ["fork", "geteuid", "getuid", "getegid", "getpgid", "killpg", "setsid", "pathconf",
         "sched_getaffinity", "sched_setaffinity", "mkfifo", "nice", "chown"],
    signal: ["SIGKILL", "SIGSTOP", "SIGCONT", "SIGHUP", "SIGALRM", "pthread_kill"],
}  # fmt: skip
MODULES = ("fcntl", "grp", "pty", "pwd", "resource", "termios")
KNOWS = re.compile(r"""hasattr\((os, "fork"|signal, "SIGKILL")\)""")
TELLS = re.compile(r"\b(skipif|skip|importorskip|hasattr|getattr|suppress)\(")
TESTS = Path(__file__).parents[1] / "tests"


def is_posix(node: ast.AST) -> bool:
    if isinstance(node, ast.Import):
        return any(name.name in MODULES for name in node.names)
    if not isinstance(node, ast.Attribute) or not isinstance(node.value, ast.Name):
        return False
    return any(
        node.value.id == module.__name__ and node.attr in names for module, names in POSIX.items()
    )


def unguarded(path: Path) -> list[str]:
    """Places where a name of POSIX is used by a function that would not skip."""
    text = path.read_text("utf8")
    if KNOWS.search(text):
        return []
    unsure = [top for top in ast.parse(text).body if not TELLS.search(ast.unparse(top))]
    uses = [node for top in unsure for node in ast.walk(top) if is_posix(node)]
    return [f"{path}:{node.lineno}: {ast.unparse(node)}" for node in uses]


def take_away() -> None:
    for name in PACKAGES:
        try:
            importlib.import_module(name)
        except ImportError as error:
            print(f"without {name}: {error}")
    for module, names in POSIX.items():
        for name in names:
            if hasattr(module, name):
                delattr(module, name)
    for name in MODULES:
        sys.modules[name] = None


places = [place for path in sorted(TESTS.rglob("*.py")) for place in unguarded(path)]
if places:
    sys.exit(
        "\n".join(["only POSIX has these, and nothing skips where they are missing:", *places])
    )
take_away()
sys.exit(pytest.main(["--collect-only", "-qq", "--assert=plain", *sys.argv[1:]]))
