"""Look at the gaps of a table before clustering it: how many, where, and near which values.

A missing value is not seen, so its size is read off its surroundings: rows are clustered as
``MNARKMeans(lam="auto")`` does, and a gap is set beside the mean of its cluster in its feature.
What comes out describes the table; it tests nothing.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, field
from html import escape
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_array

from .._io import require
from .._kmeans import MNARKMeans
from .._missingness import Mechanism, Missingness
from .._observed import Observed, without_mask
from .._validation import MissingDataWarning, check_count, observe
from ._cells import CellCounts, RateCurve, missing_against_mean

MANY_ZEROS = 0.05  # share of exact zeros from which they may stand for gaps
CLEAR_DIFFERENCE = 0.05  # of missing shares, from which a rise or fall is called one
IN_SHORT = {
    "mcar": "by chance",
    "decay": "near the reference, fading with the distance",
    "limit": "below a soft detection limit",
}
KINDS = {"mcar": "flat", "decay": "decaying", "limit": "one-sided"}


@dataclass(frozen=True)
class Diagnosis:
    """What `diagnose` found. Print it, plot it, or take its tables.

    Attributes
    ----------
    n_rows, n_features : int
    missing_share : float
        Of all entries.
    row_share, feature_share : arrays
        Missing share of every row and of every feature.
    magnitude, magnitude_share : arrays
        Missing share against the mean of cluster and feature, in bins.
    trend : float
        Missing share of the third of the entries with the highest means minus that of the third
        with the lowest; 0 where the difference is within chance.
    mechanisms : list of (mechanism, strength, log_likelihood, lam)
        Every mechanism at its likeliest strength, as in ``missingness``.
    missingness : Missingness
        What ``MNARKMeans(n_clusters, lam="auto")`` makes of the table.
    kind : {"complete", "flat", "decaying", "one-sided", "rising"}
        The shape of the curve, in a word.
    suggested_lam, suggested_reference
        What ``MNARKMeans`` takes: a number, and 0, "min" or the reference given.
    advice : list of str
        The same in sentences.
    zero_share : float
        Of all entries, those that are observed and exactly 0.
    zeros_note : str
        A sentence where nothing is missing and at least 5 % of the table are exactly 0, which may
        stand for gaps; otherwise empty.

    Examples
    --------
    >>> import numpy as np
    >>> from mnarkmeans.missingness import diagnose
    >>> diagnose(np.arange(12.0).reshape(6, 2), n_clusters=2).kind
    'complete'
    """

    n_rows: int
    n_features: int
    missing_share: float
    row_share: np.ndarray
    feature_share: np.ndarray
    feature_names: np.ndarray
    feature_mean: np.ndarray
    feature_least: np.ndarray
    feature_most: np.ndarray
    reference: np.ndarray
    zero_share: float
    zeros_note: str
    missingness: Missingness
    kind: str
    trend: float
    suggested_lam: float
    suggested_reference: Any
    advice: list[str]
    _curve: RateCurve = field(repr=False)
    _cells: tuple[np.ndarray, np.ndarray] = field(repr=False)

    @property
    def magnitude(self) -> np.ndarray:
        return self._curve.magnitude

    @property
    def magnitude_share(self) -> np.ndarray:
        return self._curve.missing_share

    @property
    def mechanisms(self) -> list[Mechanism]:
        return [] if self.kind == "complete" else self.missingness.mechanisms

    def __str__(self) -> str:
        lines = [
            f"{self.n_rows} rows x {self.n_features} features, {self.missing_share:.1%} missing",
            "  missing per row:     " + _spread_of(self.row_share),
            "  missing per feature: " + _spread_of(self.feature_share),
        ]
        if len(self.magnitude):
            lines.append("missing share against the mean of cluster and feature:")
            for size, share in zip(self.magnitude, self.magnitude_share, strict=True):
                lines.append(f"  {size:>10.4g}  {share:6.1%}  {'#' * round(40 * share)}")
            lines.append(f"  highest third minus lowest: {self.trend:+.1%}")
        if self.mechanisms:
            lines.append("mechanisms at their likeliest strength (log-likelihood against mcar):")
            base = self.mechanisms[0].log_likelihood
            for fit in self.mechanisms:
                gain = fit.log_likelihood - base
                taken = "  <- likeliest" if fit.mechanism == self.missingness.mechanism else ""
                lines.append(
                    f"  {fit.mechanism:<6} strength {fit.strength:<10.4g} {gain:+.1f}{taken}"
                )
        lines.append("")
        lines += [f"- {sentence}" for sentence in self.advice]
        return "\n".join(lines)

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"

    def to_frame(self, table: str = "features") -> Any:
        """One of the tables as a pandas DataFrame.

        Parameters
        ----------
        table : {"features", "rows", "magnitude", "mechanisms", "candidates"}, default="features"
        """
        tables: dict[str, dict[str, Any]] = {
            "features": {
                "feature": self.feature_names,
                "missing_share": self.feature_share,
                "reference": self.reference,
                "observed_mean": self.feature_mean,
                "observed_min": self.feature_least,
                "observed_max": self.feature_most,
            },
            "rows": {"row": np.arange(self.n_rows), "missing_share": self.row_share},
            "magnitude": {"mean": self.magnitude, "missing_share": self.magnitude_share},
            "mechanisms": {
                name: np.array([getattr(fit, name) for fit in self.mechanisms])
                for name in Mechanism._fields
            },
            "candidates": self.missingness.candidates,
        }
        if table not in tables:
            names = ", ".join(repr(name) for name in tables)
            raise ValueError(f"table must be one of {names}; got {table!r}.")
        return require("pandas", "cli").DataFrame(tables[table])

    def plot(self, ax: Any = None, **kwargs: Any) -> Any:
        """Draw the missing share against the mean of cluster and feature.

        Returns
        -------
        display : MissingnessDisplay
        """
        # On use: drawing lies above this module, and is only needed when asked for.
        from ..displays import MissingnessDisplay

        display = MissingnessDisplay(
            magnitude=self.magnitude,
            missing_share=self.magnitude_share,
            cell_magnitude=self._cells[0],
            cell_missing_share=self._cells[1],
        )
        return display.plot(ax=ax, **kwargs)


def diagnose(
    X: Any,
    reference: Any = None,
    *,
    n_clusters: int = 5,
    missing_values: float = np.nan,
    random_state: int = 0,
) -> Diagnosis:
    """Describe the gaps of a table, and say which lam and reference `MNARKMeans` takes for it.

    Parameters
    ----------
    X : table of shape (n_samples, n_features)
        Array, frame or sparse matrix (not stored = missing), gaps allowed.
    reference : float, array of shape (n_features,), "min", "auto" or None, default=None
        The point near which values may be missing more often; None and "auto": zero or the least
        observed values, as ``MNARKMeans`` chooses.
    n_clusters : int, default=5
        Clusters beside which a missing value is judged. With as many clusters, ``MNARKMeans`` has
        the same ``missingness_``.
    missing_values : float, default=nan
        How gaps are marked in dense input.
    random_state : int, default=0
        Seed of the clusters.

    Returns
    -------
    diagnosis : Diagnosis
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
    names = getattr(X, "columns", None)
    table = check_array(
        without_mask(X),
        accept_sparse="csr",
        dtype=[np.float64, np.float32],
        ensure_all_finite=False,
    )
    wanted = "auto" if reference is None else reference
    observed = observe(table, missing_values=missing_values, reference=wanted)
    k = max(1, min(n_clusters, observed.n_usable // 4))
    model = MNARKMeans(
        k, reference=reference, missing_values=missing_values, random_state=random_state
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MissingDataWarning)  # what is missing is said below
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(table)
    found, missing = model.missingness_, float(1.0 - _observed_counts(observed)[0].mean())
    counts, means = _cells_of(observed, model.labels_, k)
    trend = _high_minus_low(means, counts)
    kind = "complete" if not observed.has_gaps.any() else KINDS[found.mechanism]
    if kind == "flat" and trend >= CLEAR_DIFFERENCE:
        kind = "rising"
    return Diagnosis(
        **_shares(observed, names),
        reference=model.reference_,
        missingness=found,
        kind=kind,
        trend=trend,
        suggested_lam=float(np.max(model.lam_)),
        suggested_reference=_suggested(reference, found),
        advice=_advice(kind, trend, found, _zeros_note(observed, missing)),
        _curve=missing_against_mean(means, counts) if kind != "complete" else RateCurve.empty(),
        _cells=(means.ravel(), counts.missing_share.ravel()),
    )


# --- numbers ------------------------------------------------------------------------------------


def _observed_counts(observed: Observed) -> tuple[np.ndarray, np.ndarray]:
    """Share of every row and of every feature that is observed."""
    n, p = observed.source.shape
    if observed.is_sparse:
        source = observed.source
        return np.diff(source.indptr) / p, np.bincount(source.indices, minlength=p) / n
    seen = observed.seen()
    return seen.mean(axis=1), seen.mean(axis=0)


def _shares(observed: Observed, names: Any) -> dict[str, Any]:
    n, p = observed.source.shape
    rows, features = (1.0 - share for share in _observed_counts(observed))
    assert observed.extent is not None  # of a whole table
    least, most = (np.where(np.isfinite(end), end, np.nan) for end in observed.extent)
    missing = float(rows.mean())
    return dict(
        n_rows=n,
        n_features=p,
        missing_share=missing,
        row_share=rows,
        feature_share=features,
        feature_names=np.arange(p) if names is None else np.asarray(list(names)),
        feature_mean=np.where(np.isfinite(least), observed.means, np.nan),
        feature_least=least,
        feature_most=most,
        zero_share=_zero_share(observed),
        zeros_note=_zeros_note(observed, missing),
    )


def _zero_share(observed: Observed) -> float:
    """Share of the entries of a table that are exactly 0 (of a sparse one: stored zeros)."""
    values = observed.source.data if observed.is_sparse else observed.source
    return float(np.count_nonzero(values == 0)) / math.prod(observed.source.shape)


def _zeros_note(observed: Observed, missing: float) -> str:
    share = _zero_share(observed)
    if missing > 0 or share < MANY_ZEROS:
        return ""
    return (
        f"{share:.0%} of the values are exactly 0: if those stand for values that were not "
        "measured, say so with missing_values=0 (--missing-value 0 on the command line)."
    )


def _cells_of(observed: Observed, labels: np.ndarray, k: int) -> tuple[CellCounts, np.ndarray]:
    """Of every cluster and feature: how many values are observed, and their mean (k, p)."""
    values, seen = observed.zero_filled()
    member = np.eye(k)[labels].T
    counts, sums = (np.asarray(member @ part) for part in (seen, values))
    means = sums / np.where(counts > 0, counts, np.nan) + observed.reference
    return CellCounts(member.sum(axis=1), counts), means


def _high_minus_low(means: np.ndarray, counts: CellCounts) -> float:
    """Missing share of the third of the entries with the highest means, minus that of the lowest.

    0 where the difference is within three standard errors of chance.
    """
    weight = np.broadcast_to(counts.sizes[:, None], means.shape).ravel().astype(float)
    keep = np.isfinite(means.ravel()) & (weight > 0)
    order = np.argsort(means.ravel()[keep], kind="stable")
    share, weight = counts.missing_share.ravel()[keep][order], weight[keep][order]
    reached = (np.cumsum(weight) - weight / 2) / weight.sum()
    near, far = reached < 1 / 3, reached > 2 / 3
    if not near.any() or not far.any():
        return 0.0
    low, high = (np.average(share[part], weights=weight[part]) for part in (near, far))
    error = math.sqrt(low * (1 - low) / weight[near].sum() + high * (1 - high) / weight[far].sum())
    return float(high - low) if abs(high - low) > 3 * error else 0.0


# --- words --------------------------------------------------------------------------------------


def _suggested(given: Any, found: Missingness) -> Any:
    if given is not None and not (isinstance(given, str) and given == "auto"):
        return given
    return "min" if found.reference == "min" else 0.0


def _advice(kind: str, trend: float, found: Missingness, zeros: str) -> list[str]:
    if kind == "complete":
        also = f" But {zeros}" if zeros else ""
        return [f"Nothing is missing: every lam gives ordinary k-means.{also}"]
    lines = [found.sentence]
    if kind == "rising":
        lines.append(
            "High values are missing more often: not what the method assumes, which is that values "
            "near the reference get lost. If high values do get lost, give the greatest value of "
            "each feature as reference; otherwise leave lam=0, which lets gaps have no say."
        )
    elif found.lam == 0.0 and (found.mechanism != "mcar" or trend < 0.0):
        lines.append(
            "The gaps are not random, and lam=0 is right all the same: clusters of the observed "
            "values predict features left out as well as clusters that use the gaps, so the gaps "
            "say nothing about the clusters that the values do not."
        )
    lines.append("This describes the table; it cannot prove how the gaps arose.")
    return lines


def _spread_of(share: np.ndarray) -> str:
    low, middle, high = np.percentile(share, [0, 50, 100])
    whole = int(np.sum(share >= 1.0))
    text = f"{low:.1%} to {high:.1%}, median {middle:.1%}"
    return text + (f"; {whole} without a single value" if whole else "")
