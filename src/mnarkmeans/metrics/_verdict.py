"""Are clusters separate groups, or slices of one continuum? And how sure is each row?

k-means cuts any cloud into k parts, often reproducibly. Groups are separate where the density
between two neighbouring centres a and b is lower than at both. Where a row lies between them is
read from its observed values (w = 1, and w = 0 for missing values) or, as in the loss, from missing
values as well (at the reference, w = lam). The latter counts only if two halves of the
features put rows into the same clusters more often than by chance: rows that lack one feature lie
apart from the others in the loss even where values are missing by chance.

    t_i = (d_ia - d_ib) / D_i,  d_il = sum_j w_ij (x_ij - mu_lj)^2,
                                D_i  = sum_j w_ij (mu_aj - mu_bj)^2,

-1 at a and 1 at b, the centres coming from a fit to other rows (ten folds, started from the model's
centres): on its own rows even noise looks split. Three windows of equal width h
lie side by side, the outer ones around the medians of the two halves of t, 2 h apart. If the
density is unimodal, the middle one holds at least as much as one of the others, so with counts n_a,
n_m, n_b

    p = max over s in (n_a, n_b) of P(Binomial(n_m + s, 1/2) <= n_m),  ratio = n_m / min(n_a, n_b)

is a valid test of unimodality along the axis, be the cloud Gaussian, skewed or heavy-tailed, with
or without dominant components. Rows near a third centre are left out by a half-space each; what
remains is convex, so that a log-concave cloud stays unimodal.

Confidence. Here missing values count as in the model, at the reference with w = lam. In the
held-out rows of two separate groups L_i = d_ia - d_ib is a mixture of
(1 - q) N(a D_i, v D_i) and q N(b D_i, v D_i), found by EM. With s = v / 2(b - a) and, halfway, the
log-odds of the second group g = log q/(1 - q) - (b^2 - a^2) D / 2v,

    confidence_i = 1 / sum_l exp((d_i own - d_il) / 2s + g).

s is the noise variance at which independent features would misassign as many rows: correlated
features and centres of few rows make it larger than the variance of an entry. g matters between
groups of different sizes: k-means cuts halfway between its centres, where most rows belong to the
larger group.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linear_sum_assignment
from scipy.sparse.csgraph import connected_components
from scipy.spatial.distance import cdist
from scipy.special import expit
from scipy.stats import binom, binomtest
from sklearn.metrics import jaccard_score
from sklearn.utils.validation import _num_samples

from .._io import plain
from .._kmeans import MNARKMeans
from ._annotations import p_of_independence
from ._quality import Rows, rows_of

FOLDS, N_INIT = 10, 5
LEVEL = 0.01  # of the test between two clusters; there may be a dozen pairs
CONTINUOUS = 0.5  # ratio between two equal normal groups of which 3 % of the rows are misassigned
AXIS_SEEN = 0.5  # share of the median D below which too little of the axis is observed
OUTLIER = 3.0  # times the median distance from halfway: not of either group
BETWEEN = 0.6  # rows of less confidence are listed as uncertain
FOUND_AGAIN = 0.75  # mean Jaccard similarity from which clusters are reproducible (Hennig 2007)
MOST_ROWS, MOST_ENTRIES = 5_000, 4_000_000
EM_STEPS = 50
TINY = np.finfo(float).tiny
FEW_ROWS = 4  # a cluster of fewer may be made of outliers


class Pair(NamedTuple):
    """The density between two neighbouring clusters over that at the lower of their peaks."""

    clusters: tuple[int, int]
    ratio: float
    low: float  # 95 % interval of the ratio
    high: float
    p: float
    rows: tuple[int, int, int]  # in the windows around a, between, around b


@dataclass(frozen=True)
class Verdict:
    """Whether clusters are separate groups, with the figures behind it.

    Attributes
    ----------
    kind : str
        "separate": at least two groups with fewer rows between them than at either. "continuum": no
        valley, and enough rows to have seen one. "undecided": a valley only where missing values
        count as well, and two halves of the features do not agree on the clusters. "too few" rows,
        or "one cluster".
    sentence : str
    groups : list of lists of int
        Clusters that belong together; separate groups are lists of their own. Clusters of too few
        rows to be tested are in none.
    pairs : list of Pair
    agreement : ndarray of shape (n_clusters,)
        Jaccard similarity of each cluster with the one found again by fits to other rows.
    confidence : ndarray of shape (n_samples,)
        Probability that a row belongs to its cluster; NaN where nothing can be said.
    noise, odds : ndarrays of shape (n_clusters, n_clusters)
        s and g above, of each pair of clusters, for the `confidence` of new rows; noise is NaN
        where nothing can be said.
    """

    kind: str
    sentence: str
    groups: list[list[int]]
    pairs: list[Pair]
    agreement: np.ndarray
    confidence: np.ndarray
    noise: np.ndarray
    odds: np.ndarray

    @property
    def headline(self) -> str:
        if self.kind == "continuum" and self.agreement.mean() < FOUND_AGAIN:
            return "Slices of one continuum, and not reproducible."
        return HEADLINES[self.kind]

    def __repr__(self) -> str:
        return f"{self.headline} {self.sentence}"

    def to_dict(self) -> dict[str, Any]:
        """As JSON can hold it, without the rows."""
        names = ("kind", "headline", "sentence", "groups", "pairs", "agreement", "noise", "odds")
        pairs = [pair._asdict() for pair in self.pairs]
        return plain({name: getattr(self, name) for name in names} | {"pairs": pairs})


HEADLINES = {
    "separate": "Separate groups.",
    "continuum": "Reproducible slices of one continuum.",
    "undecided": "Separation is visible only when missing values count.",
    "too few": "Too few rows to tell.",
    "one cluster": "One cluster.",
}


def verdict(
    X: Any,
    model: Any,
    *,
    random_state: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> Verdict:
    """Judge whether the clusters of a fitted model are separate groups.

    Parameters
    ----------
    X : array-like or CSR/CSC matrix of shape (n_samples, n_features)
        The rows the model was fitted on; of a large table a random sample is used.
    model : fitted MNARKMeans, MNARKMeansCV or MiniBatchMNARKMeans
    random_state : int, default=0
    progress : callable, default=None
        Called with (fits done, fits in all).

    Returns
    -------
    Verdict

    Examples
    --------
    >>> import numpy as np
    >>> from mnarkmeans import MNARKMeans
    >>> from mnarkmeans.metrics import verdict
    >>> rng = np.random.default_rng(0)
    >>> one = rng.normal(size=(300, 4))
    >>> two = one + 6.0 * (np.arange(300) % 2)[:, None]
    >>> for X in (one, two, two[:6]):
    ...     print(verdict(X, MNARKMeans(2, lam=0.0, random_state=0).fit(X)).kind)
    continuum
    separate
    too few
    """
    if not all(hasattr(model, name) for name in ("cluster_centers_", "lam_", "reference_")):
        raise TypeError(
            f"model must be a fitted k-means of this package, found {type(model).__name__}."
        )
    k = len(model.cluster_centers_)
    unknown = np.full(_num_samples(X), np.nan), np.full((k, k), np.nan), np.zeros((k, k))
    if k == 1:
        sentence = "There is one cluster, so there is nothing to tell apart."
        return Verdict("one cluster", sentence, [[0]], [], np.ones(1), *unknown)
    rows = rows_of(X, model)
    used, n = rows.used, len(rows.used)
    if n < 2 * k:
        sentence = TOO_FEW.format(n=n, k=k)
        return Verdict("too few", sentence, [], [], np.full(k, np.nan), *unknown)
    rng = np.random.default_rng(random_state)
    most = max(min(MOST_ROWS, MOST_ENTRIES // max(rows.values.shape[1], k**2)), 50 * k)
    if n > most:
        sample = np.sort(rng.choice(n, most, replace=False))
        rows = Rows(*(part[sample] for part in rows))
    label_of_refit, halves, d, D = _held_out(rows, model, rng, progress)
    sizes, neighbours = np.bincount(rows.labels, minlength=k), _neighbours(model.cluster_centers_)
    kind, pairs, groups = _decide(d[0], D[0], neighbours, sizes)
    values = "observed values"
    if kind != "separate":
        penalised = _decide(d[1], D[1], neighbours, sizes)
        if penalised[0] == "separate" and p_of_independence(*halves.T) < LEVEL:
            (kind, pairs, groups), values = penalised, "observed and missing values"
        elif penalised[0] == "separate" and kind == "continuum":
            kind = "undecided"
    agreement = jaccard_score(
        rows.labels, label_of_refit, labels=np.arange(k), average=None, zero_division=0.0
    )
    sentence = _sentence(kind, sizes, groups, pairs, float(agreement.mean()), values)
    row_confidence, noise, odds = unknown
    if kind == "separate":
        noise, odds = _noise_and_odds(rows.labels, d[1], D[1], pairs, groups)
        if n > most:
            row_confidence[used] = confidence(X, model, noise=noise, odds=odds)[used]
        row_confidence[rows.used] = _memberships(d[1], rows.labels, noise, odds)
    return Verdict(kind, sentence, groups, pairs, agreement, row_confidence, noise, odds)


# --- distances of rows to centres that other rows have made ---------------------------------------


def _held_out(rows: Rows, model: Any, rng: Any, progress: Any) -> tuple[np.ndarray, ...]:
    """Labels and distances of rows by centres fitted to other rows, numbered as the model's.

    The label (n,) by a fit of fresh starts; labels (n, 2) by each of two halves of the features;
    d (2, n, k) and D (2, n, k, k) of observed values alone, and with missing values as in the loss.
    """
    _, values, observed, labels = rows
    (n, p), k = values.shape, len(model.cluster_centers_)
    table = values if sp.issparse(values) else np.where(observed > 0, values, np.nan)
    lam = np.broadcast_to(model.lam_, p)
    start = np.asarray(model.cluster_centers_, dtype=np.float64) - model.reference_

    def fitted_to(train: np.ndarray, init: Any) -> np.ndarray:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # few rows, missing values: said of the whole table
            fit = MNARKMeans(
                k, lam=model.lam_, init=init, n_init=N_INIT, n_jobs=1,
                random_state=int(rng.integers(2**31)),
            ).fit(table[train])  # fmt: skip
        shared = np.bincount(k * labels[train] + fit.labels_, minlength=k * k).reshape(k, k)
        return fit.cluster_centers_[linear_sum_assignment(-shared)[1]]  # share most rows

    by_spread = np.argsort(-start.var(axis=0), kind="stable")  # so that both halves tell clusters
    half = np.argsort(by_spread) % 2
    label_of_refit, halves = np.empty(n, dtype=int), np.empty((n, 2), dtype=int)
    d, D = np.empty((2, n, k)), np.empty((2, n, k, k))
    folds = min(FOLDS, n)
    fold = rng.permutation(n) % folds
    for number in range(folds):
        test, train = fold == number, fold != number
        fresh, mu = fitted_to(train, "k-means++"), fitted_to(train, start)
        x, seen = values[test], observed[test]
        label_of_refit[test] = _to_centers(x, seen, fresh, lam).argmin(axis=1)
        for side in (0, 1):
            of_half = np.where(half == side, mu, 0.0)
            halves[test, side] = _to_centers(x, seen, of_half, lam).argmin(axis=1)
        for i, w in enumerate((np.zeros(p), lam)):
            d[i, test], D[i, test] = _to_centers(x, seen, mu, w), _between_centers(seen, mu, w)
        if progress is not None:
            progress(number + 1, folds)
    return label_of_refit, halves, d, D


def _to_centers(x: Any, seen: Any, mu: np.ndarray, w: Any) -> np.ndarray:
    """d_il (n, k), less the squares of the row's values."""
    return seen @ ((1.0 - w) * mu**2).T - 2.0 * (x @ mu.T) + (w * mu**2).sum(axis=1)


