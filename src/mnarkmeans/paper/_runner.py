"""Run experiments: every repetition is a task with its own seed; finished ones are never redone."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import joblib
from threadpoolctl import threadpool_limits

from ._experiment import Experiment, Setting, task_name, task_rng
from ._store import Store, write_table, write_text

Progress = Callable[[str, int, int, float], None]
QUICK_REPETITIONS = 2


def run(
    name: str | Sequence[str],
    repetitions: int | None = None,
    n_jobs: int | None = None,
    out: str | Path = "reproduction",
    quick: bool = False,
    progress: Progress | str | None = "auto",
) -> dict[str, Path]:
    """Compute, draw and compare one, several or all of the paper's figures and tables.

    Parameters
    ----------
    name : str or sequence of str
        "figure1" to "figure7", "table1" to "table3", one of the experiments beyond the paper, or
        "all". `mnarkmeans.paper.EXPERIMENTS` lists them.
    repetitions : int, optional
        Instead of the paper's number (30; 10 for table3).
    n_jobs : int, optional
        Processes; None for one per core.
    out : path
        Each experiment writes into its own folder there: results.csv (a row per repetition and
        method), figures (PNG and SVG) and comparison.md. Repetitions found in results.csv are not
        computed again, so an interrupted run goes on where it stopped.
    quick : bool
        A small version of everything, for a first look and for tests.
    progress : callable of (name, done, total, seconds left), "auto" or None
        "auto" writes a line to a terminal and nothing to a pipe.

    Returns
    -------
    dict
        Name of each experiment -> its folder.

    Examples
    --------
    >>> import tempfile
    >>> from mnarkmeans.paper import run
    >>> folder = run("table2", repetitions=1, n_jobs=1, out=tempfile.mkdtemp(), quick=True)
    >>> sorted(path.name for path in folder["table2"].iterdir())
    ['comparison.md', 'results.csv', 'table2.png', 'table2.svg']
    """
    from . import EXPERIMENTS

    wanted = _names(name, list(EXPERIMENTS))
    report = progress if callable(progress) or progress is None else _to_terminal
    folders = {}
    for each in wanted:
        experiment = EXPERIMENTS[each]
        folder = Path(out) / each
        table = compute(experiment, folder, repetitions, n_jobs, quick, report)
        if experiment.details is not None:
            for file, frame in experiment.details(quick).items():
                write_table(frame, folder / file)
        experiment.draw(table, folder)
        write_text(_comparison(experiment, table), folder / "comparison.md")
        folders[each] = folder
    return folders


def compute(
    experiment: Experiment,
    folder: Path,
    repetitions: int | None = None,
    n_jobs: int | None = None,
    quick: bool = False,
    progress: Progress | None = None,
) -> Any:
    """Run the open tasks of one experiment and return the table of all of them."""
    store = Store(folder / "results.csv")
    if repetitions is None:
        repetitions = QUICK_REPETITIONS if quick else experiment.repetitions
    if repetitions < 1:
        raise ValueError(f"repetitions must be at least 1, found {repetitions}.")
    tasks = {
        task_name(setting, repetition): (setting, repetition)
        for setting in experiment.settings(quick)
        for repetition in range(repetitions)
    }
    todo = [task for task in tasks if task not in store.rows]
    began = time.monotonic()
    try:
        for done, (task, rows) in enumerate(_results(experiment, tasks, todo, n_jobs), start=1):
            store.add(task, rows)
            if progress is not None:
                spent = time.monotonic() - began
                progress(experiment.name, done, len(todo), spent / done * (len(todo) - done))
    finally:
        if todo and store.rows:
            store.save()
    return store.table(list(tasks))


def _results(experiment: Experiment, tasks: dict, todo: list[str], n_jobs: int | None):
    """(task, rows) of every open task, as they finish."""
    jobs = 1 if experiment.alone else (n_jobs or joblib.cpu_count())
    if jobs == 1 or len(todo) < 2:
        for task in todo:
            yield _one(experiment.compute, task, *tasks[task])
        return
    with joblib.parallel_config(backend="loky", inner_max_num_threads=1):
        yield from joblib.Parallel(n_jobs=jobs, return_as="generator_unordered")(
            joblib.delayed(_one)(experiment.compute, task, *tasks[task]) for task in todo
        )


def _one(compute: Callable, task: str, setting: Setting, repetition: int) -> tuple[str, list]:
    began = time.process_time()  # of the processor: a busy machine does not change it
    with threadpool_limits(1):
        rows = compute(setting, task_rng(setting, repetition))
    seconds = round(time.process_time() - began, 4)
    common = {"task": task, **setting, "repetition": repetition, "task_seconds": seconds}
    return task, [{**common, **row} for row in rows]


def _comparison(experiment: Experiment, table: Any) -> str:
    tasks = table.drop_duplicates("task")
    return (
        f"# {experiment.title}\n\n"
        f"{tasks['repetition'].nunique()} repetitions, "
        f"{tasks['task_seconds'].sum():.0f} s of computing in one thread.\n\n"
        f"{experiment.compare(table).strip()}\n"
    )


def _names(name: str | Sequence[str], known: list[str]) -> list[str]:
    asked = [name] if isinstance(name, str) else list(name)
    if asked == ["all"]:
        return known
    for each in asked:
        if each not in known:
            raise ValueError(
                f"No experiment is called {each!r}; choose from all, {', '.join(known)}."
            )
    return asked


def _to_terminal(name: str, done: int, total: int, left: float) -> None:
    if not sys.stderr.isatty():
        return
    minutes, seconds = divmod(round(left), 60)
    end = "\n" if done == total else ""
    sys.stderr.write(f"\r{name}: {done} of {total}, {minutes}:{seconds:02d} left   {end}")
    sys.stderr.flush()
