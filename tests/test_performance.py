"""Memory and threads."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from mnarkmeans import MNARKMeans

ROOT = Path(__file__).parents[1]


def run(code, *flags):
    """Run a script in a fresh process and return what it printed."""
    done = subprocess.run(
        [sys.executable, *flags, "-c", code], capture_output=True, text=True, cwd=ROOT
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def table(n=400, p=11, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    X[rng.random(X.shape) < 0.3] = np.nan
    return X


def fit(X):
    return MNARKMeans(3, lam=0.5, n_init=3, random_state=0, n_jobs=2).fit(X)


SMALL_FIT = """
import numpy as np
from mnarkmeans import MNARKMeans
X = np.random.default_rng(0).normal(size=(400, 11))
X[X < -0.5] = np.nan
model = MNARKMeans(3, lam=0.5, n_init=3, random_state=0, n_jobs=2).fit(X)
"""


@pytest.mark.parametrize("verb", ["fit", "predict", "impute"])
def test_peak_memory_of_many_rows_stays_below_a_seventh_of_the_input(verb):
    if not (ROOT / "benchmarks").exists():
        pytest.skip("the benchmarks are not part of this copy of the sources")
    from benchmarks import memory

    if not memory.STATUS.exists():
        pytest.skip("peak memory is read from Linux's /proc")
    assert memory.measure(verb, 300_000, 50, 10).ratio < 0.15


def test_many_threads_may_fit_at_once():
    X = table()
    expected = fit(X)
    with ThreadPoolExecutor(8) as pool:
        for model in pool.map(fit, [X] * 16):
            np.testing.assert_array_equal(model.labels_, expected.labels_)
            np.testing.assert_array_equal(model.cluster_centers_, expected.cluster_centers_)


def test_threads_may_meet_in_the_first_fit_of_a_process():
    """The core is loaded once, and used by several threads at once."""
    code = (
        SMALL_FIT.replace("model = ", "fit = lambda _: ")
        + """
from concurrent.futures import ThreadPoolExecutor
with ThreadPoolExecutor(8) as pool:
    print({model.inertia_ for model in pool.map(fit, range(8))})
"""
    )
    assert run(code).count(",") == 0  # one and the same loss
