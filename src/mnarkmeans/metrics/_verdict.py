"""Are clusters separate groups, or slices of one continuum? And how sure is each row?

k-means cuts any cloud into k parts, and cuts the same way again. Groups are separate where the
density between two neighbouring centres a and b is lower than at both. Where a row lies between
them is read in the measure of the model, a gap being a value at the reference c of weight lam:

    t_i = (d_ia - d_ib) / D_i,  d_il = sum_j w_ij (x_ij - mu_lj)^2,
                                D_i  = sum_j w_ij (mu_aj - mu_bj)^2,

-1 at a and 1 at b, the centres coming from a fit to other rows (ten folds, started from the model's
centres): on its own rows even noise looks split. Three windows of equal width h
lie side by side, the outer ones around the medians of the two halves of t, 2 h apart. If the
density is unimodal, the middle one holds at least as much as one of the others, so with counts n_a,
n_m, n_b

    p = max over s in (n_a, n_b) of P(Binomial(n_m + s, 1/2) <= n_m),  ratio = n_m / min(n_a, n_b)

is a valid test whatever the shape of the cloud: Gaussian, skewed or heavy-tailed, with or without
factors. Rows near a third centre are left out by a half-space each; what remains is convex, so that
a log-concave cloud stays unimodal.

Confidence. In the same held-out rows of separate groups L_i = d_ia - d_ib is a mixture of
N(-m D_i, v D_i) and N(m D_i, v D_i); with s = v / 4m, found by EM,

    confidence_i = exp(-d_i own / 2s) / sum_l exp(-d_il / 2s).

s is the noise of independent features that would mislead as often: correlated features and centres
of few rows make it larger than the variance of an entry.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linear_sum_assignment
from scipy.sparse.csgraph import connected_components
from scipy.stats import beta, binom

from .._kmeans import MNARKMeans
from ._quality import usable_rows

FOLDS, N_INIT = 10, 5
LEVEL = 0.01  # of the test between two clusters; there may be a dozen pairs
CONTINUOUS = 0.5  # two equal normal groups, 97 % of whose rows are told apart, dip to it
AXIS_SEEN = 0.5  # of the median row: with less of the axis observed a row says little of its place
BETWEEN = 0.6  # rows of less confidence are listed as lying between clusters
FOUND_AGAIN = 0.75  # mean Jaccard similarity of reproducible clusters (Hennig 2007)
MOST_ROWS, MOST_ENTRIES = 5_000, 4_000_000
EM_STEPS = 50
FEW_ROWS = 4  # a cluster of fewer is made of outliers


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
    kind : "separate", "continuum", "too few" or "one cluster"
    sentence : str
    groups : list of lists of int
        Clusters that belong together; separate groups are lists of their own. Clusters of too few
        rows to be tested are in none.
    pairs : list of Pair
    agreement : ndarray of shape (n_clusters,)
        Of each cluster, how much is found again by fits to other rows (Jaccard similarity).
    confidence : ndarray of shape (n_samples,)
        Probability that a row belongs to its cluster; NaN where nothing can be said.
    noise : ndarray of shape (n_clusters,)
        s above, by cluster, for the `confidence` of new rows; NaN likewise.
    """

    kind: str
    sentence: str
    groups: list[list[int]] = field(repr=False)
    pairs: list[Pair] = field(repr=False)
    agreement: np.ndarray = field(repr=False)
    confidence: np.ndarray = field(repr=False)
    noise: np.ndarray = field(repr=False)

    @property
    def headline(self) -> str:
        if self.kind == "continuum" and self.agreement.mean() < FOUND_AGAIN:
            return "Slices of one continuum that other rows would not reproduce."
        return HEADLINES[self.kind]

    def __repr__(self) -> str:
        return f"Verdict({self.kind!r}: {self.sentence})"

    def to_dict(self) -> dict[str, Any]:
        """As JSON can hold it, without the rows."""
        return {
            "kind": self.kind,
            "headline": self.headline,
            "sentence": self.sentence,
            "groups": self.groups,
            "pairs": [pair._asdict() for pair in self.pairs],
            "agreement": self.agreement.tolist(),
            "noise": [None if np.isnan(s) else float(s) for s in self.noise],
        }


HEADLINES = {
    "separate": "Separate groups.",
    "continuum": "Reproducible slices of one continuum.",
    "too few": "Too few rows to tell.",
    "one cluster": "One cluster.",
}


