"""What is done in a turn. Every answer is compared with one that was checked at the beginning.

A kind of work is entered once; each ``turn()`` returns how many answers it compared, and raises
``Wrong`` for one that differs. The same seed must give the same bits, whatever else goes on.
"""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import sys
import threading
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from scipy import sparse

from mnarkmeans import (
    MiniBatchMNARKMeans,
    MNARKMeans,
    MNARKMeansCV,
    MNARMixture,
    SelectionWarning,
)

SECONDS_BETWEEN_KILLS = (2.0, 12.0)
LOSS = 1e-9  # share of a loss that rounding may take


class Wrong(AssertionError):
    """An answer that differs from what it was before, or from the plain one."""


def require(holds: object, what: str) -> None:
    if not holds:
        raise Wrong(what)


def table(n: int, p: int, k: int, seed: int) -> np.ndarray:
    """Clusters whose small values are the likeliest to be lost; no row loses all of them."""
    rng = np.random.default_rng(seed)
    X = 3 * rng.normal(size=(k, p))[rng.integers(k, size=n)] + rng.normal(size=(n, p))
    X[:, 1:][rng.random((n, p - 1)) < np.exp(-(X[:, 1:] ** 2))] = np.nan
    return X


def stored(X: np.ndarray) -> sparse.csr_array:
    """Observed entries are the stored ones."""
    rows, columns = np.nonzero(~np.isnan(X))
    return sparse.csr_array((X[rows, columns], (rows, columns)), shape=X.shape)


def plain_loss(X: np.ndarray, model: MNARKMeans) -> float:
    """The formula, with arrays of n x k x p."""
    to_centre = X[:, None, :] - model.cluster_centers_
    to_reference = model.cluster_centers_ - model.reference_
    gaps = np.isnan(X)[:, None, :]
    rows = np.where(gaps, model.lam_ * to_reference**2, to_centre**2).sum(axis=2)
    return float(rows.min(axis=1).sum())


class Work:
    """Nothing, over and over."""

    def __init__(self, seed: int):
        self.random = random.Random(seed)
        self.counts: dict[str, int] = {}  # what else happened

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def turn(self) -> int:
        return 0


class Fits(Work):
    """Every estimator, dense and sparse, in both widths, one after the other and two at once."""

    def __enter__(self):
        warnings.simplefilter("ignore", SelectionWarning)  # the candidates are few
        X = table(3000, 20, 4, 0)
        tables = {"dense": X, "float32": X.astype(np.float32), "csr": stored(X)}
        self.jobs: dict[str, Callable] = {}
        for name, data in tables.items():
            self.jobs[f"k-means, {name}"] = lambda d=data: MNARKMeans(4, random_state=0).fit(d)
        short = dict(n_init=3, n_splits=3, random_state=0)
        self.jobs["threads"] = lambda: MNARKMeans(6, lam=0.5, random_state=1, n_jobs=2).fit(X)
        self.jobs["choice"] = lambda: MNARKMeansCV([3, 4], lams=[0, 0.1, 1], **short).fit(X[:500])
        self.jobs["mixture"] = lambda: MNARMixture(3, random_state=0).fit(X[:1000])
        self.jobs["batches"] = lambda: MiniBatchMNARKMeans(4, lam=0.5, random_state=0).fit(X)
        self.expected = {name: bits(job()) for name, job in self.jobs.items()}
        model = self.jobs["k-means, dense"]()
        loss = plain_loss(X, model)
        require(abs(model.inertia_ - loss) < LOSS * loss, f"loss {model.inertia_}, plainly {loss}")
        self.pool = ThreadPoolExecutor(2)
        return self

    def __exit__(self, *_):
        self.pool.shutdown()

    def turn(self) -> int:
        names = self.random.sample(list(self.jobs), len(self.jobs))
        for name, model in zip(names, self.pool.map(lambda n: self.jobs[n](), names), strict=True):
            require(bits(model) == self.expected[name], f"the fit {name!r} changed")
        return len(names)


