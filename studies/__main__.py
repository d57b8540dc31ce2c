"""python -m studies NAME [options]; every study explains itself with --help.

choice      lam and reference from the data: all methods on simulated and real tables
hindsight   the regret of somebody who knows how the tables are made
theorem     centres in the setting of the paper's theorem
steadiness  how far lam moves when a few rows are left out
cells       8,000 genes of 5,000 simulated cells
soft        mixtures and k-means, by noise and by how values are lost
real        all methods on the real tables, and the picture of the front page
verdict     what the package says about its clusters
batch       runs, detection limits and what a correction recovers
"""

import importlib
import sys

NAMES = (
    "choice", "hindsight", "theorem", "steadiness", "cells", "soft", "real", "verdict", "batch"
)  # fmt: skip


def main() -> None:
    if len(sys.argv) < 2 or sys.argv[1] not in NAMES:
        sys.exit(__doc__)
    name = sys.argv.pop(1)
    sys.argv[0] = f"studies {name}"
    importlib.import_module(f"studies.{name}").main()


if __name__ == "__main__":
    main()
