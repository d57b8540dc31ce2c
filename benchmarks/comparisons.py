"""What rules of bounds would leave to compare: ``python -m benchmarks.comparisons [JOB]``.

Follows a fit and counts, for some of its rows and every pass, the share of rows x centres that each
rule has compared, and below it the share of rows that are transposed into panels for it. No kernel
is involved; lam is 1, so rows are those of the filled table.

    as it is   a row's margin is used up by its own centre's move and the furthest of any
               (``src/core/pass.h``)
    movers     centres in the order of their moves, in tiles of six: a row is compared with the
               tiles in which a move uses its margin up, beside rows of its stretch that need as
               many; its own centre, which it has to be compared with too, is not counted
    pairs      a bound for each row and centre, the distance of the own centre known: n x k
               numbers, and pairs that no panel has together
"""

from __future__ import annotations

import argparse
from itertools import pairwise
from unittest import mock

import numpy as np

from mnarkmeans import MNARKMeans, _core

from .jobs import JOBS, Data

TILE, PANEL, STRETCH, MOSTLY = 6, 32, 256, 0.75  # as in src/core

Shares = tuple[float, float]  # of rows x centres, of rows


def path_of(data: Data) -> list[np.ndarray]:
    """The centres of every pass of the job's fit."""
    centers = []

    def watched(table, starts, active, **options):
        centers.append(starts.mu[active[0]].copy())
        return pass_(table, starts, active, **options)

    pass_ = _core.pass_
    with mock.patch.object(_core, "pass_", watched):
        MNARKMeans(data.job.k, lam=1.0, algorithm="lloyd", init=data.start).fit(data.X)
    return centers


class AsItIs:
    def __init__(self, distances: np.ndarray):
        self.margins = margins_of(distances)

    def compare(self, moves: np.ndarray, own: np.ndarray, distances: np.ndarray) -> Shares:
        others = np.full(len(moves), moves.max())
        others[moves.argmax()] = np.partition(moves, -2)[-2]
        self.margins -= (moves + others)[own]
        checked = self.margins <= 0
        for stretch in np.split(checked, range(STRETCH, len(own), STRETCH)):
            stretch |= stretch.mean() >= MOSTLY
        self.margins[checked] = margins_of(distances[checked])
        return checked.mean(), checked.mean()


class Movers:
    def __init__(self, distances: np.ndarray):
        self.margins = margins_of(distances)

    def compare(self, moves: np.ndarray, own: np.ndarray, distances: np.ndarray) -> Shares:
        (n, k), order = distances.shape, np.argsort(-moves)
        falling = np.append(moves[order], -np.inf)
        self.margins -= moves[own]
        tiles = -(-np.searchsorted(-falling[:k], -self.margins, side="right") // TILE)
        compared = np.minimum(TILE * tiles, k)
        known = np.where(np.arange(k) < compared[:, None], distances[:, order], np.inf)
        rows = np.arange(n)
        known[rows, np.argsort(order)[own]] = distances[rows, own]
        rest = self.margins - falling[compared]
        self.margins = np.where(tiles > 0, np.minimum(margins_of(known), rest), rest)
        panels = [
            np.sort(part[part > 0])[::-1][::PANEL]  # the neediest row of each
            for part in np.split(tiles, range(STRETCH, n, STRETCH))
        ]
        needed = PANEL * np.concatenate(panels) / n
        return needed.sum() / -(-k // TILE), PANEL * len(needed) / n


class Pairs:
    def __init__(self, distances: np.ndarray):
        self.bounds = distances.copy()

    def compare(self, moves: np.ndarray, own: np.ndarray, distances: np.ndarray) -> Shares:
        rows = np.arange(len(own))
        near = distances[rows, own]
        self.bounds -= moves
        self.bounds[rows, own] = np.inf
        compared = self.bounds <= near[:, None]
        self.bounds = np.where(compared, distances, self.bounds)
        self.bounds[rows, own] = near
        return compared.mean(), compared.any(axis=1).mean()


def margins_of(distances: np.ndarray) -> np.ndarray:
    best = np.partition(distances, 1, axis=1)
    return best[:, 1] - best[:, 0]


def shares(X: np.ndarray, path: list[np.ndarray]) -> dict[str, np.ndarray]:
    """For each rule (passes, 2); the first pass compares everything."""

    def distances_to(centers):
        squares = (X**2).sum(1)[:, None] - 2 * X @ centers.T + (centers**2).sum(1)
        return np.sqrt(np.maximum(squares, 0.0))

    distances = distances_to(path[0])
    rules = {"as it is": AsItIs(distances), "movers": Movers(distances), "pairs": Pairs(distances)}
    found = {name: [(1.0, 1.0)] for name in rules}
    for before, centers in pairwise(path):
        own, distances = distances.argmin(1), distances_to(centers)
        moves = np.sqrt(((centers - before) ** 2).sum(1))
        for name, rule in rules.items():
            found[name].append(rule.compare(moves, own, distances))
    return {name: np.array(each) for name, each in found.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    dense = [job.name for job in JOBS if not job.sparse and not job.starts]
    parser.add_argument("job", nargs="?", default="k=100", choices=dense, metavar="JOB")
    parser.add_argument("--rows", type=int, default=50_000, help="how many are followed")
    args = parser.parse_args()
    data = next(job for job in JOBS if job.name == args.job).make()
    path = path_of(data)
    X = data.filled[: args.rows].astype(np.float64)
    print(f"{args.job}, {len(path)} passes, {len(X):,} rows: shares of a pass, and their sum")
    for name, found in shares(X, path).items():
        for what, each in zip((name, "  rows"), found.T, strict=True):
            print(f"  {what:9s}", *(f"{share:.2f}" for share in each), f" {each.sum():.1f}")


if __name__ == "__main__":
    main()
