"""What is odd about a table, told to the caller of ``fit``; the door refuses what is wrong."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np

from .first_pass import Found

FEWEST_VALUES = 10  # of a feature, to know how far they spread
FAR_SHARE = 1 / 3  # of the features with gaps, from which a far reference is warned of
MUCH_FURTHER = 3.0  # times their own spread: then one feature is enough


class MissingDataWarning(UserWarning):
    """Rows or features without a single observed value."""


class WarnFor(NamedTuple):
    """What the door must know of a fit to warn its user."""

    names: Any = None  # of the features, if they have any
    lam: Any = 1.0  # the penalty that is to be used, or "auto"
    mechanism: str | None = None  # of a mixture, which has no penalty

    @property
    def uses_reference(self) -> bool:
        """Gaps pull centres to it, or values get lost around it."""
        if self.mechanism is not None:
            return self.mechanism in ("auto", "decay", "threshold")
        return isinstance(self.lam, str) or bool(np.any(np.asarray(self.lam) > 0))


def warn_about(found: Found, fit: WarnFor, given: np.ndarray | None, stacklevel: int = 5) -> None:
    """Tell the caller of ``fit`` what is odd about a table; given: the reference, if in numbers."""
    warn_unseen(found, fit, stacklevel + 1)
    if given is not None:
        warn_far(found, given, fit, stacklevel + 1)


def warn_unseen(found: Found, fit: WarnFor, stacklevel: int) -> None:
    """Rows and features without a single observed value are reported to the caller of ``fit``."""
    if found.n_unseen:
        label = "the centre nearest to the reference"
        if fit.mechanism is not None:
            label = "the cluster likeliest to lose everything"
        warnings.warn(
            f"{found.n_unseen} row(s) have no observed value. They take no part in the centres; "
            f"their label is that of {label}.",
            MissingDataWarning,
            stacklevel=stacklevel,
        )
    features = np.flatnonzero(found.counts == 0)
    if len(features):
        warnings.warn(
            f"{len(features)} feature(s) have no observed value ({_some(features, fit.names)}). "
            "Their centres are the reference.",
            MissingDataWarning,
            stacklevel=stacklevel,
        )


def warn_far(found: Found, reference: np.ndarray, fit: WarnFor, stacklevel: int) -> None:
    """A reference far outside the values of features with gaps is hardly where they get lost.

    Far: further away than the values are from each other, for so many of the features that it is
    no matter of a few narrow ones, or much further for any.
    """
    if not fit.uses_reference:
        return
    if ((found.lowest <= reference) & (reference <= found.highest)).all():
        return  # as most are: nothing lies outside
    judged = found.has_gaps & (found.observed >= FEWEST_VALUES) & (found.highest > found.lowest)
    low, high = np.where(judged, found.lowest, 0.0), np.where(judged, found.highest, 0.0)
    far = far_from(reference, low, high)
    very_far = far_from(reference, low, high, MUCH_FURTHER)
    if far.sum() < FAR_SHARE * max(judged.sum(), 1) and not very_far.any():
        return
    why, instead = "a penalty would pull their centres to where no value is", "lam=0"
    if fit.mechanism is not None:
        why = "'decay' and 'threshold' lose values around it, where no value is"
        instead = "another mechanism"
    warnings.warn(
        f"The reference lies far outside the observed values of {far.sum()} of {judged.sum()} "
        f"feature(s) with gaps ({_some(np.flatnonzero(far), fit.names)}): {why}. "
        "Use reference='min' for values lost below a detection limit, reference='auto' to let the "
        f"gaps say where they lie, or {instead}.",
        MissingDataWarning,
        stacklevel=stacklevel,
    )


def _some(features: np.ndarray, names, most: int = 5) -> str:
    """The first few features by name, or by number."""
    shown = ", ".join(str(f if names is None else names[f]) for f in features[:most])
    return shown + (", ..." if len(features) > most else "")


def far_from(point, least: np.ndarray, most: np.ndarray, times: float = 1.0) -> np.ndarray:
    """(p,) features whose values lie further from a point than they do from each other, or
    so many times further."""
    span = most - least
    return (span > 0) & (np.maximum(least - point, point - most) > times * span)
