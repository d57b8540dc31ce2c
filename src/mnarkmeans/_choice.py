"""lam="auto" and reference=None: one score decides between candidates (lam, reference).

Groups found without some of the features must predict those features: their values and, through
the distance of the groups from the reference, their gaps. The features are cut into blocks. For
every block the rows are labelled without it, by the candidate's loss and centres; then the block is
predicted entry by entry from those labels:

    score_i = sum_j  log P(r_ij)  +  r_ij log f(x_ij)         r_ij = 1 where x_ij is observed

    f   Laplace around the mean of the cell (label without the block, feature), the row itself left
        out, shrunk to the feature's mean by PRIOR rows, moved by the row's own level of values
        (from the other blocks); one scale for each feature
    P   log odds = those of the feature + slope * (distance of the cell's mean from the reference,
        in spreads of the feature, less its average) + the row's own level of observation (from the
        other blocks); one slope >= 0, fitted on the other blocks; 0 without a penalty

Gaps count only as far as they follow the magnitude of what was lost: gaps that follow a run, a
plate or the depth of a row earn nothing. Scores of candidates are compared row by row, and no
penalty is taken unless the best candidate is more than one standard error better.

Where several lam lead to groups that the score cannot tell apart, the one is taken that recovers
the centres (`recovering_lam`): what a gap of cluster l and feature j hides is E[x | missing] under
the likeliest mechanism, and the centre is right where the penalty makes up for it,

    lam = sum gaps (mu - c)(mu - E[x | missing]) / sum gaps (mu - c)^2
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit, log_ndtr
from threadpoolctl import ThreadpoolController

from ._core import first_pass
from ._io import require
from ._observed import Observed
from ._solver import k_means_plus_plus, run_starts
from ._validation import far_from

LAMS = (0.0, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0)
PRIOR = 2.0  # rows that pull the mean of a cell to that of its feature
BLOCKS = 8
MARGIN = 1.0  # standard errors
N_STARTS = 4  # tried with three of the lams; what they find is shared by all candidates
ENTRIES_OF_SAMPLE = 1 << 16
FEWEST_ROWS, FEWEST_COLUMNS = 200, 400


# --- the score ----------------------------------------------------------------------------------


class Table:
    """A table as the score sees it: dense, centred, columns in the order of the blocks."""

    def __init__(self, observed: Observed, seed: int = 0):
        p = observed.n_features
        values, gaps = observed.filled_and_gaps()
        self.order = np.random.default_rng(seed).permutation(p)
        self.seen = np.ascontiguousarray(~gaps[:, self.order], dtype=np.float64)
        self.weights = observed.weights
        counts = self.weights @ self.seen
        values = np.where(self.seen > 0, values[:, self.order].astype(np.float64), 0.0)
        self.shift = self.weights @ values / np.maximum(counts, 1e-300)
        self.values = np.where(self.seen > 0, values - self.shift, 0.0)
        self.total = float(self.weights.sum())
        self.counts = counts
        share = (counts + 0.5) / (self.total + 1.0)
        self.feature_odds = np.log(share / (1.0 - share))
        self.has_gaps = (self.seen == 0.0).any(axis=0)
        parts = np.array_split(np.arange(p), min(BLOCKS, p))
        self.blocks = [slice(part[0], part[-1] + 1) for part in parts]
        self.squares = self.values**2

    def placed(self, per_feature: Any) -> np.ndarray:
        """(..., p) numbers of the features in the order of this table."""
        p = len(self.order)
        return np.broadcast_to(per_feature, (*np.shape(per_feature)[:-1], p))[..., self.order]

    def labels_without(self, centers: np.ndarray, lam: Any, reference: Any) -> np.ndarray:
        """(1 + blocks, n): labels by all features, then without each block."""
        mu = self.placed(centers) - self.shift
        pull = self.placed(lam) * (mu - (self.placed(reference) - self.shift)) ** 2
        costs = np.stack([
            self.seen[:, b] @ (mu[:, b] ** 2 - pull[:, b]).T - 2.0 * self.values[:, b] @ mu[:, b].T
            + pull[:, b].sum(axis=1)
            for b in self.blocks
        ])  # fmt: skip
        whole = costs.sum(axis=0)
        without = whole[None] - costs if len(self.blocks) > 1 else costs
        return np.concatenate([whole[None], without]).argmin(axis=2)


class Cells(NamedTuple):
    """Sums over the rows of each label: weights (k,), counts, values and squares (k, p)."""

    sizes: np.ndarray
    counts: np.ndarray
    sums: np.ndarray
    squares: np.ndarray

    @classmethod
    def of(cls, table: Table, labels: np.ndarray, k: int, rows: Any = slice(None)) -> Cells:
        member = np.zeros((k, len(labels)))
        member[labels, np.arange(len(labels))] = table.weights[rows]
        sums = (member @ part[rows] for part in (table.seen, table.values, table.squares))
        return cls(member.sum(axis=1), *sums)

    def moved(self, table: Table, old: np.ndarray, new: np.ndarray) -> Cells:
        """After some rows have changed their labels."""
        rows = np.flatnonzero(old != new)
        k = len(self.sizes)
        if 3 * len(rows) > len(new):
            return Cells.of(table, new, k)
        lost, won = (Cells.of(table, labels[rows], k, rows) for labels in (old, new))
        return Cells(*(a - b + c for a, b, c in zip(self, lost, won, strict=True)))


def row_scores(table: Table, centers: np.ndarray, lam: Any, reference: Any) -> np.ndarray:
    """(n,) score of every row, for centres (k, p) fitted with lam and reference."""
    k, has_penalty = len(centers), bool(np.max(lam) > 0)
    first, *without = table.labels_without(centers, lam, reference)
    every = Cells.of(table, first, k)
    point = table.placed(reference) - table.shift
    scores = np.zeros(len(first))
    for block, labels in zip(table.blocks, without, strict=True):
        cells = every.moved(table, first, labels)
        scores += _block_scores(table, cells, labels, block, point, has_penalty)
    return scores


def _block_scores(
    table: Table, cells: Cells, labels: np.ndarray, block: slice, point: np.ndarray,
    has_penalty: bool,
) -> np.ndarray:  # fmt: skip
    others = np.ones(len(point), bool)
    others[block] = len(table.blocks) == 1
    mean = cells.sums / (cells.counts + PRIOR)
    # x less the mean of the others in its cell is `alone` times x less the mean of them all.
    alone = (cells.counts + PRIOR) / np.maximum(cells.counts + PRIOR - 1.0, 1e-9)
    rest_squares = (
        alone**2 * (cells.squares - 2.0 * mean * cells.sums + mean**2 * cells.counts)
    ).sum(axis=0)
    spread = np.sqrt(np.maximum(rest_squares, 0.0) / np.maximum(table.counts, 1.0)) + 1e-12
    average, away = _distances(cells, mean, point, spread, table.has_gaps)
    slope = _slope(away[:, others], cells, others, table.feature_odds) if has_penalty else 0.0
    odds = table.feature_odds + slope * away
    observation = _observation_levels(table, odds, labels, others)
    level = _value_levels(table, mean, alone, labels, others, rest_squares)

    seen, values = table.seen[:, block], table.values[:, block]
    own_mean = mean[labels, block]
    rest = alone[labels, block] * (values - own_mean)
    error = np.abs(rest - level[:, None]) * seen
    scale = table.weights @ error / np.maximum(table.counts[block], 1.0)
    scale = np.maximum(scale, 1e-9)
    own_mean = np.where(seen > 0, values - rest, own_mean)
    own_away = np.abs(own_mean - point[block]) / spread[block] - average[block]
    own_away = np.where(table.has_gaps[block], np.clip(own_away, -6.0, 6.0), 0.0)
    own_odds = table.feature_odds[block] + slope * own_away + observation[:, None]
    own_odds = np.clip(own_odds, -9.2, 9.2)  # nothing is surer than 1e-4
    gained = seen * (error / scale + np.log(2.0 * scale)) + (1.0 - seen) * own_odds
    return -(gained + np.log1p(np.exp(-own_odds))).sum(axis=1)


def _distances(
    cells: Cells, mean: np.ndarray, point: np.ndarray, spread: np.ndarray, has_gaps: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Of cells from the reference: the average (p,), and what each has more than that (k, p)."""
    distance = np.abs(mean - point) / spread
    average = cells.sizes @ distance / cells.sizes.sum()
    return average, np.where(has_gaps, np.clip(distance - average, -6.0, 6.0), 0.0)


