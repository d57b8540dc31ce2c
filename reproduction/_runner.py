"""Run experiments: every repetition is a task with its own seed, computed only once."""

from __future__ import annotations

import json
import shutil
import time
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

from mnarkmeans._io import write_bytes

Setting = dict[str, Any]
Row = dict[str, Any]
Progress = Callable[[str, int, int, float], None]

QUICK_REPETITIONS = 2
SECONDS_BETWEEN_SAVES = 2.0


@dataclass(frozen=True)
class Experiment:
    """One figure or table.

    Attributes
    ----------
    name, title : str
    repetitions : int
        As in the paper.
    settings : function of (quick) -> list of settings
    compute : function of (setting, rng) -> rows
        One repetition; the data are the first thing drawn from rng, so two experiments with the
        same setting see the same data.
    draw : function of (table, folder)
        Writes PNG and SVG; computes nothing.
    compare : function of (table) -> Markdown
    details : function of (quick) -> {file name: frame}, optional
        What a figure shows beyond the table, computed once.
    alone : bool
        One process only, because time is what is measured.
    """

    name: str
    title: str
    repetitions: int
    settings: Callable[[bool], list[Setting]]
    compute: Callable[[Setting, np.random.Generator], list[Row]]
    draw: Callable[[pd.DataFrame, Path], None]
    compare: Callable[[pd.DataFrame], str]
    details: Callable[[bool], dict[str, pd.DataFrame]] | None = None
    alone: bool = False


def run(experiment: Experiment, folder: Path, *, quick: bool = False, **how: Any) -> pd.DataFrame:
    """Compute what is not yet in results.csv, draw the figures and write the comparison."""
    table = compute(experiment, folder, quick=quick, **how)
    if experiment.details is not None:
        for file, frame in experiment.details(quick).items():
            write_text(folder / file, frame.to_csv(index=False))
    experiment.draw(table, folder)
    tasks = table.drop_duplicates("task")
    text = (
        f"# {experiment.title}\n\n"
        f"{tasks['repetition'].nunique()} repetitions, "
        f"{tasks['task_seconds'].sum():.0f} s of computing in one thread.\n\n"
        f"{experiment.compare(table).strip()}\n"
    )
    write_text(folder / "comparison.md", text)
    return table


def compute(
    experiment: Experiment,
    folder: Path,
    repetitions: int | None = None,
    n_jobs: int | None = None,
    quick: bool = False,
    progress: Progress | None = None,
) -> pd.DataFrame:
    """Run the open tasks of one experiment and return the table of all of them."""
    if repetitions is None:
        repetitions = QUICK_REPETITIONS if quick else experiment.repetitions
    tasks = {
        json.dumps(setting, sort_keys=True) + f" #{repetition}": (setting, repetition)
        for setting in experiment.settings(quick)
        for repetition in range(repetitions)
    }
    path = folder / "results.csv"
    finished = read_results(path)
    todo = [task for task in tasks if task not in finished]
    began = saved = time.monotonic()
    try:
        for done, (task, rows) in enumerate(_results(experiment, tasks, todo, n_jobs), start=1):
            finished[task] = rows
            now = time.monotonic()
            if now - saved > SECONDS_BETWEEN_SAVES:
                _save(finished, path)
                saved = now
            if progress is not None:
                left = (now - began) / done * (len(todo) - done)
                progress(experiment.name, done, len(todo), left)
    finally:
        if todo and finished:
            _save(finished, path)
    return _frame({task: finished[task] for task in tasks})


def read_results(path: Path) -> dict[str, list[Row]]:
    """The rows of every task that an earlier run finished."""
    if not path.exists() or path.stat().st_size == 0:
        return {}
    table = pd.read_csv(path)
    if "task" not in table:
        raise ValueError(
            f"{path} does not hold the results of an earlier run. Remove it, or write to another "
            "folder."
        )
    finished: dict[str, list[Row]] = {}
    for row in table.to_dict("records"):
        finished.setdefault(row["task"], []).append(row)
    return finished


def _frame(finished: dict[str, list[Row]]) -> pd.DataFrame:
    return pd.DataFrame([row for rows in finished.values() for row in rows])


def _save(finished: dict[str, list[Row]], path: Path) -> None:
    write_text(path, _frame(finished).to_csv(index=False))


def write_text(path: Path, text: str) -> None:
    """Write the whole file or leave the old one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_bytes(path, text.encode())


def task_rng(setting: Setting, repetition: int) -> np.random.Generator:
    """A stream of its own for every setting and repetition, the same in every experiment."""
    key = zlib.crc32(json.dumps(setting, sort_keys=True).encode())
    return np.random.default_rng([2026, repetition, key])


def _results(
    experiment: Experiment, tasks: dict[str, tuple], todo: list[str], n_jobs: int | None
) -> Iterator[tuple[str, list[Row]]]:
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


def _one(compute: Callable, task: str, setting: Setting, repetition: int) -> tuple[str, list[Row]]:
    began = time.process_time()  # other work on the machine does not count
    with threadpool_limits(1):
        rows = compute(setting, task_rng(setting, repetition))
    seconds = round(time.process_time() - began, 4)
    common = {"task": task, **setting, "repetition": repetition, "task_seconds": seconds}
    return task, [{**common, **row} for row in rows]


def write_pages(experiments: dict[str, Experiment], results: Path, folder: Path) -> None:
    """One page of the documentation for every experiment found in `results`, with its figures."""
    found = [name for name in experiments if (results / name / "comparison.md").is_file()]
    if not found:
        raise FileNotFoundError(
            f"{results} holds no results; run `python -m reproduction all -o {results}` first."
        )
    folder.mkdir(parents=True, exist_ok=True)
    for name in found:
        source = results / name
        figures = sorted(source.glob("*.png"))
        for figure in figures:
            shutil.copyfile(figure, folder / figure.name)
        shutil.copyfile(source / "results.csv", folder / f"{name}.csv")
        shown = "\n\n".join(f"![{experiments[name].title}]({figure.name})" for figure in figures)
        text = (source / "comparison.md").read_text(encoding="utf-8")
        write_text(
            folder / f"{name}.md",
            f"{text}\n{shown}\n\nEvery repetition: {{download}}`{name}.csv`.\n",
        )
