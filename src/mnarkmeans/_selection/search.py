"""MNARKMeansCV: fit parts of the data with every candidate, choose, refit.

One evidence per k (`evidence`), one verdict per criterion (`criteria`); k itself is chosen by
the stability of the lam chosen for it.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import replace
from numbers import Integral
from typing import Any, Self

import numpy as np
from scipy.stats import rankdata
from sklearn.utils import check_random_state

from .._base import CentersModel
from .._choice import choose_reference
from .._kmeans import MNARKMeans
from .._observed import Observed
from .._penalty.answer import Missingness
from .._penalty.choice import likelihood_choice
from .._solver import ALGORITHMS, STARTS, assign_rows
from .._validation import (
    WarnFor,
    check_choice,
    check_count,
    check_enough_rows,
    check_number,
    is_auto,
    observe,
    read_table,
)
from .agreement import cluster_stability
from .criteria import CRITERIA, SHARE_OF_ROWS, Asked, held_out_penalty
from .doubts import doubts
from .evidence import check_part, gather, subsample_size, subsamples, thirds, warm_starts
from .fits import PartFits, Settings
from .grid import candidate_lams
from .predicted import predicted_by
from .trials import Progress, Trial, Trials, choose_k

MOST_ROWS = 20_000  # beyond, parts of a sample say as much as parts of the whole
SPLITS = {"paper": 10, "heldout": 10}  # to choose lam
SPLITS_OTHERWISE = 12  # or k
Drawn = dict[int, np.ndarray]  # starts of all judged rows, for each k


class SelectionWarning(UserWarning):
    """The choice of lam or k stands on weak ground."""


class MNARKMeansCV(CentersModel):
    """MNARKMeans that chooses lam, and the number of clusters, from the data.

    Parameters
    ----------
    n_clusters : int or sequence of int, default=8
        Number of clusters, or the numbers to choose from.
    lams : "auto" or sequence of float, default="auto"
        Candidates for lam. "auto": from 0 to 12, below and above 1, with the answer of the
        likelihood (what ``MNARKMeans(lam="auto")`` takes) among them.
    criterion : {"heldout", "consensus", "subsample", "paper"}, default="heldout"
        "heldout": how clusters predict rows left out of the fit, from the likelihood's lam on, and
        come back. "subsample": reproducibility alone. "consensus": agreement with what the fits
        of all candidates have in common. "paper": the instability of the paper's authors.
    n_splits : int, default=None
        Number of splits; None: 10 for "paper", and for "heldout" with one number of clusters,
        otherwise 12.
    n_init : int, default=10
        Starts of every fit. With "heldout", two parts of the rows have half of them each and share
        the best, and candidates go on from their neighbours; with the other criteria, every
        candidate is fitted from all of them in every part.
    one_standard_error : bool, default=False
        Take the smallest lam that is within one standard error of the best.
    reference, missing_values, max_iter, tol, algorithm
        As for MNARKMeans.
    init : {"k-means++", "random"}, default="k-means++"
        Starting centres.
    random_state : int, RandomState instance or None, default=None
        Seed of splits and starts; the same seed gives the same result for every ``n_jobs``.
    n_jobs : int or None, default=None
        Number of threads; None uses all cores.
    verbose : int, default=0
        Above 0, a line per finished split with the time left.

    Attributes
    ----------
    lam_, n_clusters_ : float or ndarray of shape (n_features,), int
        The choice; with ``lams="auto"`` lam is 0 for features whose gaps look like chance beside
        others that lose values below a limit, as for ``MNARKMeans(lam="auto")``.
    best_index_ : int
        Its row in ``cv_results_``.
    cv_results_ : dict of arrays, one entry per candidate
        ``param_n_clusters``, ``param_lam``, ``mean_instability``, ``std_instability``,
        ``rank_instability`` (1 is the most stable), ``mean_heldout_loss``, ``std_heldout_loss``
        (NaN unless the criterion asks for them), ``smallest_cluster`` (rows of the smallest
        cluster, in the median split), ``mean_fit_time``, ``chosen_for_k`` (the criterion's choice
        for this number of clusters).
    stability_ : ndarray of shape (n_clusters_,)
        For each cluster, how much of it is found again when rows are left out (mean Jaccard
        similarity): near 1 is solid, below about 0.5 it dissolves.
    missingness_ : Missingness
        The likelihood's view of the gaps, when it was asked for ("heldout", or ``lams="auto"``).
    cluster_centers_, labels_, inertia_, n_iter_, loss_path_, start_losses_, reference_, \
