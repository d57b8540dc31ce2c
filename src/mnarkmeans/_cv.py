"""MNARKMeansCV: choose lam and the number of clusters, then fit all rows with the choice.

lam (and the reference) are chosen for each k by the score of `_choice` (of candidates that it
cannot tell apart, the one with clearly more stable clusters), or by the paper's instability; k is
the largest whose clusters come back about as often as those of the most stable k when rows are left
out (`_stability`).
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from numbers import Integral
from typing import Any, Literal, Self

import numpy as np
from scipy.stats import rankdata
from sklearn.utils import check_random_state

from ._base import N_INIT, CentersModel
from ._choice import LAMS, choose, references_for
from ._kmeans import MNARKMeans
from ._missingness import MARGIN, Missingness
from ._observed import Observed
from ._solver import ALGORITHMS, STARTS, assign_rows, log_line, starts_of_each
from ._stability import (
    SHARE_OF_ROWS,
    Evidence,
    check_part,
    cluster_stability,
    gather,
    spread,
    subsample_size,
    subsamples,
    thirds,
)
from ._validation import (
    check_choice,
    check_count,
    check_number,
    is_auto,
)

CRITERIA = ("score", "paper")
MOST_ROWS = 20_000  # beyond, parts of a sample say as much as parts of the whole
SAME_STABILITY = 0.02  # adjusted Rand index: more clusters are taken when they are as stable


class SelectionWarning(UserWarning):
    """The choice of lam or k stands on weak ground."""


class MNARKMeansCV(CentersModel):
    """MNARKMeans that chooses lam, and the number of clusters, from the data.

    Parameters
    ----------
    n_clusters : int or sequence of int, default=8
        Number of clusters, or the numbers to choose from.
    lams : "auto" or sequence of float, default="auto"
        Candidates for lam. "auto": those of ``MNARKMeans(lam="auto")``.
    criterion : {"score", "paper"}, default="score"
        How lam is chosen. "score": as ``MNARKMeans(lam="auto")`` does, by how well clusters predict
        what they have not seen; of candidates that predict equally well, one whose clusters are
        clearly more stable is preferred. "paper": the instability of the paper's authors.
    n_splits : int, default=None
        Number of splits; None: 10 for "paper", otherwise 12.
    n_init : int or "auto", default=10
        Starts of every fit. With "score", each part of the rows has half of them, which are tried
        at three of the candidates, and all candidates go on from there; with "paper", every
        candidate is fitted from all of them in every part.
    reference : float, array of shape (n_features,), "min", "auto" or None, default=None
        As for MNARKMeans; None is "auto" where ``lams`` is "auto", and zero where candidates are
        given.
    missing_values, max_iter, tol, algorithm
        As for MNARKMeans.
    init : {"k-means++", "random"}, default="k-means++"
        Starting centres.
    random_state : int, RandomState instance or None, default=None
        Seed of splits and starts; the same seed gives the same result for every ``n_jobs``.
    n_jobs : int or None, default=None
        Number of threads; None uses all cores.
    verbose : int, default=0
        Above 0, a line per finished split with the time left; the logger "mnarkmeans" gets it in
        any case.

    Attributes
    ----------
    lam_, n_clusters_ : float or array of shape (n_features,), int
        The choice.
    best_index_ : int
        Its row in ``cv_results_``.
    cv_results_ : dict of arrays, one entry per candidate
        ``param_n_clusters``, ``param_lam``, ``mean_score`` and ``score_behind`` (of the score, and
        in standard errors behind the best; NaN with "paper"), ``mean_instability``,
        ``std_instability``, ``rank_instability`` (1 is the most stable), ``smallest_cluster`` (rows
        of the smallest cluster, in the median split), ``mean_fit_time``, ``std_fit_time``,
        ``chosen_for_k`` (the lam chosen for this number of clusters).
    stability_ : ndarray of shape (n_clusters_,)
        For each cluster, how much of it is found again when rows are left out (mean Jaccard
        similarity): near 1 is solid, below about 0.5 it dissolves.
    missingness_ : Missingness
        Why lam and reference are what they are, with "score".
    cluster_centers_, labels_, inertia_, n_iter_, loss_path_, start_losses_, reference_, \