def bits(model) -> tuple[bytes, ...]:
    """What a model found, to be compared bit by bit."""
    centers = getattr(model, "cluster_centers_", getattr(model, "means_", None))
    labels = getattr(model, "labels_", None)
    return np.asarray(centers).tobytes(), b"" if labels is None else np.asarray(labels).tobytes()


class Predictions(Work):
    """One model asked from several threads, about stretches of rows drawn at random."""

    THREADS, QUESTIONS = 4, 40

    def __enter__(self):
        self.X = table(20_000, 30, 8, 1)
        self.sparse = stored(self.X)
        self.model = MNARKMeans(8, lam=0.5, random_state=0).fit(self.X)
        self.answers = {name: getattr(self.model, name)(self.X)
                        for name in ("predict", "transform", "impute")}  # fmt: skip
        require((self.answers["predict"] == self.model.labels_).all(), "predict is not labels_")
        nearest = self.answers["transform"].argmin(axis=1)
        require((nearest == self.model.labels_).all(), "the nearest centre is not the label")
        self.pool = ThreadPoolExecutor(self.THREADS)
        return self

    def __exit__(self, *_):
        self.pool.shutdown()

    def turn(self) -> int:
        questions = [(self.random.choice(list(self.answers)), *self._stretch())
                     for _ in range(self.QUESTIONS)]  # fmt: skip
        for _ in self.pool.map(self._ask, questions):
            pass
        return len(questions)

    def _stretch(self) -> tuple[int, int]:
        start = self.random.randrange(len(self.X) - 1)
        return start, min(len(self.X), start + self.random.choice([1, 7, 300, 5000]))

    def _ask(self, question) -> None:
        name, start, stop = question
        got = getattr(self.model, name)(self.X[start:stop])
        require(np.array_equal(got, self.answers[name][start:stop]), f"{name} of {start}:{stop}")
        if name == "predict":
            require(np.array_equal(self.model.predict(self.sparse[start:stop]), got), "sparse rows")


class Reports(Work):
    """The command line in this process: fit with its report, predict, impute; outputs removed."""

    def __enter__(self):
        import pandas as pd

        from mnarkmeans.cli._main import run

        self.folder = Path("reports")
        self.folder.mkdir()
        pd.DataFrame(table(400, 12, 3, 2)).add_prefix("f").to_csv(self.folder / "t.csv")
        self.run = run
        self.expected = self._outputs()
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.folder)

    def turn(self) -> int:
        found = self._outputs()
        for name, content in self.expected.items():
            require(found[name] == content, f"{name} changed")
        return len(found)

    def _outputs(self) -> dict[str, bytes]:
        """Files that must not change; the report tells the time it was made."""
        at, out = self.folder, self.folder / "out"
        self._command("fit", at / "t.csv", "-k", 3, "-o", out)
        self._command("predict", out, at / "t.csv", "-o", at / "new.csv")
        self._command("impute", out, at / "t.csv", "-o", at / "filled.csv")
        page = (out / "report.html").read_text("utf8")
        require(page.rstrip().endswith("</html>"), "the report is not whole")
        files = [out / "labels.csv", out / "centers.csv", out / "markers.csv"]
        files += [at / "new.csv", at / "filled.csv"]
        contents = {file.name: file.read_bytes() for file in files}
        shutil.rmtree(out)
        for file in files[3:]:
            file.unlink()
        left = sorted(path.name for path in at.iterdir())
        require(left == ["t.csv"], f"left behind: {left}")
        return contents

    def _command(self, *arguments) -> None:
        with open(os.devnull, "w") as nowhere, contextlib.redirect_stderr(nowhere):
            code = self.run([*map(str, arguments), "-q"])
        require(code == 0, f"mnarkmeans {arguments[0]} ended with {code}")


