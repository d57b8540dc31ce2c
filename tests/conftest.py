import os
import signal
import sys
from pathlib import Path

# Two processes share the cores: threads of scikit-learn and BLAS would wait for each other.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import pytest
from hypothesis import settings

from mnarkmeans import _core

# The same few cases in every run, or new ones: pytest --hypothesis-profile=explore
settings.register_profile("same", max_examples=12, deadline=None, derandomize=True)
settings.register_profile("explore", max_examples=300, deadline=None)
settings.load_profile("same")

# What a shell runs in the background ignores Ctrl-C, and so would the commands that tests start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

sys.path.insert(0, str(Path(__file__).parent))  # tests share oracle.py
sys.path.insert(1, str(Path(__file__).parents[1]))  # and look at the benchmarks, where these are


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config):
    """The whole suite runs in two processes where pytest-xdist is there (`-n 0`: in one)."""
    whole = config.args_source is pytest.Config.ArgsSource.TESTPATHS
    alone = config.option.usepdb or "PYTEST_XDIST_WORKER" in os.environ
    if not whole or alone or not config.pluginmanager.hasplugin("xdist"):
        return
    if config.option.numprocesses is None:
        config.option.numprocesses, config.option.dist = 2, "worksteal"


@pytest.fixture(scope="session")
def data_folder():
    """The folder of the two real data sets; tests that need it skip where it is absent."""
    beside = Path(__file__).parents[2] / "shared" / "data"
    folder = Path(os.environ.get("MNARKMEANS_DATA", beside))
    if not (folder / "lymphoma.x.txt").exists():
        pytest.skip("the real data sets are absent: set MNARKMEANS_DATA to their folder")
    return folder


@pytest.fixture(params=_core.available_levels())
def each_level(request):
    """Each instruction set of this machine in turn."""
    before = _core.level()
    _core.set_level(request.param)
    yield request.param
    _core.set_level(before)


@pytest.fixture
def three_groups():
    """150 rows of 4 features with gaps, the groups apart in one feature each."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 4)) + 6 * np.eye(3, 4)[rng.integers(3, size=150)]
    X[rng.random(X.shape) < 0.2] = np.nan
    X[np.isnan(X).all(axis=1)] = 0.0
    return X
