"""Look at the gaps of a table before clustering it: how many, where, and near which values.

A missing value is not seen, so its size is read off its surroundings: rows are grouped (by the
mixture behind lam="auto"), and a gap is taken to be as far from the reference as the centre of its
group in its feature. What comes out describes the table; it tests nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from sklearn.utils import check_array

from .._io import require
from .._observed import Observed
from .._penalty.answer import Missingness
from .._penalty.choice import first_fits, likelihood_choice, sample_rows
from .._penalty.common import Problem
from .._penalty.evidence import describing_mixture
from .._penalty.reference import extent_of, zero_or_limit
from .._penalty.rows import Rows
from .._solver import k_means_plus_plus
from .._validation import check_count, is_auto, observe
from ._cells import CellCounts, missing_against_magnitude
from ._reading import Seen, advice_for, far_minus_near, shape_of
from ._strength import Fit, fits_of
from ._summaries import feature_summaries, shares, zero_share, zeros_note

FITS: dict[str, Any] = {"max_iter": 300, "tol": 1e-5, "threads": 1}  # MNARKMeans' own
FAR_FROM_THE_DATA = 1.0  # standard deviations between the reference and the least value


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
        Missing share against the distance from the reference, in bins.
    trend, signed_trend : float
        Missing share of the third of the entries furthest from the reference minus that of the
        third closest to it; and of the highest values minus that of the lowest. 0 where the
        difference is within chance.
    mechanisms : list of (mechanism, strength, log_likelihood)
        Every mechanism at its likeliest strength.
    missingness : Missingness
        What ``MNARKMeans(lam="auto")`` makes of the table.
    kind : {"complete", "unvarying", "decaying", "flat", "rising", "one-sided"}
        The shape of the curve, in a word.
    suggested_lam, suggested_reference
        What to try first.
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
    magnitude: np.ndarray
    magnitude_share: np.ndarray
    trend: float
    signed_trend: float
    mechanisms: list[Fit]
    missingness: Missingness
    kind: str
    suggested_lam: Any
    suggested_reference: Any
    advice: list[str]
    feature_names: np.ndarray
    reference: np.ndarray
    feature_mean: np.ndarray
    feature_least: np.ndarray
    feature_most: np.ndarray
    zero_share: float
    zeros_note: str
    _cells: tuple[np.ndarray, np.ndarray] = field(repr=False)

    def __str__(self) -> str:
        lines = [
            f"{self.n_rows} rows x {self.n_features} features, {self.missing_share:.1%} missing",
            "  missing per row:     " + _spread_of(self.row_share),
            "  missing per feature: " + _spread_of(self.feature_share),
        ]
        if len(self.magnitude):
            lines.append("missing share against the distance from the reference:")
            for size, share in zip(self.magnitude, self.magnitude_share, strict=True):
                lines.append(f"  {size:>10.4g}  {share:6.1%}  {'#' * round(40 * share)}")
            lines.append(
                f"  furthest third minus closest: {self.trend:+.1%}; "
                f"highest values minus lowest: {self.signed_trend:+.1%}"
            )
        if self.mechanisms:
            lines.append("mechanisms at their likeliest strength (log-likelihood against mcar):")
            base = self.mechanisms[0].log_likelihood
            for fit in self.mechanisms:
                gain = fit.log_likelihood - base
                lines.append(f"  {fit.mechanism:<6} strength {fit.strength:<10.4g} {gain:+.1f}")
        lines.append("")
        lines += [f"- {sentence}" for sentence in self.advice]
        return "\n".join(lines)

    def to_frame(self, table: str = "features") -> Any:
        """One of the tables as a pandas DataFrame.

        Parameters
        ----------
        table : {"features", "rows", "magnitude", "mechanisms"}, default="features"
        """
        pandas = require("pandas", "cli")
        if table == "features":
            columns = {
                "feature": self.feature_names,
                "missing_share": self.feature_share,
                "reference": self.reference,
                "observed_mean": self.feature_mean,
                "observed_min": self.feature_least,
                "observed_max": self.feature_most,
            }
        elif table == "rows":
            columns = {"row": np.arange(self.n_rows), "missing_share": self.row_share}
        elif table == "magnitude":
            columns = {"distance": self.magnitude, "missing_share": self.magnitude_share}
        elif table == "mechanisms":
            columns = {
                name: np.array([getattr(fit, name) for fit in self.mechanisms])
                for name in ("mechanism", "strength", "log_likelihood")
            }
        else:
            raise ValueError(
                f"table must be 'features', 'rows', 'magnitude' or 'mechanisms'; got {table!r}."
            )
        return pandas.DataFrame(columns)

    def plot(self, ax: Any = None, **kwargs: Any) -> Any:
        """Draw the missing share against the distance from the reference.

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
    reference: Any = 0.0,
    *,
    n_clusters: int = 5,
    missing_values: float = np.nan,
    random_state: int = 0,
) -> Diagnosis:
    """Describe the gaps of a table and suggest lam and reference for it.

    Parameters
    ----------
    X : table of shape (n_samples, n_features)
        Array, frame or sparse matrix (not stored = missing), gaps allowed.
    reference : float, array of shape (n_features,), "min" or "auto", default=0.0
        The point near which values may be missing more often.
    n_clusters : int, default=5
        Groups of similar rows by which the size of a missing value is judged. With as many clusters
        and the same seed, ``MNARKMeans`` finds the same ``missingness_`` and reference.
    missing_values : float, default=nan
        How gaps are marked in dense input.
    random_state : int, default=0
        Seed of the grouping.

    Returns
    -------
    diagnosis : Diagnosis
        Prints as a page of text; ``to_frame()`` and ``plot()`` give the same as tables and picture.

    Examples
    --------
    >>> from mnarkmeans.datasets import make_gaussian_clusters
    >>> from mnarkmeans.missingness import diagnose
    >>> X = make_gaussian_clusters(300, 4, 3, separation=5.0, strength=1.0, random_state=0).data
    >>> found = diagnose(X)
    >>> found.kind
    'decaying'
    >>> print(found.advice[0])
    Values close to the reference are missing more often: lam="auto" takes 0.83.
    """
    check_count("n_clusters", n_clusters)
    names = getattr(X, "columns", None)
    table = check_array(
        X, accept_sparse="csr", dtype=[np.float64, np.float32], ensure_all_finite=False
    )
    observed = observe(table, missing_values=missing_values, reference=reference)
    return _Look(observed, reference, n_clusters, random_state).diagnosis(names)


