"""How large numbers may be: whatever the loss adds up must be finite, with room for the solvers.

    L <= W sum_j max(1, lam_j) reach_j^2

with W the weight of all rows and reach_j the distance between the largest and the smallest of the
values, the reference and the centres in feature j. Where the squares vanish, every centre is as
near as any other.
"""

from __future__ import annotations

from typing import Any

import numpy as np

LARGEST_LOSS = 1e300
LARGEST_LAM = 1e100
LARGEST_WEIGHT = 1e50
MODEST = 1e50  # weight, penalty and the square of a reach: far below LARGEST_LOSS when multiplied
SMALLEST_SQUARE = 1e-280
CLEARLY_APART = 1e-130  # its square is far above the smallest


def _reach(extent: tuple[np.ndarray, np.ndarray], points: tuple[np.ndarray, ...]) -> np.ndarray:
    lowest, highest = extent
    for point in points:
        rows = np.reshape(point, (-1, len(lowest)))
        lowest = np.minimum(lowest, rows.min(axis=0))
        highest = np.maximum(highest, rows.max(axis=0))
    with np.errstate(over="ignore"):
        return highest - lowest


def _far_below(
    extent: tuple[np.ndarray, np.ndarray], weight: float, lam: Any, points: tuple[np.ndarray, ...]
) -> bool:
    """Whether the largest number of all settles it: for few rows, the rest takes longer."""
    largest = max(max(-values.min(), values.max()) for values in (*extent, *points))
    penalty = max(float(np.max(lam)), 1.0)
    return largest < MODEST and penalty < MODEST and weight < MODEST


def _may_vanish(extent: tuple[np.ndarray, np.ndarray]) -> bool:
    """Whether the values alone do not show that squares are above nothing."""
    return not (extent[1] - extent[0]).max() > CLEARLY_APART


def check_scale(
    extent: tuple[np.ndarray, np.ndarray], weight: float, lam, *points: np.ndarray,
    vanishing: bool = False,
) -> None:  # fmt: skip
    """Refuse numbers whose loss would overflow; if ``vanishing``, also those whose squares are 0.

    ``extent``: least and largest value (p,) of each feature; ``lam``: a number or (p,); ``points``:
    the reference (p,), centres (..., p).
    """
    if _far_below(extent, weight, lam, points) and not (vanishing and _may_vanish(extent)):
        return
    reach = _reach(extent, points)
    if weight > LARGEST_WEIGHT:
        raise ValueError(
            f"sample_weight adds up to {weight:g}, and may to {LARGEST_WEIGHT:g} at most. Only the "
            "ratios of weights matter: divide them by a constant."
        )
    with np.errstate(over="ignore", invalid="ignore"):
        squares = reach**2
        penalised = np.maximum(lam, 1.0) * squares
    j, weight = int(np.argmax(np.where(np.isnan(penalised), np.inf, penalised))), max(weight, 1.0)
    if not squares.sum() <= LARGEST_LOSS / weight:
        raise ValueError(
            f"The values of column {j} are too large: they reach over {reach[j]:g} (with the "
            "reference and the centres), and the sum of such squares overflows. Rescale the data."
        )
    if not penalised.sum() <= LARGEST_LOSS / weight:
        penalty = np.broadcast_to(lam, reach.shape)[j]
        raise ValueError(
            f"lam={penalty:g} is too large for the values of column {j}, which reach over "
            f"{reach[j]:g} (with the reference and the centres): the loss overflows. Take a "
            "smaller lam or rescale the data."
        )
    if vanishing and reach.max() > 0.0 and squares.max() < SMALLEST_SQUARE:
        raise ValueError(
            f"The values are too small: they reach over {reach.max():g} at most (with the "
            "reference and the centres), and the squares of that vanish. Rescale the data."
        )
