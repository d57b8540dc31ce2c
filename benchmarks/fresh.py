"""What a new user waits for: import and the first fit, each in a fresh process.

The interpreter's own start is left out. Processor time of all threads unless told otherwise.
"""

from __future__ import annotations

import subprocess
import sys

from .measured import Measured

IMPORT = """
import time
begin = time.CLOCK()
import MODULE
print(time.CLOCK() - begin)
"""

FIRST_FIT = """
import time
begin = time.CLOCK()
import numpy as np
from MODULE import MODEL
rng = np.random.default_rng(0)
X = rng.normal(size=(300, 10)) + 4 * np.eye(3, 10)[rng.integers(3, size=300)]
if GAPS:
    X[rng.random(X.shape) < np.exp(-(X**2))] = np.nan
before = time.CLOCK()
MODEL(3).fit(X)
print(time.CLOCK() - begin, time.CLOCK() - before)
"""


def _run(code: str, **words: str) -> list[float]:
    for word, meaning in words.items():
        code = code.replace(word, meaning)
    command = [sys.executable, "-W", "ignore", "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return [float(number) for number in done.stdout.split()]


def measure(repeats: int, clock: str = "process_time") -> list[Measured]:
    """Import, import with the first fit, and that fit alone; the best of several, in turns."""
    best: dict[tuple[str, str], float] = {}
    for _ in range(repeats):
        for who, package, module, model, gaps in (
            ("ours", "mnarkmeans", "mnarkmeans", "MNARKMeans", "True"),
            ("theirs", "sklearn.cluster", "sklearn.cluster", "KMeans", "False"),
        ):
            (alone,) = _run(IMPORT, CLOCK=clock, MODULE=package)
            both, fit = _run(FIRST_FIT, CLOCK=clock, MODULE=module, MODEL=model, GAPS=gaps)
            for what, taken in (("import", alone), ("both", both), ("fit", fit)):
                best[what, who] = min(best.get((what, who), taken), taken)

    def figure(what: str, name: str, against: str, goal: float) -> Measured:
        return Measured(name, best[what, "ours"], best[what, "theirs"], against, goal)

    return [
        figure("import", "import", "import sklearn.cluster", 1.15),
        figure("both", "import and first fit, 300 x 10, k=3", "KMeans", 1.3),
        figure("fit", "first fit alone", "KMeans", 2.0),
    ]
