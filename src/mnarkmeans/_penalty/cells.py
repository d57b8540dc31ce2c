"""How well a partition explains values and gaps together, by the cells of cluster and feature.

With m_lj the observed mean of a cell, C_lj its observed entries and g_lj its gaps,

    log-likelihood = -1/2 sum C log(residual) + max_{alpha, b} sum_lj  g log P_lj + C log(1 - P_lj)
    logit P_lj = alpha_j - b z_lj,      z_lj = m_lj       values get lost below a limit ("limit")
                                        z_lj = |m_lj|     around the reference ("decay")
                                        nothing           by chance ("mcar")

where shares may also scatter around that curve, for it is no straight line: close to a hard limit
what is still observed hardly falls any more. Every feature has its own missing share; that it falls
with the centre is one number more. Within a cluster nothing is asked of the values, so tails, skew
and unequal noise do not speak for or against a mechanism: only how the missing share of the cells
falls with their means. Means are measured from the reference, in units of the root mean square.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import gammaln

from .rows import Rows, Start

PSEUDO = 0.25  # gaps and values added to each cell: its share stays away from 0 and 1
PRIOR = 1.0  # values at the feature's mean added to each cell: one that saw nothing stands there
MOST_STEPS = 12
MOST_LOGIT = 500.0  # its exponential is still a number
ROUNDING = 1e-6  # of log-likelihoods
# What the straight curve counts for beside the scatter around it, where it is none: close to a hard
# limit. Between 0.1 and 0.5 the study's designs do equally well; with hundreds of features and none
# of it, gaps would drown the values.
OF_CURVE = 0.3
SCATTER = (4.0, 12.0, 36.0, 108.0, 324.0)  # values and gaps that each cell knows beforehand
COVARIATES: dict[str, Callable[[np.ndarray], np.ndarray]] = {"limit": lambda m: m, "decay": np.abs}


class CellFit(NamedTuple):
    """How the missing share falls with z: logit P_lj = alpha_j - slope z_lj."""

    alpha: np.ndarray  # (R, p)
    slope: np.ndarray  # (R,)
    log_likelihood: np.ndarray  # (R,) of values and gaps

    def logits(self, z: np.ndarray) -> np.ndarray:
        return self.alpha[:, None] - self.slope[:, None, None] * z


def cell_means(S: np.ndarray, C: np.ndarray) -> np.ndarray:
    """(R, k, p), from sums and counts of observed values."""
    pooled = S.sum(axis=1) / np.maximum(C.sum(axis=1), 1e-9)
    return (S + PRIOR * pooled[:, None]) / (C + PRIOR)


class Cells:
    """The cells of R partitions side by side, of features with gaps."""

    def __init__(self, rows: Rows, starts: Sequence[Start]):
        N, S, C = rows.hard_sums(starts)
        means = cell_means(S, C)
        # The mean square is 1 in these units, so the sum of x^2 is the observed weight.
        residual = rows.observed_weight + (means * (C * means - 2.0 * S)).sum(axis=(1, 2))
        self.variance = np.maximum(residual / rows.observed_weight, 1e-12)
        self.of_values = -0.5 * rows.observed_weight * np.log(self.variance)
        some = slice(None) if rows.has_gaps.all() else rows.has_gaps
        self.means, self.observed = means[:, :, some], C[:, :, some]
        self.gaps = np.maximum(N[:, :, None] - self.observed, 0.0)

    def take(self, partitions: Sequence[int] | np.ndarray | slice) -> Cells:
        """Some of the partitions."""
        part = object.__new__(Cells)
        for name, values in vars(self).items():
            setattr(part, name, values[partitions])
        return part

    def only(self, features: np.ndarray) -> Cells:
        """Some of the features with gaps; the values of all of them still count."""
        part = self.take(slice(None))
        for name in ("means", "observed", "gaps"):
            setattr(part, name, getattr(self, name)[:, :, features])
        return part

    def with_values(self, log_likelihood: np.ndarray) -> Cells:
        """The same where the values are explained in another way, (R,)."""
        part = self.take(slice(None))
        part.of_values = log_likelihood
        return part

    def measured_by(self, mechanism: str) -> Cells:
        """The same with the covariate of a mechanism in place of the means."""
        part = self.take(slice(None))
        part.means = COVARIATES[mechanism](self.means)
        return part

    def judged(self, fit: CellFit | None = None, of_curve: float = OF_CURVE) -> np.ndarray:
        """(R,) how well partitions explain values and gaps below a limit: the straight curve
        (`fit`) and the scatter around it, weighed."""
        fit = self.fit("limit") if fit is None else fit
        return of_curve * fit.log_likelihood + (1.0 - of_curve) * self.scattered(fit)

    def pattern_of_features(self, slope: float) -> np.ndarray:
        """(p,) log-likelihood of the gaps of each feature with a given slope; one partition."""
        g, n, alpha, _ = self._begin()
        z = self.means - (self.means * n).sum(axis=1) / n.sum(axis=1)
        b = np.array([slope])
        for _ in range(MOST_STEPS):
            p = 1.0 / (1.0 + np.exp(_against(alpha, b, z)))
            step = (g - n * p).sum(axis=1) / ((n * p * (1.0 - p)).sum(axis=1) + 1e-9)
            alpha = alpha + np.clip(step, -2.0, 2.0)
        against = _against(alpha, b, z)
        return ((n - g) * against - n * np.log1p(np.exp(against))).sum(axis=1)[0]

    def distinct(self) -> tuple[np.ndarray, np.ndarray]:
        """The first and the last of each kind of partition: fits with different lam may end in the
        same one."""
        rounded = np.round(self.variance, 12)
        first = np.unique(rounded, return_index=True)[1]
        last = len(rounded) - 1 - np.unique(rounded[::-1], return_index=True)[1]
        order = np.argsort(first)
        return first[order], last[order]

    def fit(self, mechanism: str, means: np.ndarray | None = None) -> CellFit:
        """The likeliest alpha and slope of each partition, by Newton's method.

        ``means``: other places of the cells than their observed means.
        """
        means = self.means if means is None else means
        if mechanism == "mcar":
            g, n, alpha, slope = self._begin()
            value = _pattern(g, n, _against(alpha, slope, np.zeros_like(n)))[0]
            return CellFit(alpha, slope, self.of_values + value)
        return self._fit(COVARIATES[mechanism](means))

    def fit_both(self) -> tuple[CellFit, CellFit]:
        """The fits of "limit" and "decay", in one go."""
        R = len(self.means)
        twice = self.take(np.tile(np.arange(R), 2))
        z = np.concatenate([COVARIATES[kind](self.means) for kind in ("limit", "decay")])
        found = twice._fit(z)
        return CellFit(*(part[:R] for part in found)), CellFit(*(part[R:] for part in found))

    def scattered(self, fit: CellFit) -> np.ndarray:
        """(R,) log-likelihood of values and gaps if shares scatter around a curve:

        P_lj ~ Beta(f C_lj, f (1 - C_lj)), C the curve, with the likeliest f of SCATTER.
        """
        g, n = self.gaps, self.gaps + self.observed
        P = np.clip(1.0 / (1.0 + np.exp(-fit.logits(self.means))), 1e-4, 1.0 - 1e-4)
        each = []
        for f in SCATTER:
            a, b = f * P, f * (1.0 - P)
            parts = gammaln(g + a) + gammaln(n - g + b) - gammaln(a) - gammaln(b)
            each.append((parts - gammaln(n + f) + gammaln(f)).sum(axis=(1, 2)))
        return self.of_values + np.max(each, axis=0)

    def _begin(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Gaps and entries, and the curve that does not fall."""
        g = self.gaps + PSEUDO
        n = g + self.observed + PSEUDO
        lost = g.sum(axis=1)
        return g, n, np.log(lost / (n.sum(axis=1) - lost)), np.zeros(len(n))

    def _fit(self, z: np.ndarray) -> CellFit:
        g, n, alpha, slope = self._begin()
        middle = (z * n).sum(axis=1) / n.sum(axis=1)
        alpha, slope, value = _climb(g, n, z - middle[:, None], alpha, slope)
        return CellFit(alpha + slope[:, None] * middle, slope, self.of_values + value)


