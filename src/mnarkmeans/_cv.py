"""MNARKMeansCV: choose lam and the number of clusters, then fit all rows with the choice.

lam (and the reference) are chosen for each k by the score of `_choice`, or by the paper's
instability; k is the largest whose clusters come back about as often as those of the most stable k
when rows are left out. With T the contingency table of two partitions, r and c its margins, and
(x over 2) = x (x - 1) / 2 pairs of x rows:

    pairs together in one and apart in the other = (r over 2) + (c over 2) - 2 (T over 2)
    adjusted Rand index = (sum (T over 2) - E) / (((r over 2) + (c over 2)) / 2 - E),
                          E = (r over 2) (c over 2) / (m over 2)

Every candidate for lam is fitted to the same parts of the rows, each with its own starts. They are
run with three of the candidates, and all candidates start from the results. (The paper's procedure
fits every candidate from all starts.)
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import KW_ONLY, asdict, dataclass, replace
from numbers import Integral
from typing import Any, Literal, Self

import numpy as np
from scipy.stats import rankdata
from sklearn.utils import check_random_state

from ._choice import LAMS, choose, references_for
from ._kmeans import N_INIT, CentersModel, MNARKMeans
from ._missingness import Missingness
from ._observed import Observed
from ._solver import STARTS, assign_rows, log_line, run_starts
from ._validation import check_choice, check_count, check_number, is_auto

CRITERIA = ("score", "paper")
OWN_PARAMETERS = ("lams", "criterion", "n_splits")  # the others are those of MNARKMeans
SHARE_OF_ROWS = 0.8  # of a part
ANCHORS = 3  # candidates for lam that all starts are run with
MOST_ROWS = 20_000  # of a larger table, a sample of this size is enough
SAME_STABILITY = 0.02  # adjusted Rand index that is given up in favour of more clusters


class SelectionWarning(UserWarning):
    """The choice of lam or k is poorly supported by the data."""


@dataclass(repr=False, eq=False)
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
        held-out values. "paper": the instability of the paper's authors.
    n_splits : int, default=None
        Number of splits; None: 10 for "paper", otherwise 12.
    n_init : int or "auto", default=10
        Starts of the last fit. Each part of the rows has as many with "paper", and half as many
        with "score", which are run at three candidates, and all candidates go on from there.
    reference : float, array of shape (n_features,), "min", "auto" or None, default=None
        None is "auto" where ``lams`` is "auto", and zero where candidates are given.
    missing_values, max_iter, tol, algorithm, random_state, n_jobs
        As for MNARKMeans.
    init : {"k-means++", "random"}, default="k-means++"
        Starting centres.
    verbose : int, default=0
        Above 0, a line with the time left after every split, which the logger "mnarkmeans" gets in
        any case.

    Attributes
    ----------
    lam_, n_clusters_, best_index_ : float or array of shape (n_features,), int, int
        The choice, and its row in ``cv_results_``.
    cv_results_ : dict of arrays, one entry per candidate
        ``param_n_clusters``, ``param_lam``, ``mean_instability``, ``std_instability``,
        ``rank_instability`` (1 is the most stable), ``mean_fit_time``, ``std_fit_time``,
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
    Stability is estimated in a sample of at most 20,000 rows; the last fit takes all rows. The
    largest number of clusters wins that is as reproducible as the best.

    Examples
    --------
    >>> from mnarkmeans import MNARKMeansCV
    >>> from mnarkmeans.datasets import make_gaussian_clusters
    >>> data = make_gaussian_clusters(150, 3, 3, separation=6.0, random_state=0)
    >>> MNARKMeansCV([2, 3, 4], n_splits=4, n_init=3, random_state=0).fit(data.data).n_clusters_
    3
    """

    n_clusters: int | Sequence[int] | np.ndarray = 8
    _: KW_ONLY
    lams: Literal["auto"] | Sequence[float] | np.ndarray = "auto"
    criterion: Literal["score", "paper"] = "score"
    n_splits: int | None = None
    n_init: int | Literal["auto"] = N_INIT
    reference: Any = None
    missing_values: float = math.nan
    init: Literal["k-means++", "random"] = "k-means++"
    max_iter: int = 300
    tol: float = 1e-5
    algorithm: Literal["auto", "lloyd", "hartigan"] = "auto"
    random_state: Any = None
    n_jobs: int | None = None
    verbose: int = 0

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Choose lam (and k), then fit all rows with the choice; X as for MNARKMeans."""
        ks, lams = self._check_parameters()
        observed = self._observe_to_fit(X, sample_weight, max(ks))
        seed = int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))
        rows = observed.sample(MOST_ROWS)
        sample = observed if len(rows) == observed.n_rows else observed.take(rows)
        parts, seeds = self._parts(sample.n_rows, seed, max(ks))
        total, done, began = len(ks) * len(parts), 0, time.perf_counter()

        def progress() -> None:
            nonlocal done
            done += 1
            spent = time.perf_counter() - began
            left = f"{spent:.1f} s spent, about {spent / done * (total - done):.1f} s left"
            log_line(f"fit {done}/{total}: {left}", bool(self.verbose))

        known, trials = {} if self._known is None else self._known, []
        for k in ks:
            trial = known.get(k) or self._try(observed, sample, k, lams, parts, seeds, progress)
            known[k] = trial
            trials.append(trial)
        best = choose_k(trials)
        chosen = trials[best]
        self.n_clusters_, self.lam_ = chosen.k, chosen.penalty
        self._keep_results(trials, best)
        if chosen.missingness is not None:
            self.missingness_ = chosen.missingness
        self._refit(replace(observed, reference=chosen.reference), seed)
        sample = replace(sample, reference=chosen.reference)
        labels = self._labels_of(sample)
        self.stability_ = cluster_stability(labels, chosen.labels, parts, chosen.k)
        for doubt in doubts(chosen, given=not isinstance(self.lams, str)):
            warnings.warn(doubt, SelectionWarning, stacklevel=2)
        return self

    # ------------------------------------------------------------------------------------------

    def _reference(self) -> Any:
        if self.reference is not None:
            return self.reference
        return "auto" if isinstance(self.lams, str) else 0.0

    def _check_parameters(self) -> tuple[list[int], Any]:
        given: Any = self.n_clusters
        ks: list[Any] = [given] if isinstance(given, (Integral, str)) else list(given)
        if not ks:
            raise ValueError("n_clusters is empty; give one number or several to choose from.")
        ks = sorted({check_count("n_clusters", k) for k in ks})
        lams: Any = LAMS
        if isinstance(self.lams, str):
            check_choice("lams", self.lams, ("auto",), ", or a sequence of numbers >= 0")
        else:
            lams = np.unique([check_number("lams", lam) for lam in np.ravel(self.lams).tolist()])
            if len(lams) == 0:
                raise ValueError("lams is empty; give candidates >= 0, or 'auto'.")
        check_choice("criterion", self.criterion, CRITERIA)
        if self.n_splits is not None:
            check_count("n_splits", self.n_splits, minimum=2)
        check_choice("init", self.init, tuple(STARTS))
        self._plain(ks[0], 0.0)._check_parameters()
        return ks, lams

    def _plain(self, k: int, lam: Any) -> MNARKMeans:
        params = self.get_params(deep=False) | {"n_clusters": k, "lam": lam}
        return MNARKMeans(**{n: v for n, v in params.items() if n not in OWN_PARAMETERS})

    def _parts(self, n: int, seed: int, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Parts (B, n) of the rows, each large enough for k clusters, and a seed for each."""
        rng = np.random.RandomState(seed)
        if self.criterion == "paper":  # two thirds of every split, compared on the last third
            third = rng.randint(3, size=(self.n_splits or 10, n))
            parts = np.concatenate([third == 0, third == 1])
        else:
            parts = np.zeros((self.n_splits or 12, n), bool)
            size = max(min(round(SHARE_OF_ROWS * n), n - 1), 1)
            for part in parts:
                part[rng.permutation(n)[:size]] = True
        size = int(parts.sum(axis=1).min())
        if size < k:
            raise ValueError(
                f"n_samples={n} usable rows are too few to choose with n_clusters={k}: a part of "
                f"them has only {size} rows. Ask for fewer clusters, or use MNARKMeans."
            )
        return parts, rng.randint(np.iinfo(np.int32).max, size=len(parts))

    def _try(
        self, observed: Observed, sample: Observed, k: int, lams: Any, parts: np.ndarray,
        seeds: np.ndarray, progress: Any,
    ) -> Trial:  # fmt: skip
        """lam and reference for one k, and how stable its clusters are in a sample of the rows."""
        missingness: Missingness | None = None
        reference, features = observed.reference, np.ones(observed.n_features)
        paper, auto = self.criterion == "paper", is_auto(self._reference())
        if auto or not paper:
            chosen = choose(
                observed, k, lams=lams, references=references_for(observed) if auto else None,
                **self._stopping_rule(), threads=self._threads(),
            )  # fmt: skip
            reference = chosen.reference
            if not paper:
                missingness = chosen.missingness
                features = (chosen.lam * features > 0.0) | (missingness.lam == 0.0)
                lams = np.unique(np.append(lams if sample.has_gaps.any() else [], missingness.lam))
        penalties = np.outer(lams, features)
        sample = replace(sample, reference=reference)
        labels, seconds = self._fit_parts(sample, k, penalties, parts, seeds, progress)
        if missingness is None:  # the two parts of each split agree on the third
            couples = np.arange(len(parts)).reshape(2, -1).T
            instability = disagreements(labels, ~parts, couples, k)
            best = least_unstable(instability)
        else:
            instability = 1.0 - pairwise_adjusted_rand(labels, parts, k)
            best = int(np.searchsorted(lams, missingness.lam))
        labels = labels[:, :, best]
        return Trial(k, penalties, labels, seconds, instability, best, reference, missingness)

    def _fit_parts(
        self, observed: Observed, k: int, penalties: np.ndarray, parts: np.ndarray,
        seeds: np.ndarray, progress: Callable[[], None],
    ) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
        """Fit every part (B, n) with every candidate (G, p) for lam.

        Returns the labels of all rows (B, n, G) by the fits, and the seconds (B,) per candidate.
        """
        (n_parts, n), count, paper = parts.shape, len(penalties), self.criterion == "paper"
        labels, seconds = np.empty((n_parts, n, count), np.int32), np.zeros(n_parts)
        n_starts = self._n_starts() if paper else math.ceil(self._n_starts() / 2)
        n_anchors = min(ANCHORS, count)
        anchors = ((np.arange(n_anchors) + 0.5) * count / n_anchors).astype(int)  # evenly spread
        # Small parts are fitted side by side, each by one thread.
        threads, is_small = self._threads(), observed.table.is_small
        workers, threads = (threads, 1) if is_small else (1, threads)
        settings = self._stopping_rule() | {"threads": threads}

        def fit(b: int) -> None:
            began, part = time.perf_counter(), observed.take(np.flatnonzero(parts[b]))
            rng = np.random.RandomState(seeds[b])
            centers = STARTS[self.init](part, n_starts, k, rng, threads)
            if not paper:
                centers = best_of_starts(part, centers, penalties[anchors], **settings)
            centers = best_of_starts(part, centers, penalties, **settings)
            labels[b] = assign_rows(observed, centers, penalties, threads)
            seconds[b] = (time.perf_counter() - began) / count

        with ThreadPoolExecutor(workers) as pool:
            run = pool.map if workers > 1 else map  # Ctrl-C stops calls of the main thread at once
            for _ in run(fit, range(n_parts)):
                progress()
        return labels, seconds

    def _keep_results(self, trials: list[Trial], best: int) -> None:
        tables = [trial.columns() for trial in trials]
        self.cv_results_ = {n: np.concatenate([table[n] for table in tables]) for n in tables[0]}
        ranks = rankdata(self.cv_results_["mean_instability"], method="min")
        self.cv_results_["rank_instability"] = ranks.astype(np.int64)
        before = sum(len(trial.lams) for trial in trials[:best])
        self.best_index_ = before + trials[best].choice

    def _refit(self, observed: Observed, seed: int) -> None:
        model = self._plain(self.n_clusters_, self.lam_)
        starts = model._starts(observed, None, np.random.RandomState(seed))
        model._solve(observed, starts, self.lam_)
        for name, value in vars(model).items():
            if name.endswith("_"):
                setattr(self, name, value)


