"""Peak memory beyond the input of fit, predict and impute, each in a fresh process (Linux).

python -m benchmarks.memory VERB N P K    prints input bytes and peak bytes beyond the input

What a verb returns is not counted: labels, or the filled table.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np

from .measured import Measured

STATUS = Path("/proc/self/status")
VERBS = ("fit", "predict", "impute")


def _status(field: str) -> int:
    """A line of the process's status, in bytes."""
    for line in STATUS.read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1]) * 1024
    raise RuntimeError(f"{STATUS} has no field {field}.")


def peak_of(verb: str, n: int, p: int, k: int, missing: float = 0.3) -> tuple[int, int]:
    """(bytes of the table, peak bytes beyond it and the result) of one call in this process."""
    from mnarkmeans import MNARKMeans

    rng = np.random.default_rng(0)
    X = np.empty((n, p))
    for start in range(0, n, 10_000):
        part = rng.normal(size=X[start : start + 10_000].shape)
        part[rng.random(part.shape) < missing] = np.nan
        X[start : start + 10_000] = part
    init = np.nan_to_num(X[:k])
    model = MNARKMeans(k, lam=0.5, init=init, max_iter=5, tol=0.0, algorithm="lloyd")
    few = X[: max(k, 2**20 // p)]  # enough to take the same path: modules are loaded beforehand
    getattr(model.fit(few), verb)(few)
    before = _status("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts again from here
    result = getattr(model, verb)(X)
    kept = result.nbytes if isinstance(result, np.ndarray) else 0
    return X.nbytes, _status("VmHWM") - before - kept


def measure(verb: str, n: int, p: int, k: int) -> Measured:
    """The same in a fresh process."""
    arguments = [verb, *map(str, (n, p, k))]
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "benchmarks.memory", *arguments],
        capture_output=True,
        text=True,
        check=True,
    )
    table, peak = (int(number) for number in done.stdout.split())
    name = f"peak memory of {verb} beyond the input, {n:,} x {p:,}"
    return Measured(name, peak, table, "the input", 0.15, bytes=True)


if __name__ == "__main__":
    print(*peak_of(sys.argv[1], *(int(argument) for argument in sys.argv[2:])))
