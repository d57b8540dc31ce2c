"""mnarkmeans.dask on a real cluster of two worker processes, and what may befall it."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import threading
import time

import numpy as np
import pytest
from backends import grouped_rows
from numpy.testing import assert_allclose
from sklearn.base import clone

import mnarkmeans

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
distributed = pytest.importorskip("distributed")

from mnarkmeans.dask import MNARKMeans  # noqa: E402 (needs dask)

K = 6
KILL = getattr(signal, "SIGKILL", signal.SIGTERM)  # Windows ends a process outright by any signal
PATIENCE = 300  # seconds: on a busy machine a new worker takes long to come
# Dask gives up a place whose new worker is not there after 15 s; a fit without any has no end.
PATIENT = {
    "distributed.deploy.lost-worker-timeout": f"{PATIENCE}s",
    "distributed.scheduler.no-workers-timeout": f"{PATIENCE}s",
}
pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")


@pytest.fixture(scope="module")
def client():
    with (
        dask.config.set(PATIENT),
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0",
            silence_logs=50, memory_limit="2GiB",
        ) as cluster,
        distributed.Client(cluster) as client,
    ):  # fmt: skip
        yield client


X = grouped_rows(4000, 8, apart=1.0)
OPTIONS = {"lam": 0.5, "init": np.nan_to_num(X[:K]), "tol": 0.0}


@pytest.fixture(scope="module")
def memory():
    return mnarkmeans.MNARKMeans(K, algorithm="lloyd", **OPTIONS).fit(X)


def fit():
    return MNARKMeans(K, **OPTIONS).fit(da.from_array(X, chunks=(700, 8)))


def assert_same_centers(found, expected):
    assert_allclose(found.cluster_centers_, expected.cluster_centers_, rtol=0, atol=1e-12)


@contextlib.contextmanager
def at_every_iteration(act):
    """Calls ``act`` with the number of each iteration, as the log tells it."""

    class Watch(logging.Handler):
        def emit(self, record):
            act(int(record.getMessage().removeprefix("iteration ").partition(":")[0]))

    logger, watch = logging.getLogger("mnarkmeans"), Watch()
    logger.addHandler(watch)
    logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.removeHandler(watch)
        logger.setLevel(logging.NOTSET)


def test_two_workers_give_the_result_of_memory(client, memory):
    lazy = fit()
    assert_same_centers(lazy, memory)
    assert lazy.inertia_ == pytest.approx(memory.inertia_, rel=1e-12)
    assert (lazy.labels_.compute() == memory.labels_).all()
    drawn = MNARKMeans(K, lam=0.5, random_state=0, max_iter=2)
    with dask.config.set(scheduler="synchronous"):
        alone = clone(drawn).fit(da.from_array(X, chunks=(700, 8)))
    on_workers = drawn.fit(da.from_array(X, chunks=(1500, 8)))
    assert_allclose(on_workers.loss_path_, alone.loss_path_, rtol=1e-12)


def test_a_bad_block_is_named_from_the_worker(client):
    bad = X.copy()
    bad[1500, 3] = np.inf
    with pytest.raises(ValueError, match=r"Block 2 of 6 .* infinity: inf in row 100, column 3"):
        MNARKMeans(K, lam=0.5).fit(da.from_array(bad, chunks=(700, 8)))


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="Ctrl-C is another thing here")
def test_ctrl_c_leaves_the_cluster_usable(client):
    main = threading.main_thread().ident

    def interrupt(iteration):
        if iteration == 3:
            threading.Timer(0.01, signal.pthread_kill, (main, signal.SIGINT)).start()
        if iteration > 3:
            time.sleep(0.05)

    with at_every_iteration(interrupt), pytest.raises(KeyboardInterrupt) as caught:
        fit()
    assert client.submit(sum, [1, 2]).result(timeout=PATIENCE) == 3
    end = time.monotonic() + PATIENCE
    while any(client.has_what().values()):
        assert time.monotonic() < end, "the blocks are still there"
        time.sleep(0.05)
    assert caught.traceback  # which refers to all that the fit had


def test_a_killed_worker_does_not_lose_the_fit(client, memory):
    pids = client.run(os.getpid)

    def kill(iteration):
        if iteration == 3:
            os.kill(next(iter(pids.values())), KILL)

    with at_every_iteration(kill):
        lazy = fit()
    assert lazy.n_iter_ == memory.n_iter_ > 4
    assert_same_centers(lazy, memory)
    client.wait_for_workers(2, timeout=PATIENCE)


def test_a_fit_within_a_task_does_not_wait_for_its_own_thread(client, memory):
    def fit_there(X, options):
        return MNARKMeans(K, **options).fit(da.from_array(X, chunks=(700, 8)))

    found = client.submit(fit_there, X, OPTIONS, pure=False).result(timeout=PATIENCE)
    assert_same_centers(found, memory)
