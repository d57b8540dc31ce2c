"""``missingness_`` of fitted estimators: why lam and reference are what they are."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np

from ._io import NotebookTable, require

REFERENCE_WORDS = {
    "zero": "reference zero",
    "min": "the smallest observed value of each feature as reference",
    "given": "the reference given",
}
MECHANISM_WORDS = {
    "mcar": "Within these clusters, values seem to be missing by chance.",
    "class": "Each cluster seems to lose values by chance, at a rate of its own.",
    "threshold": "Within these clusters, values near the reference are always missing.",
    "decay": "Within these clusters, values close to the reference are missing more often.",
    "limit": (
        "Within these clusters, low values are missing more often, as below a detection limit."
    ),
}


class MechanismFit(NamedTuple):
    """How values go missing, fitted to the clusters found."""

    mechanism: str  # of MNARMixture
    strength: float  # share missing; decay: t in units of the variance within clusters; threshold:
    # in standard deviations
    log_likelihood: float  # less log(n) / 2 for each parameter of the mechanism
    lam: float  # the penalty that makes up for it


@dataclass(frozen=True)
class Missingness(NotebookTable):
    """Why lam and reference are what they are.

    Attributes
    ----------
    lam : float
        The penalty taken.
    reference : str
        The reference taken: "zero", "min" (the smallest observed value of each feature) or "given".
    candidates : dict of arrays
        One entry per candidate: ``lam``, ``reference``, ``features`` (how many have the penalty),
        ``score`` (log-likelihood per row of what the clusters predict of features left out, or with
        fewer than 8 features minus the scatter, within clusters, of the centres that the likeliest
        mixture expects for their rows; larger is better) and ``behind`` (score less the best one's,
        in standard errors of the difference over rows and blocks of features: 0 is the best, -2 is
        two behind).
    lam_range : (float, float)
        The smallest and the largest lam with this reference that score at most one standard error
        lower than the best of them. ``lam`` is the one of them whose centres are nearest to those
        of the likeliest mixture.
    mechanisms : list of (mechanism, strength, log_likelihood, lam)
        Mixtures with the mechanisms of `MNARMixture`, begun from the chosen clusters; "class" only
        with fewer than 8 features, "threshold" if no value is observed at the reference.
        ``log_likelihood`` has log(n)/2 per parameter of the mechanism subtracted, and ``lam`` is
        the penalty that recovers the centres under the mechanism.
    mechanism, lam_theory
        The likeliest of them, and its penalty.
    explained : float
        Share of the variation of missingness, within features, that follows the distance of the
        clusters from the reference.
    n_by_chance : int
        Features that have no penalty, because their missing values do not follow the clusters.
    decided_by : {"score", "mechanism"}
        "mechanism": with fewer than 8 features mixtures decide, by BIC, whether values are
        missing by chance or near a reference.
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
        no_choice = len(behind) < 2 and len(self.mechanisms) < 2
        if no_choice and self.mechanisms[0].strength < 1e-12:
            counted = "Nothing is missing in the rows and features that have values and weight"
            return f"{counted}, so every lam gives the same clusters."
        if no_choice:
            few = "There are too few rows or missing values to choose lam from the data"
            return f"{few}: lam={self.lam:g}."
        if self.n_by_chance:
            count = f"{self.n_by_chance} feature{'s' if self.n_by_chance > 1 else ''}"
            where += f" (but 0 in {count} whose missing values do not follow the clusters)"
        taken = f"lam={self.lam:g} with {where}" if self.lam > 0.0 else "lam=0"
        low, high = self.lam_range
        span = f" (lam from {low:g} to {high:g} does about as well)" if high > low else ""
        if len(behind) < 2:
            return f"{taken}: there was no other candidate. {how}"
        no_penalty = behind[lam == 0.0]
        if self.decided_by == "mechanism":
            reason, other = "because they are near the reference", "by chance"
            if self.mechanism in ("mcar", "class"):
                reason, other = other, reason
            return (
                f"{taken}: with so few features, Gaussian mixture models decide, and values are "
                f"more likely to be missing {reason} than {other}{span}. {how}"
            )
        if self.lam == 0.0:
            lead = "score lower" if behind[lam > 0].max() < 0.0 else "are not clearly better"
            return (
                "lam=0: missing values are ignored. Using them does not improve the prediction of "
                f"held-out features (candidates with a penalty {lead}). {how}"
            )
        features = self.candidates["features"]
        chosen = (lam == self.lam) & (self.candidates["reference"] == self.reference)
        own = behind[chosen & (features == features.max() - self.n_by_chance)].max()
        well = "best" if own >= 0.0 else "as well as the best candidate, within one standard error"
        lead = ""
        if len(no_penalty):
            lead = f"; no penalty scores {-no_penalty[0]:.1f} standard errors lower than the best"
        edge = self.lam >= lam.max()
        more = " It is the largest candidate; a larger lam may do better." if edge else ""
        return f"{taken} predicts held-out features {well}{lead}{span}.{more} {how}"

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
