"""Which features distinguish a cluster, with missing values taken into account.

A row says two things about a feature: whether it was observed and, if so, its value. With q1 and
q0 the observed shares inside and outside the cluster (n1 and n0 rows), m1 and m0 the means and s^2
the pooled variance of the observed values (c1 and c0 of them, f = c1 + c0 - 2 degrees of freedom):

    s~^2 = (f0 s0^2 + f s^2) / (f0 + f)                moderated variance
    d = (m1 - m0) / s~                                 values: standard error (1/c1 + 1/c0)^1/2
    h = 2 arcsin sqrt q1 - 2 arcsin sqrt q0            observed shares: (1/n1 + 1/n0)^1/2

s0^2 and f0 are the prior of the variances over all features (empirical Bayes: Smyth 2004), so that
two values that happen to agree do not make a marker. d and h are Cohen's effect sizes on one scale
(0.2 small, 0.5 medium, 0.8 large); the one further from 0 in its standard errors is the effect.

A feature is listed where permuted labels would hardly list it: each of up to 99 permutations has at
most 5 % as many features that far from 0. (Of correlated features a permutation may list all or
none, so that a mean over permutations would not do.) They are ordered by the end of the interval
nearer to 0, so that features with few values rank low. There is no p-value, because the clusters
were made from the same numbers.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.special import digamma, polygamma, stdtrit
from sklearn.utils import Bunch, check_consistent_length, column_or_1d

from .._em.em import degrees_of_freedom
from .._io import NotebookTable, require
from .._observed import with_nan
from .._validation import check_table
from ..missingness._diagnose import moments

DIRECTIONS = ("higher", "lower", "seen more often", "seen less often")
FALSE_SHARE = 0.05
PERMUTATIONS, FEWEST = 99, 5
MOST_WORK = 50_000_000  # entries and cells passed over by permutations
LARGEST = 1e3  # of |d| and of the score, where the values do not vary at all
MOST_FREEDOM = 1e6  # of the prior: all features have one variance
SHOWN = 10  # lines of the text


class Markers(NotebookTable, Bunch):
    """The features that distinguish each cluster, the strongest first, as columns of a table.

    Each column is an array, as item or attribute; `to_frame()` makes a pandas DataFrame of them.
    """

    def to_frame(self) -> Any:
        """The table as a pandas DataFrame."""
        return require("pandas", "cli").DataFrame(dict(self))

    def __repr__(self) -> str:
        if not len(self.feature):
            return "No markers: nothing separates the clusters more than permuted labels would."
        lines = [
            f"{len(self.feature):,} markers of {len(np.unique(self.cluster))} clusters",
            "cluster  effect  95% interval    in the cluster: feature",
        ]
        columns = ("cluster", "effect", "low", "high", "direction", "feature")
        for cluster, effect, low, high, direction, feature in zip(
            *(self[name][:SHOWN] for name in columns), strict=True
        ):
            interval = f"{low:.2f} to {high:.2f}"
            lines.append(f"{cluster!s:>7} {effect:7.2f}  {interval:<15} {direction}: {feature}")
        return "\n".join(lines + ["..."] * (len(self.feature) > SHOWN))


def cluster_markers(
    X: Any,
    labels: Any,
    *,
    top: int | None = None,
    feature_names: Any = None,
    missing_values: float = np.nan,
) -> Markers:
    """The features that distinguish each cluster from all other rows.

    Parameters
    ----------
    X : array-like or CSR/CSC matrix of shape (n_samples, n_features)
        Rows with missing values; in a sparse matrix what is not stored is missing.
    labels : array-like of shape (n_samples,), or a fitted model
        Cluster of each row. A model labels the rows itself, and says how missing values are marked.
    top : int, default=None
        Maximum number of features of each cluster; None for all.
    feature_names : sequence of str, default=None
        None for those of a data frame, or x0, x1, ...
    missing_values : float, default=nan
        How missing values are marked in dense input.

    Returns
    -------
    Markers
        ``cluster``, ``rank`` (from 1), ``feature``, ``effect`` (on the scale of Cohen's d),
        ``low``, ``high`` (its 95% interval), ``direction`` ("higher", "lower", "seen more often",
        "seen less often"), ``mean_inside``, ``mean_outside`` (of observed values),
        ``observed_inside``, ``observed_outside`` (shares). Features that permuted labels would list
        as well are left out. A single cluster has no markers.

    Notes
    -----
    The effect describes the clusters that were found. It is not a test, because the clusters were
    made from the same numbers.

    Examples
    --------
    >>> import numpy as np
    >>> from mnarkmeans.metrics import cluster_markers
    >>> rng = np.random.default_rng(0)
    >>> labels = np.repeat([0, 1], 50)
    >>> X = rng.normal(size=(100, 3))
    >>> X[labels == 1, 0] += 4.0                # b is higher in cluster 1 ...
    >>> X[:40, 2] = np.nan                      # ... and c is hardly seen in cluster 0
    >>> found = cluster_markers(X, labels, top=2, feature_names=["b", "a", "c"])
    >>> for line in zip(found.cluster, found.feature, found.direction):
    ...     print(*line)
    0 b lower
    0 c seen less often
    1 b higher
    1 c seen more often
    """
    if top is not None and top < 1:
        raise ValueError(f"top must be at least 1, or None for all features; found {top!r}.")
    names = getattr(X, "columns", None) if feature_names is None else feature_names
    if hasattr(labels, "predict"):
        labels, missing_values = labels.predict(X), labels.missing_values
    values = with_nan(check_table(None, X, ensure_all_finite="allow-nan"), missing_values)
    check_consistent_length(values, labels)
    names = [f"x{j}" for j in range(values.shape[1])] if names is None else list(names)
    if len(names) != values.shape[1]:
        raise ValueError(f"{len(names)} feature_names for {values.shape[1]} features.")
    clusters, index = np.unique(column_or_1d(labels), return_inverse=True)
    markers = strongest(find_markers(values, index, len(clusters)), top)
    markers.cluster = clusters[markers.cluster]
    markers.feature = np.asarray(names, dtype=object)[markers.feature]
    return markers


def find_markers(X: Any, labels: np.ndarray, k: int) -> Markers:
    """Markers of the clusters 0..k-1, clusters and features by their numbers.

    A cluster without rows, or the only one, has none.
    """
    entries = X.nnz if sp.issparse(X) else X.size
    draws = int(np.clip(MOST_WORK // max(entries, 40 * k * X.shape[1], 1), FEWEST, PERMUTATIONS))
    rng, same = np.random.default_rng(0), len(np.unique(labels))
    drawn = (rng.permutation(labels) for _ in range(draws))
    permuted = [other for other in drawn if len(np.unique(k * labels + other)) > same]
    # The first axis: the labels, then the permutations that are other partitions.
    shift, *inside = moments(X, np.array([labels, *permuted]), k)
    outside = [part.sum(axis=1, keepdims=True) - part for part in inside]
    n1 = np.bincount(labels, minlength=k).astype(float)[:, None]
    n0 = n1.sum() - n1
    with np.errstate(divide="ignore", invalid="ignore"):
        (c1, m1, s1), (c0, m0, s0) = _mean_and_squares(*inside), _mean_and_squares(*outside)
        squares, freedom = s1 + s0, np.maximum(c1 + c0 - 2.0, 0.0)
        # The same prior for permuted labels: under them true markers are variance, and the prior of
        # that would make the others look closer together than they are.
        priors = [_prior(*of_cluster) for of_cluster in zip(squares[0], freedom[0], strict=True)]
        prior, prior_freedom = np.array(priors).T[:, :, None]
        together = prior_freedom + freedom
        variance = (prior_freedom * prior + squares) / np.where(together > 0, together, 1.0)
        freedom = np.minimum(together, freedom.sum(axis=-1, keepdims=True))  # at most of all data
        both = (c1 > 0) & (c0 > 0) & (freedom > 0)
        difference = np.where(both, m1 - m0, 0.0)
        d = np.where(difference == 0.0, 0.0, difference / np.sqrt(variance))
        d = np.clip(d, -LARGEST, LARGEST)
        error_d = np.sqrt(1.0 / c1 + 1.0 / c0)
        z_d = np.where(d == 0.0, 0.0, _as_normal(np.abs(d) / error_d, freedom))
        q1, q0 = c1 / n1, c0 / n0
        h = 2.0 * (np.arcsin(np.sqrt(q1)) - np.arcsin(np.sqrt(q0)))
        error_h = np.sqrt(1.0 / n1 + 1.0 / n0)
        z_h = np.abs(h) / error_h
        by_share = z_h > z_d  # of a cluster without rows h is NaN and d 0
        score = np.where(by_share, z_h, z_d)
        effect = np.where(by_share, h, d)[0]
        quantile = stdtrit(np.maximum(freedom[0], 1.0), 0.975)
        width = np.where(by_share, 1.96 * error_h, quantile * error_d)[0]
    low, high = np.abs(effect) - width, np.abs(effect) + width
    cluster, feature = np.nonzero(_beyond_chance(score[0], score[1:]))
    order = np.lexsort([-low[cluster, feature], cluster])
    cluster, feature = at = cluster[order], feature[order]
    rank = np.arange(1, len(order) + 1) - np.searchsorted(cluster, cluster)
    kind = 2 * by_share[0] + (effect < 0)  # index into DIRECTIONS
    columns = {
        "effect": np.abs(effect), "low": low, "high": high,
        "direction": np.array(DIRECTIONS, dtype=object)[kind],
        "mean_inside": np.where(c1 > 0, m1 + shift, np.nan)[0],
        "mean_outside": np.where(c0 > 0, m0 + shift, np.nan)[0],
        "observed_inside": q1[0], "observed_outside": q0[0],
    }  # fmt: skip
    columns = {name: values[at] for name, values in columns.items()}
    return Markers(cluster=cluster, rank=rank, feature=feature, **columns)


def strongest(markers: Markers, most: int | None) -> Markers:
    """The first `most` markers of each cluster, or all for None."""
    kept = markers.rank <= (most or np.inf)
    return Markers(**{name: values[kept] for name, values in markers.items()})


def _beyond_chance(score: np.ndarray, chance: np.ndarray) -> np.ndarray:
    """Of each cluster, as many of the highest scores (k, p) as the permutations (b, k, p) allow."""
    listed = np.zeros(score.shape, bool)
    if not len(chance):
        return listed
    for l, scores in enumerate(score):
        order = np.argsort(-scores, kind="stable")
        as_far = [
            len(null) - np.searchsorted(null, scores[order], side="left")
            for null in np.sort(chance[:, l])
        ]
        good = np.max(as_far, axis=0) <= FALSE_SHARE * np.arange(1, len(scores) + 1)
        good &= scores[order] > 0.0
        listed[l, order[: np.flatnonzero(good)[-1] + 1 if good.any() else 0]] = True
    return listed


def _prior(squares: np.ndarray, freedom: np.ndarray) -> tuple[float, float]:
    """s0^2 and f0, from the sums of squares (p,) and their degrees of freedom.

    With e = log s^2 - digamma(f/2) + log(f/2), the mean of e is log s0^2 - digamma(f0/2) +
    log(f0/2), and the variance of e exceeds the mean of trigamma(f/2) by trigamma(f0/2).
    """
    varies = (freedom > 0) & (squares > 0)
    if varies.sum() < 3:  # features too few to tell of a common variance
        return 0.0, 0.0
    half = freedom[varies] / 2.0
    e = np.log(squares[varies] / freedom[varies]) - digamma(half) + np.log(half)
    f0 = degrees_of_freedom(e.var(ddof=1) - polygamma(1, half).mean(), MOST_FREEDOM)
    return float(np.exp(e.mean() + digamma(f0 / 2.0) - np.log(f0 / 2.0))), f0


def _as_normal(t: np.ndarray, freedom: np.ndarray) -> np.ndarray:
    """The normal deviate as improbable as Student's t (Wallace 1959)."""
    f = np.maximum(freedom, 0.5)
    return np.minimum(np.sqrt(f * np.log1p(t**2 / f)) * (8.0 * f + 1.0) / (8.0 * f + 3.0), LARGEST)


def _mean_and_squares(count: Any, total: Any, square: Any) -> tuple[np.ndarray, ...]:
    """Count, mean, and sum of squares around it."""
    mean = total / np.maximum(count, 1.0)
    return count, mean, np.maximum(square - mean * total, 0.0)
