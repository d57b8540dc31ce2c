"""Look for wrong answers: ``python -m benchmarks.fuzz --minutes 10 --seed 1``.

Every difference between the core and the oracle is printed with what reproduces it.
"""

from __future__ import annotations

import argparse
import sys
import time
import traceback
from collections import Counter

import numpy as np

from mnarkmeans import _core

from . import cases
from .checks import Different, check

SMALL = 300  # entries of a table that is printed whole


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser("python -m benchmarks.fuzz", description=__doc__)
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--cases", type=int, default=10**9, help="at most so many")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    parser.add_argument("--most", choices=cases.SIZES, default="huge", help="largest tables")
    parser.add_argument(
        "--level", action="append", choices=_core.available_levels(),
        help="instruction sets to compare (default: all); the first one does the most",
    )  # fmt: skip
    parser.add_argument("--quiet", action="store_true", help="the summary only")
    return parser.parse_args(arguments)


def orders(options: argparse.Namespace) -> list[tuple[str, ...]]:
    """Each instruction set leads in turn."""
    levels = tuple(options.level or _core.available_levels())
    return [levels[i:] + levels[:i] for i in range(len(levels))]


def main(arguments: list[str] | None = None) -> int:
    options = parse(arguments)
    turns, counts, failures = orders(options), Counter(), 0
    end = time.monotonic() + 60 * options.minutes
    number, told = options.first, time.monotonic()
    while time.monotonic() < end and number < options.first + options.cases:
        levels = turns[number % len(turns)]
        case = cases.make(options.seed, number, options.most)
        counts.update([case.place, case.form, str(case.X.dtype), case.algorithm, *levels])
        problem = found(case, levels)
        if problem is not None:
            failures += 1
            report(*shrunk(case, levels, problem), levels)
        number += 1
        if not options.quiet and time.monotonic() > told + 60:
            told = time.monotonic()
            print(f"{number - options.first} cases, {failures} failures", flush=True)
    done = number - options.first
    span = f"cases {options.first} to {number - 1}"
    print(f"seed {options.seed}, {span}: {done} cases, {failures} failures")
    if not options.quiet:
        print(", ".join(f"{name} {count}" for name, count in counts.most_common()))
    return 1 if failures else 0


def found(case: cases.Case, levels: tuple[str, ...]) -> str | None:
    """What is wrong with a case, or None."""
    try:
        check(case, levels)
    except Different as difference:
        return str(difference)
    except MemoryError:
        raise
    except Exception:
        return traceback.format_exc()
    return None


def shrunk(case: cases.Case, levels, problem: str) -> tuple[cases.Case, str, list[int]]:
    """A case of fewer rows that fails as well, with the rows that are left."""
    rows = np.arange(len(case.X))
    if case.size > 1e6:
        return case, problem, rows.tolist()
    share = 2
    while share <= len(rows):
        size = -(-len(rows) // share)
        for start in range(0, len(rows), size):
            fewer = np.delete(rows, slice(start, start + size))
            if len(fewer) < case.k:
                continue
            what = found(case.rows(fewer), levels)
            if what is not None and "Traceback" not in what:
                rows, problem = fewer, what
                break
        else:
            share *= 2
    return case.rows(rows), problem, rows.tolist()


def report(case: cases.Case, problem: str, rows: list[int], levels: tuple[str, ...]) -> None:
    print(f"\n# {problem}\n# {case.describe()}")
    print("from benchmarks.fuzz.cases import make\nfrom benchmarks.fuzz.checks import check")
    # More rows than that are all of them, or too many to list: the whole case fails as well.
    kept = rows if len(rows) < 50 else "slice(None)"
    print(f"case = make({case.seed}, {case.number}, {case.most!r}).rows({kept})")
    print(f"check(case, {levels!r})")
    if case.X.size <= SMALL:
        with np.printoptions(threshold=sys.maxsize, floatmode="unique", linewidth=100):
            for name in ("X", "weights", "init", "lam", "reference"):
                print(f"# {name} = {getattr(case, name)!r}".replace("\n", "\n#"))
    print(flush=True)


if __name__ == "__main__":
    sys.exit(main())
