"""Where the boxes and ribbons of a flow between partitions lie.

A column per partition, a box per cluster, as high as its share of the rows; a ribbon between two
neighbouring boxes, as wide as the rows they share. Boxes next to the chosen column are ordered by
where their rows come from (the mean position of these), so that ribbons cross little, and take the
colour of the cluster that gives them most.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment

GAP = 0.12  # of the height, shared by the spaces between the boxes of a column


class Box(NamedTuple):
    column: int
    cluster: int
    rows: int
    low: float
    high: float
    color: int  # the cluster of the chosen column whose colour it has


class Ribbon(NamedTuple):
    column: int  # from this column to the next
    source: int
    target: int
    rows: int
    left: tuple[float, float]
    right: tuple[float, float]
    color: int


class Layout(NamedTuple):
    boxes: list[Box]
    ribbons: list[Ribbon]
    moved: list[float]  # share of the rows that change cluster from each column to the next


def moved_share(a: np.ndarray, b: np.ndarray) -> float:
    """Share of rows outside the best one-to-one matching of the clusters of two partitions.

    Examples
    --------
    >>> moved_share(np.array([0, 0, 1, 1]), np.array([1, 1, 0, 1]))
    0.25
    """
    table = shared_rows(a, b)
    return float(1.0 - table[linear_sum_assignment(-table)].sum() / max(table.sum(), 1))


def shared_rows(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Rows in cluster i of one and j of the other."""
    table = np.zeros((int(a.max()) + 1, int(b.max()) + 1), dtype=int)
    np.add.at(table, (a, b), 1)
    return table


def lay_out(partitions: list[np.ndarray], chosen: int = 0) -> Layout:
    """Boxes and ribbons in a picture of height 1, columns 0, 1, 2, ..."""
    n = len(partitions[0])
    tables = [shared_rows(a, b) for a, b in pairwise(partitions)]
    count = [np.bincount(labels) for labels in partitions]
    order: dict[int, np.ndarray] = {chosen: np.arange(len(count[chosen]))}
    color: dict[int, np.ndarray] = {chosen: np.arange(len(count[chosen]))}
    for here, there in _outwards(len(partitions), chosen):
        table = tables[here] if here < there else tables[there].T  # rows: here, columns: there
        place = np.empty(len(order[here]))
        place[order[here]] = np.arange(len(place))
        weight = table.sum(axis=0)
        order[there] = np.argsort(place @ table / np.maximum(weight, 1), kind="stable")
        color[there] = color[here][table.argmax(axis=0)]
    spans = [_spans(count[c], order[c], n) for c in range(len(partitions))]
    boxes = [
        Box(c, int(l), int(count[c][l]), *spans[c][l], int(color[c][l]))
        for c in range(len(partitions))
        for l in order[c]
        if count[c][l]
    ]
    ribbons = [r for c, table in enumerate(tables) for r in _ribbons(c, table, spans, order, color)]
    moved = [moved_share(a, b) for a, b in pairwise(partitions)]
    return Layout(boxes, ribbons, moved)


def _outwards(columns: int, chosen: int) -> list[tuple[int, int]]:
    """Pairs (known, next to it), from the chosen column to both ends."""
    right = [(c, c + 1) for c in range(chosen, columns - 1)]
    left = [(c, c - 1) for c in range(chosen, 0, -1)]
    return right + left


def _spans(count: np.ndarray, order: np.ndarray, n: int) -> dict[int, tuple[float, float]]:
    gap = GAP / max(len(order) - 1, 1) if len(order) > 1 else 0.0
    room = 1.0 - gap * (len(order) - 1)
    spans, at = {}, 0.0
    for l in order:
        high = at + room * count[l] / n
        spans[int(l)] = (at, high)
        at = high + gap
    return spans


def _ribbons(column: int, table: Any, spans: Any, order: Any, color: Any) -> list[Ribbon]:
    left = {l: low for l, (low, _) in spans[column].items()}
    right = {l: low for l, (low, _) in spans[column + 1].items()}
    height = {l: high - low for l, (low, high) in spans[column].items()}
    height_right = {l: high - low for l, (low, high) in spans[column + 1].items()}
    size, size_right = table.sum(axis=1), table.sum(axis=0)
    out = []
    for a in order[column]:
        for b in order[column + 1]:
            rows = int(table[a, b])
            if not rows:
                continue
            wide = height[int(a)] * rows / size[a]
            wide_right = height_right[int(b)] * rows / size_right[b]
            out.append(
                Ribbon(
                    column, int(a), int(b), rows,
                    (left[int(a)], left[int(a)] + wide),
                    (right[int(b)], right[int(b)] + wide_right),
                    int(color[column][a]),
                )
            )  # fmt: skip
            left[int(a)] += wide
            right[int(b)] += wide_right
    return out