n_features_in_, feature_names_in_
        Of the refit with the choice, as for MNARKMeans; its starts are ``n_init`` fresh ones and
        the different partitions that the splits led to.

    Notes
    -----
    Tables of more than 20,000 rows are judged by a sample of that size; the refit takes all rows.
    Among several numbers of clusters the largest wins whose clusters are as reproducible as those
    of the best.

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

    _known = Trials()  # whoever runs a long search may remember its trials

    def __init__(
        self,
        n_clusters: Any = 8,
        *,
        lams: Any = "auto",
        criterion: str = "heldout",
        n_splits: int | None = None,
        n_init: int = 10,
        one_standard_error: bool = False,
        reference: Any = None,
        missing_values: float = math.nan,
        init: Any = "k-means++",
        max_iter: int = 300,
        tol: float = 1e-5,
        algorithm: str = "auto",
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.lams = lams
        self.criterion = criterion
        self.n_splits = n_splits
        self.n_init = n_init
        self.one_standard_error = one_standard_error
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
            Weight of each row in fits and held-out loss.

        Returns
        -------
        self : MNARKMeansCV
        """
        ks, lams = self._check_parameters()
        table = read_table(self, X, reset=True)
        observed = observe(
            table,
            missing_values=self.missing_values,
            reference=self._reference(),
            sample_weight=sample_weight,
            threads=self._threads(),
            warn_for=WarnFor(getattr(self, "feature_names_in_", None)),
        )
        check_enough_rows(observed.n_usable, observed.n_rows, max(ks))
        seed = int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))
        if is_auto(self._reference()):
            reference = choose_reference(observed, max(ks), self._threads())
            observed = replace(observed, reference=reference)
        judged = self._judged(observed)
        n = judged.n_rows  # the largest k is refused before the others are tried
        usual = n // 3 if self.criterion == "paper" else subsample_size(n, SHARE_OF_ROWS)
        check_part(usual, max(ks), n)
        progress = Progress(len(ks) * self._n_parts(), bool(self.verbose))
        drawn: Drawn = {}
        trials = [self._trial(judged, k, lams, seed, progress, drawn) for k in ks]
        best = choose_k(trials)
        chosen = trials[best]
        self.n_clusters_ = k = chosen.evidence.k
        settings = self._settings(chosen.missingness)
        lam = settings.penalties(chosen.evidence.lams[[chosen.verdict.choice]])[0]
        self.lam_ = lam if np.ptp(lam) > 0 else float(lam[0])
        self._keep_results(trials, best)
        if chosen.missingness is not None:
            self.missingness_ = chosen.missingness
        warm = warm_starts(judged, chosen.evidence, chosen.verdict.choice, settings)
        if judged is not observed or k not in drawn:
            drawn[k] = self._draw(observed, k, np.random.RandomState(seed))
        self._refit(observed, np.concatenate([drawn[k], warm]))
        self._keep_stability(judged, chosen)
        for doubt in doubts(chosen, given=not isinstance(self.lams, str)):
            warnings.warn(doubt, SelectionWarning, stacklevel=2)
        return self

    # ------------------------------------------------------------------------------------------

    def _reference(self) -> Any:
        if self.reference is not None:
            return self.reference
        return "auto" if isinstance(self.lams, str) else 0.0

    def _check_parameters(self) -> tuple[list[int], np.ndarray | None]:
        many = not isinstance(self.n_clusters, (Integral, str))
        ks = list(self.n_clusters) if many else [self.n_clusters]
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
        check_choice("criterion", self.criterion, tuple(CRITERIA))
        if self.n_splits is not None:
            check_count("n_splits", self.n_splits, least=2)
        check_count("n_init", self.n_init)
        check_count("max_iter", self.max_iter)
        check_number("tol", self.tol)
        check_choice("algorithm", self.algorithm, ("auto", *ALGORITHMS))
        check_choice("init", self.init, tuple(STARTS))
        return ks, lams

    def _n_parts(self) -> int:
        several = self.criterion == "heldout" and np.size(self.n_clusters) > 1
        usual = SPLITS_OTHERWISE if several else SPLITS.get(self.criterion, SPLITS_OTHERWISE)
        splits = self.n_splits or usual
        return 2 * splits if self.criterion == "paper" else splits

    def _judged(self, observed: Observed) -> Observed:
        """The rows that are split: those that count, and not more than are needed."""
        counting = observed.weights > 0
        if counting.sum() > MOST_ROWS:
            return observed.take(observed.sample(MOST_ROWS))
        return observed if counting.all() else observed.take(np.flatnonzero(counting))

    def _settings(self, missingness: Missingness | None) -> Settings:
        """Candidates of our own are for the features whose gaps ask for a penalty."""
        ours = isinstance(self.lams, str)
        return Settings(
            self.init, self.n_init, self.max_iter, float(self.tol), self._threads(),
            thorough=self.criterion != "heldout", several=np.size(self.n_clusters) > 1,
            features=missingness.features if missingness and ours else None,
        )  # fmt: skip

    def _draw(self, observed: Observed, k: int, rng: np.random.RandomState) -> np.ndarray:
        return STARTS[self.init](observed, self.n_init, k, rng, self._threads())

    def _trial(self, judged: Observed, k: int, *how: Any) -> Trial:
        """One k, unless it is known already."""
        trial = self._known.load(k)
        if trial is None:
            trial = self._try(judged, k, *how)
        self._known.done(k, trial)
        return trial

    def _try(
        self, judged: Observed, k: int, lams: Any, seed: int, progress: Progress, drawn: Drawn
    ) -> Trial:
        """Evidence and verdict for one k."""
        rng = np.random.RandomState(seed)
        missingness: Missingness | None = None
        if lams is None or self.criterion == "heldout":
            drawn[k] = self._draw(judged, k, rng)
            how = dict(**self._until(), threads=self._threads())
            missingness = likelihood_choice(judged, drawn[k], **how)
        if lams is None:
            assert missingness is not None  # estimated just above
            lams = candidate_lams(missingness.lam, bool(judged.has_gaps.any()))
        settings = self._settings(missingness)
        n, n_parts = judged.n_rows, self._n_parts()
        if self.criterion == "paper":
            parts = thirds(n, n_parts // 2, rng)
        else:
            parts = subsamples(n, n_parts, SHARE_OF_ROWS, rng)
        check_part(int(parts.sum(axis=1).min()), k, n)
        evidence = gather(
            judged, k, lams, parts, rng.randint(np.iinfo(np.int32).max, size=n_parts), settings,
            held_out_lam=(
                held_out_penalty(missingness)
                if missingness and self.criterion == "heldout" else None
            ),
            report=progress.step,
        )  # fmt: skip
        full_labels = None
        if self.criterion == "consensus":
            (centers,) = PartFits([judged], k, settings).thorough(lams, [seed])
            full_labels = assign_rows(judged, centers, settings.penalties(lams), self._threads())
        own, predicted = math.nan, None
        if missingness is not None:
            own = missingness.lam
            if self.criterion == "heldout":
                penalty = held_out_penalty(missingness)
                predicted = predicted_by(judged, evidence, penalty, settings)
        asked = Asked(self.one_standard_error, full_labels, own, predicted, self._threads())
        verdict = CRITERIA[self.criterion](evidence, asked)
        return Trial(evidence, verdict, missingness)

    def _keep_results(self, trials: list[Trial], best: int) -> None:
        columns: dict[str, list[np.ndarray]] = {}
        for trial in trials:
            for name, values in trial.columns().items():
                columns.setdefault(name, []).append(values)
        self.cv_results_ = {name: np.concatenate(parts) for name, parts in columns.items()}
        ranks = rankdata(self.cv_results_["mean_instability"], method="min")
        self.cv_results_["rank_instability"] = ranks.astype(np.int64)
        before = sum(len(trial.evidence.lams) for trial in trials[:best])
        self.best_index_ = before + trials[best].verdict.choice

    def _refit(self, observed: Observed, starts: np.ndarray) -> None:
        """Fit all rows with the choice, from fresh starts and from what the parts have found."""
        model = MNARKMeans(
            self.n_clusters_, lam=self.lam_, init=self.init, n_init=self.n_init,
            max_iter=self.max_iter, tol=self.tol, algorithm=self.algorithm,
            n_jobs=self.n_jobs, verbose=self.verbose,
        )  # fmt: skip
        model._keep(observed, model._solve(observed, starts, self.lam_), self.lam_)
        for name in ("cluster_centers_", "labels_", "inertia_", "n_iter_", "loss_path_",
                     "start_losses_", "reference_"):  # fmt: skip
            setattr(self, name, getattr(model, name))

    def _keep_stability(self, judged: Observed, chosen: Trial) -> None:
        centers = self.cluster_centers_.astype(np.float64)[None]
        labels = assign_rows(judged, centers, np.atleast_2d(self.lam_), self._threads())[:, 0]
        own = chosen.evidence.labels[:, :, chosen.verdict.choice]
        self.stability_ = cluster_stability(labels, own, chosen.evidence.inside, self.n_clusters_)