def best_of_starts(
    observed: Observed, starts: np.ndarray, penalties: np.ndarray, **settings: Any
) -> np.ndarray:
    """(L, k, p): the best result of the starts (R, k, p), for each of the penalties (L, p).

    Those of one start follow each other: their first partition is summed up once.
    """
    n_starts, count = len(starts), len(penalties)
    lams = np.tile(penalties, (n_starts, 1))
    results = run_starts(observed, np.repeat(starts, count, axis=0), lams, **settings)
    best = results.losses.reshape(n_starts, count).argmin(axis=0)
    return results.centers[best * count + np.arange(count)]


# --- one trial for each number of clusters ------------------------------------------------------


@dataclass(frozen=True)
class Trial:
    """One k: how stable every one of G candidates for lam is, and which was chosen."""

    k: int
    penalties: np.ndarray  # (G, p) in increasing order; 0 for features without a penalty
    labels: np.ndarray  # (B, n) of every row, by the fit to each part with the choice
    seconds: np.ndarray  # (B,) per candidate
    instability: np.ndarray  # (splits or pairs, G)
    choice: int
    reference: np.ndarray  # (p,)
    missingness: Missingness | None

    @property
    def lams(self) -> np.ndarray:
        """(G,)"""
        return self.penalties.max(axis=1)

    @property
    def penalty(self) -> Any:
        """The lam chosen: a number, or one per feature."""
        penalty = self.penalties[self.choice]
        return float(penalty[0]) if np.ptp(penalty) == 0.0 else penalty

    @property
    def smallest_cluster(self) -> float:
        """Rows of the smallest cluster of the choice, median over the parts."""
        sizes = [(self.labels == label).sum(axis=1) for label in range(self.k)]
        return float(np.median(np.min(sizes, axis=0)))

    @property
    def stability(self) -> float:
        """1 - instability of the choice; one cluster is trivially stable, so it is last."""
        if self.k == 1:
            return -math.inf
        return 1.0 - float(self.instability[:, self.choice].mean())

    @property
    def is_whole(self) -> bool:
        """Every cluster of the choice has rows: one row by itself comes back in any split."""
        few = max(2.0, 0.05 * self.labels.shape[1] / self.k)
        return self.smallest_cluster >= few

    def columns(self) -> dict[str, np.ndarray]:
        lams = self.lams
        return {
            "param_n_clusters": np.full(len(lams), self.k),
            "param_lam": lams,
            "mean_instability": self.instability.mean(axis=0),
            "std_instability": spread(self.instability),
            "mean_fit_time": np.full(len(lams), self.seconds.mean()),
            "std_fit_time": np.full(len(lams), self.seconds.std()),
            "chosen_for_k": np.arange(len(lams)) == self.choice,
        }

    def to_plain(self) -> dict[str, Any]:
        """Numbers, words and arrays, for a file."""
        missingness = self.missingness and self.missingness.to_plain()
        return asdict(self) | {"missingness": missingness}

    @classmethod
    def from_plain(cls, stored: dict[str, Any]) -> Trial:
        """The inverse of `to_plain`."""
        missingness = stored["missingness"] and Missingness.from_plain(stored["missingness"])
        return cls(**stored | {"missingness": missingness})


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
    lams, choice = chosen.lams, chosen.choice
    edge = choice == len(lams) - 1 or (choice == 0 and lams[0] > 0)
    if given and len(lams) > 1 and edge:
        yield (
            f"lam={lams[choice]:g} lies at the edge of the candidates ({lams[0]:g} to "
            f"{lams[-1]:g}); extend lams beyond it."
        )
    if chosen.smallest_cluster == 0:
        yield (
            f"With lam={lams[choice]:g} clusters collapse: fits to parts of the rows do not keep "
            f"{chosen.k} clusters. Try smaller lams or fewer clusters."
        )


