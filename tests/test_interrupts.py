"""Ctrl-C, full memory, progress, other processes: what happens around a long fit."""

import multiprocessing
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from backends import grouped_rows, to_csr
from core.inputs import starts_of

from mnarkmeans import MNARKMeans, _core
from mnarkmeans._solver import run_starts
from mnarkmeans._validation import observe

TABLE = """
import signal, sys, time
import numpy as np
from scipy import sparse
from mnarkmeans import MNARKMeans, MiniBatchMNARKMeans
rng = np.random.default_rng(0)
X = rng.normal(size=(60_000, 40)).astype(np.float32)
X[rng.random(X.shape) < 0.3] = np.nan
"""
SAY_WHEN = """
def note(*_):
    global asked
    asked = time.process_time()
    raise KeyboardInterrupt

signal.signal(signal.SIGINT, note)
for work in (
    lambda: MNARKMeans(400, lam=0.5, n_init=50, n_jobs=2).fit(X),  # seeding
    lambda: MNARKMeans(100, lam=0.5, n_init=3000, init="random", n_jobs=2).fit(X[:3000]),
    lambda: MNARKMeans(300, lam=0.5, n_init=100, init="random", tol=0, n_jobs=2).fit(X),
    lambda: MNARKMeans(200, lam=0.5, n_init=200, init="random", algorithm="hartigan").fit(X),
):
    print("ready", flush=True)
    try:
        work()
        print("all was done")
    except KeyboardInterrupt:
        print(time.process_time() - asked, flush=True)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Ctrl-C is another thing on Windows")
def test_ctrl_c_ends_a_long_fit_within_a_second():
    """A second of each of two threads, by their own clock: the machine may be busy."""
    with subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", TABLE + SAY_WHEN], stdout=subprocess.PIPE, text=True
    ) as process:
        for _ in range(4):
            assert process.stdout.readline() == "ready\n"
            time.sleep(0.5)
            process.send_signal(signal.SIGINT)
            assert float(process.stdout.readline()) < 2.0


LITTLE_MEMORY = """
import resource
said = []
for work in (
    lambda: MNARKMeans(20_000, lam=0.5, init=np.nan_to_num(X[:20_000]), max_iter=2).fit(X),
    lambda: model.transform(X),
):
    in_use = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
    limits = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (in_use + 30_000_000, limits[1]))
    try:
        work()
    except MemoryError:
        said.append("MemoryError")
    finally:
        resource.setrlimit(resource.RLIMIT_AS, limits)
print(said)
print(model.predict(X[:2]).shape)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_out_of_memory_is_a_memory_error_and_nothing_worse():
    prepared = "model = MNARKMeans(800, lam=0.5, init=np.nan_to_num(X[:800]), max_iter=1)\n"
    prepared += "model.fit(X[:1000])\n"
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", TABLE + prepared + LITTLE_MEMORY],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [str(["MemoryError"] * 2), "(2,)"]


# --- Control ----------------------------------------------------------------------------------


@pytest.mark.parametrize("form", [np.asarray, to_csr], ids=["dense", "csr"])
def test_a_call_that_is_cancelled_from_outside_ends_and_says_so(form, monkeypatch):
    """The functions of the core that may take long, asked with the flag set already."""
    X = grouped_rows(3000, 20)
    table = _core.Table(form(X), np.nan, np.ones(len(X)))
    init = np.nan_to_num(X[:8])
    means, labels, one = np.zeros(20), np.zeros(len(X), np.int32), np.array([0])
    starts = starts_of(init[None], 0.5, len(X))
    centers = starts.centers(one)
    mixture = _core.Mixture(np.zeros(8), init, np.ones((8, 20)), np.zeros((8, 20)))
    control = _core.structs.Control
    monkeypatch.setattr(_core.structs, "Control", lambda threads: control(1, threads, 0))
    draws = np.random.default_rng(0).random((1, 8, 3))
    for call in (
        lambda: _core.first_pass(table, 2),
        lambda: _core.assign(table, centers, 2),
        lambda: _core.assign(table, centers, 2, plain=True),
        lambda: _core.loss_of(table, centers, labels, 2),
        lambda: _core.label_and_loss(table, centers, 2),
        lambda: _core.distances(table, centers, np.float64, 2, roots=True),
        lambda: _core.pass_(table, starts, one, fresh=True, bounds=None, threads=2),
        lambda: _core.lloyd(table, starts, 2),
        lambda: _core.hartigan(table, starts, one, 2),
        lambda: _core.seed(table, means, draws, 2),
        lambda: _core.add_rows(table, centers, labels, starts.stats, 2),
        lambda: _core.soft_sums(table, mixture, means, 2),
    ):
        with pytest.raises(KeyboardInterrupt):
            call()


@pytest.mark.parametrize(("size", "n_hartigan"), [(None, 0), (24, 0), (None, 20)])
def test_starts_are_told_as_they_end_not_all_at_once(monkeypatch, size, n_hartigan):
    if size is not None:  # a table in chunks, driven pass by pass
        monkeypatch.setattr(_core, "ENTRIES_OF_ONE_CHUNK", size)
    monkeypatch.setattr(_core, "SHORT", 0)
    done = threading.Event  # the core is asked how far it is all the time
    monkeypatch.setattr(done, "wait", lambda self, timeout=None, wait=done.wait: wait(self, 1e-4))
    observed = observe(np.tile(grouped_rows(3000, 20, apart=0.0), (20, 1)))
    starts = observed.source[:160].reshape(20, 8, 20).copy()
    starts[np.isnan(starts)] = 0.0
    for _ in range(10):  # on a busy machine all may have ended before the core is asked
        counts = []
        run_starts(
            observed, starts, 0.5, max_iter=40, tol=0.0, threads=1, n_hartigan=n_hartigan,
            progress=counts.append,
        )  # fmt: skip
        if len(set(counts)) > 2:
            break
    assert counts == sorted(counts)
    assert counts[-1] == 20
    assert len(set(counts)) > 2


# --- other processes --------------------------------------------------------------------------


def inertia(X):
    return MNARKMeans(3, lam=0.5, n_init=3, random_state=0, n_jobs=2).fit(X).inertia_


@pytest.mark.parametrize("method", ["fork", "spawn"])
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_children_of_every_kind_fit_the_same(method):
    if method not in multiprocessing.get_all_start_methods():
        pytest.skip(f"this system has no {method}")
    X = grouped_rows(400, 20)
    expected = inertia(X)
    with multiprocessing.get_context(method).Pool(1) as pool:
        assert pool.map(inertia, [X, X]) == [expected, expected]