def _slope(away: np.ndarray, cells: Cells, others: np.ndarray, feature_odds: np.ndarray) -> float:
    """One slope for all features, by Newton's method."""
    slope, sizes, counts = 0.0, cells.sizes[:, None], cells.counts[:, others]
    for _ in range(6):
        q = expit(feature_odds[others] + slope * away)
        gradient = (away * (counts - sizes * q)).sum()
        slope += gradient / ((sizes * away**2 * q * (1.0 - q)).sum() + 1e-9)
    return max(float(slope), 0.0)


def _observation_levels(
    table: Table, odds: np.ndarray, labels: np.ndarray, others: np.ndarray
) -> np.ndarray:
    """(n,) what to add to a row's log odds, standard normal beforehand.

    It depends on the label and the number of observed values alone.
    """
    seen = table.seen[:, others].sum(axis=1)
    kinds, kind = np.unique(labels * (len(others) + 1.0) + seen, return_inverse=True)
    label, count = np.divmod(kinds, len(others) + 1.0)
    own = odds[label.astype(int)][:, others]
    level = np.zeros(len(kinds))
    for _ in range(5):
        q = expit(own + level[:, None])
        level += (count - q.sum(axis=1) - level) / ((q * (1.0 - q)).sum(axis=1) + 1.0)
    return level[kind]


