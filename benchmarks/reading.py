"""Reading a CSV file beside pandas: seconds, and peak memory beside the size of the table.

python -m benchmarks.reading --megabytes 500
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from .measured import Measured

READ = """
import resource, sys, time
import pandas, pyarrow.csv
from mnarkmeans import read_table
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
begin = time.process_time()
table = read_table(sys.argv[1]) if sys.argv[2] == "ours" else pandas.read_csv(sys.argv[1])
seconds = time.process_time() - begin
print(seconds, 1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before))
"""


def write(path: Path, megabytes: float, p: int = 200) -> int:
    """Write a CSV file of this size with one value in ten missing; bytes of its numbers."""
    rng, n = np.random.default_rng(0), 0
    with open(path, "w") as file:
        file.write(",".join(["id", *(f"f{j}" for j in range(p))]) + "\n")
        while file.tell() < 1e6 * megabytes:
            values = np.char.mod("%.6f", rng.normal(size=(500, p)))
            values[rng.random(values.shape) < 0.1] = ""
            file.writelines(f"r{n + i}," + ",".join(row) + "\n" for i, row in enumerate(values))
            n += 500
    return 8 * n * p


def measure(megabytes: float) -> list[Measured]:
    """Processor seconds against pandas, and peak bytes against those of the table."""
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.csv"
        size = write(path, megabytes)
        for who in ("ours", "theirs"):
            done = subprocess.run(
                [sys.executable, "-c", READ, str(path), who], capture_output=True, check=True
            )
            found[who] = [float(word) for word in done.stdout.split()]
    name = f"read_table, {megabytes:g} MB of CSV"
    return [
        Measured(name, found["ours"][0], found["theirs"][0], "pandas.read_csv", goal=2),
        Measured(name, found["ours"][1], size, "the table", goal=3, bytes=True),
    ]


if __name__ == "__main__":
    parser = argparse.ArgumentParser("python -m benchmarks.reading", description=__doc__)
    parser.add_argument("--megabytes", type=float, default=500)
    for figure in measure(parser.parse_args().megabytes):
        print(figure.line())
