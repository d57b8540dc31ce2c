"""Everything at once, for a long time: ``python -m benchmarks.soak --minutes 60``.

Each kind of work has a process of its own and goes on in turns; every answer is compared with one
that was checked at the beginning. It ends with 1 if an answer was wrong, a process died or hung,
memory or open files grew, or a file was left behind.
"""

from __future__ import annotations

import argparse
import contextlib
import multiprocessing
import os
import random
import shutil
import signal
import sys
import tempfile
import threading
import time
import traceback
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median

import numpy as np
import psutil
from scipy import sparse

from mnarkmeans import MiniBatchMNARKMeans, MNARKMeans, MNARKMeansCV, MNARMixture

PATIENCE = 600.0  # seconds beyond the end, after which a process is taken to hang
SECONDS_BETWEEN_KILLS = (2.0, 12.0)
KEPT_BY_DASK = {"global.lock", "purge.lock"}  # for the next cluster in the same folder


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


# --- kinds of work: after each turn the number of answers that were compared --------------------


def fits(chance: random.Random) -> Iterator[int]:
    """Every estimator, dense and sparse, in both widths, two at once."""
    X, short = table(3000, 20, 4, 0), dict(n_init=3, n_splits=3, random_state=0)
    jobs = {
        "dense": lambda: MNARKMeans(4, random_state=0).fit(X),
        "float32": lambda: MNARKMeans(4, random_state=0).fit(X.astype(np.float32)),
        "csr": lambda: MNARKMeans(4, random_state=0).fit(stored(X)),
        "threads": lambda: MNARKMeans(6, lam=0.5, random_state=1, n_jobs=2).fit(X),
        "search": lambda: MNARKMeansCV([3, 4], lams=[0, 0.1, 1], **short).fit(X[:500]),
        "mixture": lambda: MNARMixture(3, random_state=0).fit(X[:1000]),
        "batches": lambda: MiniBatchMNARKMeans(4, lam=0.5, random_state=0).fit(X),
    }

    def bits(name: str) -> bytes:
        model = jobs[name]()
        centers = getattr(model, "cluster_centers_", getattr(model, "means_", None))
        return centers.tobytes() + model.predict(X).tobytes()

    expected = {name: bits(name) for name in jobs}
    with ThreadPoolExecutor(2) as pool:
        while True:
            names = chance.sample(list(jobs), len(jobs))
            for name, found in zip(names, pool.map(bits, names), strict=True):
                require(found == expected[name], f"the fit {name!r} changed")
            yield len(names)


def predictions(chance: random.Random, questions: int = 40) -> Iterator[int]:
    """One model asked from several threads, about stretches of rows drawn at random."""
    X = table(20_000, 30, 8, 1)
    sparse_rows, model = stored(X), MNARKMeans(8, lam=0.5, random_state=0).fit(X)
    answers = {name: getattr(model, name)(X) for name in ("predict", "transform", "impute")}
    require(np.array_equal(answers["predict"], model.labels_), "predict is not labels_")

    def ask(name: str, start: int, size: int) -> None:
        rows = slice(start, start + size)
        got = getattr(model, name)(X[rows])
        require(np.array_equal(got, answers[name][rows]), f"{name} of {rows}")
        if name == "predict":
            require(np.array_equal(model.predict(sparse_rows[rows]), got), "sparse rows")

    with ThreadPoolExecutor(4) as pool:
        while True:
            names = chance.choices(list(answers), k=questions)
            starts = [chance.randrange(len(X)) for _ in names]
            list(pool.map(ask, names, starts, chance.choices([1, 7, 300, 5000], k=questions)))
            yield questions