class _Look:
    """One pass over the questions, in order; fits begin as those of MNARKMeans do, so that with as
    many clusters and the same seed both say the same."""

    def __init__(self, observed: Observed, given: Any, n_clusters: int, random_state: int):
        self.given = given
        k = max(1, min(n_clusters, int(np.count_nonzero(observed.weights)) // 4))
        rng = np.random.RandomState(random_state)
        self.starts = k_means_plus_plus(observed, 10, k, rng, 1)
        self.chosen = zero_or_limit(observed, extent_of(observed, 1), self.starts, FITS)
        if is_auto(given):
            observed = replace(observed, reference=self.chosen.reference)
        self.observed = observed
        self.sample = sample_rows(observed, 50 * n_clusters, 1)

    def diagnosis(self, names: Any) -> Diagnosis:
        common = self._common(names)
        missingness = likelihood_choice(self.observed, self.starts, **FITS)
        note = common["zeros_note"]
        kind = "complete" if common["row_share"].max() == 0 else "unvarying"
        if kind == "complete" or missingness.sigma2 <= 0:
            reasons = {
                "complete": "Nothing is missing: every lam gives ordinary k-means."
                + (f" But {note}" if note else ""),
                "unvarying": "The observed values do not vary around the reference: there is "
                "nothing to learn from the gaps.",
            }
            return Diagnosis(
                **common, magnitude=np.zeros(0), magnitude_share=np.zeros(0), trend=0.0,
                signed_trend=0.0, mechanisms=[], missingness=missingness, kind=kind,
                suggested_lam=0.0, suggested_reference=self.given, advice=[reasons[kind]],
                _cells=(np.zeros(0), np.zeros(0)),
            )  # fmt: skip
        centers, means, counts, fits = self._groups()
        share = counts.missing_share
        curve = missing_against_magnitude(centers, np.zeros(centers.shape[1]), counts)
        weight = np.broadcast_to(counts.sizes[:, None], share.shape).ravel()
        trend = far_minus_near(np.abs(centers).ravel(), share.ravel(), weight)
        signed = far_minus_near(means.ravel(), share.ravel(), weight)
        kind = shape_of(trend, signed, missingness)
        at_limit = self.chosen.at_limit[self.observed.observed_weight > 0]
        seen = Seen(
            kind, signed, self._outside(common), missingness, self.given, at_limit,
            from_there=self._from_there(missingness),
        )  # fmt: skip
        lam, suggested, advice = advice_for(seen)
        return Diagnosis(
            **common, magnitude=curve.magnitude, magnitude_share=curve.missing_share,
            trend=trend, signed_trend=signed, mechanisms=fits,
            missingness=missingness, kind=kind, suggested_lam=lam,
            suggested_reference=suggested, advice=advice,
            _cells=(np.abs(centers).ravel(), share.ravel()),
        )  # fmt: skip

    def _from_there(self, missingness: Missingness) -> Missingness:
        """What lam="auto" makes of the table with the reference that "auto" takes."""
        if np.array_equal(self.chosen.reference, self.observed.reference):
            return missingness
        moved = replace(self.observed, reference=self.chosen.reference)
        return likelihood_choice(moved, self.starts, **FITS)

    def _common(self, names: Any) -> dict[str, Any]:
        """Plain counts, whatever the gaps mean."""
        p = self.observed.n_features
        row_share, feature_share = shares(self.observed)
        least, most, mean, self.deviation = feature_summaries(self.observed)
        missing, zeros = float(row_share.mean()), zero_share(self.observed)
        return dict(
            n_rows=self.observed.n_rows,
            n_features=p,
            missing_share=missing,
            row_share=row_share,
            feature_share=feature_share,
            feature_names=np.arange(p) if names is None else np.asarray(list(names)),
            reference=self.observed.reference,
            feature_mean=mean,
            feature_least=least,
            feature_most=most,
            zero_share=zeros,
            zeros_note=zeros_note(zeros, missing),
        )

    def _outside(self, common: dict[str, Any]) -> bool:
        """The reference lies below all values, and for most features far below."""
        spread = np.where(self.deviation > 0, self.deviation, 1.0)
        distance = (common["feature_least"] - self.observed.reference) / spread
        return bool(np.nanmin(distance) >= 0 and np.nanmedian(distance) > FAR_FROM_THE_DATA)

    def _groups(self) -> tuple[np.ndarray, np.ndarray, CellCounts, list[Fit]]:
        """Groups of the fitted mixture: centres and observed means from the reference, counts,
        and what the mechanisms make of them."""
        rows = Rows(self.sample)
        problem = Problem(rows)
        fits = first_fits(self.sample, self.starts, max_iter=100, tol=1e-5, threads=1)
        mixture = describing_mixture(problem, fits)
        looked, clusters = mixture.looked, problem.clusters(mixture)
        centers, sizes, sums, observed = clusters.mean, looked.sizes, looked.sums, looked.counts
        gaps = np.maximum(sizes[:, None] - observed, 0.0)
        mechanisms = fits_of(rows, clusters._replace(gaps=gaps, sizes=sizes))
        # Those of rows that lost all, and are not in the table, have no part in it.
        counts = CellCounts(sizes, np.minimum(observed, sizes[:, None]))
        # The centres believe in the mechanism; the plain means do not.
        means = np.where(counts.observed > 0.5, sums / np.maximum(counts.observed, 0.5), np.nan)
        return centers, means, counts, mechanisms


def _spread_of(share: np.ndarray) -> str:
    low, middle, high = np.percentile(share, [0, 50, 100])
    whole = int(np.sum(share >= 1.0))
    text = f"{low:.1%} to {high:.1%}, median {middle:.1%}"
    return text + (f"; {whole} without a single value" if whole else "")
