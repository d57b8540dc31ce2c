"""Peak memory of a fit beyond its input, each in a fresh process (Linux).

python -m benchmarks.memory N P K    prints input bytes and peak bytes beyond the input
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np

STATUS = Path("/proc/self/status")


def _status(field: str) -> int:
    """A line of the process's status, in bytes."""
    for line in STATUS.read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1]) * 1024
    raise RuntimeError(f"{STATUS} has no field {field}.")


def peak_of_fit(n: int, p: int, k: int, missing: float = 0.3) -> tuple[int, int]:
    """(bytes of the table, peak bytes beyond it) of one fit in this process."""
    from mnarkmeans import MNARKMeans

    rng = np.random.default_rng(0)
    X = np.empty((n, p))
    for start in range(0, n, 10_000):
        part = rng.normal(size=X[start : start + 10_000].shape)
        part[rng.random(part.shape) < missing] = np.nan
        X[start : start + 10_000] = part
    init = np.nan_to_num(X[:k])
    settings = dict(lam=0.5, init=init, max_iter=5, tol=0.0, algorithm="lloyd")
    # Large enough to take the same path, so that compiled code is loaded before the measurement.
    MNARKMeans(k, **settings).fit(X[: max(k, 2**20 // p)])
    before = _status("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts again from here
    MNARKMeans(k, **settings).fit(X)
    return X.nbytes, _status("VmHWM") - before


def measure(n: int, p: int, k: int) -> tuple[int, int]:
    """The same in a fresh process."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "benchmarks.memory", str(n), str(p), str(k)],
        capture_output=True,
        text=True,
        check=True,
    )
    table, peak = done.stdout.split()
    return int(table), int(peak)


if __name__ == "__main__":
    print(*peak_of_fit(*(int(argument) for argument in sys.argv[1:])))