def _between_centers(seen: Any, mu: np.ndarray, w: Any) -> np.ndarray:
    """D_i (n, k, k) of all pairs."""
    squares = np.square(mu[:, None] - mu).reshape(len(mu) ** 2, -1)
    D = seen @ ((1.0 - w) * squares).T + (w * squares).sum(axis=1)
    return D.reshape(-1, len(mu), len(mu))


# --- the test for a valley between two clusters ---------------------------------------------------


def _neighbours(centers: np.ndarray) -> list[tuple[int, int]]:
    """Pairs of centres with no other inside the ball between them (the Gabriel graph)."""
    D = cdist(centers, centers, "sqeuclidean")
    return [
        (a, b)
        for a, b in itertools.combinations(range(len(centers)), 2)
        if sum(D[a] + D[b] <= D[a, b]) <= 2  # a and b themselves
    ]


def _decide(
    d: np.ndarray, D: np.ndarray, neighbours: list[tuple[int, int]], sizes: np.ndarray
) -> tuple[str, list[Pair], list[list[int]]]:
    """The kind of verdict, the pairs that were tested, and the groups."""
    pairs = _tested_pairs(d, D, neighbours)
    components = _components(np.arange(len(sizes)), [p.clusters for p in pairs])
    tested = np.array(max(components, key=lambda component: sizes[component].sum()))
    pairs = [p for p in pairs if p.clusters[0] in tested]  # of the others nothing is known
    groups = _components(tested, [p.clusters for p in pairs if p.p >= LEVEL])
    undivided = _components(tested, [p.clusters for p in pairs if p.low > CONTINUOUS])
    kind = "continuum" if pairs and len(undivided) == 1 else "too few"
    return "separate" if len(groups) > 1 else kind, pairs, groups


