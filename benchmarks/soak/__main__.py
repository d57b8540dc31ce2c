"""Run everything at once and tell what was seen: ``python -m benchmarks.soak --minutes 60``.

It ends with 1 if an answer was wrong, a process died or hung, memory or open files grew, or a
temporary file was left.
"""

from __future__ import annotations

import argparse
import sys

from . import figures
from .watch import watch
from .work import KINDS


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser("python -m benchmarks.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=2.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="+", choices=list(KINDS), default=list(KINDS))
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> int:
    options = parse(arguments)
    seen, left = watch(options.only, 60 * options.minutes, options.seed)
    problems = [problem for s in seen for problem in s.problems]
    problems += [f"left behind: {name}" for name in left]
    events = [f"{name}: {count:,}" for s in seen for name, count in s.counts.items()]
    print("", *figures.table(seen), "", sep="\n")
    print("; ".join([*events, f"files left behind: {len(left)}", f"problems: {len(problems)}"]))
    print("\n".join(["", *problems]) if problems else "\nnothing wrong")
    return int(bool(problems))


if __name__ == "__main__":
    sys.exit(main())