n_features_in_, feature_names_in_
        Of the fit to all rows with the choice, as for MNARKMeans.

    Notes
    -----
    Tables of more than 20,000 rows are judged by a sample of that size; the last fit takes all
    rows. Among several numbers of clusters the largest wins whose clusters are as reproducible as
    those of the best.

    Examples
    --------
    >>> from mnarkmeans import MNARKMeansCV
    >>> from mnarkmeans.datasets import make_gaussian_clusters
    >>> data = make_gaussian_clusters(150, 3, 3, separation=6.0, random_state=0)
    >>> model = MNARKMeansCV([2, 3, 4], n_splits=4, n_init=3, random_state=0).fit(data.data)
    >>> model.n_clusters_
    3
    >>> bool((model.stability_ > 0.8).all())
    True
    """

    loss_path_: np.ndarray
    lam_: float | np.ndarray
    n_clusters_: int
    best_index_: int
    cv_results_: dict[str, np.ndarray]
    stability_: np.ndarray

    _known: Any = None  # k -> Trial, a mapping that remembers them where a search may be resumed

    def __init__(
        self,
        n_clusters: int | Sequence[int] | np.ndarray = 8,
        *,
        lams: Literal["auto"] | Sequence[float] | np.ndarray = "auto",
        criterion: Literal["score", "paper"] = "score",
        n_splits: int | None = None,
        n_init: int | Literal["auto"] = N_INIT,
        reference: Any = None,
        missing_values: float = math.nan,
        init: Literal["k-means++", "random"] = "k-means++",
        max_iter: int = 300,
        tol: float = 1e-5,
        algorithm: Literal["auto", "lloyd", "hartigan"] = "auto",
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.lams = lams
        self.criterion = criterion
        self.n_splits = n_splits
        self.n_init = n_init
        self.reference = reference
        self.missing_values = missing_values
        self.init = init
        self.max_iter = max_iter
        self.tol = tol
        self.algorithm = algorithm
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Choose lam (and k), then fit all rows with the choice.

        Parameters
        ----------
        X : table of shape (n_samples, n_features)
            As for MNARKMeans; gaps allowed.
        y : ignored
        sample_weight : array of shape (n_samples,), default=None
            Weight of each row in the fits and in the score.

        Returns
        -------
        self : MNARKMeansCV
        """
        ks, lams = self._check_parameters()
        observed = self._observe_to_fit(X, sample_weight, max(ks))
        seed = int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))
        judged = self._judged(observed)
        n = judged.n_rows  # the largest k is refused before the others are tried
        usual = n // 3 if self.criterion == "paper" else subsample_size(n, SHARE_OF_ROWS)
        check_part(usual, max(ks), n)
        progress = Progress(len(ks) * self._n_parts(), bool(self.verbose))
        known = {} if self._known is None else self._known
        trials = []
        for k in ks:
            trial = known.get(k) or self._try(observed, judged, k, lams, seed, progress)
            known[k] = trial
            trials.append(trial)
        best = choose_k(trials)
        chosen = trials[best]
        self.n_clusters_, self.lam_ = chosen.evidence.k, chosen.lam
        self._keep_results(trials, best)
        if chosen.missingness is not None:
            self.missingness_ = chosen.missingness
        self._refit(replace(observed, reference=chosen.reference), seed)
        self._keep_stability(replace(judged, reference=chosen.reference), chosen)
        for doubt in doubts(chosen, given=not isinstance(self.lams, str)):
            warnings.warn(doubt, SelectionWarning, stacklevel=2)
        return self

    # ------------------------------------------------------------------------------------------

    def _reference(self) -> Any:
        if self.reference is not None:
            return self.reference
        return "auto" if isinstance(self.lams, str) else 0.0

    def _check_parameters(self) -> tuple[list[int], np.ndarray | None]:
        given: Any = self.n_clusters
        ks: list[Any] = [given] if isinstance(given, (Integral, str)) else list(given)
        if not ks:
            raise ValueError("n_clusters is empty; give one number or several to choose from.")
        ks = sorted({check_count("n_clusters", k) for k in ks})
        if isinstance(self.lams, str):
            check_choice("lams", self.lams, ("auto",), ", or a sequence of numbers >= 0")
            lams = None
        else:
            lams = np.unique([check_number("lams", lam) for lam in np.ravel(self.lams).tolist()])
            if len(lams) == 0:
                raise ValueError("lams is empty; give candidates >= 0, or 'auto'.")
        check_choice("criterion", self.criterion, CRITERIA)
        if self.n_splits is not None:
            check_count("n_splits", self.n_splits, minimum=2)
        if not is_auto(self.n_init):
            check_count("n_init", self.n_init)
        check_count("max_iter", self.max_iter)
        check_number("tol", self.tol)
        check_choice("algorithm", self.algorithm, ("auto", *ALGORITHMS))
        check_choice("init", self.init, tuple(STARTS))
        return ks, lams

    def _n_parts(self) -> int:
        if self.criterion == "paper":
            return 2 * (self.n_splits or 10)
        return self.n_splits or 12

    def _judged(self, observed: Observed) -> Observed:
        """The rows that are split: those that count, and not more than are needed."""
        counting = np.flatnonzero(observed.weights > 0)
        if len(counting) > MOST_ROWS:
            rng = np.random.default_rng(0)
            counting = np.sort(rng.choice(counting, MOST_ROWS, replace=False))
        return observed if len(counting) == observed.n_rows else observed.take(counting)

    def _try(
        self, observed: Observed, judged: Observed, k: int, lams: Any, seed: int, progress: Progress
    ) -> Trial:
        """lam and reference for one k, and how stable its clusters are."""
        missingness: Missingness | None = None
        reference, lam, features = observed.reference, math.nan, np.ones(observed.n_features)
        if self.criterion == "score" or is_auto(self._reference()):
            choice = choose(
                observed, k, lams=LAMS if lams is None else lams,
                references=references_for(observed) if is_auto(self._reference()) else None,
                **self._stopping_rule(), threads=self._threads(),
            )  # fmt: skip
            missingness, reference = choice.missingness, choice.reference
            lam, features = missingness.lam, choice.features
        lams = np.array(LAMS) if lams is None else lams
        rng = np.random.RandomState(seed)
        n, n_parts = judged.n_rows, self._n_parts()
        to_the_letter = self.criterion == "paper"
        if to_the_letter:
            parts, features = thirds(n, n_parts // 2, rng), np.ones(observed.n_features)
        else:
            parts = subsamples(n, n_parts, SHARE_OF_ROWS, rng)
            lams = np.unique(np.append(lams if judged.has_gaps.any() else [], lam))
        check_part(int(parts.sum(axis=1).min()), k, n)
        n_starts = self._n_starts() if to_the_letter else -(-self._n_starts() // 2)
        seeds = rng.randint(np.iinfo(np.int32).max, size=n_parts)

        def starts(tables: list[Observed], lot: np.ndarray) -> list[np.ndarray]:
            own = seeds[lot].tolist()
            return starts_of_each(self.init, tables, n_starts, k, own, self._threads())

        evidence = gather(
            replace(judged, reference=reference), k, lams, features, parts, starts,
            thorough=to_the_letter, threads=self._threads(), report=progress.step,
            **self._stopping_rule(),
        )  # fmt: skip
        if to_the_letter:
            instability = evidence.instability_of_thirds()
            best = least_unstable(instability)
            return Trial(evidence, instability, best, reference, features, None)
        assert missingness is not None  # chosen by the score above
        instability = evidence.instability_of_subsamples()
        trial = Trial(
            evidence, instability, int(np.flatnonzero(lams == lam)[0]), reference, features,
            missingness,
        )  # fmt: skip
        index = trial.most_stable_of_equals()
        if lams[index] != lam:
            missingness = replace(missingness, lam=float(lams[index]), decided_by="stability")
        return replace(trial, choice=index, missingness=missingness)

    def _keep_results(self, trials: list[Trial], best: int) -> None:
        tables = [trial.columns() for trial in trials]
        self.cv_results_ = {n: np.concatenate([table[n] for table in tables]) for n in tables[0]}
        ranks = rankdata(self.cv_results_["mean_instability"], method="min")
        self.cv_results_["rank_instability"] = ranks.astype(np.int64)
        before = sum(len(trial.evidence.lams) for trial in trials[:best])
        self.best_index_ = before + trials[best].choice

    def _refit(self, observed: Observed, seed: int) -> None:
        """Fit all rows with the choice."""
        model = MNARKMeans(
            self.n_clusters_, lam=self.lam_, init=self.init, n_init=self.n_init,
            max_iter=self.max_iter, tol=self.tol, algorithm=self.algorithm,
            n_jobs=self.n_jobs, verbose=self.verbose,
        )  # fmt: skip
        starts = model._starts(observed, None, np.random.RandomState(seed))
        model._keep(observed, model._solve(observed, starts, self.lam_), self.lam_)
        for name in ("cluster_centers_", "labels_", "inertia_", "n_iter_", "loss_path_",
                     "start_losses_", "reference_"):  # fmt: skip
            setattr(self, name, getattr(model, name))

    def _keep_stability(self, judged: Observed, chosen: Trial) -> None:
        centers = self.cluster_centers_.astype(np.float64)[None]
        labels = assign_rows(judged, centers, self.lam_, self._threads())[:, 0]
        own = chosen.evidence.labels[:, :, chosen.choice]
        self.stability_ = cluster_stability(labels, own, chosen.evidence.inside, self.n_clusters_)


# --- one trial for each number of clusters ------------------------------------------------------


@dataclass(frozen=True)
class Trial:
    """One k: how stable every candidate for lam is, and which was chosen."""

    evidence: Evidence
    instability: np.ndarray  # (splits or pairs, G)
    choice: int
    reference: np.ndarray  # (p,)
    features: np.ndarray  # (p,) 1, or 0 for those without a penalty
    missingness: Missingness | None

    @property
    def lam(self) -> Any:
        lam = float(self.evidence.lams[self.choice])
        return lam if self.features.all() else lam * self.features

    @property
    def stability(self) -> float:
        """1 - instability of the choice; one cluster is trivially stable and says nothing."""
        if self.evidence.k == 1:
            return -math.inf
        return 1.0 - float(self.instability[:, self.choice].mean())

    @property
    def is_whole(self) -> bool:
        """Every cluster of the choice has rows: one row by itself comes back in any split."""
        return not self.evidence.next_to_empty[self.choice]

    def scored(self) -> tuple[np.ndarray, np.ndarray]:
        """(G,) scores, and how far behind the best in standard errors; NaN where there are none."""
        score, behind = np.full((2, len(self.evidence.lams)), np.nan)
        if self.missingness is not None:
            table = self.missingness.candidates
            same = table["features"] == int(self.features.sum())
            own = (table["reference"] == self.missingness.reference) & same | (table["lam"] == 0.0)
            at = np.searchsorted(self.evidence.lams, table["lam"][own])
            score[at], behind[at] = table["score"][own], -table["behind"][own]
        return score, behind

    def most_stable_of_equals(self) -> int:
        """Of the candidates that the score cannot tell from the best: the choice, unless another
        one has clearly more stable clusters."""
        equal = np.flatnonzero((self.scored()[1] <= MARGIN) & ~self.evidence.next_to_empty)
        mean = self.instability.mean(axis=0)
        if not len(equal) or mean[self.choice] <= mean[equal].min() + SAME_STABILITY:
            return self.choice
        return int(equal[mean[equal].argmin()])

    def columns(self) -> dict[str, np.ndarray]:
        lams, size = self.evidence.lams, len(self.evidence.lams)
        score, behind = self.scored()
        return {
            "param_n_clusters": np.full(size, self.evidence.k),
            "param_lam": lams.copy(),
            "mean_score": score,
            "score_behind": behind,
            "mean_instability": self.instability.mean(axis=0),
            "std_instability": spread(self.instability),
            "smallest_cluster": self.evidence.smallest_cluster,
            "mean_fit_time": np.full(size, self.evidence.seconds.mean()),
            "std_fit_time": np.full(size, self.evidence.seconds.std()),
            "chosen_for_k": np.arange(size) == self.choice,
        }

    def to_plain(self) -> dict[str, Any]:
        """Numbers, words and arrays, for a file."""
        found = self.missingness
        return asdict(self) | {"missingness": None if found is None else found.to_plain()}

    @classmethod
    def from_plain(cls, stored: dict[str, Any]) -> Trial:
        """The inverse of `to_plain`."""
        found = stored["missingness"]
        return cls(**stored | {
            "evidence": Evidence(**stored["evidence"]),
            "missingness": None if found is None else Missingness.from_plain(found),
        })  # fmt: skip


class Progress:
    """A line per finished part, with the time left."""

    def __init__(self, total: int, loud: bool):
        self.total, self.loud, self.done, self.begin = total, loud, 0, time.perf_counter()

    def step(self) -> None:
        self.done += 1
        spent = time.perf_counter() - self.begin
        left = spent / self.done * (self.total - self.done)
        message = f"fit {self.done}/{self.total}: {spent:.1f} s spent, about {left:.1f} s left"
        log_line(message, self.loud)


def least_unstable(instability: np.ndarray) -> int:
    """The authors' rule: the least mean, unless it is that of the largest candidate; then the
    smallest lam whose mean is below (last mean + last standard deviation)."""
    mean = instability.mean(axis=0)
    choice, last = int(np.argmin(mean)), len(mean) - 1
    if choice == last and last > 0:
        below = mean < mean[last] + spread(instability)[last]
        return int(np.argmax(below)) if below.any() else last
    return choice


def choose_k(trials: list[Trial]) -> int:
    """The last (largest k) that is as stable as the best, and has no cluster next to empty."""
    values = np.array([trial.stability for trial in trials])
    if not np.isfinite(values).any():
        return 0
    as_stable = values >= values.max() - SAME_STABILITY
    whole = as_stable & np.array([trial.is_whole for trial in trials])
    return int(np.flatnonzero(whole)[-1]) if whole.any() else int(np.argmax(values))


def doubts(chosen: Trial, given: bool) -> Iterator[str]:
    """What makes the choice doubtful, in sentences. ``given``: the candidates were the user's."""
    lams, choice = chosen.evidence.lams, chosen.choice
    edge = choice == len(lams) - 1 or (choice == 0 and lams[0] > 0)
    if given and len(lams) > 1 and edge:
        yield (
            f"lam={lams[choice]:g} lies at the edge of the candidates ({lams[0]:g} to "
            f"{lams[-1]:g}); extend lams beyond it."
        )
    if chosen.evidence.smallest_cluster[choice] == 0:
        yield (
            f"With lam={lams[choice]:g} clusters collapse: fits to parts of the rows do not keep "
            f"{chosen.evidence.k} clusters. Try smaller lams or fewer clusters."
        )
