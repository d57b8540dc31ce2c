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


def table():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4000, 8)) + rng.integers(0, 3, size=(4000, 1))
    X[rng.random(X.shape) < 0.3] = np.nan
    return X[~np.isnan(X).all(axis=1)]


@contextlib.contextmanager
def two_workers():
    with (
        dask.config.set(PATIENT),
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0",
            silence_logs=50, memory_limit="2GiB",
        ) as cluster,
        distributed.Client(cluster) as client,
    ):  # fmt: skip
        yield cluster, client


@pytest.fixture(scope="module")
def client():
    with two_workers() as (_, client):
        yield client


@pytest.fixture(scope="module")
def expected():
    X = table()
    start = np.nan_to_num(X[:K])
    model = mnarkmeans.MNARKMeans(K, lam=0.5, init=start, algorithm="lloyd", tol=0.0)
    return X, start, model.fit(X)


def options(start):
    return dict(lam=0.5, init=start, tol=0.0)


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


def test_two_workers_give_the_result_of_memory(client, expected):
    X, start, memory = expected
    lazy = MNARKMeans(K, **options(start)).fit(da.from_array(X, chunks=(700, 8)))
    assert_allclose(lazy.cluster_centers_, memory.cluster_centers_, rtol=0, atol=1e-12)
    assert lazy.inertia_ == pytest.approx(memory.inertia_, rel=1e-12)
    assert (lazy.labels_.compute() == memory.labels_).all()
    drawn = MNARKMeans(K, lam=0.5, random_state=0, max_iter=2)
    with dask.config.set(scheduler="synchronous"):
        alone = clone(drawn).fit(da.from_array(X, chunks=(700, 8)))
    on_workers = drawn.fit(da.from_array(X, chunks=(1500, 8)))
    assert_allclose(on_workers.loss_path_, alone.loss_path_, rtol=1e-12)


def test_a_bad_block_is_named_from_the_worker(client, expected):
    X = expected[0].copy()
    X[1500, 3] = np.inf
    with pytest.raises(ValueError, match=r"Block 2 of 6 .* infinity: inf in row 100, column 3"):
        MNARKMeans(K, lam=0.5).fit(da.from_array(X, chunks=(700, 8)))


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="Ctrl-C is another thing here")
def test_ctrl_c_leaves_the_cluster_usable(client, expected):
    X, start, _ = expected
    lazy = da.from_array(X, chunks=(700, 8))
    main = threading.main_thread().ident

    def interrupt(iteration):
        if iteration == 3:
            threading.Timer(0.01, signal.pthread_kill, (main, signal.SIGINT)).start()
        if iteration > 3:
            time.sleep(0.05)

    with at_every_iteration(interrupt), pytest.raises(KeyboardInterrupt) as caught:
        MNARKMeans(K, **options(start)).fit(lazy)
    assert client.submit(sum, [1, 2]).result(timeout=PATIENCE) == 3
    _wait_until(lambda: not client.has_what() or not any(client.has_what().values()))
    assert caught.traceback  # which refers to all that the fit had


def test_a_killed_worker_does_not_lose_the_fit(client, expected):
    X, start, memory = expected
    pids = client.run(os.getpid)

    def kill(iteration):
        if iteration == 3:
            os.kill(next(iter(pids.values())), KILL)

    with at_every_iteration(kill):
        lazy = MNARKMeans(K, **options(start)).fit(da.from_array(X, chunks=(700, 8)))
    assert lazy.n_iter_ == memory.n_iter_ > 4
    assert_allclose(lazy.cluster_centers_, memory.cluster_centers_, rtol=0, atol=1e-12)
    client.wait_for_workers(2, timeout=PATIENCE)


def test_a_fit_within_a_task_does_not_wait_for_its_own_thread(client, expected):
    X, start, memory = expected

    def fit():
        return MNARKMeans(K, **options(start)).fit(da.from_array(X, chunks=(700, 8)))

    found = client.submit(fit, pure=False).result(timeout=PATIENCE)
    assert_allclose(found.cluster_centers_, memory.cluster_centers_, rtol=0, atol=1e-12)


def _wait_until(condition, seconds=PATIENCE):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.05)
