"""What lam="auto" has to say of the gaps of a table."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from .mechanisms import MECHANISMS

# With half of the entries missing, chance and the weakest mnar1 are the same; half a unit of
# log-likelihood in doubt goes to chance (lam < .05 in 97 % of MCAR data sets, 91 % without).
DOUBT = 0.5


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
        how = MECHANISMS[self.mechanism].sentence
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
