"""Memory and threads."""

import subprocess
import sys

import pytest


@pytest.mark.parametrize("verb", ["fit", "predict", "impute"])
def test_peak_memory_of_many_rows_stays_below_a_seventh_of_the_input(verb):
    memory = pytest.importorskip("benchmarks.memory", reason="only in the repository")
    if not memory.STATUS.exists():
        pytest.skip("peak memory is read from Linux's /proc")
    assert memory.measure(verb, 300_000, 50, 10).ratio < 0.15


FIRST_FIT = """
import numpy as np
from concurrent.futures import ThreadPoolExecutor
from mnarkmeans import MNARKMeans
X = np.random.default_rng(0).normal(size=(400, 11))
X[X < -0.5] = np.nan
fit = lambda _: MNARKMeans(3, lam=0.5, n_init=3, random_state=0, n_jobs=2).fit(X)
with ThreadPoolExecutor(8) as pool:
    fits = list(pool.map(fit, range(16)))
print(all((one.cluster_centers_ == fit(0).cluster_centers_).all() for one in fits))
"""


def test_many_threads_may_meet_in_the_first_fit_of_a_process():
    """The core is loaded once, and used by several threads at once."""
    done = subprocess.run([sys.executable, "-c", FIRST_FIT], capture_output=True, text=True)
    assert done.stdout.strip() == "True", done.stderr
