"""Run everything at once and tell what was seen: ``python -m benchmarks.soak --minutes 60``.

It ends with 1 if an answer was wrong, a process died or hung, memory or open files grew, or a
temporary file was left.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from ..report import machine
from . import figures
from .watch import watch
from .work import KINDS

BEGIN, END = "<!-- figures -->", "<!-- end of figures -->"


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser("python -m benchmarks.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=2.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="+", choices=list(KINDS), default=list(KINDS))
    parser.add_argument("--page", type=Path, help="a page whose figures are replaced")
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> int:
    options = parse(arguments)
    page = options.page and options.page.resolve()
    seen, left = watch(options.only, 60 * options.minutes, options.seed)
    problems = [problem for s in seen for problem in s.problems]
    problems += [f"left behind: {name}" for name in left]
    events = [f"{name}: {count:,}" for s in seen for name, count in s.counts.items()]
    only = "" if options.only == list(KINDS) else f" --only {' '.join(options.only)}"
    text = [
        f"`python -m benchmarks.soak --minutes {options.minutes:g}{only}` on {machine()}.",
        "",
        *figures.table(seen),
        "",
        "; ".join([*events, f"files left behind: {len(left)}", f"problems: {len(problems)}"]) + ".",
    ]
    print("\n" + "\n".join(text))
    if page:
        replace_figures(page, text)
    print("\n".join(["", *problems]) if problems else "\nnothing wrong")
    return int(bool(problems))


def replace_figures(page: Path, lines: list[str]) -> None:
    before, _, rest = page.read_text("utf8").partition(BEGIN)
    _, _, after = rest.partition(END)
    page.write_text("\n".join([before + BEGIN, "", *lines, "", END + after]), "utf8")


if __name__ == "__main__":
    sys.exit(main())