def _tested_pairs(d: np.ndarray, D: np.ndarray, neighbours: list[tuple[int, int]]) -> list[Pair]:
    """Every pair of neighbours with enough rows.

    Clusters that are not told apart, the most surely continuous ones first, are joined: rows
    near one of them are not left out where the other is compared with a third.
    """
    component = np.arange(d.shape[1])  # joined clusters have the same number
    tested: dict[tuple[int, int], Pair | None] = dict.fromkeys(neighbours)
    pending = neighbours
    while pending:
        for a, b in pending:
            others = np.flatnonzero((component != component[a]) & (component != component[b]))
            tested[a, b] = _test_pair(d, D[:, a, b], a, b, others) or tested[a, b]
        pending = [ab for ab in pending if not ((pair := tested[ab]) and pair.p < LEVEL)]
        not_apart = [pair for ab in pending if (pair := tested[ab])]
        if not not_apart:
            break
        a, b = max(not_apart, key=lambda pair: pair.low).clusters
        component[component == component[b]] = component[a]
        pending = [(a, b) for a, b in pending if component[a] != component[b]]
    return [pair for pair in tested.values() if pair]


def _test_pair(d: np.ndarray, D: np.ndarray, a: int, b: int, others: np.ndarray) -> Pair | None:
    """The test described above; None where too few rows lie on one side for p to be below LEVEL."""
    # Rows with enough of the axis observed, not far beyond its ends, and with no other centre near.
    kept = np.abs(d[:, a] - d[:, b]) <= OUTLIER * D
    kept &= AXIS_SEEN * np.median(D) < D
    for c in others:
        # q is -(D_ac + D_bc) / 2 at c and (D_ac + D_bc) / 2 - D_ab / 2 at the midpoint of a and b:
        # keep rows on the midpoint's side of the half-way value -D_ab / 4.
        q = d[:, c] - (d[:, a] + d[:, b]) / 2.0
        kept &= q >= -D / 4.0
    t = (d[kept, a] - d[kept, b]) / D[kept]
    left, right = t[t < 0], t[t >= 0]
    if 0.5 ** min(len(left), len(right)) >= LEVEL:
        return None
    middle = (np.median(left) + np.median(right)) / 2.0
    h = (np.median(right) - np.median(left)) / 2.0
    edges = middle + h * np.array([-1.5, -0.5, 0.5, 1.5])
    n_a, n_m, n_b = np.diff(np.searchsorted(np.sort(t), edges)).tolist()
    least = min(n_a, n_b)
    p = float(binom.cdf(n_m, n_m + least, 0.5))
    shares = binomtest(n_m, max(n_m + least, 1)).proportion_ci()
    low, high = (float(share / (1.0 - share)) if share < 1.0 else np.inf for share in shares)
    return Pair((a, b), n_m / max(least, 0.5), low, high, p, (n_a, n_m, n_b))


