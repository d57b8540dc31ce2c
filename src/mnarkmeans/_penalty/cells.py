"""How well a partition explains values and gaps together, by the cells of cluster and feature.

With m_lj the observed mean of a cell, C_lj its observed entries and g_lj its gaps,

    log-likelihood = -1/2 sum C log(residual) + max_{alpha, b} sum_lj  g log P_lj + C log(1 - P_lj)
    logit P_lj = alpha_j - b z_lj,      z_lj = m_lj       values get lost below a limit ("limit")
                                        z_lj = |m_lj|     around the reference ("decay")
                                        nothing           by chance ("mcar")

Every feature has its own missing share; that it falls with the centre is one number more. Within a
cluster nothing is asked of the values, so tails, skew and unequal noise do not speak for or against
a mechanism: only how the missing share of the cells falls with their means. Means are measured from
the reference, in units of the root mean square.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from .._core.likelihood import SoftSums
from .mixture import Rows

PSEUDO = 0.25  # gaps and values added to each cell: its share stays away from 0 and 1
PRIOR = 1.0  # values at the feature's mean added to each cell: one that saw nothing stands there
MOST_STEPS = 12
COVARIATES: dict[str, Callable[[np.ndarray], np.ndarray]] = {"limit": lambda m: m, "decay": np.abs}


class CellFit(NamedTuple):
    """How the missing share falls with z: logit P_lj = alpha_j - slope z_lj."""

    alpha: np.ndarray  # (p,)
    slope: float
    log_likelihood: float

    def logits(self, z: np.ndarray) -> np.ndarray:
        return self.alpha - self.slope * z


class Cells:
    """The cells of a partition, features without gaps left out of those."""

    def __init__(self, rows: Rows, sums: SoftSums):
        N, S, C = sums[:3]
        pooled = S.sum(axis=0) / np.maximum(C.sum(axis=0), 1e-9)
        means = (S + PRIOR * pooled) / (C + PRIOR)
        # The mean square is 1 in these units, so the sum of x^2 is the observed weight.
        residual = rows.observed_weight + float((C * means * means - 2.0 * S * means).sum())
        self.variance = max(residual / rows.observed_weight, 1e-12)
        self.of_values = -0.5 * rows.observed_weight * math.log(self.variance)
        self.means = means[:, rows.has_gaps]
        self.observed = C[:, rows.has_gaps]
        self.gaps = np.maximum(N[:, None] - self.observed, 0.0)

    def fit(self, mechanism: str, means: np.ndarray | None = None) -> CellFit:
        """The likeliest alpha and slope, by Newton's method; log-likelihood of values and gaps.

        ``means``: other places of the cells than their observed means.
        """
        means = self.means if means is None else means
        g, C = self.gaps + PSEUDO, self.observed + PSEUDO
        n = g + C
        alpha, slope = np.log(g.sum(axis=0) / C.sum(axis=0)), 0.0
        if mechanism == "mcar":
            z = np.zeros_like(n)
        else:
            z = COVARIATES[mechanism](means)
        middle = (z * n).sum(axis=0) / n.sum(axis=0)
        z = z - middle
        value = _pattern(g, n, alpha - slope * z)
        for _ in range(0 if mechanism == "mcar" else MOST_STEPS):
            p = 1.0 / (1.0 + np.exp(slope * z - alpha))
            w, off = n * p * (1.0 - p), g - n * p
            # Newton's equations are an arrow: each alpha_j meets only the slope.
            a, r = w.sum(axis=0) + 1e-9, off.sum(axis=0)
            b = -(w * z).sum(axis=0)
            curvature = float((w * z * z).sum() - (b * b / a).sum()) + 1e-9
            step = (-float((off * z).sum()) - float((b / a * r).sum())) / curvature
            steps, size = (r - b * step) / a, 1.0
            while size > 1e-3:
                trial = _pattern(g, n, alpha + size * steps - (slope + size * step) * z)
                if trial >= value:
                    break
                size *= 0.5
            else:
                break
            alpha, slope = alpha + size * steps, slope + size * step
            gain, value = trial - value, trial
            if gain < 1e-4:
                break
        return CellFit(alpha + slope * middle, slope, self.of_values + value)


def _pattern(g: np.ndarray, n: np.ndarray, logits: np.ndarray) -> float:
    """sum g log P + (n - g) log(1 - P)."""
    return float((g * logits - n * np.logaddexp(0.0, logits)).sum())