def reports(chance: random.Random) -> Iterator[int]:
    """The command line in this process: fit with its report, predict, impute; outputs removed."""
    import pandas as pd

    from mnarkmeans.cli._main import run

    at = Path("reports")
    out, source = at / "out", at / "t.csv"
    at.mkdir()
    pd.DataFrame(table(400, 12, 3, 2)).add_prefix("f").to_csv(source)
    expected = None
    while True:
        with open(os.devnull, "w") as nowhere, contextlib.redirect_stderr(nowhere):
            for words in (
                ["fit", source, "-k", 3, "-o", out],
                ["predict", out, source, "-o", at / "new.csv"],
                ["impute", out, source, "-o", at / "filled.csv"],
            ):
                require(run([*map(str, words), "-q"]) == 0, f"mnarkmeans {words[0]} failed")
        page = (out / "report.html").read_text("utf8")  # it tells the time it was made
        require(page.rstrip().endswith("</html>"), "the report is not whole")
        files = [*(out / f"{name}.csv" for name in ("labels", "centers", "markers"))]
        files += [at / "new.csv", at / "filled.csv"]
        found = [file.read_bytes() for file in files]
        expected = expected or found
        require(found == expected, "a file changed")
        shutil.rmtree(out)
        for file in files[3:]:
            file.unlink()
        require([*at.iterdir()] == [source], "files were left beside the table")
        yield len(files)


def cluster(chance: random.Random, k: int = 6, n_workers: int = 2) -> Iterator[int]:
    """Fits on Dask workers, one of which is killed every few seconds."""
    import dask
    import dask.array as da
    import distributed

    from mnarkmeans.dask import MNARKMeans as OnCluster

    dask.config.set({
        # Dask gives up tasks whose workers died too often, and places whose new worker is late.
        "distributed.scheduler.allowed-failures": 1000,
        "distributed.deploy.lost-worker-timeout": "300s",
        "distributed.scheduler.no-workers-timeout": "300s",
        # It keeps a diary for its dashboard.
        "distributed.admin.low-level-log-length": 1000, "distributed.admin.log-length": 1000,
        "distributed.admin.system-monitor.log-length": 100,
        "distributed.diagnostics.computations.max-history": 10,
        "distributed.scheduler.events-cleanup-delay": "1 minute",
    })  # fmt: skip
    X = table(20_000, 8, k, 3)
    options = dict(lam=0.5, init=np.nan_to_num(X[:k]), tol=0.0, max_iter=30)
    memory = MNARKMeans(k, algorithm="lloyd", **options).fit(X)
    with (
        distributed.LocalCluster(
            n_workers=n_workers, threads_per_worker=1, processes=True, dashboard_address=":0",
            silence_logs=50, memory_limit="2GiB",
        ) as local,
        distributed.Client(local) as client,
        killing(local, n_workers, chance),
    ):  # fmt: skip
        # Its history of groups of tasks grows with every fit: what else grows would be ours.
        spans = local.scheduler.extensions["spans"]
        spans.observe_tasks, spans.heartbeat = lambda *_, **__: {}, lambda *_: None
        while True:
            lazy = da.from_array(X, chunks=(chance.choice([1700, 4000]), 8))
            model = OnCluster(k, **options).fit(lazy)
            off = np.abs(model.cluster_centers_ - memory.cluster_centers_).max()
            require(off < 1e-12, f"centres on the cluster are off by {off}")
            labels = client.compute(model.labels_).result(timeout=120)
            require(np.array_equal(labels, memory.labels_), "labels on the cluster")
            yield 2


