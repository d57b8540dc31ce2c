"""Gaps that know nothing of the value: a rate for each feature, or for each cluster and feature."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from scipy.special import xlogy

from ..rows import Rows
from .contract import Clusters, Lost, Mechanism, Parameter

PRIOR_ROWS = 2.0  # a cluster's missing rate begins with so many rows of the feature's own


def _log_rates(rates: np.ndarray, has_gaps: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """log rate and log(1 - rate); nothing where no feature lost a value."""
    with np.errstate(divide="ignore"):
        lost = np.maximum(np.log(rates), -700.0)
        seen = np.maximum(np.log1p(-rates), -700.0)
    return np.where(has_gaps, lost, 0.0), np.where(has_gaps, seen, 0.0)


def _gain(own: np.ndarray, common: np.ndarray) -> np.ndarray:
    """Log-likelihood that own rates gain over common ones, for each row."""
    lost = xlogy(own, own / np.maximum(common, 1e-300))
    return lost + xlogy(1.0 - own, (1.0 - own) / np.maximum(1.0 - common, 1e-300))


@dataclass(frozen=True)
class ByClass(Mechanism):
    """Every cluster loses values at its own rate, or each feature at another: (k, p)."""

    rates: np.ndarray
    has_gaps: np.ndarray
    name: ClassVar[str] = "class"
    sentence: ClassVar[str] = "Clusters lose values at rates of their own"
    in_short: ClassVar[str] = "at a rate of each cluster"
    curve: ClassVar[str] = "flat"
    own_parameters: ClassVar = {"rates": Parameter("kp", most=1.0)}
    ignorable: ClassVar[bool] = True

    @classmethod
    def begin(cls, rows: Rows, clusters: Clusters, near: Any = None) -> ByClass:
        return cls(np.zeros_like(clusters.mean), rows.has_gaps)

    def update(self, rows: Rows, clusters: Clusters, steps: int = 1) -> ByClass:
        """A few rows of the feature's mean rate keep small clusters from certainty.

        Rates of every feature, or one for all, whichever is worth its price.
        """
        sizes, size = clusters.sizes[:, None], max(float(clusters.sizes.sum()), 1e-300)
        of_feature = clusters.gaps.sum(axis=0) / size
        own = np.clip((clusters.gaps + PRIOR_ROWS * of_feature) / (sizes + PRIOR_ROWS), 0.0, 1.0)
        m = max(int(self.has_gaps.sum()), 1)
        common = own[:, self.has_gaps].sum(axis=1, keepdims=True) / m
        gain = sizes * _gain(own, common)
        price = 0.5 * len(own) * (m - 1) * math.log(max(size, 2.0))
        rates = own if gain[:, self.has_gaps].sum() > price else np.broadcast_to(common, own.shape)
        return replace(self, rates=np.where(self.has_gaps, rates, own))

    def lost(self, mean: np.ndarray, variance: np.ndarray) -> Lost:
        missing, observed = _log_rates(self.rates, self.has_gaps)
        return Lost(missing, mean, variance, observed)

    def probability(self, values: np.ndarray, labels: np.ndarray) -> np.ndarray:
        return np.where(self.has_gaps, self.rates[labels], 0.0)

    def n_parameters(self, k: int) -> float:
        rates = self.rates[:, self.has_gaps]
        one_for_all = rates.size == 0 or np.ptp(rates, axis=1).max() == 0.0
        return k * (1 if one_for_all else rates.shape[1])


@dataclass(frozen=True)
class ByChance(ByClass):
    """One rate for all features, or one for each where that is worth its price: (1, p)."""

    name: ClassVar[str] = "mcar"
    sentence: ClassVar[str] = "Seen from the reference, the gaps ask for no penalty"
    in_short: ClassVar[str] = "by chance alone"
    own_parameters: ClassVar = {"rates": Parameter("1p", most=1.0)}

    @classmethod
    def begin(cls, rows: Rows, clusters: Clusters, near: Any = None) -> ByChance:
        return cls(np.zeros((1, clusters.mean.shape[1])), rows.has_gaps)

    def update(self, rows: Rows, clusters: Clusters, steps: int = 1) -> ByChance:
        size = max(float(clusters.sizes.sum()), 1e-300)
        own = np.clip(clusters.gaps.sum(axis=0) / size, 0.0, 1.0)
        m = int(self.has_gaps.sum())
        common = np.where(self.has_gaps, own[self.has_gaps].sum() / max(m, 1), own)
        gain = size * _gain(own, common)
        price = 0.5 * (m - 1) * math.log(max(size, 2.0))
        rates = own if gain[self.has_gaps].sum() > price else common
        return replace(self, rates=rates[None])

    def lost(self, mean: np.ndarray, variance: np.ndarray) -> Lost:
        missing, observed = (
            np.broadcast_to(part, mean.shape) for part in _log_rates(self.rates, self.has_gaps)
        )
        return Lost(missing, mean, variance, observed)

    def probability(self, values: np.ndarray, labels: np.ndarray) -> np.ndarray:
        return np.broadcast_to(np.where(self.has_gaps, self.rates, 0.0), values.shape)

    def n_parameters(self, k: int) -> float:
        return len(np.unique(self.rates[0, self.has_gaps]))