class _HeldOut(NamedTuple):
    """Rows as centres fitted to other rows see them."""

    labels: np.ndarray  # (n,) by the model
    nearest: np.ndarray  # (n,) by a fit of fresh starts
    distance: np.ndarray  # (n, k) d_il
    between: np.ndarray  # (n, k, k) D_i of each pair of centres


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
        The rows the model was fitted on, gaps and all. Of many, a random part is used.
    model : fitted MNARKMeans, MNARKMeansCV or MiniBatchMNARKMeans
    random_state : int, default=0
        Seed of the folds and of the fits.
    progress : callable, default=None
        Called with (fits done, fits in all).

    Returns
    -------
    Verdict
        `kind` is "separate" (at least two groups with fewer rows between them than at either),
        "continuum" (no valley, and enough rows to have seen one), "too few", or "one cluster".

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
    for name in ("cluster_centers_", "lam_", "reference_"):
        if not hasattr(model, name):
            raise TypeError(
                f"verdict needs a fitted k-means of this package; {type(model).__name__} has no "
                f"{name}."
            )
    k = len(model.cluster_centers_)
    n = X.shape[0] if hasattr(X, "shape") else len(X)
    nothing = np.full(n, np.nan), np.full(k, np.nan)
    if k == 1:
        sentence = "There is one cluster, so there is nothing to tell apart."
        return Verdict("one cluster", sentence, [[0]], [], np.ones(1), *nothing)
    rows = usable_rows(X, model)
    usable, p = rows.used, rows.values.shape[1]
    if len(usable) < 2 * k:
        sentence = f"There are {len(usable):,} rows for {k} clusters: too few to tell."
        return Verdict("too few", sentence, [], [], np.full(k, np.nan), *nothing)
    rng = np.random.default_rng(random_state)
    most = max(min(MOST_ROWS, MOST_ENTRIES // p, MOST_ENTRIES // k**2), 50 * k)
    part = np.arange(len(usable))
    if len(usable) > most:
        part = np.sort(rng.choice(part, most, replace=False))
    used = usable[part]
    held_out = _held_out(
        rows.values[part], rows.observed[part], rows.clusters[part], model, rng, progress
    )
    sizes = np.bincount(held_out.labels, minlength=k)
    pairs = _judge_all(held_out, _neighbours(model), k)
    agreement = _agreement(held_out, k)
    parts = _groups(np.arange(k), [p.clusters for p in pairs])
    tested = np.array(max(parts, key=lambda part: sizes[part].sum()))
    pairs = [p for p in pairs if p.clusters[0] in tested]  # of the others nothing is known
    groups = _groups(tested, [p.clusters for p in pairs if p.p >= LEVEL])
    undivided = _groups(tested, [p.clusters for p in pairs if p.low > CONTINUOUS])
    kind = "too few"
    if len(groups) > 1:
        kind = "separate"
    elif pairs and len(undivided) == 1:
        kind = "continuum"
    noise = _noise(held_out, pairs, groups if kind == "separate" else [], k)
    sure = np.full(n, np.nan)
    if kind == "separate":
        if len(usable) > len(used):
            sure[usable] = confidence(X, model, noise=noise)[usable]
        sure[used] = _memberships(held_out.distance, held_out.labels, noise)
    sentence = _sentence(kind, sizes, groups, pairs, float(agreement.mean()))
    return Verdict(kind, sentence, groups, pairs, agreement, sure, noise)


def _held_out(
    values: Any, observed: Any, labels: np.ndarray, model: Any, rng: Any, progress: Any
) -> _HeldOut:
    """Every row measured by centres that other rows have made, numbered as the model's."""
    n, k = len(labels), len(model.cluster_centers_)
    lam = np.broadcast_to(model.lam_, values.shape[1])
    start = np.asarray(model.cluster_centers_, dtype=np.float64) - model.reference_
    folds = min(FOLDS, n)
    fold = rng.permutation(n) % folds
    nearest = np.empty(n, dtype=int)
    distance, between = np.empty((n, k)), np.empty((n, k, k))
    table = values if sp.issparse(values) else np.where(observed > 0, values, np.nan)
    for number in range(folds):
        own, others = fold == number, fold != number
        fits = []
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about few rows, or gaps: said of the whole table
            for init in ("k-means++", start):
                one = MNARKMeans(
                    k, lam=model.lam_, init=init, n_init=N_INIT, n_jobs=1,
                    random_state=int(rng.integers(2**31)),
                ).fit(table[others])  # fmt: skip
                counts = np.zeros((k, k))
                np.add.at(counts, (labels[others], one.labels_), 1.0)
                order = linear_sum_assignment(-counts)[1]  # clusters that share most rows
                fits.append((np.square(one.transform(table[own]))[:, order], one, order))
        nearest[own] = fits[0][0].argmin(axis=1)
        distance[own], one, order = fits[1]
        apart = np.square(one.cluster_centers_[order][:, None] - one.cluster_centers_[order])
        apart = apart.reshape(k * k, -1)
        seen = np.asarray(observed[own] @ (apart * (1.0 - lam)).T)  # by the gaps of each row
        between[own] = (seen + apart @ lam).reshape(-1, k, k)
        if progress is not None:
            progress(number + 1, folds)
    return _HeldOut(labels, nearest, distance, between)


def _neighbours(model: Any) -> list[tuple[int, int]]:
    """Pairs of centres with no other inside the ball between them (the Gabriel graph)."""
    centers = np.asarray(model.cluster_centers_, dtype=np.float64)
    D = np.square(centers[:, None] - centers[None]).sum(axis=-1)
    return [
        (a, b)
        for a, b in itertools.combinations(range(len(centers)), 2)
        if sum(D[a] + D[b] <= D[a, b]) <= 2  # a and b themselves
    ]


def _judge_all(rows: _HeldOut, neighbours: list[tuple[int, int]], k: int) -> list[Pair]:
    """Every pair of neighbours that has rows enough; the most surely continuous ones first.

    Clusters that are not told apart belong together: rows near one of them are not left out where
    the other is compared with a third that it was not told apart from before.
    """
    home = np.arange(k)
    judged: dict[tuple[int, int], Pair] = {}
    open_ = neighbours
    while open_:
        for a, b in open_:
            others = np.flatnonzero((home != home[a]) & (home != home[b]))
            pair = _judge(rows, a, b, others)
            if pair is not None:
                judged[a, b] = pair
        open_ = [ab for ab in open_ if ab not in judged or judged[ab].p >= LEVEL]
        joined = [judged[ab] for ab in open_ if ab in judged]
        if not joined:
            break
        a, b = max(joined, key=lambda pair: pair.low).clusters
        home[home == home[b]] = home[a]
        open_ = [(a, b) for a, b in open_ if home[a] != home[b]]
    return [judged[ab] for ab in neighbours if ab in judged]


def _axis(rows: _HeldOut, a: int, b: int, others: np.ndarray) -> np.ndarray:
    """Which rows say where they lie between a and b: enough observed, and no other centre near."""
    d, D = rows.distance, rows.between
    axis = D[:, a, b]
    kept = axis > AXIS_SEEN * np.median(axis)
    kept &= np.abs(d[:, a] - d[:, b]) <= 2.0 * axis
    for c in others:
        # At c this is -(D_ac + D_bc) / 2, on the axis D_ab / 2 less than the opposite: halfway.
        kept &= d[:, c] - (d[:, a] + d[:, b]) / 2.0 >= -axis / 4.0
    return kept


def _judge(rows: _HeldOut, a: int, b: int, others: np.ndarray) -> Pair | None:
    """The test above; None where too few rows lie on either side for any outcome to be clear."""
    kept = _axis(rows, a, b, others)
    d = rows.distance[kept]
    t = (d[:, a] - d[:, b]) / rows.between[kept, a, b]
    left, right = t[t < 0], t[t >= 0]
    if 0.5 ** min(len(left), len(right)) >= LEVEL:
        return None
    middle = (np.median(left) + np.median(right)) / 2.0
    h = (np.median(right) - np.median(left)) / 2.0
    edges = middle + h * np.array([-1.5, -0.5, 0.5, 1.5])
    n_a, n_m, n_b = (int(((t >= lo) & (t < hi)).sum()) for lo, hi in itertools.pairwise(edges))
    least = min(n_a, n_b)
    p = float(binom.cdf(n_m, n_m + least, 0.5))
    low = beta.ppf(0.025, n_m, least + 1) if n_m else 0.0
    high = beta.ppf(0.975, n_m + 1, least) if least else 1.0
    odds = [share / (1.0 - share) if share < 1.0 else np.inf for share in (low, high)]
    ratio = n_m / max(least, 0.5)
    return Pair((a, b), ratio, float(odds[0]), float(odds[1]), p, (n_a, n_m, n_b))


def _groups(clusters: np.ndarray, joined: list[tuple[int, int]]) -> list[list[int]]:
    """Connected components of the clusters by the pairs that are joined."""
    index = {l: i for i, l in enumerate(clusters.tolist())}
    a = [index[pair[0]] for pair in joined]
    b = [index[pair[1]] for pair in joined]
    graph = sp.coo_array((np.ones(len(joined)), (a, b)), shape=(len(clusters),) * 2)
    count, component = connected_components(graph, directed=False)
    return [clusters[component == g].tolist() for g in range(count)]


def _agreement(rows: _HeldOut, k: int) -> np.ndarray:
    found = []
    for l in range(k):
        own, again = rows.labels == l, rows.nearest == l
        found.append((own & again).sum() / max((own | again).sum(), 1))
    return np.array(found)


def _noise(rows: _HeldOut, pairs: list[Pair], groups: list[list[int]], k: int) -> np.ndarray:
    """s of each cluster that is a group of its own, over its pairs with others."""
    noise = np.full(k, np.nan)
    for l in (group[0] for group in groups if len(group) == 1):
        z, root = [], []
        for pair in pairs:
            if l in pair.clusters:
                a, b = pair.clusters
                kept = _axis(rows, a, b, np.setdiff1d(np.arange(k), [a, b]))
                d = rows.distance[kept]
                root.append(np.sqrt(rows.between[kept, a, b]))
                z.append((d[:, a] - d[:, b]) / root[-1])
        noise[l] = _two_normals(np.concatenate(z), np.concatenate(root))
    return noise


def _two_normals(z: np.ndarray, root: np.ndarray) -> float:
    """v / 4m by EM, where z is a mixture of N(-m root, v) and N(m root, v)."""
    side = np.where(z < 0, -1.0, 1.0)  # expected sign of the component
    share = 0.5
    for _ in range(EM_STEPS):
        m = (side * z * root).sum() / np.square(root).sum()
        v = np.mean(np.square(z) - 2 * side * z * m * root + np.square(m * root))
        if m <= 0 or v <= 0:
            return 0.0 if v <= 0 else np.nan
        share = np.clip((side.mean() + 1.0) / 2.0, 1e-6, 1 - 1e-6)
        side = np.tanh(m * root * z / v + 0.5 * np.log(share / (1.0 - share)))
    return float(v / (4.0 * m))


def confidence(X: Any, model: Any, *, noise: Any = None) -> np.ndarray:
    """Probability that a row belongs to its cluster; NaN where nothing can be said.

    Parameters
    ----------
    X : array-like or CSR/CSC matrix of shape (n_samples, n_features)
        Rows to judge, gaps and all.
    model : fitted MNARKMeans or MNARMixture
        A mixture gives its own probabilities.
    noise : array of shape (n_clusters,) or float, default=None
        `Verdict.noise` of the rows the model was fitted on. None: `X` are those rows, and
        `verdict` judges them first.

    Returns
    -------
    ndarray of shape (n_samples,)
        NaN for rows of clusters that are not separate from the others.

    Examples
    --------
    >>> import numpy as np
    >>> from mnarkmeans import MNARKMeans
    >>> from mnarkmeans.metrics import confidence, verdict
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 2)) + 5.0 * (np.arange(300) % 2)[:, None]
    >>> model = MNARKMeans(2, lam=0.0, random_state=0).fit(X)
    >>> confidence([[0.0, 0.0], [2.5, 2.6]], model, noise=verdict(X, model).noise).round(1)
    array([1. , 0.7])
    """
    if hasattr(model, "predict_proba"):
        return model.predict_proba(X).max(axis=1)
    if noise is None:
        return verdict(X, model).confidence
    squares = np.square(np.asarray(model.transform(X), dtype=np.float64))
    noise = np.array([np.nan if s is None else s for s in np.atleast_1d(noise)], dtype=float)
    return _memberships(squares, squares.argmin(axis=1), np.broadcast_to(noise, squares.shape[1]))


def _memberships(squares: np.ndarray, labels: np.ndarray, noise: np.ndarray) -> np.ndarray:
    """Share of exp(-d / 2s) that the label has, s being that of its cluster."""
    s = noise[labels][:, None]
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        lead = squares[np.arange(len(labels)), labels][:, None] - squares
        sure = 1.0 / np.exp(np.where(lead == 0.0, 0.0, lead / (2.0 * s))).sum(axis=1)
    return np.where(np.isnan(s[:, 0]), np.nan, sure)


def _sentence(
    kind: str, sizes: np.ndarray, groups: list[list[int]], pairs: list[Pair], again: float
) -> str:
    k = len(sizes)
    small = k - sum(map(len, groups))
    few = ""
    if small:
        has = "has" if small == 1 else "have"
        few = f" {small} of the clusters {has} too few rows to be judged."
    if not pairs:
        apart = int(sizes.sum() - sizes.max())
        if not apart:
            return "All rows are in one cluster: the rows do not differ."
        if apart < FEW_ROWS * (k - 1):
            return f"All rows but {apart:,} are in one cluster: the others are outliers."
        return f"There are too few rows to tell: {int(sizes.sum()):,} for {k} clusters."
    if kind == "separate":
        clear = [pair for pair in pairs if pair.p < LEVEL]
        least = max(pair.ratio for pair in clear)
        between = "no rows lie between them"
        if least > 0:
            between = f"rows between them are at most {_percent(least)} as dense as at the centres"
        if len(groups) == k:
            return f"The {k} clusters are separate groups: {between}."
        together = [_names(group) for group in groups if len(group) > 1]
        joined = f" Clusters that form one group: {'; '.join(together)}." if together else ""
        return f"There are {len(groups)} separate groups: {between}.{joined}{few}"
    densest = min(pairs, key=lambda pair: pair.ratio)
    figure = (
        f"between clusters {_names(densest.clusters)}, the clearest pair, rows are "
        f"{_percent(densest.ratio)} as dense as at the centres "
        f"(95 % interval {_percent(densest.low)} to {_percent(densest.high)})"
    )
    if kind == "continuum":
        what = "reproducible slices of one continuum, not groups"
        if again < FOUND_AGAIN:
            what = (
                "slices of one continuum, and other rows would be cut differently (clusters are "
                f"found again to {_percent(again)})"
            )
        return f"The clusters are {what}: {figure}.{few}"
    return f"There are too few rows to tell groups from slices of one continuum: {figure}.{few}"


def describe_choice(search: Any, found: Verdict | None = None) -> str:
    """Which numbers of clusters a search found equally stable, and whether any beats one group.

    Two are equally stable where their mean instabilities differ by no more than the standard error
    of either.

    Parameters
    ----------
    search : fitted MNARKMeansCV
    found : Verdict, default=None
        Of its clusters; without groups, nothing beats one cluster, however stable.

    Returns
    -------
    str
        Empty where one number of clusters was tried.

    Examples
    --------
    >>> import numpy as np
    >>> from mnarkmeans import MNARKMeansCV
    >>> from mnarkmeans.metrics import describe_choice
    >>> centers = np.array([[0.0, 0.0], [0.0, 9.0], [30.0, 0.0], [30.0, 9.0]])
    >>> X = np.repeat(centers, 30, axis=0) + np.random.default_rng(0).normal(size=(120, 2))
    >>> print(describe_choice(MNARKMeansCV([2, 3, 4], lams=[0.0], random_state=0).fit(X)))
    k = 2 and 4 are equally stable (instability 0.000); k = 4 was chosen.
    """
    results = search.cv_results_
    chosen = np.asarray(results["chosen_for_k"], bool)
    ks = np.asarray(results["param_n_clusters"])[chosen]
    if len(ks) < 2:
        return ""
    mean = np.asarray(results["mean_instability"], float)[chosen]
    error = np.asarray(results["std_instability"], float)[chosen]
    error = error / np.sqrt(search.n_splits or FOLDS)
    best = int(np.flatnonzero(ks == search.n_clusters_)[0])
    several = ks > 1  # one cluster is always found again
    close = several & (np.abs(mean - mean[best]) <= np.maximum(error, error[best]))
    one_group = ""
    if found is not None and found.kind == "continuum":
        one_group = (
            " None is better than one group: however stable, they are slices of one continuum."
        )
    if close.sum() < 2:
        alone = f"no other is as stable (instability {mean[best]:.3f})"
        return f"k = {ks[best]} was chosen; {alone}.{one_group}"
    span = f"{mean[close].min():.3f}"
    if mean[close].max() - mean[close].min() >= 5e-4:
        span += f" to {mean[close].max():.3f}"
    stable = f"k = {_names(ks[close])} are equally stable (instability {span})"
    return f"{stable}; k = {ks[best]} was chosen.{one_group}"


def _percent(share: float) -> str:
    return "more than 200 %" if share > 2 else f"{100 * share:.0f} %"


def _names(clusters: Any) -> str:
    """Clusters by their numbers: 0, 1 and 4."""
    *first, last = map(str, clusters)
    return f"{', '.join(first)} and {last}" if first else last
