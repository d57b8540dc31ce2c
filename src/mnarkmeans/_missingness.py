"""Why lam and reference are what they are: what fitted estimators keep as ``missingness_``."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np

from ._io import require

MARGIN = 1.0  # standard errors from which candidates are told apart
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


class Mechanism(NamedTuple):
    """How values get lost, fitted to a partition."""

    mechanism: str  # "mcar", "decay" or "limit"
    strength: float  # share lost (mcar, limit), or t in units of the variance within clusters
    log_likelihood: float  # of observed values and gaps, less log(n) / 2 for each parameter
    lam: float  # the penalty that makes up for it


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
    decided_by : {"score", "mechanism", "stability"}
        "mechanism": of a table with fewer than 8 features the score could not tell candidates
        apart, and mixtures decided, by BIC, whether values get lost by chance or around a
        reference. "stability": of lam that score equally well, MNARKMeansCV took a more stable one.
    """

    lam: float
    reference: str
    candidates: dict[str, np.ndarray]
    lam_range: tuple[float, float]
    mechanisms: list[Mechanism]
    explained: float
    decided_by: str = "score"

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
        if len(behind) < 2 and self.mechanisms[0].strength == 0.0:
            return "Nothing is missing, so that every lam gives the same clusters."
        if len(behind) < 2:
            return f"There are too few rows to choose by: lam={self.lam:g}."
        if self.lam == 0.0 and self.decided_by == "mechanism":
            return (
                "lam=0: with so few features the score cannot tell whether a penalty helps, and "
                f"chance is likelier than values lost around the reference. {how}"
            )
        if self.lam == 0.0:
            others = behind[self.candidates["lam"] > 0]
            lead = "score less" if others.max() < 0.0 else "are not clearly better"
            return (
                "lam=0: missing values are ignored. Clusters that use them predict features left "
                f"out no better (candidates with a penalty {lead}). {how}"
            )
        no_penalty = behind[self.candidates["lam"] == 0.0]
        if self.decided_by == "mechanism":
            return (
                f"lam={self.lam:g} with {where}: with so few features the score cannot tell "
                "candidates apart, and values lost around this reference are likelier than by "
                f"chance. {how}"
            )
        if len(no_penalty) and no_penalty[0] >= -MARGIN:
            return (
                f"lam={self.lam:g} with {where} predicts features left out about as well as no "
                f"penalty does, and its clusters are the more stable ones. {how}"
            )
        lead = ""
        if len(no_penalty):
            lead = f"; without a penalty {-no_penalty[0]:.1f} standard errors worse"
        low, high = self.lam_range
        span = f" (lam from {low:g} to {high:g} does as well)" if high > low else ""
        edge = self.lam >= self.candidates["lam"].max()
        more = " It is the largest candidate; a larger lam may do better." if edge else ""
        what = f"lam={self.lam:g} with {where} predicts features left out best"
        return f"{what}{lead}{span}.{more} {how}"

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
