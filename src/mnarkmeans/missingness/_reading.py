"""From the curve of missing shares to a word and to advice, in words that claim no test."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from .._penalty.answer import Missingness
from .._penalty.mechanisms import MECHANISMS

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
    believed = MECHANISMS[missingness.mechanism].curve
    if believed != "flat":
        return believed
    if trend >= CLEAR_DIFFERENCE:
        return "rising"
    if abs(signed) >= CLEAR_DIFFERENCE:
        return "one-sided"
    return "flat"


class Seen(NamedTuple):
    """What advice rests on."""

    kind: str
    signed: float  # missing share of the highest values minus that of the lowest
    outside: bool  # the reference lies below nearly all values
    missingness: Missingness  # what lam="auto" makes of the table
    given: Any  # the reference asked for
    at_limit: np.ndarray  # (p,) bool: features whose least value reference="auto" takes
    from_there: Missingness  # what lam="auto" makes of the table with reference="auto"


def reference_sentence(at_limit: np.ndarray) -> str:
    """What reference="auto" takes."""
    if at_limit.all():
        return 'reference="auto" takes the least observed value of each feature.'
    if not at_limit.any():
        return 'reference="auto" takes 0.'
    return (
        f'reference="auto" takes the least observed value of {at_limit.sum()} feature(s), 0 for '
        "the others."
    )


def suggested_reference(given: Any, at_limit: np.ndarray) -> Any:
    """What reference="auto" takes, in a word, where the one given is a limit nowhere."""
    if isinstance(given, str) or np.ndim(given) > 0 or not at_limit.any():
        return given
    return "min" if at_limit.all() else "auto"


def advice_for(seen: Seen) -> tuple[Any, Any, list[str]]:
    """(lam, reference, sentences). What fit says of lam and reference comes in the same words."""
    kind, missingness, given = seen.kind, seen.missingness, seen.given
    careful = "This describes the table; it cannot prove how the gaps arose."
    better = suggested_reference(given, seen.at_limit)
    told = [missingness.sentence, reference_sentence(seen.at_limit)]
    believed = MECHANISMS[missingness.mechanism].curve
    if believed == "flat" and (kind == "rising" or (kind == "one-sided" and seen.signed > 0)):
        return 0.0, given, [*told, *_wrong_way(kind, seen.signed), careful]
    moved = isinstance(better, str) and not isinstance(given, str)
    # Where values lie far from 0, reference="auto" takes their least ones whatever the gaps say.
    if moved and seen.from_there.mechanism == "limit":
        where = ", and the reference lies outside the observed values" if seen.outside else ""
        hint = f"Low values are the missing ones{where}: try reference={better!r} with lam='auto'."
        return "auto", better, [*told, hint, careful]
    if believed == "one-sided":
        hint = (
            "The penalty stands for what was lost below the reference." if missingness.lam > 0
            else "Without a penalty the clusters explain values and gaps best, so none is taken."
        )  # fmt: skip
        return "auto", given, [*told, hint, careful]
    if kind == "decaying":
        hint = (
            "This is what the method assumes; MNARKMeansCV also tries larger penalties, which help "
            "when many features are noise."
        )
        return "auto", given, [*told, hint, careful]
    if kind == "flat":
        hint = (
            "Gaps look as if they knew nothing of the values; a penalty near 0 ignores such gaps "
            "(lam=0 is k-POD)."
        )
        return missingness.lam, given, [*told, hint, careful]
    if seen.at_limit.all():
        hint = (
            "Low values are missing more often all the same; MNARKMeansCV also tries penalties for "
            "them."
        )
        return "auto", given, [*told, hint, careful]
    hint = (
        "Low values are missing more often, whichever side of the reference they lie on; where you "
        'know of a detection limit, try reference="min" (the least observed value of each feature).'
    )
    return "auto", given, [*told, hint, careful]


def _wrong_way(kind: str, signed: float) -> list[str]:
    where = "far from the reference" if kind == "rising" else "with high values"
    other = (
        "the greatest observed value of each feature" if signed > 0
        else 'the least observed value of each feature (reference="min")'
    )  # fmt: skip
    return [
        f"Entries {where} are missing more often: nothing like the missingness that decays "
        "with the distance from the reference, which the method assumes.",
        "Do not trust a positive lam here: use lam=0, which lets gaps have no say, or move the "
        f"reference to where values do get lost, for instance {other}.",
    ]
