"""How values get lost in given clusters, and why lam and reference are what they are.

What a gap of cluster l and feature j hides is E[x | missing] under the likeliest mechanism
(`fit_mechanisms`), and the centre is right where the penalty makes up for it,

    lam = sum gaps (mu - c)(mu - E[x | missing]) / sum gaps (mu - c)^2

`Missingness` is what fitted estimators keep as ``missingness_``.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit, log_ndtr

from ._io import require
from ._observed import Observed

PRIOR = 2.0  # rows that pull the mean of a cell (cluster, feature) to that of its feature
MARGIN = 1.0  # standard errors from which candidates are told apart
REFERENCE_WORDS = {
    "zero": "reference zero",
    "min": "the smallest observed value of each feature as reference",
    "given": "the reference given",
}
MECHANISM_WORDS = {
    "mcar": "Within these clusters, values seem to be missing by chance.",
    "decay": "Within these clusters, values close to the reference are missing more often.",
    "limit": (
        "Within these clusters, low values are missing more often, as below a detection limit."
    ),
}


class MechanismFit(NamedTuple):
    """How values get lost, fitted to a partition."""

    mechanism: str  # "mcar", "decay" or "limit"
    strength: float  # share lost (mcar, limit), or t in units of the variance within clusters
    log_likelihood: float  # of observed values and gaps, less log(n) / 2 for each parameter
    lam: float  # the penalty that makes up for it


class CellSums:
    """Sums over clusters of the features with gaps, measured from the reference in spreads of the
    feature within clusters. E[x | missing] is `lost` below, Var[x | missing] `lost_variance`."""

    def __init__(self, sample: Observed, labels: np.ndarray, k: int, some: Any = True):
        member = np.zeros((k, sample.n_rows))
        member[labels, np.arange(len(labels))] = sample.weights
        values, seen = sample.zero_filled()
        if sample.is_sparse:
            values, seen = values.toarray(), seen.toarray()
        counts, sums, squares = (member @ part for part in (seen, values, values**2))
        within = (squares - sums**2 / np.maximum(counts, 1e-300)).sum(axis=0)
        variance = within / np.maximum(counts.sum(axis=0), 1e-300)
        spread_out = squares.sum(axis=0) / np.maximum(counts.sum(axis=0), 1e-300)
        some = (seen.min(axis=0) < 1.0) & (variance > 1e-9 * spread_out) & some
        self.some = some  # (p,)
        unit = np.sqrt(variance[some])
        self.counts, self.sums = counts[:, some], sums[:, some] / unit
        self.squares = squares[:, some] / unit**2
        self.gaps = np.maximum(member.sum(axis=1)[:, None] - self.counts, 0.0)
        self.sizes = self.counts + self.gaps
        self.price = 0.5 * math.log(max(sample.weights.sum(), 2.0))
        entries, weights = values[:, some] / unit, sample.weights[:, None] * seen[:, some]
        self.bins, self.bin_weights = _binned(entries[weights > 0], weights[weights > 0])

    def _observed(self, kept: np.ndarray) -> np.ndarray:
        """(k, p) probability to be observed: log odds of each feature, and one slope >= 0 on the
        distance of the cell's mean from the reference, fitted to the features that are kept."""
        sizes, total = self.sizes, self.sizes.sum(axis=0)
        average = self.sums.sum(axis=0) / np.maximum(self.counts.sum(axis=0), 1e-300)
        away = np.abs((self.sums + PRIOR * average) / (self.counts + PRIOR))
        away = np.clip(away - (sizes * away).sum(axis=0) / total, -6.0, 6.0)
        share = (self.counts.sum(axis=0) + 0.5) / (total + 1.0)
        odds, slope = np.log(share / (1.0 - share)), 0.0
        for _ in range(6):  # Newton's steps, for the slope and the features in turn
            q = expit(odds + slope * away)
            left, information = away * (self.counts - sizes * q), away**2 * sizes * q * (1.0 - q)
            step = left[:, kept].sum() / (information[:, kept].sum() + 1e-9)
            slope = max(slope + float(step), 0.0)
            q = expit(odds + slope * away)
            information = (sizes * q * (1.0 - q)).sum(axis=0)
            odds = odds + (self.counts - sizes * q).sum(axis=0) / (information + 1e-9)
        return np.clip(expit(odds + slope * away), 1e-9, 1.0 - 1e-9)

    def explained(self) -> float:
        """Share of the variation of the gaps, within features, that follows the distance of the
        clusters from the reference."""
        share = self.counts.sum(axis=0) / np.maximum(self.sizes.sum(axis=0), 1e-300)

        def variation(q: np.ndarray) -> float:
            return float((self.counts * (1.0 - q) ** 2 + self.gaps * q**2).sum())

        left, whole = variation(self._observed(np.ones(len(share), bool))), variation(share)
        return max(1.0 - left / whole, 0.0) if whole > 0.0 else 0.0

    def followers(self) -> np.ndarray:
        """(p,) False for features with gaps that do not follow the distance from the reference as
        those of other features do: chance is likelier by more than log(n)/2."""
        share = self.counts.sum(axis=0) / np.maximum(self.sizes.sum(axis=0), 1e-300)
        share = np.clip(share, 1e-9, 1.0 - 1e-9)

        def log_likelihood(q: np.ndarray) -> np.ndarray:
            return (self.counts * np.log(q) + self.gaps * np.log1p(-q)).sum(axis=0)

        kept = np.ones(len(share), bool)
        for _ in range(4):
            last = kept
            kept = log_likelihood(self._observed(last)) - log_likelihood(share) > -self.price
            if np.array_equal(kept, last) or not kept.any():
                break
        found = np.ones(len(self.some), bool)
        found[self.some] = kept
        return found

    def log_density(self, mu: np.ndarray, variance: np.ndarray) -> float:
        """Of the observed values."""
        square = self.squares - 2.0 * mu * self.sums + mu**2 * self.counts
        log_variance = self.counts * np.log(2.0 * np.pi * variance)
        return -0.5 * float((log_variance + square / variance).sum())

    def refitted(
        self, mu: np.ndarray, lost: np.ndarray, lost_variance: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """The M-step: means (k, p) and variances (p,) with the gaps as they are expected."""
        mu = (self.sums + self.gaps * lost) / np.maximum(self.sizes, 1e-300)
        square = self.squares - 2.0 * mu * self.sums + mu**2 * self.counts
        square += self.gaps * (lost_variance + (lost - mu) ** 2)
        return mu, np.maximum(square.sum(axis=0) / self.sizes.sum(axis=0), 1e-12)

    def penalty(self, mu: np.ndarray, lost: np.ndarray) -> float:
        """lam = 1 - (E[x | missing] - c) / (mu - c), averaged as the loss weighs it."""
        weight = float((self.gaps * mu**2).sum())
        return max(float((self.gaps * mu * (mu - lost)).sum()) / weight, 0.0) if weight else 0.0


def _binned(values: np.ndarray, weights: np.ndarray, bins: int = 256) -> tuple[Any, Any]:
    """Mean and weight of so many bins of sorted values, about equally heavy."""
    if not values.size:
        return values, weights
    order = np.argsort(values, kind="stable")
    values, weights = values[order], weights[order]
    reached = np.cumsum(weights)
    place = np.minimum((bins * (reached - weights / 2) / reached[-1]).astype(int), bins - 1)
    total = np.bincount(place, weights, bins)
    used = total > 0
    means = np.bincount(place, weights * values, bins) / np.maximum(total, 1e-300)
    return means[used], total[used]


def fit_mechanisms(sums: CellSums) -> list[MechanismFit]:
    """Chance, loss around the reference, and loss below a limit, given a partition."""
    if not sums.bins.size:
        return [MechanismFit("mcar", 1.0, 0.0, 0.0)]
    return [fit(sums) for fit in (_chance, _decay, _limit)]


def _chance(sums: CellSums) -> MechanismFit:
    counts, gaps = float(sums.counts.sum()), float(sums.gaps.sum())
    share = gaps / (counts + gaps)
    mu = sums.sums / np.maximum(sums.counts, 1e-300)
    mu, variance = sums.refitted(mu, mu, np.ones(mu.shape[1]))
    value = sums.log_density(mu, variance) + gaps * math.log(share) + counts * math.log1p(-share)
    return MechanismFit("mcar", share, value - sums.price, 0.0)


def _decay(sums: CellSums) -> MechanismFit:
    """P(missing | x) = c exp(-t x^2); with D = 2 s t + 1, E[x | missing] = mu / D and
    Var[x | missing] = s / D, so that the penalty is 1 - 1 / D (Theorem 3.2)."""
    squares, weights, gaps = sums.bins**2, sums.bin_weights, sums.gaps

    def clusters(t: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        variance = np.ones(gaps.shape[1])
        for _ in range(4):
            kept = 1.0 / (2.0 * variance * t + 1.0)
            mu = sums.sums / np.maximum(sums.sizes - gaps * kept, 1e-300)
            mu, variance = sums.refitted(mu, mu * kept, variance * kept)
        return mu, variance, 1.0 / (2.0 * variance * t + 1.0)

    def value(log_t: float, c: np.ndarray) -> np.ndarray:
        t = math.exp(log_t)
        mu, variance, kept = clusters(t)
        cells = sums.log_density(mu, variance)
        cells += float((gaps * (0.5 * np.log(kept) - t * kept * mu**2)).sum())
        observed = np.log1p(-c[:, None] * np.exp(-t * squares)) @ weights
        return cells + float(gaps.sum()) * np.log(c) + observed

    best, log_t, _ = _search(value, np.linspace(-6.0, 6.0, 17), np.linspace(0.05, 0.999, 16))
    mu, _, kept = clusters(math.exp(log_t))
    lam = sums.penalty(mu, mu * kept)
    return MechanismFit("decay", math.exp(log_t), best - 2.0 * sums.price, lam)


def _limit(sums: CellSums) -> MechanismFit:
    """P(missing | x) = Phi((b - x) / zeta); with d = sqrt(s + zeta^2), a = (b - mu) / d and
    h = phi(a) / Phi(a), E[x | missing] = mu - (s / d) h, Var = s - (s / d)^2 h (a + h)."""
    x, gaps = sums.bins, sums.gaps
    mu = sums.sums / np.maximum(sums.counts, 1e-300)
    variance = np.ones(gaps.shape[1])

    def value(log_zeta: float, b: np.ndarray) -> np.ndarray:
        zeta = math.exp(log_zeta)
        a = (b[:, None, None] - mu) / np.sqrt(variance + zeta**2)
        lost = (gaps * log_ndtr(a)).sum(axis=(1, 2))
        return lost + log_ndtr((x - b[:, None]) / zeta) @ sums.bin_weights

    first, second = np.linspace(-4.0, 1.0, 9), np.linspace(x[0], x[-1], 17)
    for _ in range(4):
        best, log_zeta, b = _search(value, first, second)
        zeta = math.exp(log_zeta)
        first, second = log_zeta + np.linspace(-0.6, 0.6, 3), b + np.linspace(-0.5, 0.5, 5)
        for _ in range(10):
            d = np.sqrt(variance + zeta**2)
            a, ratio = (b - mu) / d, variance / d
            h = np.exp(-0.5 * a * a - 0.5 * math.log(2.0 * math.pi) - log_ndtr(a))
            lost, spread = mu - ratio * h, np.maximum(variance - ratio**2 * h * (a + h), 0.0)
            mu, variance = sums.refitted(mu, lost, spread)
    total = best + sums.log_density(mu, variance) - 2.0 * sums.price
    return MechanismFit(
        "limit", float(gaps.sum() / sums.sizes.sum()), total, sums.penalty(mu, lost)
    )


def _search(value: Any, first: np.ndarray, second: np.ndarray) -> tuple[float, float, float]:
    """The largest value(first, second array) on a grid, then on finer ones around its best point,
    and where it is."""
    for _ in range(3):
        values = np.array([value(one, second) for one in first])
        i, j = np.unravel_index(np.nan_to_num(values, nan=-np.inf).argmax(), values.shape)
        found = float(values[i, j]), float(first[i]), float(second[j])
        first = np.linspace(first[max(i - 1, 0)], first[min(i + 1, len(first) - 1)], 5)
        second = np.linspace(second[max(j - 1, 0)], second[min(j + 1, len(second) - 1)], 5)
    return found


@dataclass(frozen=True)
class Missingness:
    """Why lam and reference are what they are.

    Attributes
    ----------
    lam : float
        The penalty taken.
    reference : str
        The reference taken: "zero", "min" (the least observed value of each feature) or "given".
    candidates : dict of arrays
        One entry per candidate: ``lam``, ``reference``, ``features`` (how many have the penalty),
        ``score`` (log-likelihood per row of what the clusters predict of features left out, or with
        fewer than 8 features the share of the rows that are in the clusters of the likeliest
        mixture; larger is better) and ``behind`` (score less the best one's, in standard errors of
        the difference over rows and blocks of features: 0 is the best, -2 is two behind).
    lam_range : (float, float)
        The smallest and the largest candidate with this reference that find the same clusters and
        score at most one standard error lower than the best of them.
    mechanisms : list of (mechanism, strength, log_likelihood, lam)
        Missingness mechanisms, each fitted to the chosen clusters: by chance ("mcar"), around the
        reference ("decay"), below a limit ("limit"). ``log_likelihood`` has log(n)/2 per parameter
        subtracted, and ``lam`` is the penalty that recovers the centres under the mechanism.
    mechanism, lam_theory
        The likeliest of them, and its penalty; ``lam`` is the nearest to it in ``lam_range``.
    explained : float
        Share of the variation of missingness, within features, that follows the distance of the
        clusters from the reference.
    n_by_chance : int
        Features that have no penalty, because their missing values do not follow the clusters.
    decided_by : {"score", "mechanism", "stability"}
        "mechanism": with fewer than 8 features normal mixtures decide, by BIC, whether values are
        missing by chance or near a reference.
        "stability": of lam that score equally well, MNARKMeansCV took a more stable one.
    """

    lam: float
    reference: str
    candidates: dict[str, np.ndarray]
    lam_range: tuple[float, float]
    mechanisms: list[MechanismFit]
    explained: float
    n_by_chance: int = 0
    decided_by: str = "score"

    @property
    def mechanism(self) -> str:
        return self._likeliest.mechanism

    @property
    def lam_theory(self) -> float:
        return self._likeliest.lam

    @property
    def _likeliest(self) -> MechanismFit:
        return max(self.mechanisms, key=lambda one: one.log_likelihood)

    @property
    def sentence(self) -> str:
        """What was taken and why."""
        lam, behind = self.candidates["lam"], self.candidates["behind"]
        how, where = MECHANISM_WORDS[self.mechanism], REFERENCE_WORDS[self.reference]
        if len(behind) < 2 and self.mechanisms[0].strength == 0.0:
            return "Nothing is missing, so every lam gives the same clusters."
        if len(behind) < 2:
            return f"There are too few rows to choose lam from the data: lam={self.lam:g}."
        if self.n_by_chance:
            count = f"{self.n_by_chance} feature{'s' if self.n_by_chance > 1 else ''}"
            where += f" (but 0 in {count} whose values are missing by chance)"
        taken = f"lam={self.lam:g} with {where}" if self.lam > 0.0 else "lam=0"
        low, high = self.lam_range
        span = f" (lam from {low:g} to {high:g} finds the same clusters)" if high > low else ""
        no_penalty = behind[lam == 0.0]
        if self.decided_by == "mechanism":
            near, chance = "because they are near this reference", "by chance"
            if self.lam == 0.0:
                near, chance = chance, "because they are near the reference"
            return (
                f"{taken}: with so few features, Gaussian mixture models decide, and values are "
                f"more likely to be missing {near} than {chance}{span}. {how}"
            )
        if self.lam == 0.0:
            lead = "score lower" if behind[lam > 0].max() < 0.0 else "are not clearly better"
            return (
                "lam=0: missing values are ignored. Using them does not improve the prediction of "
                f"held-out features (candidates with a penalty {lead}). {how}"
            )
        if len(no_penalty) and no_penalty[0] >= -MARGIN:
            return (
                f"{taken} predicts held-out features about as well as no penalty does, and its "
                f"clusters are more stable. {how}"
            )
        lead = ""
        if len(no_penalty):
            lead = f"; no penalty scores {-no_penalty[0]:.1f} standard errors lower"
        edge = self.lam >= lam.max()
        more = " It is the largest candidate; a larger lam may do better." if edge else ""
        return f"{taken} predicts held-out features best{lead}{span}.{more} {how}"

    def to_frame(self) -> Any:
        """The candidates as a pandas DataFrame."""
        return require("pandas", "cli").DataFrame(self.candidates)

    def to_plain(self) -> dict[str, Any]:
        """Numbers, words and arrays, for a file."""
        return asdict(self) | {"mechanisms": [one._asdict() for one in self.mechanisms]}

    @classmethod
    def from_plain(cls, stored: dict[str, Any]) -> Missingness:
        """The inverse of `to_plain`."""
        mechanisms = [MechanismFit(**one) for one in stored["mechanisms"]]
        return cls(**stored | {"mechanisms": mechanisms, "lam_range": tuple(stored["lam_range"])})

    def __repr__(self) -> str:
        columns = list(self.candidates.values())
        head = f"{'lam':>6}  {'reference':9}  {'features':>8}  {'score':>10}  behind (s.e.)"
        lines = [self.sentence, "", head]
        lines += [
            f"{lam:>6g}  {name:9}  {features:>8}  {score:>10.4f}  {-behind:>6.1f}"
            for lam, name, features, score, behind in zip(*columns, strict=True)
        ]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        names = ["lam", "reference", "features", "score", "behind (s.e.)"]
        head = "".join(f"<th>{name}</th>" for name in names)
        rows = "".join(
            f"<tr><td>{lam:g}</td><td>{name}</td><td>{features}</td>"
            f"<td>{score:.4f}</td><td>{-behind:.1f}</td></tr>"
            for lam, name, features, score, behind in zip(*self.candidates.values(), strict=True)
        )
        return f"<p>{self.sentence}</p><table><tr>{head}</tr>{rows}</table>"