def _components(clusters: np.ndarray, joined: list[tuple[int, int]]) -> list[list[int]]:
    """Connected components of the clusters, with the pairs as edges."""
    graph = np.zeros((clusters.max() + 1,) * 2)
    graph[tuple(np.array(joined, dtype=int).reshape(-1, 2).T)] = 1.0
    component = connected_components(graph, directed=False)[1][clusters]
    return [clusters[component == c].tolist() for c in np.unique(component)]


# --- confidence -----------------------------------------------------------------------------------


def _noise_and_odds(
    labels: np.ndarray, d: np.ndarray, D: np.ndarray, pairs: list[Pair], groups: list[list[int]]
) -> tuple[np.ndarray, np.ndarray]:
    """s and g (k, k) of all pairs; s is NaN for clusters that are not a group of their own."""
    k = d.shape[1]
    noise, odds = np.full((k, k), np.nan), np.zeros((k, k))
    single = [group[0] for group in groups if len(group) == 1]
    for a, b in (pair.clusters for pair in pairs):
        if a in single or b in single:
            of_pair = np.isin(labels, (a, b)) & (D[:, a, b] > 0)
            L, apart = d[of_pair, a] - d[of_pair, b], D[of_pair, a, b]
            z = np.abs(L) / np.sqrt(apart)
            near = z <= OUTLIER * np.median(z)
            noise[a, b], odds[a, b] = _two_normals(L[near], apart[near])
            noise[b, a], odds[b, a] = noise[a, b], -odds[a, b]
    if np.isfinite(noise).any():  # of pairs that were not tested: hardly a row is between them
        noise[np.isnan(noise)] = np.nanmedian(noise)
    noise[np.setdiff1d(np.arange(k), single)] = np.nan
    return noise, odds