def _value_levels(
    table: Table, mean: np.ndarray, alone: np.ndarray, labels: np.ndarray, others: np.ndarray,
    rest_squares: np.ndarray,
) -> np.ndarray:  # fmt: skip
    """(n,) mean of what is left of a row, shrunk by how far such means differ at all."""
    alone = alone * others
    rest = table.values @ alone.T - table.seen @ (alone * mean).T
    total = rest[np.arange(len(labels)), labels]
    count = np.maximum(table.seen @ others, 1.0)
    noise = rest_squares[others].sum() / max(table.counts[others].sum(), 1.0)
    differ = table.weights @ ((total / count) ** 2 - noise / count) / table.total
    return total / (count + noise / max(differ, 1e-12))


def standard_errors(scores: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """(C,) how far candidates (C, n) are behind the best, in standard errors over rows."""
    behind = scores - scores[int((scores @ weights).argmax())]
    mean = behind @ weights / weights.sum()
    error = np.sqrt(((behind - mean[:, None]) ** 2) @ weights)
    return behind @ weights / (error + 1e-9)


# --- the penalty that recovers centres ----------------------------------------------------------


class Mechanism(NamedTuple):
    """How values get lost, fitted to a partition."""

    mechanism: str  # "mcar", "decay" or "limit"
    strength: float  # share lost (mcar, limit), or t in units of the variance within clusters
    log_likelihood: float  # of observed values and gaps, less log(n) / 2 for each parameter
    lam: float  # the penalty that makes up for it


class Moments:
    """Cells of the features with gaps, measured from the reference in spreads of the feature.

    With clusters N(mu_lj, s_j): E[x | missing] is `lost`, Var[x | missing] `lost_variance`.
    """

    def __init__(self, table: Table, labels: np.ndarray, k: int, reference: Any):
        cells, some = Cells.of(table, labels, k), table.has_gaps & (table.counts > 0)
        point = (table.placed(reference) - table.shift)[some]
        counts, sums, squares = (part[:, some] for part in cells[1:])
        within = squares.sum(axis=0) - (sums**2 / np.maximum(counts, 1e-300)).sum(axis=0)
        unit = np.sqrt(np.maximum(within / table.counts[some], 1e-24))
        self.counts, self.gaps = counts, np.maximum(cells.sizes[:, None] - counts, 0.0)
        self.sizes = counts + self.gaps
        self.sums = (sums - point * counts) / unit
        self.squares = (squares - 2.0 * point * sums + point**2 * counts) / unit**2
        self.price = 0.5 * math.log(max(table.total, 2.0))
        entries = (table.values[:, some] - point) / unit
        weights = table.weights[:, None] * table.seen[:, some]
        self.bins, self.bin_weights = _binned(entries[weights > 0], weights[weights > 0])

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
    order = np.argsort(values, kind="stable")
    values, weights = values[order], weights[order]
    reached = np.cumsum(weights)
    place = np.minimum((bins * (reached - weights / 2) / reached[-1]).astype(int), bins - 1)
    total = np.bincount(place, weights, bins)
    used = total > 0
    return (np.bincount(place, weights * values, bins) / np.maximum(total, 1e-300))[used], total[
        used
    ]


def fit_mechanisms(table: Table, labels: np.ndarray, k: int, reference: Any) -> list[Mechanism]:
    """Chance, loss around the reference, and loss below a limit, given a partition."""
    if not (table.has_gaps & (table.counts > 0)).any():
        return [Mechanism("mcar", 1.0, 0.0, 0.0)]
    moments = Moments(table, labels, k, reference)
    return [fit(moments) for fit in (_chance, _decay, _limit)]


def _chance(moments: Moments) -> Mechanism:
    counts, gaps = float(moments.counts.sum()), float(moments.gaps.sum())
    share = gaps / (counts + gaps)
    mu = moments.sums / np.maximum(moments.counts, 1e-300)
    mu, variance = moments.refitted(mu, mu, np.ones(mu.shape[1]))
    value = moments.log_density(mu, variance) + gaps * math.log(share) + counts * math.log1p(-share)
    return Mechanism("mcar", share, value - moments.price, 0.0)


def _decay(moments: Moments) -> Mechanism:
    """P(missing | x) = c exp(-t x^2); with D = 2 s t + 1, E[x | missing] = mu / D and
    Var[x | missing] = s / D, so that the penalty is 1 - 1 / D (Theorem 3.2)."""
    squares, weights, gaps = moments.bins**2, moments.bin_weights, moments.gaps

    def clusters(t: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        variance = np.ones(gaps.shape[1])
        for _ in range(6):
            kept = 1.0 / (2.0 * variance * t + 1.0)
            mu = moments.sums / np.maximum(moments.sizes - gaps * kept, 1e-300)
            mu, variance = moments.refitted(mu, mu * kept, variance * kept)
        return mu, variance, 1.0 / (2.0 * variance * t + 1.0)

    def value(log_t: float, c: np.ndarray) -> np.ndarray:
        t = math.exp(log_t)
        mu, variance, kept = clusters(t)
        cells = moments.log_density(mu, variance)
        cells += float((gaps * (0.5 * np.log(kept) - t * kept * mu**2)).sum())
        observed = np.log1p(-c[:, None] * np.exp(-t * squares)) @ weights
        return cells + float(gaps.sum()) * np.log(c) + observed

    best = _search(value, np.linspace(-6.0, 6.0, 17), np.linspace(0.05, 0.999, 16))
    t = math.exp(best.first)
    mu, _, kept = clusters(t)
    value_here = best.value - 2.0 * moments.price
    return Mechanism("decay", t, value_here, moments.penalty(mu, mu * kept))


def _limit(moments: Moments) -> Mechanism:
    """P(missing | x) = Phi((b - x) / zeta); with d = sqrt(s + zeta^2), a = (b - mu) / d and
    h = phi(a) / Phi(a), E[x | missing] = mu - (s / d) h, Var = s - (s / d)^2 h (a + h)."""
    x, gaps = moments.bins, moments.gaps
    mu = moments.sums / np.maximum(moments.counts, 1e-300)
    variance = np.ones(gaps.shape[1])

    def value(log_zeta: float, b: np.ndarray) -> np.ndarray:
        zeta = math.exp(log_zeta)
        a = (b[:, None, None] - mu) / np.sqrt(variance + zeta**2)
        lost = (gaps * log_ndtr(a)).sum(axis=(1, 2))
        return lost + log_ndtr((x - b[:, None]) / zeta) @ moments.bin_weights

    for _ in range(6):
        best = _search(value, np.linspace(-4.0, 1.0, 9), np.linspace(x[0], x[-1], 17))
        zeta, b = math.exp(best.first), best.second
        for _ in range(10):
            d = np.sqrt(variance + zeta**2)
            a, ratio = (b - mu) / d, variance / d
            h = np.exp(-0.5 * a * a - 0.5 * math.log(2.0 * math.pi) - log_ndtr(a))
            lost, spread = mu - ratio * h, np.maximum(variance - ratio**2 * h * (a + h), 0.0)
            mu, variance = moments.refitted(mu, lost, spread)
    total = best.value + moments.log_density(mu, variance) - 2.0 * moments.price
    return Mechanism(
        "limit", float(gaps.sum() / moments.sizes.sum()), total, moments.penalty(mu, lost)
    )


class Found(NamedTuple):
    """The best point of a grid."""

    value: float
    first: float
    second: float


def _search(value: Any, first: np.ndarray, second: np.ndarray, rounds: int = 3) -> Found:
    """Maximise value(first, second array) on a grid, then on finer ones around its best point."""
    for _ in range(rounds):
        values = np.array([value(one, second) for one in first])
        i, j = np.unravel_index(np.nanargmax(values), values.shape)
        found = Found(float(values[i, j]), float(first[i]), float(second[j]))
        first = np.linspace(first[max(i - 1, 0)], first[min(i + 1, len(first) - 1)], 5)
        second = np.linspace(second[max(j - 1, 0)], second[min(j + 1, len(second) - 1)], 9)
    return found


# --- the choice ---------------------------------------------------------------------------------


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
        One entry per candidate: ``lam``, ``reference``, ``score`` (log-likelihood per row of what
        the groups predict of features left out; larger is better) and ``behind`` (how far behind
        the best, in standard errors of the difference over rows).
    lam_range : (float, float)
        The smallest and the largest candidate with this reference that the score cannot tell from
        the best one (within one standard error).
    mechanisms : list of (mechanism, strength, log_likelihood, lam)
        Ways of losing values, each fitted to the chosen clusters: by chance ("mcar"), around the
        reference ("decay"), below a limit ("limit"). ``log_likelihood`` is less log(n)/2 for each
        parameter, and ``lam`` is the penalty that recovers the centres if values get lost so.
    mechanism, lam_theory
        The likeliest of them, and its penalty; ``lam`` is the nearest to it in ``lam_range``.
    explained : float
        Share of the variation of the gaps, within features, that follows the distance of the
        clusters from the reference.
    """

    lam: float
    reference: str
    candidates: dict[str, np.ndarray]
    lam_range: tuple[float, float]
    mechanisms: list[Mechanism]
    explained: float

    @property
    def mechanism(self) -> str:
        return self._likeliest.mechanism

    @property
    def lam_theory(self) -> float:
        return self._likeliest.lam

    @property
    def _likeliest(self) -> Mechanism:
        return max(self.mechanisms, key=lambda one: one.log_likelihood)

    @property
    def sentence(self) -> str:
        """What was taken and why."""
        behind = self.candidates["behind"]
        how = MECHANISM_WORDS[self.mechanism]
        where = REFERENCE_WORDS[self.reference]
        if len(behind) < 2:
            return "Nothing is missing, so that every lam gives the same clusters."
        if self.lam == 0.0:
            others = behind[self.candidates["lam"] > 0]
            lead = "score less" if others.max() < 0.0 else "are not clearly better"
            return (
                "lam=0: the gaps have no say. Clusters that use them predict features left out "
                f"no better (candidates with a penalty {lead}). {how}"
            )
        no_penalty = behind[self.candidates["lam"] == 0.0]
        lead = ""
        if len(no_penalty):
            lead = f"; without a penalty {-no_penalty[0]:.1f} standard errors worse"
        low, high = self.lam_range
        span = f" (lam from {low:g} to {high:g} does as well)" if high > low else ""
        return f"lam={self.lam:g} with {where} predicts features left out best{lead}{span}. {how}"

    def to_frame(self) -> Any:
        """The candidates as a pandas DataFrame."""
        return require("pandas", "cli").DataFrame(self.candidates)

    def to_plain(self) -> dict[str, Any]:
        """Numbers, words and arrays, for a file."""
        return asdict(self) | {"mechanisms": [one._asdict() for one in self.mechanisms]}

    @classmethod
    def from_plain(cls, stored: dict[str, Any]) -> Missingness:
        """The inverse of `to_plain`."""
        mechanisms = [Mechanism(**one) for one in stored["mechanisms"]]
        return cls(**stored | {"mechanisms": mechanisms, "lam_range": tuple(stored["lam_range"])})

    def __repr__(self) -> str:
        columns = list(self.candidates.values())
        lines = [self.sentence, "", f"{'lam':>6}  {'reference':9}  {'score':>10}  behind (s.e.)"]
        lines += [
            f"{lam:>6g}  {name:9}  {score:>10.4f}  {-behind:>6.1f}"
            for lam, name, score, behind in zip(*columns, strict=True)
        ]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{name}</th>" for name in self.candidates)
        rows = "".join(
            f"<tr><td>{lam:g}</td><td>{name}</td><td>{score:.4f}</td><td>{behind:.1f}</td></tr>"
            for lam, name, score, behind in zip(*self.candidates.values(), strict=True)
        )
        return f"<p>{self.sentence}</p><table><tr>{head}</tr>{rows}</table>"


class Choice(NamedTuple):
    """The penalty, the reference (p,), and why."""

    lam: Any
    reference: np.ndarray
    missingness: Missingness


def choose(
    observed: Observed,
    k: int,
    *,
    lams: Sequence[Any] = LAMS,
    references: dict[str, np.ndarray] | None = None,
    max_iter: int = 300,
    tol: float = 1e-5,
    threads: int = 1,
) -> Choice:
    """lam and reference for k clusters of a table: the same whatever the seed of the fit.

    ``lams``: candidates, rising, each a number or one per feature; of one candidate only the
    reference is chosen. Between those of this module, lam may lie anywhere.
    ``references``: (p,) each, by name; that of ``observed`` if there is no choice.
    """
    references = references or {"given": observed.reference}
    if not observed.has_gaps.any():
        name, reference = next(iter(references.items()))
        return Choice(lams[0], reference, _nothing_missing(name, lams[0]))
    sample, columns = sample_table(observed, k)
    settings = dict(max_iter=max_iter, tol=tol, threads=threads)
    fits = fit_candidates(sample, k, lams, columns, references, settings)
    with _one_blas_thread():
        table = Table(sample)
        scores = [row_scores(table, fit.centers, fit.lam, fit.reference) for fit in fits]
        behind = standard_errors(np.array(scores), table.weights)
        best = 0 if behind[0] >= -MARGIN else int(behind.argmax())
        chosen = fits[best]
        labels = table.labels_without(chosen.centers, chosen.lam, chosen.reference)[0]
        mechanisms = fit_mechanisms(table, labels, k, chosen.reference)
        explained = explained_share(table, labels, k, chosen.reference)
        low, high = _range(fits, behind, best)
        theory = max(mechanisms, key=lambda one: one.log_likelihood).lam
        lam = _nearest(theory, fits[low : high + 1], anywhere=lams is LAMS)
        if all(np.max(fit.lam) != lam for fit in fits[low : high + 1]):
            part = replace(sample, reference=chosen.reference)
            centers = _best_of_each(part, chosen.centers[None], np.array([[lam]]), settings)
            best = low + sum(np.max(fit.lam) < lam for fit in fits[low : high + 1])
            fits.insert(best, chosen._replace(lam=lam, centers=centers[0]))
            scores.insert(best, row_scores(table, centers[0], lam, chosen.reference))
            behind = standard_errors(np.array(scores), table.weights)
            high += 1
    candidates = {
        "lam": np.array([np.max(fit.lam) for fit in fits], dtype=float),
        "reference": np.array([fit.name for fit in fits]),
        "score": np.array(scores) @ table.weights / table.total,
        "behind": behind,
    }
    span = candidates["lam"][low], candidates["lam"][high]
    found = Missingness(lam, chosen.name, candidates, span, mechanisms, explained)
    given = next((one for one in lams if np.max(one) == lam), lam)
    return Choice(given, references[chosen.name], found)


class Fit(NamedTuple):
    """A candidate and its centres (k, p) on the sample."""

    lam: Any
    name: str
    reference: np.ndarray
    centers: np.ndarray


def fit_candidates(
    sample: Observed, k: int, lams: Sequence[Any], columns: np.ndarray,
    references: dict[str, np.ndarray], settings: dict[str, Any],
) -> list[Fit]:  # fmt: skip
    """All candidates: what a few starts find at the anchors is where every lam goes on from."""
    rng = np.random.RandomState(0)
    starts = k_means_plus_plus(sample, N_STARTS, k, rng, settings["threads"])
    own_lams = [lam if np.ndim(lam) == 0 else np.asarray(lam)[columns] for lam in lams]
    penalties = np.array([np.full(len(columns), lam) for lam in own_lams])
    anchors = sorted({0, len(lams) // 2, max(len(lams) - 2, 0)})
    fits: list[Fit] = []
    for name, reference in references.items():
        part = replace(sample, reference=reference[columns])
        pool = _best_of_each(part, starts, penalties[anchors], settings)
        centers = _best_of_each(part, pool, penalties, settings, hartigan=True)
        fits += [
            Fit(lam, name, part.reference, found)
            for lam, found in zip(own_lams, centers, strict=True)
            if np.max(lam) > 0.0 or not fits  # without a penalty there is no reference
        ]
    return fits


def _best_of_each(
    part: Observed, starts: np.ndarray, lams: np.ndarray, settings: Any, hartigan: bool = False
) -> np.ndarray:
    """Centres (L, k, p): for each lam, the best of where the starts (R, k, p) lead."""
    count, n_starts = len(lams), len(starts)
    found = run_starts(
        part, np.tile(starts, (count, 1, 1)), np.repeat(lams, n_starts, axis=0),
        n_hartigan=count * n_starts if hartigan else 0, **settings,
    )  # fmt: skip
    best = found.losses.reshape(count, n_starts).argmin(axis=1)
    return found.centers.reshape(count, n_starts, *starts.shape[1:])[np.arange(count), best]


def _range(fits: Sequence[Fit], behind: np.ndarray, best: int) -> tuple[int, int]:
    """The first and last of the candidates around the best, with its reference and a penalty as it
    has, that do as well."""
    low = high = best
    same = [
        fit.name == fits[best].name and (np.max(fit.lam) > 0) == (np.max(fits[best].lam) > 0)
        for fit in fits
    ]
    while low > 0 and same[low - 1] and behind[low - 1] >= -MARGIN:
        low -= 1
    while high + 1 < len(fits) and same[high + 1] and behind[high + 1] >= -MARGIN:
        high += 1
    return low, high


def _nearest(theory: float, fits: Sequence[Fit], anywhere: bool) -> float:
    """The lam of those that do as well which is nearest to the one that recovers the centres."""
    lams = np.array([np.max(fit.lam) for fit in fits])
    if anywhere and len(lams) > 1:
        return float(f"{min(max(theory, lams[0]), lams[-1]):.3g}")
    return float(lams[np.abs(lams - theory).argmin()])


def explained_share(table: Table, labels: np.ndarray, k: int, reference: Any) -> float:
    """Share of the variation of the gaps that follows the distance from the reference."""
    cells = Cells.of(table, labels, k)
    mean = cells.sums / (cells.counts + PRIOR)
    rest = cells.squares - 2.0 * mean * cells.sums + mean**2 * cells.counts
    spread = np.sqrt(np.maximum(rest.sum(axis=0), 0.0) / np.maximum(table.counts, 1.0)) + 1e-12
    point = table.placed(reference) - table.shift
    _, away = _distances(cells, mean, point, spread, table.has_gaps)
    slope = _slope(away, cells, np.ones(len(point), bool), table.feature_odds)
    gaps = cells.sizes[:, None] - cells.counts

    def variation(q: np.ndarray) -> float:
        return float((cells.counts * (1.0 - q) ** 2 + gaps * q**2)[:, table.has_gaps].sum())

    total = variation(expit(table.feature_odds) * np.ones((k, 1)))
    left = variation(expit(table.feature_odds + slope * away))
    return max(1.0 - left / total, 0.0) if total > 0.0 else 0.0


def references_for(observed: Observed, extent: Any = None) -> dict[str, np.ndarray]:
    """The references to choose from, by name.

    ``extent``: least and largest values of all rows, where ``observed`` is a sample of them.
    """
    if extent is None:
        found = first_pass(observed.table, 1)
        extent = found.least, found.most
    least, most = (np.where(np.isfinite(end), end, 0.0) for end in extent)
    zero = {"zero": np.zeros(len(least))}
    judged = observed.has_gaps & np.isfinite(extent[0])
    if judged.any() and far_from(0.0, least, most)[judged].mean() > 0.5:
        zero = {}  # the values lie further from zero than from each other
    return zero | {"min": least}


def choose_reference(observed: Observed, k: int, threads: int) -> np.ndarray:
    """(p,) the reference that goes with lam="auto"."""
    return choose(observed, k, references=references_for(observed), threads=threads).reference


def sample_table(observed: Observed, k: int) -> tuple[Observed, np.ndarray]:
    """Some rows and features, and which features; all of them if there are few entries.

    Fewer rows first; where few rows have many features, fewer of those as well.
    """
    n, p = observed.source.shape
    entries = max(ENTRIES_OF_SAMPLE, min(n * p // 64, 8 * ENTRIES_OF_SAMPLE))
    wanted = max(entries // p, min(math.isqrt(entries), n), 50 * k)
    sample = sample_rows(observed, wanted)
    columns = np.arange(p)
    most = max(FEWEST_COLUMNS, entries // sample.n_rows)
    if p > 1.5 * most:
        columns = np.sort(np.random.default_rng(1).choice(p, most, replace=False))
        sample = sample.take_columns(columns)
    usable = np.flatnonzero(sample.weights > 0)
    return (sample if len(usable) == sample.n_rows else sample.take(usable)), columns


def sample_rows(observed: Observed, size: int) -> Observed:
    """So many random rows of those that count, or all of them."""
    usable = np.flatnonzero(observed.weights > 0)
    if len(usable) > 1.5 * size:
        usable = np.sort(np.random.default_rng(0).choice(usable, size, replace=False))
    return observed if len(usable) == observed.n_rows else observed.take(usable)


def _nothing_missing(name: str, lam: Any) -> Missingness:
    lam = float(np.max(lam))
    table = dict(
        lam=np.array([lam]), reference=np.array([name]), score=np.zeros(1), behind=np.zeros(1)
    )
    return Missingness(lam, name, table, (lam, lam), [Mechanism("mcar", 0.0, 0.0, 0.0)], 0.0)


@lru_cache(1)
def _blas() -> ThreadpoolController:
    return ThreadpoolController()


@contextmanager
def _one_blas_thread() -> Iterator[None]:
    """The last digits of a matrix product depend on the number of threads."""
    with _blas().limit(limits=1, user_api="blas"):
        yield


REFERENCE_WORDS = {
    "zero": "reference zero",
    "min": "the least observed value of each feature as reference",
    "given": "the reference given",
}
MECHANISM_WORDS = {
    "mcar": "Within these clusters the gaps look like chance.",
    "decay": "Within these clusters values close to the reference are missing more often.",
    "limit": "Within these clusters low values are missing more often, as below a detection limit.",
}
