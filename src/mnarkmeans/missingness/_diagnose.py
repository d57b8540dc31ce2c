"""What is missing in a table before it is clustered: how much, where, and near which values.

A missing value is not seen, so its size is read off its surroundings: the observed mean of its
feature, and that of its cluster in the feature, with clusters as ``MNARKMeans(lam="auto")`` finds
them. Below a detection limit the missing share falls with the mean, around a reference it has its
peak there, by chance it is flat. What comes out describes the table; it tests nothing.
"""

from __future__ import annotations

import math
import warnings
from html import escape
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import Bunch, gen_batches

from .._io import NotebookTable, require
from .._kmeans import MNARKMeans
from .._missingness import MechanismFit, Missingness
from .._observed import ENTRIES_AT_ONCE, sums_by_cluster, with_nan, zero_filled
from .._validation import MissingDataWarning, check_count, is_auto, observe

BINS = 10
MANY_ZEROS = 0.05  # share of exact zeros from which they may stand for missing values
CLEAR_DIFFERENCE = 0.05  # of missing shares, from which a rise or fall is called one
KINDS = {
    "mcar": "flat", "class": "flat", "decay": "decaying", "threshold": "decaying",
    "limit": "one-sided",
}  # fmt: skip
STRENGTHS = {
    "mcar": "share missing", "class": "share missing", "limit": "share missing",
    "decay": "decay constant x variance", "threshold": "threshold / standard deviation",
}  # fmt: skip


# --- missing shares against means: what text, tables and pictures are made of ---------------------


class Cells(NamedTuple):
    """Of every cluster (k) and feature (p): entries, those observed, and the mean of these."""

    sizes: np.ndarray  # (k,)
    observed: np.ndarray  # (k, p)
    mean: np.ndarray  # (k, p), NaN where nothing is observed

    @property
    def missing_share(self) -> np.ndarray:
        """(k, p); an empty cluster has no share and gives NaN."""
        return 1.0 - self.observed / np.where(self.sizes > 0, self.sizes, np.nan)[:, None]

    def some_features(self, most: int) -> np.ndarray:
        """Features with a mean, at most `most`, spread over the table."""
        seen = np.flatnonzero(self.observed.sum(axis=0) > 0)
        return seen[np.unique(np.linspace(0, len(seen) - 1, min(len(seen), most)).astype(int))]

    def pooled(self) -> Cells:
        """The features over all clusters."""
        sizes, observed = self.sizes.sum(keepdims=True), self.observed.sum(axis=0, keepdims=True)
        sums = np.nansum(self.observed * self.mean, axis=0, keepdims=True)
        return Cells(sizes, observed, sums / np.where(observed > 0, observed, np.nan))


class Curve(NamedTuple):
    """Missing share against the mean, in bins of equally many entries."""

    mean: np.ndarray
    missing_share: np.ndarray
    entries: np.ndarray