# --- how far partitions agree -------------------------------------------------------------------


def _pairs(labels: np.ndarray, kept: np.ndarray, couples: Any, k: int) -> tuple[np.ndarray, ...]:
    """Pairs together in both, in the first, in the second of C couples (C, G), and the rows (C, 1).

    labels (B, n, G), kept (B, n): rows are counted that both fits of a couple keep.
    """
    couples, offsets = np.reshape(couples, (-1, 2)), k * k * np.arange(labels.shape[2])
    tables = np.empty((len(couples), labels.shape[2], k, k))
    for table, (a, b) in zip(tables, couples, strict=True):
        rows = kept[a] & kept[b]
        cells = labels[a, rows] * k + labels[b, rows] + offsets
        table[:] = np.bincount(cells.ravel(), minlength=table.size).reshape(table.shape)

    def pairs(counts: np.ndarray) -> np.ndarray:
        return (counts * (counts - 1.0) / 2.0).sum(axis=tuple(range(2, counts.ndim)))

    rows = tables[:, :1].sum(axis=(2, 3))
    return pairs(tables), pairs(tables.sum(axis=3)), pairs(tables.sum(axis=2)), rows


def disagreements(labels: np.ndarray, kept: np.ndarray, couples: Any, k: int) -> np.ndarray:
    """(C, G) the authors' instability of each couple; their denominator is (m - 1)(m - 2) / 2."""
    both, in_a, in_b, m = _pairs(labels, kept, couples, k)
    return (in_a + in_b - 2.0 * both) / np.maximum((m - 1.0) * (m - 2.0) / 2.0, 1.0)


