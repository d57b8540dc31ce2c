"""The fits from which every criterion judges: parts of the rows, common to all candidates.

A part names the rows of one fit; `fits` has how they are fitted. Parts of a small table are fitted
many at once, those of a large one after the other, by threads that share its rows.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from .._observed import Observed
from .._solver import assign_rows, centers_of_partitions, row_distances, run_starts
from .fits import PartFits, Pool, Settings, anchors, different, groups_of

# Entries x centres of the parts that are fitted together: more would only ask for more memory.
MOST_AT_ONCE = 1 << 25
WARM_FROM = 5  # a candidate and two neighbours on either side


@dataclass(frozen=True)
class Evidence:
    """What the fits of B parts with G candidates for lam showed, for one k."""

    k: int
    lams: np.ndarray  # (G,) rising
    labels: np.ndarray  # (B, n, G) of every row, by the fit to the part
    inside: np.ndarray  # (B, n) rows of the part
    held_out: np.ndarray  # (B, G) loss per held-out row; NaN where it was not asked for
    seconds: np.ndarray  # (B,) per candidate
    groups: np.ndarray  # (B,) parts of one group shared their starts

    @cached_property
    def smallest_cluster(self) -> np.ndarray:
        """(G,) rows of the smallest cluster, median over the parts."""
        n_candidates, k = len(self.lams), self.k
        names = k * np.arange(n_candidates)
        sizes = [
            np.bincount((own + names).ravel(), minlength=k * n_candidates) for own in self.labels
        ]
        return np.median(np.reshape(sizes, (-1, n_candidates, k)).min(axis=2), axis=0)


class _Lots:
    """The parts (B, n) of a table, and work on those that are fitted together."""

    def __init__(self, observed: Observed, k: int, parts: np.ndarray, settings: Settings):
        self.observed, self.k, self.parts, self.settings = observed, k, parts, settings
        self.is_small = observed.table.is_small
        self.seconds = np.zeros(len(parts))
        self._kept: dict[int, Observed] = {}  # of a small table

    def each(self, n_starts: int, work: Callable[[PartFits, np.ndarray], list[Any]]) -> list[Any]:
        """work(fits, parts) for parts that are fitted together, from so many starts each."""
        results = []
        size = self._at_once(n_starts * self.k)
        for first in range(0, len(self.parts), size):
            lot = np.arange(len(self.parts))[first : first + size]
            begin = time.perf_counter()
            results += work(PartFits([self._rows(b) for b in lot], self.k, self.settings), lot)
            self.seconds[lot] += (time.perf_counter() - begin) / len(lot)
        return results

    def _rows(self, b: int) -> Observed:
        if b in self._kept:
            return self._kept[b]
        taken = self.observed.take(np.flatnonzero(self.parts[b]))
        if self.is_small:
            self._kept[b] = taken
        return taken

    def _at_once(self, n_centers: int) -> int:
        """How many parts of a table are fitted together; the parts of a large one are not."""
        if not self.is_small:
            return 1
        return max(1, MOST_AT_ONCE // (self.observed.table.entries * n_centers))


def gather(
    observed: Observed,
    k: int,
    lams: np.ndarray,
    parts: np.ndarray,
    seeds: np.ndarray,
    settings: Settings,
    held_out_lam: float | None = None,
    report: Callable[[], None] | None = None,
) -> Evidence:
    """Fit every part (B, n) of bool with every candidate and label all rows.

    With `held_out_lam`, the rows outside a part are also scored: their loss at the part's centres,
    with that one penalty for all candidates.
    """
    n_parts, n = parts.shape
    labels = np.empty((n_parts, n, len(lams)), np.int32)
    held_out = np.full((n_parts, len(lams)), np.nan)
    lots = _Lots(observed, k, parts, settings)

    def finish(fits: PartFits, lot: np.ndarray) -> list[np.ndarray]:
        if settings.thorough:
            centers = fits.thorough(lams, seeds[lot].tolist())
        else:
            centers = fits.last(lams, [pools[groups[b]] for b in lot])
        every = np.concatenate(centers)
        penalties = settings.penalties(np.tile(lams, len(lot)))
        own = assign_rows(observed, every, penalties, settings.threads)
        labels[lot] = own.T.reshape(len(lot), len(lams), n).transpose(0, 2, 1)
        for b, found in zip(lot, centers, strict=True):
            if held_out_lam is not None:
                penalty = settings.penalties(np.array([held_out_lam]))
                held_out[b] = _held_out(observed, ~parts[b], found, penalty, settings.threads)
            if report is not None:
                report()
        return centers

    groups = groups_of(n_parts, settings.thorough)
    if not settings.thorough:
        found = _at_anchors(lots, lams[anchors(len(lams))], seeds)
        pools = [
            Pool(observed, found[groups == group], lams, settings)
            for group in range(groups.max() + 1)
        ]
    lots.each(settings.n_init * len(lams), finish)
    return Evidence(k, lams, labels, parts, held_out, lots.seconds / len(lams), groups)


def _at_anchors(lots: _Lots, lams: np.ndarray, seeds: np.ndarray) -> np.ndarray:
    """(B, A, k, p): what every part finds at the anchors, from starts of its own."""

    def draw(fits: PartFits, lot: np.ndarray) -> list[np.ndarray]:
        return fits.few_starts(seeds[lot].tolist())

    # Those of small parts are drawn together, each by one thread.
    drawn = lots.each(1, draw) if lots.is_small else []

    def begin(fits: PartFits, lot: np.ndarray) -> list[np.ndarray]:
        return fits.first(lams, [drawn[b] for b in lot] if drawn else draw(fits, lot))

    return np.stack(lots.each(lots.settings.n_init * len(lams), begin))


def _held_out(
    observed: Observed, rest: np.ndarray, centers: np.ndarray, penalty: np.ndarray, threads: int
) -> np.ndarray:
    """(G,) loss per row of the rows ``rest`` at the centres (G, k, p), with one penalty for all."""
    rows = observed.take(np.flatnonzero(rest), means=observed.means)
    n_lams, k, p = centers.shape
    costs = row_distances(rows, centers.reshape(-1, p), penalty, threads).reshape(-1, n_lams, k)
    return rows.weights @ costs.min(axis=2) / rows.weights.sum()


def warm_starts(
    observed: Observed, evidence: Evidence, choice: int, settings: Settings
) -> np.ndarray:
    """Starting centres (R, k, p) for a fit to all rows with a candidate: what the parts have found.

    Different partitions of the parts, for the candidate and its neighbours; of many, the best
    n_init after one pass.
    """
    k, penalty = evidence.k, settings.penalties(evidence.lams[[choice]])
    near = np.argsort(np.abs(np.arange(len(evidence.lams)) - choice), kind="stable")[:WARM_FROM]
    labels = np.concatenate([evidence.labels[:, :, g] for g in near])
    labels = labels[different(labels, k, settings.threads)]
    starts = centers_of_partitions(observed, labels, k, penalty, settings.threads)
    if len(starts) <= settings.n_init:
        return starts
    begun = run_starts(
        observed, starts, penalty, max_iter=1, tol=settings.tol,
        threads=settings.threads,
    )  # fmt: skip
    return begun.centers[np.argsort(begun.losses, kind="stable")[: settings.n_init]]


def thirds(n: int, n_splits: int, rng: np.random.RandomState) -> np.ndarray:
    """Parts (2 * n_splits, n): every split draws one of three labels per row, parts 1 and 2."""
    drawn = rng.randint(3, size=(n_splits, n))
    return np.concatenate([drawn == 0, drawn == 1])


def subsamples(n: int, n_splits: int, share: float, rng: np.random.RandomState) -> np.ndarray:
    """Parts (n_splits, n): a share of the rows each, without replacement."""
    size = subsample_size(n, share)
    parts = np.zeros((n_splits, n), bool)
    for part in parts:
        part[rng.permutation(n)[:size]] = True
    return parts


def subsample_size(n: int, share: float) -> int:
    return min(max(round(share * n), 1), n - 1) if n > 1 else n


def check_part(size: int, k: int, n: int) -> None:
    """Refuse parts of so many rows if more clusters are asked for."""
    if size < k:
        raise ValueError(
            f"n_samples={n} usable rows are too few to choose with n_clusters={k}: a part of them "
            f"has only {size} rows. Ask for fewer clusters, or use MNARKMeans."
        )