def _two_normals(L: np.ndarray, D: np.ndarray) -> tuple[float, float]:
    """s and g by EM, L being a mixture of N(a D, v D) and N(b D, v D)."""
    second = (L >= 0).astype(float)
    for _ in range(EM_STEPS):
        a, b = (weight @ L / max(weight @ D, TINY) for weight in (1.0 - second, second))
        v = np.mean((second * (L - b * D) ** 2 + (1.0 - second) * (L - a * D) ** 2) / D)
        if b <= a or v <= 0:
            return (0.0, 0.0) if v <= 0 else (np.nan, 0.0)
        share = np.clip(second.mean(), 1e-6, 1 - 1e-6)
        log_odds = np.log(share / (1.0 - share))
        second = expit(log_odds + (b - a) * (L - (a + b) / 2.0 * D) / v)
    return float(v / (2.0 * (b - a))), float(log_odds - (b * b - a * a) / (2.0 * v) * D.mean())


def confidence(X: Any, model: Any, *, noise: Any = None, odds: Any = None) -> np.ndarray:
    """Probability that a row belongs to its cluster; NaN where nothing can be said.

    A mixture gives its own probabilities. For new rows of a k-means model, give ``noise`` and
    ``odds`` of its `Verdict`; without them X must be the rows it was fitted on, and the verdict is
    computed first. Rows of clusters that are not separate from the others have NaN.

    Examples
    --------
    >>> import numpy as np
    >>> from mnarkmeans import MNARKMeans
    >>> from mnarkmeans.metrics import confidence, verdict
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 2)) + 5.0 * (np.arange(300) % 2)[:, None]
    >>> model = MNARKMeans(2, lam=0.0, random_state=0).fit(X)
    >>> found = verdict(X, model)
    >>> new = [[0.0, 0.0], [2.5, 2.6]]
    >>> confidence(new, model, noise=found.noise, odds=found.odds).round(1)
    array([1. , 0.7])
    """
    if hasattr(model, "predict_proba"):
        return model.predict_proba(X).max(axis=1)
    if (noise is None) != (odds is None):
        raise ValueError("Give both noise and odds of a Verdict, or neither.")
    if noise is None:
        return verdict(X, model).confidence
    squares = np.square(np.asarray(model.transform(X), dtype=np.float64))
    return _memberships(squares, squares.argmin(axis=1), noise, odds)


