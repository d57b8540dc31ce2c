"""`mnarkmeans reproduce`: the paper's figures and tables, resumed where they stopped."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

from .._io import require
from ._console import Console
from ._errors import unknown_name
from ._output import claimed_folder, told
from ._spoken import as_told


def reproduce(
    console: Console,
    names: list[str],
    repetitions: int | None,
    jobs: int | None,
    out: Path,
    quick: bool,
) -> None:
    """Run experiments one after the other; finished repetitions are kept in results.csv."""
    require("pandas", "cli")
    require("matplotlib", "plot")
    from ..paper import EXPERIMENTS, run

    wanted = list(EXPERIMENTS) if names == ["all"] else names
    for name in wanted:
        if name not in EXPERIMENTS:
            raise unknown_name("experiment", name, ["all", *EXPERIMENTS])
    folders = {}
    for name in wanted:
        with claimed_folder(out / name, [], force=True):
            folders[name] = _one(console, run, name, repetitions, jobs, out, quick)
    console.result({"output": {name: str(folder) for name, folder in folders.items()}})


def _one(console: Console, run, name, repetitions, jobs, out: Path, quick: bool) -> Path:
    with ExitStack() as bars:
        step = None

        def progress(_: str, done: int, total: int, left: float) -> None:
            nonlocal step
            if step is None:  # only now it is known how many there are
                step = bars.enter_context(console.steps(name, total, brief=total > 20))
            step("")

        try:
            with told(out):
                folder = run(name, repetitions, jobs, out, quick, progress)[name]
        except (ValueError, RuntimeError, FileNotFoundError) as error:
            raise as_told(error) from error
    console.say(f"{name}: written to {folder}; open {folder / 'comparison.md'}")
    return folder
