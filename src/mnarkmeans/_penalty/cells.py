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
falls with their means (``src/core/shares.h`` finds the curve). Means are measured from the
reference, in units of the root mean square.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import gammaln

from .._core.pattern import fit_shares
from .rows import Rows, Start

PRIOR = 1.0  # values at the feature's mean added to each cell: one that saw nothing stands there
MOST_STEPS = 12
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
        return fit_shares(self.gaps, self.observed, self.means, MOST_STEPS, slope).each[0]

    def distinct(self) -> tuple[np.ndarray, np.ndarray]:
        """The first and the last of each kind of partition: fits with different lam may end in the
        same one."""
        first: dict[float, int] = {}
        last: dict[float, int] = {}
        for index, rounded in enumerate(np.round(self.variance, 12).tolist()):
            first.setdefault(rounded, index)
            last[rounded] = index
        return np.array(list(first.values())), np.array(list(last.values()))

    def fit(self, mechanism: str, means: np.ndarray | None = None) -> CellFit:
        """The likeliest alpha and slope of each partition, by Newton's method.

        ``means``: other places of the cells than their observed means.
        """
        means = self.means if means is None else means
        z, steps = means, 0  # by chance: the curve that does not fall
        if mechanism != "mcar":
            z, steps = COVARIATES[mechanism](means), MOST_STEPS
        found = fit_shares(self.gaps, self.observed, z, steps)
        return CellFit(found.alphas, found.slopes, self.of_values + found.values)

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