def _memberships(squares: np.ndarray, labels: np.ndarray, noise: Any, odds: Any) -> np.ndarray:
    """The probability of the label; noise and odds have None for NaN if a model file had them."""
    noise, odds = (np.array(values, dtype=float)[labels] for values in (noise, odds))
    with np.errstate(over="ignore"):
        lead = squares[np.arange(len(labels)), labels][:, None] - squares
        return 1.0 / np.exp(lead / np.maximum(2.0 * noise, TINY) + odds).sum(axis=1)


def _sentence(
    kind: str,
    sizes: np.ndarray,
    groups: list[list[int]],
    pairs: list[Pair],
    overlap: float,
    values: str,
) -> str:
    k, n = len(sizes), int(sizes.sum())
    if not pairs:
        n_others = n - int(sizes.max())
        if not n_others:
            return "All rows are in one cluster."
        if n_others < FEW_ROWS * (k - 1):
            return f"All rows but {n_others:,} are in one cluster: the others may be outliers."
        return TOO_FEW.format(n=n, k=k)

    def between(pair: Pair, which: str) -> str:
        ratio, low, high = map(_percent, (pair.ratio, pair.low, pair.high))
        return (
            f"Between clusters {names_of(pair.clusters)}, the {which} pair, the density of the "
            f"{values} is {ratio} of that at the centres (95% interval {low} to {high})."
        )

    untested = k - sum(map(len, groups))
    few = f" For {untested} of the clusters there are too few rows to tell." if untested else ""
    if kind != "separate":
        text = between(min(pairs, key=lambda pair: pair.ratio), "clearest") + few
        if kind == "continuum" and overlap < FOUND_AGAIN:
            overlap_text = f"(mean overlap of the clusters {_percent(overlap)})"
            text = f"Refits to other rows cut it differently {overlap_text}. {text}"
        return text
    least_clear = max((pair for pair in pairs if pair.p < LEVEL), key=lambda pair: pair.ratio)
    gap = "The tested windows between them hold no rows."
    if least_clear.ratio > 0:
        gap = between(least_clear, "least clear")
    if len(groups) == k:
        return f"All {k} clusters are groups of their own. {gap}"
    together = "; ".join(names_of(group) for group in groups if len(group) > 1)
    joined = f" Clusters that form one group: {together}." if together else ""
    return f"The clusters form {len(groups)} groups. {gap}{joined}{few}"


TOO_FEW = "There are too few rows to tell: {n:,} for {k} clusters."


def _percent(share: float) -> str:
    return "more than 200%" if share > 2 else f"{share:.0%}"


def names_of(clusters: Any) -> str:
    """Clusters by their numbers: 0, 1 and 4."""
    *first, last = map(str, clusters)
    return f"{', '.join(first)} and {last}" if first else last
