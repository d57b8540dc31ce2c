"""python -m mnarkmeans.paper NAME... [--repetitions N] [--jobs N] [--quick] -o OUT
python -m mnarkmeans.paper --docs OUT FOLDER
"""

from __future__ import annotations

import argparse
from pathlib import Path

from . import EXPERIMENTS, run
from ._docs import write_docs


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m mnarkmeans.paper", description=__doc__)
    parser.add_argument("names", nargs="*", help=f"all, or any of {', '.join(EXPERIMENTS)}")
    parser.add_argument("--repetitions", type=int)
    parser.add_argument("--jobs", type=int)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("-o", "--out", default="reproduction")
    parser.add_argument("--docs", nargs=2, metavar=("OUT", "FOLDER"), help="results -> pages")
    chosen = parser.parse_args(arguments)
    if chosen.names:
        names = chosen.names[0] if chosen.names == ["all"] else chosen.names
        run(names, chosen.repetitions, chosen.jobs, chosen.out, chosen.quick)
    if chosen.docs:
        write_docs(*map(Path, chosen.docs))
    if not chosen.names and not chosen.docs:
        parser.error("give the name of an experiment, or --docs")


if __name__ == "__main__":
    main()
