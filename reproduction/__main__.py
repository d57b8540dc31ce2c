"""python -m reproduction NAME|all [--quick] [--repetitions N] [--jobs N] [-o OUT]

Runs one or several of the paper's figures and tables. Each writes results.csv (a row per repetition
and method), its figures and comparison.md into OUT/NAME. Repetitions found in results.csv are not
computed again, so an interrupted run continues where it stopped.

python -m reproduction --pages OUT FOLDER    turns results into pages of the documentation
"""

import argparse
import sys
from pathlib import Path

from . import EXPERIMENTS, run, write_pages


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m reproduction",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help=f"all, or any of {', '.join(EXPERIMENTS)}"
    )
    parser.add_argument("--quick", action="store_true", help="a small version of everything")
    parser.add_argument("--repetitions", type=int, help="instead of the paper's number")
    parser.add_argument("--jobs", type=int, help="processes; one per core unless given")
    parser.add_argument("-o", "--out", type=Path, default=Path("reproduction-results"))
    parser.add_argument("--pages", nargs=2, type=Path, metavar=("OUT", "FOLDER"))
    chosen = parser.parse_args(arguments)
    if not chosen.names and not chosen.pages:
        parser.error(f"name an experiment: all, {', '.join(EXPERIMENTS)}")
    names = list(EXPERIMENTS) if chosen.names == ["all"] else chosen.names
    for name in names:
        if name not in EXPERIMENTS:
            parser.error(
                f"no experiment is called {name!r}; choose from all, {', '.join(EXPERIMENTS)}"
            )
    if chosen.repetitions is not None and chosen.repetitions < 1:
        parser.error(f"--repetitions must be at least 1, found {chosen.repetitions}")
    try:
        for name in names:
            folder = chosen.out / name
            run(EXPERIMENTS[name], folder, quick=chosen.quick, repetitions=chosen.repetitions,
                n_jobs=chosen.jobs, progress=progress)  # fmt: skip
            print(f"{name}: {folder / 'comparison.md'}")
        if chosen.pages:
            write_pages(EXPERIMENTS, *chosen.pages)
    except (FileNotFoundError, ValueError) as error:
        parser.exit(2, f"{parser.prog}: {error}\n")


def progress(name: str, done: int, total: int, seconds_left: float) -> None:
    if sys.stderr.isatty():
        minutes, seconds = divmod(round(seconds_left), 60)
        end = "\n" if done == total else ""
        sys.stderr.write(f"\r{name}: {done} of {total}, {minutes}:{seconds:02d} left   {end}")
        sys.stderr.flush()


if __name__ == "__main__":
    main()
