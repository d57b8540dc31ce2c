"""Where the time of lam="auto" goes: ``python -m benchmarks.choice_parts [--shape N P K]``.

Prints milliseconds on one thread of a fit with lam fixed and of one with lam="auto", of its parts,
and how much of each is spent in the core; those of the quickest of many fits.
"""

from __future__ import annotations

import argparse
import time
import warnings
from typing import NamedTuple
from unittest import mock

import numpy as np

from mnarkmeans import MNARKMeans
from mnarkmeans._core import library as structs
from mnarkmeans._penalty import choice

from .choice import SHAPES, table

PARTS = {
    "first_fits": "fits for three lam",
    "fit_between": "fits for lam between and beyond",
    "Rows": "collecting values",
    "side_of": "sides of the reference",
    "estimate_missingness": "mixtures",
}


class Spent(NamedTuple):
    seconds: float
    in_core: float
    calls: int  # of the core


class Watch:
    """Seconds of some functions, and of the core meanwhile."""

    def __init__(self):
        self.spent: dict[str, Spent] = {}
        self._core, self._calls = 0.0, 0

    def core(self, function):
        def timed(*args):
            begin = time.perf_counter()
            result = function(*args)
            self._core += time.perf_counter() - begin
            self._calls += 1
            return result

        return timed

    def part(self, name: str, function):
        def timed(*args, **kwargs):
            begin, core, calls = time.perf_counter(), self._core, self._calls
            result = function(*args, **kwargs)
            seconds = time.perf_counter() - begin
            self.spent[name] = Spent(seconds, self._core - core, self._calls - calls)
            return result

        return timed


def parts_of_choice(X: np.ndarray, k: int, repeats: int) -> dict[str, Spent]:
    """Those of the quickest fits of each kind."""
    watch, library = Watch(), structs.library
    names = [f"mnarkmeans_{name}" for name in structs.FUNCTIONS]
    kept = {name: getattr(library, name) for name in names}
    patches = [
        mock.patch.object(choice, name, watch.part(what, getattr(choice, name)))
        for name, what in PARTS.items()
    ]
    fits = {
        f"a fit, lam {what}": MNARKMeans(k, lam=lam, random_state=0, n_jobs=1).fit
        for what, lam in (("fixed", 0.5), ("auto", "auto"))
    }
    found: dict[str, Spent] = {}
    try:
        for name, function in kept.items():
            setattr(library, name, watch.core(function))
        for patch in patches:
            patch.start()
        for what, fit in fits.items():
            runs = []
            for _ in range(repeats):
                watch.spent = {}
                watch.part(what, fit)(X)
                runs.append(watch.spent)
            found |= min(runs, key=lambda spent: spent[what].seconds)
    finally:
        mock.patch.stopall()
        for name, function in kept.items():
            setattr(library, name, function)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--shape", type=int, nargs=3, default=SHAPES[0], metavar=("N", "P", "K"))
    parser.add_argument("--repeats", type=int, default=300)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    found = parts_of_choice(table(*args.shape), args.shape[2], args.repeats)
    print("{} x {}, k={}, one thread: ms, in the core, calls of it".format(*args.shape))
    for name, (seconds, in_core, calls) in found.items():
        print(f"  {name:32s} {1e3 * seconds:8.2f} {1e3 * in_core:8.2f} {calls:4d}")


if __name__ == "__main__":
    main()
