"""Criteria: from the evidence to one lam.

paper       share of row pairs that two fits to thirds of the rows judge differently in the third
            third; the least wins, unless it is the largest candidate: then the smallest lam whose
            mean is below (last mean + last sd). The authors' rule.
subsample   1 - adjusted Rand index of two fits to 80 % of the rows on the rows they share; the
            least wins.
consensus   1 - correlation of a candidate's partition of all rows with the frequency at which rows
            fall together over all subsample fits of all candidates; the middle of the best plateau.
heldout     loss of the rows that a fit has not seen, measured with one penalty for all candidates
            (the likelihood's). Its minimum, if that is the likelihood's own lam; otherwise halfway
            between the minimum and the largest lam that is not worse by more than one standard
            deviation over the splits, as far as clusters stay about as reproducible as at the
            minimum. Partitions that a larger lam makes far more reproducible win over it; if those
            of the choice hardly come back at all, the likelihood's lam is kept. (Centres that are
            drawn to the reference predict new rows better when clusters have few rows, whether or
            not the clusters are right: the loss alone would go too far.) What has been chosen
            stands if its partition of all rows, every feature weighing its own centres, predicts
            left-out rows (`predicted`) about as well as any from the likelihood's lam upwards, in
            the units of the data or in those of the features; otherwise the best of those is taken.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from .._penalty.answer import Missingness
from .agreement import disagreements, pairwise_adjusted_rand, spread
from .evidence import Evidence

SHARE_OF_ROWS = 0.8
FAR_MORE_REPRODUCIBLE = 0.2  # adjusted Rand index
AS_REPRODUCIBLE = 0.1
HARDLY_REPRODUCIBLE = 0.4
SAME_LAM = 0.1  # of itself
PREDICTS_AS_WELL = 0.99  # of what is predicted
TOLERANCE_OF_PLATEAU = 1e-3
MOST_ROWS_OF_CONSENSUS = 1500


class Verdict(NamedTuple):
    """What a criterion says of the candidates of one k."""

    instability: np.ndarray  # (splits or pairs, G)
    choice: int


class Asked(NamedTuple):
    """What a criterion may know beside the evidence."""

    one_error: bool = False  # take the smallest lam within one standard error of the best
    full_labels: np.ndarray | None = None  # (n, G) by fits to all rows
    likelihood_lam: float = np.nan  # what the pattern of gaps says, if it was asked
    predicted: np.ndarray | None = None  # (2, G) of rows left out, if it was asked
    threads: int = 1


def instability_of_thirds(evidence: Evidence) -> np.ndarray:
    """(n_splits, G) disagreement on the rows of the third part."""
    n_splits = len(evidence.labels) // 2
    couples = np.arange(2 * n_splits).reshape(2, n_splits).T
    return disagreements(evidence.labels, ~evidence.inside, couples, evidence.k)


def instability_of_subsamples(evidence: Evidence, threads: int) -> np.ndarray:
    """(pairs, G), of parts that did not share their starts."""
    return 1.0 - pairwise_adjusted_rand(
        evidence.labels, evidence.inside, evidence.groups, evidence.k, threads
    )


def usable(evidence: Evidence) -> np.ndarray:
    """Candidates whose fits kept k clusters; all, if none did."""
    kept = evidence.smallest_cluster > 0
    return kept if kept.any() else np.ones_like(kept)


def _least(values: np.ndarray, allowed: np.ndarray) -> int:
    return int(np.argmin(np.where(allowed, values, np.inf)))


def _smallest_within_one_error(instability: np.ndarray, choice: int, allowed: np.ndarray) -> int:
    mean = instability.mean(axis=0)
    error = spread(instability)[choice] / np.sqrt(len(instability))
    return int(np.flatnonzero(allowed & (mean <= mean[choice] + error))[0])


def paper(evidence: Evidence, asked: Asked) -> Verdict:
    instability = instability_of_thirds(evidence)
    mean = instability.mean(axis=0)
    choice = int(np.argmin(mean))
    last = len(mean) - 1
    if choice == last and last > 0:
        below = mean < mean[last] + spread(instability)[last]
        choice = int(np.argmax(below)) if below.any() else last
    if asked.one_error:
        choice = _smallest_within_one_error(instability, choice, np.ones(len(mean), bool))
    return Verdict(instability, choice)


def subsample(evidence: Evidence, asked: Asked) -> Verdict:
    instability = instability_of_subsamples(evidence, asked.threads)
    allowed = usable(evidence)
    choice = _least(instability.mean(axis=0), allowed)
    if asked.one_error:
        choice = _smallest_within_one_error(instability, choice, allowed)
    return Verdict(instability, choice)


def consensus(evidence: Evidence, asked: Asked) -> Verdict:
    assert asked.full_labels is not None  # fitted for this criterion
    correlation = consensus_correlation(evidence, asked.full_labels)
    allowed = usable(evidence)
    correlation = np.where(allowed, correlation, -1.0)
    best = int(np.argmax(correlation))
    low = high = best
    while low > 0 and correlation[low - 1] >= correlation[best] - TOLERANCE_OF_PLATEAU:
        low -= 1
    while (
        high + 1 < len(correlation)
        and correlation[high + 1] >= correlation[best] - TOLERANCE_OF_PLATEAU
    ):
        high += 1
    choice = low if asked.one_error else (low + high) // 2
    return Verdict(np.tile(1.0 - correlation, (2, 1)), choice)


def consensus_correlation(evidence: Evidence, full_labels: np.ndarray) -> np.ndarray:
    """(G,) correlation of together-in-the-candidate with how often rows fall together at all."""
    n = min(full_labels.shape[0], MOST_ROWS_OF_CONSENSUS)
    together, seen = np.zeros((n, n)), np.zeros((n, n))
    for labels, inside in zip(evidence.labels, evidence.inside, strict=True):
        rows = np.flatnonzero(inside[:n])
        block = np.zeros((len(rows), len(rows)))
        for own in labels[rows].T:
            block += own[:, None] == own[None, :]
        together[np.ix_(rows, rows)] += block
        seen[np.ix_(rows, rows)] += labels.shape[1]
    pairs = np.triu_indices(n, 1)
    known = seen[pairs] > 0
    frequency = together[pairs][known] / seen[pairs][known]
    out = np.full(full_labels.shape[1], -1.0)
    for g, own in enumerate(full_labels[:n].T):
        same = (own[:, None] == own[None, :])[pairs][known].astype(float)
        if same.std() > 0 and frequency.std() > 0:
            out[g] = np.corrcoef(same, frequency)[0, 1]
    return out


def held_out_penalty(missingness: Missingness) -> float:
    """The one penalty by which held-out rows are measured; near the theory's, as in the study."""
    return missingness.lam_theory ** (2.0 / 3.0) if missingness.lam > 0 else 0.0