class NoSpans:
    """In the place of Dask's history of groups of tasks, which forgets none and grows with fits.

    What is left to grow would be ours.
    """

    def __init__(self, scheduler):
        pass

    def observe_tasks(self, *_, **__) -> dict:
        return {}

    def heartbeat(self, *_) -> None:
        pass


class Cluster(Work):
    """Fits on two Dask workers, one of which is killed every few seconds."""

    K, WORKERS = 6, 2

    def __enter__(self):
        import dask
        import distributed
        from distributed.scheduler import DEFAULT_EXTENSIONS

        # Dask keeps a diary for its dashboard, and gives up tasks whose workers died too often.
        dask.config.set({
            "distributed.admin.low-level-log-length": 1000, "distributed.admin.log-length": 1000,
            "distributed.admin.system-monitor.log-length": 100,
            "distributed.diagnostics.computations.max-history": 10,
            "distributed.scheduler.events-cleanup-delay": "1 minute",
            "distributed.scheduler.allowed-failures": 1000,
            # A place whose new worker is not there after 15 s would be given up: a busy machine
            # needs longer. Where nobody is left a fit is told to be lost.
            "distributed.deploy.lost-worker-timeout": "300s",
            "distributed.scheduler.no-workers-timeout": "300s",
        })  # fmt: skip
        self.X = table(20_000, 8, self.K, 3)
        self.start = np.nan_to_num(self.X[: self.K])
        options = dict(lam=0.5, init=self.start, tol=0.0, max_iter=30)
        self.options, memory = options, MNARKMeans(self.K, algorithm="lloyd", **options)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # 30 iterations may be too few
            self.memory = memory.fit(self.X)
        self.stack = contextlib.ExitStack()
        self.cluster = self.stack.enter_context(distributed.LocalCluster(
            n_workers=self.WORKERS, threads_per_worker=1, processes=True, dashboard_address=":0",
            silence_logs=50, memory_limit="2GiB",
            scheduler_kwargs={"extensions": {**DEFAULT_EXTENSIONS, "spans": NoSpans}},
        ))  # fmt: skip
        self.client = self.stack.enter_context(distributed.Client(self.cluster))
        self.counts = {"workers killed": 0, "fits told to be lost": 0}
        self.ending = threading.Event()
        self.killer = threading.Thread(target=self._kill_now_and_then)
        self.killer.start()
        return self

    def __exit__(self, *_):
        self.ending.set()
        self.killer.join()
        self.stack.close()

    def _kill_now_and_then(self) -> None:
        """Once both workers are there: on a busy machine a new one takes long to come."""
        while not self.ending.wait(self.random.uniform(*SECONDS_BETWEEN_KILLS)):
            while len(self.cluster.scheduler.workers) < self.WORKERS:
                if self.ending.wait(0.5):
                    return
            victim = self.random.choice([nanny.pid for nanny in self.cluster.workers.values()])
            with contextlib.suppress(ProcessLookupError, TypeError):  # it has gone by itself
                os.kill(victim, signal.SIGKILL)
                self.counts["workers killed"] += 1

    def turn(self) -> int:
        import dask.array as da
        from distributed.scheduler import KilledWorker, NoValidWorkerError

        from mnarkmeans.dask import MNARKMeans as OnCluster

        lazy = da.from_array(self.X, chunks=(self.random.choice([1700, 4000]), 8))
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model = OnCluster(self.K, **self.options).fit(lazy)
        except (KilledWorker, NoValidWorkerError):  # an honest answer
            self.counts["fits told to be lost"] += 1
            return 0
        off = np.abs(model.cluster_centers_ - self.memory.cluster_centers_).max()
        require(off < 1e-12, f"centres on the cluster are off by {off}")
        labels = self.client.compute(model.labels_).result(timeout=120)
        require(np.array_equal(labels, self.memory.labels_), "labels on the cluster")
        return 2


KINDS = {kind.__name__.lower(): kind for kind in (Fits, Predictions, Reports, Cluster)}
if sys.platform == "win32":
    del KINDS["cluster"]  # nobody can be killed there by a signal