def moments(X: Any, labels: np.ndarray, k: int) -> tuple[np.ndarray, ...]:
    """Shift (p,); counts, sums and squares (b, k, p) of the observed values minus the shift, in
    each of the partitions labels (b, n)."""
    (b, _), p = labels.shape, X.shape[1]
    X = X.tocsr() if sp.issparse(X) else X
    # Values far from 0 would lose their digits in the squares: any value nearby is taken from them.
    values, seen = zero_filled(X[: max(1, ENTRIES_AT_ONCE // p)], np.zeros(p))
    shift = values.sum(axis=0) / np.maximum(seen.sum(axis=0), 1)
    clusters, totals = labels.T + k * np.arange(b), np.zeros((3, b * k, p))
    for rows in gen_batches(len(clusters), max(1, ENTRIES_AT_ONCE // (b + p))):
        columns = clusters[rows]
        starts = b * np.arange(len(columns) + 1)
        shape = len(columns), b * k
        memberships = sp.csr_array((np.ones(columns.size), columns.ravel(), starts), shape=shape)
        totals += sums_by_cluster(X[rows], memberships, shift)
    return shift, *totals.reshape(3, b, k, p)


def cells_of(X: Any, labels: ArrayLike | None = None, k: int = 1) -> Cells:
    """Count and average what every cluster observes of every feature; without labels, all rows."""
    labels = np.zeros(X.shape[0], dtype=int) if labels is None else np.asarray(labels)
    shift, (observed,), (sums,), _ = moments(X, labels[None], k)
    mean = sums / np.where(observed > 0, observed, np.nan) + shift
    return Cells(np.bincount(labels, minlength=k), observed, mean)


def observed_by_row(X: Any) -> np.ndarray:
    """(n,) observed entries of every row."""
    seen = zero_filled(X.tocsr(), np.zeros(X.shape[1]))[1] if sp.issparse(X) else ~np.isnan(X)
    return np.asarray(seen.sum(axis=1), dtype=float)


def missing_against_mean(cells: Cells, n_bins: int = BINS) -> Curve:
    """Pool cells by their mean; those without one have no part."""
    mean = cells.mean.ravel()
    entries = np.repeat(cells.sizes.astype(float), cells.mean.shape[1])
    order = np.argsort(mean, kind="stable")[: np.isfinite(mean).sum()]
    mean, entries = mean[order], entries[order]
    missing = entries - cells.observed.ravel()[order]
    position = np.cumsum(entries) - entries / 2
    place = np.minimum((position / max(entries.sum(), 1.0) * n_bins).astype(int), n_bins - 1)
    total, lost, sums = (
        np.bincount(place, weights) for weights in (entries, missing, entries * mean)
    )
    filled = total > 0
    return Curve(sums[filled] / total[filled], lost[filled] / total[filled], total[filled])


def _high_minus_low(cells: Cells) -> float:
    """Missing share of the third of the entries with the highest means, minus that of the lowest.

    0 where the difference is within three standard errors of chance.
    """
    third = missing_against_mean(cells, 3)
    if len(third.mean) < 2:
        return 0.0
    low, high = third.missing_share[[0, -1]]
    error = math.sqrt(low * (1 - low) / third.entries[0] + high * (1 - high) / third.entries[-1])
    return float(high - low) if abs(high - low) > 3 * error else 0.0


def why_no_penalty(missingness: Missingness, cells: Cells) -> str:
    """Why lam=0 suits values that are not missing at random; empty where that is not the case."""
    was_tried = missingness.decided_by == "score" and len(missingness.candidates["lam"]) > 1
    is_flat = KINDS[missingness.mechanism] == "flat"
    falls = not is_flat or _high_minus_low(cells.pooled()) <= -CLEAR_DIFFERENCE
    if missingness.lam > 0.0 or not was_tried or not falls:
        return ""
    return (
        "Small values seem to be missing more often, but a penalty does not help: clusters of the "
        "observed values predict held-out features as well as clusters that also use which are "
        "missing."
    )


# --- the diagnosis --------------------------------------------------------------------------------


class Diagnosis(NotebookTable, Bunch):
    """What `diagnose` found. Print it, plot it, or take its tables.

    Attributes
    ----------
    n_rows, n_features : int
    missing_share, row_share, feature_share : float, arrays
        Of all entries, of every row and of every feature.
    feature_curve, curve : (mean, missing_share, entries)
        Missing share against the mean of the feature, and against the mean of cluster and feature,
        in bins of equally many entries.
    trend : float
        Missing share of the third of the entries with the highest means (of cluster and feature)
        minus that of the third with the lowest; 0 where the difference is within chance.
    mechanisms : list of (mechanism, strength, log_likelihood, lam)
        Every mechanism at its likeliest strength, as in ``missingness``.
    missingness : Missingness
        What ``MNARKMeans(n_clusters, lam="auto")`` makes of the table.
    kind : {"complete", "flat", "decaying", "one-sided", "rising"}
        The shape of the curve, in a word.
    reference : array
        Of every feature, as ``MNARKMeans`` takes it.
    suggested_lam, suggested_reference
        What to give ``MNARKMeans``: a number, and 0, "min" or the reference given.
    advice : list of str
        The same in sentences.
    features, cells : dict of arrays, (sizes, observed, mean)
        The table of features; what every cluster observes of every feature, and the mean of that.
    """

    def __repr__(self) -> str:
        lines = [
            f"{self.n_rows} rows x {self.n_features} features, {self.missing_share:.1%} missing",
            "  missing per row:     " + _spread_of(self.row_share),
            "  missing per feature: " + _spread_of(self.feature_share),
        ]
        for of, curve in self._curves().items() if self.mechanisms else ():
            lines.append(f"share of missing values by the mean of {of}:")
            lines += [
                f"  {mean:>10.4g}  {share:6.1%}  {'#' * round(40 * share)}"
                for mean, share in zip(curve.mean, curve.missing_share, strict=True)
            ]
        if self.mechanisms:
            trend = f"{100 * self.trend:+.1f} percentage points"
            lines.append(f"  third with the highest means minus lowest: {trend}")
            k = len(self.cells.sizes)
            lines.append(f"mechanisms in {k} clusters (log-likelihood relative to mcar):")
        for fit in self.mechanisms:
            gain = fit.log_likelihood - self.mechanisms[0].log_likelihood
            mark = "  <- most likely" if fit.mechanism == self.missingness.mechanism else ""
            strength = f"{STRENGTHS[fit.mechanism]} {fit.strength:.4g}"
            lines.append(f"  {fit.mechanism:<9} {strength:<40} {gain:+.1f}{mark}")
        return "\n".join([*lines, "", *(f"- {sentence}" for sentence in self.advice)])

    def _repr_html_(self) -> str:
        return super()._repr_html_() + "".join(f"<p>{escape(text)}</p>" for text in self.advice)

    def _curves(self) -> dict[str, Curve]:
        return {"the feature": self.feature_curve, "cluster and feature": self.curve}

    def to_frame(self, table: str = "features") -> Any:
        """One of the tables as a pandas DataFrame.

        Parameters
        ----------
        table : {"features", "rows", "magnitude", "mechanisms"}, default="features"
            "magnitude": the curves of features, and of clusters and features.
        """
        pandas = require("pandas", "cli")
        curves = [
            pandas.DataFrame({"mean_of": of.removeprefix("the ")} | curve._asdict())
            for of, curve in self._curves().items()
        ]
        tables = {
            "features": self.features,
            "rows": {"row": np.arange(self.n_rows), "missing_share": self.row_share},
            "magnitude": pandas.concat(curves, ignore_index=True),
            "mechanisms": pandas.DataFrame(self.mechanisms, columns=MechanismFit._fields),
        }
        if table not in tables:
            raise ValueError(f"table must be one of {', '.join(tables)}; got {table!r}.")
        return pandas.DataFrame(tables[table])

    def plot(self, ax: Any = None, **kwargs: Any) -> Any:
        """Draw the missing share against the mean, as a `MissingnessDisplay`."""
        # On use: drawing lies above this module, and is only needed when asked for.
        from ..displays import MissingnessDisplay

        return MissingnessDisplay._from_cells(self.cells).plot(ax=ax, **kwargs)


def diagnose(
    X: Any,
    reference: Any = None,
    *,
    n_clusters: int = 5,
    missing_values: float = np.nan,
    random_state: int = 0,
) -> Diagnosis:
    """Describe what is missing in a table, and which lam and reference `MNARKMeans` takes for it.

    Parameters
    ----------
    X : table of shape (n_samples, n_features)
        Array, frame or sparse matrix (not stored = missing).
    reference : float, array of shape (n_features,), "min", "auto" or None, default=None
        The point near which values may be missing more often; None and "auto": zero or the least
        observed values, as ``MNARKMeans`` chooses.
    n_clusters : int, default=5
        Number of clusters. With as many, ``MNARKMeans`` has the same ``missingness_``.
    missing_values : float, default=nan
        How missing values are marked in dense input.
    random_state : int, default=0
        Seed of the clusters.

    Returns
    -------
    Diagnosis
        Prints as a page of text; ``to_frame()`` and ``plot()`` give the same as tables and picture.

    Examples
    --------
    >>> from mnarkmeans.datasets import make_gaussian_clusters
    >>> from mnarkmeans.missingness import diagnose
    >>> X = make_gaussian_clusters(300, 4, 3, separation=5.0, strength=1.0, random_state=0).data
    >>> diagnose(X, n_clusters=3).kind
    'decaying'
    """
    check_count("n_clusters", n_clusters)
    observed, names = observe(X, missing_values=missing_values), getattr(X, "columns", None)
    values, summary = with_nan(observed.source, observed.missing), observed.summary
    n, p = values.shape
    k = max(1, min(n_clusters, summary.n_usable // 4))
    model = MNARKMeans(
        k, reference=reference, missing_values=missing_values, random_state=random_state
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MissingDataWarning)  # what is missing is said below
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X)
    missingness, cells = model.missingness_, cells_of(values, model.labels_, k)
    trend, kind = _high_minus_low(cells), KINDS[missingness.mechanism]
    if not observed.has_gaps.any():
        kind = "complete"
    elif kind == "flat" and trend >= CLEAR_DIFFERENCE:
        kind = "rising"
    if reference is None or is_auto(reference):
        reference = "min" if missingness.reference == "min" else 0.0
    pooled, row_share = cells.pooled(), 1.0 - observed_by_row(values) / p
    low, high = np.where(pooled.observed > 0, [summary.lowest, summary.highest], np.nan)
    features = {
        "feature": np.arange(p) if names is None else np.asarray(list(names)),
        "missing_share": pooled.missing_share[0], "reference": model.reference_,
        "observed_mean": pooled.mean[0], "observed_min": low, "observed_max": high,
    }  # fmt: skip
    zeros = np.count_nonzero((values.data if observed.is_sparse else values) == 0) / (n * p)
    return Diagnosis(
        n_rows=n, n_features=p, missing_share=float(row_share.mean()), row_share=row_share,
        feature_share=features["missing_share"], feature_curve=missing_against_mean(pooled),
        curve=missing_against_mean(cells), trend=trend, kind=kind, missingness=missingness,
        mechanisms=[] if kind == "complete" else missingness.mechanisms,
        reference=model.reference_, suggested_lam=missingness.lam, suggested_reference=reference,
        advice=_advice(kind, missingness, cells, zeros), features=features, cells=cells,
    )  # fmt: skip


# --- words ----------------------------------------------------------------------------------------


def _advice(kind: str, missingness: Missingness, cells: Cells, zeros: float) -> list[str]:
    if kind == "complete":
        lines = ["Nothing is missing: every lam gives ordinary k-means."]
        if zeros >= MANY_ZEROS:
            lines.append(
                f"{zeros:.0%} of the values are exactly 0: if they stand for values that were not "
                "measured, set missing_values=0 (--missing-value 0 on the command line)."
            )
        return lines
    why = why_no_penalty(missingness, cells)
    if kind == "rising":
        why = (
            "High values are missing more often, whereas the method assumes that values near the "
            "reference are. If high values really go missing, pass the largest value of each "
            "feature as reference; otherwise use lam=0, which ignores missing values."
        )
    last = (
        f"This holds for {len(cells.sizes)} clusters. It describes the table; it cannot prove why "
        "values are missing."
    )
    return [line for line in (missingness.sentence, why, last) if line]


def _spread_of(share: np.ndarray) -> str:
    low, middle, high = np.percentile(share, [0, 50, 100])
    whole = int(np.sum(share >= 1.0))
    text = f"{low:.1%} to {high:.1%}, median {middle:.1%}"
    return text + (f"; {whole} without a single value" if whole else "")
