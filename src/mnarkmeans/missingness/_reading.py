"""From the curve of missing shares to a word and to advice, in words that claim no test."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .._penalty.evidence import Missingness

CLEAR_DIFFERENCE = 0.05  # of missing shares, from which a rise or fall is called one


def far_minus_near(size: np.ndarray, share: np.ndarray, weight: np.ndarray) -> float:
    """Missing share of the third of the entries with the greatest size, minus that of the least.

    0 where the difference is within three standard errors of chance.
    """
    keep = np.isfinite(size) & np.isfinite(share) & (weight > 0)
    order = np.argsort(size[keep], kind="stable")
    share, weight = share[keep][order], weight[keep][order]
    reached = (np.cumsum(weight) - weight / 2) / weight.sum()
    near, far = reached < 1 / 3, reached > 2 / 3
    if not near.any() or not far.any():
        return 0.0
    low, high = (np.average(share[part], weights=weight[part]) for part in (near, far))
    error = math.sqrt(low * (1 - low) / weight[near].sum() + high * (1 - high) / weight[far].sum())
    return float(high - low) if abs(high - low) > 3 * error else 0.0


def shape_of(trend: float, signed: float, missingness: Missingness) -> str:
    """What lam="auto" believes comes first; the curve speaks where that sees nothing but chance."""
    if missingness.mechanism in ("decay", "threshold"):
        return "decaying"
    if missingness.mechanism == "limit":
        return "one-sided"
    if trend >= CLEAR_DIFFERENCE:
        return "rising"
    if abs(signed) >= CLEAR_DIFFERENCE:
        return "one-sided"
    return "flat"


def advice_for(
    kind: str, signed: float, outside: bool, missingness: Missingness, given: Any
) -> tuple[Any, Any, list[str]]:
    """(lam, reference, sentences)."""
    careful = "This describes the table; it cannot prove how the gaps arose."
    minimum = isinstance(given, str)
    found = missingness.mechanism == "limit" or (kind == "one-sided" and signed < 0)
    if found and not minimum:
        where = ", and the reference lies outside the observed values" if outside else ""
        return "auto", "min", [
            missingness.sentence,
            f"Low values are the missing ones{where}: try reference=\"min\" (the least observed "
            'value of each feature) or reference="auto" with lam="auto".',
            careful,
        ]  # fmt: skip
    if missingness.mechanism == "limit":
        return "auto", given, [
            missingness.sentence,
            "The penalty stands for what was lost below the reference.",
            careful,
        ]  # fmt: skip
    if kind == "decaying":
        return "auto", given, [
            missingness.sentence,
            "This is what the method assumes; MNARKMeansCV also tries larger penalties, which help "
            "when many features are noise.",
            careful,
        ]  # fmt: skip
    if kind == "flat":
        return missingness.lam, given, [
            missingness.sentence,
            "A penalty near 0 ignores such gaps (lam=0 is k-POD); a reference that means something "
            "in your data, such as a detection limit, may change the picture.",
            careful,
        ]  # fmt: skip
    if kind == "rising" or signed > 0:
        where = "far from the reference" if kind == "rising" else "with high values"
        other = (
            "the greatest observed value of each feature" if signed > 0
            else 'the least observed value of each feature (reference="min")'
        )  # fmt: skip
        return 0.0, given, [
            f"Entries {where} are missing more often: nothing like the missingness that decays "
            "with the distance from the reference, which the method assumes.",
            "Do not trust a positive lam here: use lam=0, which lets gaps have no say, or move the "
            f"reference to where values do get lost, for instance {other}.",
            careful,
        ]  # fmt: skip
    return "auto", "min", [
        "Low values are missing more often, whichever side of the reference they lie on.",
        'Try reference="min" (the least observed value of each feature) with lam="auto".',
        careful,
    ]  # fmt: skip