def heldout(evidence: Evidence, asked: Asked) -> Verdict:
    instability = instability_of_subsamples(evidence, asked.threads)
    allowed = usable(evidence)
    stability = np.where(allowed, 1.0 - instability.mean(axis=0), -1.0)
    loss = evidence.held_out
    best = _least(loss.mean(axis=0), allowed)
    worse = loss - loss[:, [best]]
    possible = allowed & ~collapsing(evidence, best)
    home = _likelihoods_own(evidence.lams, asked.likelihood_lam)
    choice = best if best == home else _up_the_valley(worse, possible, stability, best)
    steadiest = choice + int(np.argmax(stability[choice:]))
    if stability[steadiest] > stability[choice] + FAR_MORE_REPRODUCIBLE:
        choice = steadiest
    elif home is not None and stability[choice] < HARDLY_REPRODUCIBLE:
        choice = home
    if asked.predicted is not None:
        nearest = int(np.argmin(np.abs(evidence.lams - asked.likelihood_lam)))
        choice = _that_predicts(asked.predicted, nearest, possible, choice)
    if asked.one_error:
        error = spread(worse) / np.sqrt(len(loss))
        close = (worse.mean(axis=0) <= error) & possible
        close[best] = True
        choice = min(choice, int(np.flatnonzero(close)[0]))
    return Verdict(instability, choice)


def _likelihoods_own(lams: np.ndarray, likelihood_lam: float) -> int | None:
    """Which of the candidates is the likelihood's lam, or next to it; None if none is."""
    away = np.abs(lams - likelihood_lam)
    near = np.flatnonzero(away <= SAME_LAM * likelihood_lam)
    return int(near[np.argmin(away[near])]) if len(near) else None


def _that_predicts(predicted: np.ndarray, home: int, possible: np.ndarray, choice: int) -> int:
    """The choice, or if others predict more of rows left out, the middle of those that do most."""
    upwards = possible.copy()
    upwards[:home], upwards[home] = False, True
    most = np.where(upwards, predicted, -np.inf).max(axis=1)
    if (predicted[:, choice] >= PREDICTS_AS_WELL * most).any():
        return choice
    if most[0] <= predicted[0, home]:
        return home
    best = np.flatnonzero(upwards & (predicted[0] == most[0]))
    return int(best[(len(best) - 1) // 2])


def _up_the_valley(
    worse: np.ndarray, possible: np.ndarray, stability: np.ndarray, best: int
) -> int:
    """Halfway to the largest lam that is not clearly worse, while clusters stay reproducible."""
    near = (worse.mean(axis=0) <= spread(worse)) & possible
    high = best
    while high + 1 < len(near) and near[high + 1]:
        high += 1
    choice = (best + high + 1) // 2
    while choice > best and stability[choice] < stability[best] - AS_REPRODUCIBLE:
        choice -= 1
    return choice


def collapsing(evidence: Evidence, best: int) -> np.ndarray:
    """(G,) candidates that leave a cluster next to no rows where the best one does not."""
    few = next_to_empty(evidence)
    return few & (not few[best])


def next_to_empty(evidence: Evidence) -> np.ndarray:
    """(G,) candidates of which a cluster has next to no rows."""
    n = evidence.labels.shape[1]
    return evidence.smallest_cluster < max(2.0, 0.05 * n / evidence.k)


CRITERIA: dict[str, Callable[..., Verdict]] = {
    "heldout": heldout,
    "paper": paper,
    "subsample": subsample,
    "consensus": consensus,
}