@contextlib.contextmanager
def killing(local, n_workers: int, chance: random.Random):
    """Once all workers are there: on a busy machine a new one takes long to come."""
    ending = threading.Event()

    def kill() -> None:
        while not ending.wait(chance.uniform(*SECONDS_BETWEEN_KILLS)):
            if len(local.scheduler.workers) == n_workers:
                with contextlib.suppress(ProcessLookupError, TypeError):  # it has gone by itself
                    victims = [nanny.pid for nanny in local.workers.values()]
                    os.kill(chance.choice(victims), signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        yield
    finally:
        ending.set()
        killer.join()


KINDS = {work.__name__: work for work in (fits, predictions, reports, cluster)}
if sys.platform == "win32":
    del KINDS["cluster"]  # nobody can be killed there by a signal


# --- watching it ----------------------------------------------------------------------------------


def serve(kind: str, seconds: float, seed: int, told) -> None:
    """In a process of its own: what was seen, at the end."""
    process, seen = psutil.Process(), {"answers": 0, "memory": [], "open files": [], "trouble": ""}
    warnings.simplefilter("ignore")  # candidates are few, iterations too
    handles = process.num_fds if hasattr(process, "num_fds") else process.num_handles
    try:
        work, end = KINDS[kind](random.Random(seed)), time.monotonic() + seconds
        with contextlib.closing(work):
            while time.monotonic() < end:
                seen["answers"] += next(work)
                seen["memory"].append(process.memory_info().rss / 1e6)
                seen["open files"].append(handles())
    except BaseException:
        seen["trouble"] = traceback.format_exc()
    told.send(seen)


def grown(values: list[float], allowance: float) -> float:
    """From the second quarter to the last, beyond what may be; the first is warming up.

    >>> grown([5, 90, 100, 101, 100, 99, 101, 100], 5)
    0.0
    >>> grown([5, 90, 100, 110, 120, 130, 140, 150], 5)
    40.0
    """
    n = len(values)
    growth = median(values[-(n // 4) :]) - median(values[n // 4 : n // 2]) if n >= 4 else 0.0
    return growth if growth > allowance else 0.0


def problems(kind: str, seen: dict) -> list[str]:
    found = [seen["trouble"]] if seen["trouble"] else []
    if not seen["memory"]:
        found.append("not one turn was finished")
    for what, allowance in (
        (("memory", 10.0 + 0.05 * max(seen["memory"], default=0))),
        ("open files", 8),
    ):
        if growth := grown(seen[what], allowance):
            found.append(f"{what} grew by {growth:.0f}")
    return [f"{kind}: {problem}" for problem in found]


def watch(kinds: list[str], seconds: float, seed: int) -> list[str]:
    """What went wrong."""
    found, running, spawn = [], {}, multiprocessing.get_context("spawn")
    with own_folder() as folder:
        for number, kind in enumerate(kinds):
            ours, theirs = spawn.Pipe(duplex=False)
            process = spawn.Process(target=serve, args=(kind, seconds, seed + number, theirs))
            process.start()
            theirs.close()
            running[kind] = ours, process
        end = time.monotonic() + seconds + PATIENCE
        for kind, (ours, process) in running.items():
            try:
                if not ours.poll(max(0.0, end - time.monotonic())):
                    raise EOFError
                seen = ours.recv()
                process.join()
            except EOFError:
                process.kill()
                found.append(f"{kind}: the process died or hung")
                continue
            print(f"{kind}: {len(seen['memory'])} turns, {seen['answers']:,} answers", flush=True)
            found += problems(kind, seen)
        return found + [f"left behind: {name}" for name in left_behind(folder)]


def left_behind(folder: Path) -> list[str]:
    """Files that nobody will take away.

    A killed worker cannot remove its own folder and the lock on it: Dask does when the next worker
    comes to the same place. After the last kill none does, so that step is taken here.
    """
    for place in list(folder.rglob("dask-scratch-space")):
        from distributed.diskutils import WorkSpace

        WorkSpace(str(place)).new_work_dir(prefix="next-").release()
    files = [path for path in folder.rglob("*") if path.is_file()]
    reported = folder / "here/reports/t.csv"  # its own table
    return sorted(str(f) for f in files if f.name not in KEPT_BY_DASK and f != reported)


@contextlib.contextmanager
def own_folder():
    """An empty folder in which the processes work and leave their temporary files, if any."""
    came_from, before = Path.cwd(), dict(os.environ)
    with tempfile.TemporaryDirectory(prefix="soak-") as name:
        folder = Path(name)
        (folder / "tmp").mkdir()
        (folder / "here").mkdir()
        os.environ["PYTHONPATH"] = os.pathsep.join([str(came_from), before.get("PYTHONPATH", "")])
        for variable in ("TMPDIR", "DASK_TEMPORARY_DIRECTORY", "JOBLIB_TEMP_FOLDER"):
            os.environ[variable] = str(folder / "tmp")
        os.chdir(folder / "here")
        try:
            yield folder
        finally:
            os.chdir(came_from)
            os.environ.clear()
            os.environ.update(before)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser("python -m benchmarks.soak")
    parser.add_argument("--minutes", type=float, default=2.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="+", choices=list(KINDS), default=list(KINDS))
    options = parser.parse_args(arguments)
    found = watch(options.only, 60 * options.minutes, options.seed)
    print("\n".join(found or ["nothing wrong"]))
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