def _climb(g, n, z, alpha, slope):
    """Newton's method for all partitions at once, each with steps of its own size."""
    value, p = _pattern(g, n, _against(alpha, slope, z))
    for _ in range(MOST_STEPS):
        expected = n * p
        off, w = g - expected, expected * (1.0 - p)
        # Newton's equations are an arrow: each alpha_j meets only the slope.
        wz = w * z
        a, r, b = w.sum(axis=1) + 1e-9, off.sum(axis=1), -wz.sum(axis=1)
        curvature = (wz * z).sum(axis=(1, 2)) - (b * b / a).sum(axis=1) + 1e-9
        step = (-(off * z).sum(axis=(1, 2)) - (b / a * r).sum(axis=1)) / curvature
        steps = (r - b * step[:, None]) / a
        size = np.ones(len(step))
        while True:
            trial = alpha + size[:, None] * steps, slope + size * step
            found, p = _pattern(g, n, _against(*trial, z))
            worse = (found < value - ROUNDING) & (size > 0.0)
            if not worse.any():
                break
            size = np.where(worse, np.where(size > 1e-3, 0.5 * size, 0.0), size)
        (alpha, slope), gain, value = trial, found - value, found
        if gain.max() < 1e-3:
            break
    return alpha, slope, value


def _against(alpha: np.ndarray, slope: np.ndarray, z: np.ndarray) -> np.ndarray:
    """-logit P_lj, (R, k, p)."""
    return np.minimum(slope[:, None, None] * z - alpha[:, None], MOST_LOGIT)


def _pattern(g: np.ndarray, n: np.ndarray, against: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(R,) sum of g log P + (n - g) log(1 - P), and P (R, k, p), from -logit P."""
    odds = np.exp(against)
    value = (g - n) * against
    odds += 1.0
    value += n * np.log(odds)
    return -value.sum(axis=(1, 2)), 1.0 / odds
