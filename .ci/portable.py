"""The tests can be imported where there is no fork, no user number and no SIGKILL, as on Windows.

What belongs to POSIX alone is taken away, and pytest collects the suite: tests that need it have to
find out when they run, and skip.
"""

import importlib
import os
import signal
import sys

import pytest

# Other people's packages know what system they are on: they are imported before.
PACKAGES = [
    "anndata", "asyncio", "dask.array", "dask.dataframe", "distributed",
    "hypothesis", "matplotlib.pyplot", "multiprocessing.popen_spawn_posix", "playwright", "polars",
    "pooch", "pyarrow.parquet", "rich", "scanpy", "skops.io", "typer.testing", "umap", "zarr",
]  # fmt: skip
POSIX = {
    os: ["fork", "geteuid", "getuid", "getegid", "getpgid", "killpg", "setsid"],
    signal: ["SIGKILL", "SIGSTOP", "SIGCONT", "SIGHUP", "SIGALRM", "pthread_kill"],
}

for name in PACKAGES:
    try:
        importlib.import_module(name)
    except ImportError as error:
        print(f"without {name}: {error}")
for module, names in POSIX.items():
    for name in names:
        if hasattr(module, name):
            delattr(module, name)
for name in ("fcntl", "grp", "pty", "pwd", "resource", "termios"):
    sys.modules[name] = None
sys.exit(pytest.main(["--collect-only", "-qq", "--assert=plain", *sys.argv[1:]]))
