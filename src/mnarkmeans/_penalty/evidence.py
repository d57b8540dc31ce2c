"""What the gaps say: the likeliest mechanism, and the penalty that follows from it.

Mixtures (`mixture`) are fitted for gaps that know nothing of the value and for every way of
depending on it:

    mnar0    exp(-t x^2)
    mnar1    exp(-t x^2) / 2, close to the logistic curve 1 / (1 + exp(a x^2))
    mnar2    |x| below a threshold of the feature
    ceiling  c exp(-t x^2), the general case of the first two

Clusters are of equal size at first: with free sizes, a small cluster near the reference and rows
lost there look alike, and k-means favours equal sizes anyway. A parameter more must earn its keep,
at the price of the BIC: log(n) / 2 for c and for each free size, log(n) for the threshold of a
feature (an end point is known to 1/n, not to 1/sqrt(n)).

One penalty for all entries is the mean of lam_lj weighted by the part each has in the loss,

    lam = sum_lj mu_lj^2 lam_lj (m_lj + h_l) / sum_lj mu_lj^2 m_lj

where m_lj are the gaps and h_l the rows that lost every value: the gaps of the rows that are left
pull for them too.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr

from .decay import Theta, fit_theta
from .limit import limit_of
from .mar import gain_of_complete_features
from .mixture import Mixture, begin_mixture, continue_mixture, finish_mixture
from .rows import Rows, Start
from .sides import Sides
from .threshold import Threshold

# With half of the entries missing, chance and the weakest mnar1 are the same; half a unit of
# log-likelihood in doubt goes to chance (lam < .05 in 97 % of MCAR data sets, 91 % without).
DOUBT = 0.5
SLACK = 20.0  # log-likelihood that a family may always be behind before it is given up
# What more rounds may gain for each coordinate of a centre (0.11 was the most ever seen).
GAIN_PER_CENTER = 0.25
HOPEFUL = 0.2  # of their price, what sizes of their own must gain in the first round
FAR_BEHIND = 3.0  # what a family may lack before its first round, in units of `_reach`
AFTER_FIRST = 0.7  # and all rounds after the first, for each coordinate and each row
# k-means draws hard borders, which moves the centres of overlapping clusters apart; more pull than
# the theory of the single cluster asks for makes up for it. On Figure 2 powers from 0.4 to 0.67 do
# equally well, 1 is worse.
POWER = 0.5
LARGEST = 2.0  # with few features and most rows lost the formula has no bound of its own


@dataclass(frozen=True)
class Missingness:
    """What the missing pattern says about the mechanism, and the penalty that follows.

    Attributes
    ----------
    lam : float
        The penalty chosen: 0 when the gaps know nothing of the value, otherwise up to 1, or up to
        2 when many rows have lost everything; more where there are more features than rows and
        the clusters of a larger one predict rows better.
    lam_theory : float
        The penalty that recovers the centres under the estimated mechanism (Theorem 3.2 and its
        like), from which `lam` is made.
    lam_star : float
        Strength t of the mechanism: P(missing | x) = c exp(-t x^2), or the curve of the same area
        where a threshold is likelier.
    sigma2 : float
        Variance of a feature within a cluster.
    share_at_reference : float
        The c above: the probability of being missing at the reference itself.
    share_at_random : float
        Probability of being missing far from the reference, when that is estimated as well
        (a description: it does not enter lam).
    log_likelihood, log_likelihood_mcar : float
        Of this model, and of gaps that know nothing of the value (MCAR, or gaps that follow a
        feature without gaps where that is likelier). Their difference says how strongly the data
        prefer the one to the other.
    mechanism : {"mcar", "decay", "threshold", "limit"}
        How values seem to get lost: by chance, the likelier the closer to the reference, within a
        distance of it, or below a limit.
    limit, softness : array of shape (n_features,) or None, float
        With "limit": where half of the values are lost (NaN for features without gaps, and for
        those of a wide table that were not looked at), and the width of the curve
        P(missing | x) = Phi((limit - x) / softness).
    features : array of shape (n_features,) of bool, or None
        Which features the penalty is for: not those whose gaps look like chance beside others that
        lose values below a limit. None: for all of them.
    penalty : float or array of shape (n_features,)
        The penalty chosen for each feature.
    """

    lam: float
    lam_theory: float
    lam_star: float
    sigma2: float
    share_at_reference: float
    share_at_random: float
    log_likelihood: float
    log_likelihood_mcar: float
    mechanism: str = "mcar"
    limit: np.ndarray | None = None
    softness: float = 0.0
    features: np.ndarray | None = None

    @property
    def penalty(self) -> float | np.ndarray:
        """lam, or one for each feature where it is not for all of them."""
        return self.lam if self.features is None else self.lam * self.features

    @property
    def sentence(self) -> str:
        """What it comes to, in words."""
        how = {
            "mcar": "Seen from the reference, the gaps ask for no penalty",
            "decay": "Values close to the reference are missing more often",
            "threshold": "Values within a distance of the reference are missing",
            "limit": "Low values are missing more often, as below a detection limit",
        }[self.mechanism]
        where = ""
        if self.features is not None:
            rest = np.count_nonzero(~self.features)
            where = f", and 0 for {rest} feature(s) whose gaps look like chance"
        return f'{how}: lam="auto" takes {self.lam:.2g}{where}.'

    def for_columns(self, columns: np.ndarray, n_features: int) -> Missingness:
        """The same for a table of which only some columns were looked at."""
        if self.limit is None or len(columns) == n_features:
            return self
        limit = np.full(n_features, np.nan)
        limit[columns] = self.limit
        return replace(self, limit=limit)

    @classmethod
    def nothing_to_estimate(cls, missing: float, observed: float) -> Missingness:
        """No gaps, or no value away from the reference: every lam is as good, so 0."""
        share = missing / (missing + observed) if missing > 0 else 0.0
        return cls(0.0, 0.0, 0.0, 0.0, share, share, 0.0, 0.0)


class _Candidate(NamedTuple):
    """A mixture, and its log-likelihood after the price of its parameters."""

    family: str
    mixture: Mixture
    score: float


def explained_elsewhere(rows: Rows) -> float:
    """Log-likelihood gained by gaps that follow a feature without gaps."""
    return gain_of_complete_features(
        rows.table.source, rows.has_gaps, rows.gaps_per_row, rows.weights
    )


def estimate_missingness(
    rows: Rows,
    starts: Sequence[Start],
    elsewhere: float | None = None,
    by_chance_from: Sequence[Start] | None = None,
) -> Missingness:
    """Fit the mixtures from every start; the likeliest mechanism gives lam.

    ``elsewhere``: what gaps that follow a complete feature explain, if it is known already;
    ``by_chance_from``: other starts for gaps that know nothing of the value.
    """
    if rows.tell_nothing:
        return Missingness.nothing_to_estimate(rows.missing_weight, rows.observed_weight)
    elsewhere = explained_elsewhere(rows) if elsewhere is None else elsewhere
    chosen = _with_free_sizes(rows, _likeliest(rows, starts))
    within_reach = chosen.mixture.log_likelihood - elsewhere - _reach(rows, chosen.mixture)
    by_chance = _begin(rows, by_chance_from or starts, "mcar", within_reach)
    behind = chosen.score - by_chance.score - elsewhere
    if behind < SLACK + GAIN_PER_CENTER * chosen.mixture.M.size:
        by_chance = _with_free_sizes(rows, _finish(rows, by_chance))
    return _describe(rows, chosen, by_chance, elsewhere)


def _likeliest(rows: Rows, starts: Sequence[Start]) -> _Candidate:
    """The best of the families that depend on the value, clusters being of equal size."""
    general = _begin(rows, starts, "ceiling")
    families = ["mnar0", "mnar1"]
    if _threshold_possible(rows, general.mixture):
        families.append("mnar2")
    begun = [general]
    within_reach = general.mixture.log_likelihood - _reach(rows, general.mixture)
    for family in families:
        if family == "mnar1" and _as_likely(begun[-1].mixture, general.mixture):
            continue  # it is a case of "ceiling" too, and mnar0 is the likeliest of those
        mixture = continue_mixture(rows, general.mixture, family, True, within_reach)
        begun.append(_priced(rows, family, mixture, True))
    *others, first = sorted(begun, key=_score)
    best = _finish(rows, first)
    # Who is further behind than twice what the leader gained will not catch up.
    behind = SLACK + 2.0 * (best.score - first.score)
    finished = [_finish(rows, other) for other in others if best.score - other.score < behind]
    return max([best, *finished], key=_score)


def _as_likely(case: Mixture, general: Mixture) -> bool:
    """Nothing is left to gain for a special case of a family."""
    return case.settled and general.settled and case.log_likelihood > general.log_likelihood - 0.01


def _threshold_possible(rows: Rows, general: Mixture) -> bool:
    """Not with a value at the reference itself, nor if the gaps of the clusters as they are would
    be far less likely."""
    if rows.least[rows.has_gaps].min() <= 1e-6:
        return False
    found = general.mechanism
    log_p = (
        Threshold(rows.least, found.s).log_missing(general.M)[0] - found.log_missing(general.M)[0]
    )
    gain = float((general.gaps * log_p).sum()) - found.log_observed(rows.magnitudes)
    return gain > -FAR_BEHIND * _reach(rows, general)


def _begin(
    rows: Rows, starts: Sequence[Start], family: str, within_reach: float = -math.inf
) -> _Candidate:
    return _priced(rows, family, begin_mixture(rows, starts, family, True, within_reach), True)


def _reach(rows: Rows, mixture: Mixture) -> float:
    """How far behind a family may be after its first round for others to be worth their time."""
    return SLACK + AFTER_FIRST * (mixture.M.size + rows.n_rows)


def _finish(rows: Rows, begun: _Candidate) -> _Candidate:
    if begun.mixture.settled:
        return begun
    mixture = finish_mixture(rows, begun.mixture, begun.family, equal_sizes=True)
    return _priced(rows, begun.family, mixture, True)


def _with_free_sizes(rows: Rows, equal: _Candidate) -> _Candidate:
    """The same with sizes of their own, if that is worth its price."""
    price = 0.5 * (len(equal.mixture.M) - 1) * math.log(max(rows.n_rows, 2.0))
    hopeful = equal.mixture.log_likelihood + HOPEFUL * price
    mixture = finish_mixture(rows, equal.mixture, equal.family, at_least=hopeful)
    return max(equal, _priced(rows, equal.family, mixture, False), key=_score)


def describing_mixture(rows: Rows, starts: Sequence[Start]) -> Mixture:
    """The mixture with P(missing | x) = c exp(-t x^2), which includes MCAR (t = 0)."""
    return finish_mixture(rows, begin_mixture(rows, starts, "ceiling"), "ceiling")


def _score(candidate: _Candidate) -> float:
    return candidate.score


def _priced(rows: Rows, family: str, mixture: Mixture, equal_sizes: bool) -> _Candidate:
    parameters = 0 if equal_sizes else len(mixture.M) - 1
    parameters += {"ceiling": 1, "mnar2": 2 * int(rows.has_gaps.sum())}.get(family, 0)
    price = 0.5 * parameters * math.log(max(rows.n_rows, 2.0))
    return _Candidate(family, mixture, mixture.log_likelihood - price)


def mean_penalty(mixture: Mixture) -> float:
    """One penalty for all gaps."""
    square = np.square(mixture.M)
    total = (square * mixture.gaps).sum()
    if total <= 0:
        return float(mixture.lam.mean())
    return float((square * mixture.lam * (mixture.gaps + mixture.hidden[:, None])).sum() / total)


def _describe(
    rows: Rows, chosen: _Candidate, by_chance: _Candidate, elsewhere: float
) -> Missingness:
    """The answer in the units of the data."""
    found = chosen.mixture
    believed = chosen.score > by_chance.score + elsewhere + DOUBT
    theory = mean_penalty(found)
    residual = found.mechanism.s * rows.observed_weight
    all_gaps = found.gaps + found.hidden[:, None]
    start = found.mechanism.with_floor(0.05) if isinstance(found.mechanism, Theta) else None
    with_share = fit_theta(rows.magnitudes, found.M, all_gaps, residual, start, max_steps=5)
    units = -0.5 * rows.observed_weight * math.log(rows.scale)
    return Missingness(
        lam=min(max(theory, theory**POWER), LARGEST) if believed else 0.0,
        lam_theory=theory,
        lam_star=found.mechanism.t / rows.scale,
        sigma2=found.mechanism.s * rows.scale,
        share_at_reference=found.mechanism.share_at_reference,
        share_at_random=with_share.c * with_share.r if believed else rows.missing_share,
        log_likelihood=found.log_likelihood + units,
        log_likelihood_mcar=by_chance.mixture.log_likelihood + elsewhere + units,
        mechanism={"mnar2": "threshold"}.get(chosen.family, "decay") if believed else "mcar",
    )


def describe_limit(rows: Rows, sides: Sides) -> Missingness:
    """The answer where values get lost below a limit, in the units of the data."""
    found, centers = limit_of(sides.cells)
    lam = found.log_missing(centers)[1]
    weight = np.square(centers) * sides.cells.gaps[0]
    theory = float((weight * lam).sum() / max(weight.sum(), 1e-300))
    limit = np.full(len(rows.reference), np.nan)
    limit[rows.has_gaps] = found.c * rows.root + rows.reference[rows.has_gaps]
    share = float(ndtr(found.c / found.d).mean())
    units = -0.5 * rows.observed_weight * math.log(rows.scale)
    believed = sides.believed
    return Missingness(
        lam=sides.lam,
        lam_theory=theory if believed else 0.0,
        lam_star=0.0,
        sigma2=found.s * rows.scale,
        share_at_reference=share if believed else rows.missing_share,
        share_at_random=0.0 if believed else rows.missing_share,
        log_likelihood=sides.log_likelihood + units,
        log_likelihood_mcar=sides.by_chance + units,
        mechanism="limit" if believed else "mcar",
        limit=limit if believed else None,
        softness=found.zeta * rows.root if believed else 0.0,
    )