def pairwise_adjusted_rand(labels: np.ndarray, kept: np.ndarray, k: int) -> np.ndarray:
    """(pairs, G) agreement of every two fits on the rows that both keep (B, n)."""
    couples = np.stack(np.tril_indices(len(labels), -1), axis=1)
    both, in_a, in_b, m = _pairs(labels, kept, couples, k)
    expected = in_a * in_b / np.maximum(m * (m - 1.0) / 2.0, 1.0)
    most = (in_a + in_b) / 2.0
    room = most - expected
    return np.where(room == 0.0, 1.0, (both - expected) / np.where(room == 0.0, 1.0, room))


def cluster_stability(reference: np.ndarray, labels: np.ndarray, kept: np.ndarray, k: int) -> Any:
    """For each cluster of `reference` (n,), the mean of its best Jaccard similarities with those of
    fits, labels (B, n), on the rows they keep (B, n).

    Near 1: the cluster is found again whichever rows are left out; below about 0.5: it dissolves.
    """
    similarity = np.zeros((len(labels), k))
    for b, rows in enumerate(kept):
        table = np.bincount(reference[rows] * k + labels[b, rows], minlength=k * k).reshape(k, k)
        union = table.sum(axis=1, keepdims=True) + table.sum(axis=0, keepdims=True) - table
        similarity[b] = (table / np.maximum(union, 1.0)).max(axis=1)
    return similarity.mean(axis=0)


def spread(values: np.ndarray) -> np.ndarray:
    """Standard deviation over the first axis; 0 where there is but one value."""
    return values.std(axis=0, ddof=min(1, len(values) - 1))
