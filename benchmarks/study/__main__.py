"""python -m benchmarks.study [--quick] [--groups ...] [--repetitions N] [-o OUT]

Writes OUT/study.csv (one row per data set, grid and rule) after every data set, resumes from it,
and OUT/study.md (the tables). Designs are numbered; those with even numbers choose the default
criterion, those with odd numbers confirm it.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path

import pandas as pd

from benchmarks.study.designs import GROUPS
from benchmarks.study.report import as_markdown
from benchmarks.study.rules import evaluate


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.study", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="every fourth design, once")
    parser.add_argument("--groups", nargs="*", choices=list(GROUPS), default=list(GROUPS))
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0, help="first seed")
    parser.add_argument("-o", "--out", type=Path, default=Path("study"))
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    file = options.out / "study.csv"
    table = pd.read_csv(file) if file.exists() else pd.DataFrame()
    repetitions = 1 if options.quick else options.repetitions
    for name in options.groups:
        try:
            designs = list(GROUPS[name]())
        except (FileNotFoundError, ImportError, OSError) as error:
            print(f"{name}: left out, {error}")
            continue
        for number, design in enumerate(designs):
            if options.quick and number % 4:
                continue
            for seed in range(options.seed, options.seed + repetitions):
                if _has(table, design, seed):
                    continue
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    data = design.make(1000 * seed + number)  # no two designs share their rows
                    rows = pd.DataFrame(evaluate(design, data, seed))
                table = pd.concat([table, rows.assign(number=number)], ignore_index=True)
                table.to_csv(file, index=False)
                print(f"{design.group}: {design.name}, seed {seed}", flush=True)
    (options.out / "study.md").write_text(as_markdown(table))
    print(as_markdown(table))


def _has(table: pd.DataFrame, design, seed: int) -> bool:
    if table.empty:
        return False
    same = (table.group == design.group) & (table.design == design.name) & (table.seed == seed)
    return bool(same.any())


if __name__ == "__main__":
    main()
