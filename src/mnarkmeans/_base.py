"""What every fitted estimator of this package can do with its centres.

distance_il = sum_{j observed} (x_ij - mu_lj)^2 + lam * sum_{j missing} (mu_lj - c_j)^2
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, Self, overload

import numpy as np
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    ClusterMixin,
    TransformerMixin,
)
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from ._choice import LAMS, choose, references_for
from ._missingness import Missingness
from ._observed import Observed
from ._solver import (
    STARTS,
    StartResults,
    assign_rows,
    effective_threads,
    finish,
    row_distances,
    with_component_start,
)
from ._validation import (
    check_choice,
    check_count,
    check_enough_rows,
    check_init_centers,
    check_lam,
    check_loss,
    check_number,
    is_auto,
    like_input,
    observe,
    warn,
)

# --- saving ---------------------------------------------------------------------------------------


class Saving:
    """`save`, for every estimator."""

    def save(self, path: str | Path) -> None:
        """Write the fitted model to a folder: model.json and model.npz, numbers and words only.

        `mnarkmeans.load` and the command line read it. A search, batches and fits on a cluster
        become the MNARKMeans that they end with; labels of the fitted rows are not stored. The
        folder is made if it is not there, and a model in it is replaced.
        """
        check_is_fitted(self)
        # On use: model files lie above the estimators, and are only needed when asked for.
        from ._model_files import save_model

        Path(path).mkdir(parents=True, exist_ok=True)
        save_model(self, path)


# --- base -----------------------------------------------------------------------------------------

N_INIT = 10  # the default number of starts
Init = Literal["k-means++", "random"] | np.ndarray | Sequence[Sequence[float]] | Callable[..., Any]
ROWS_PER_CLUSTER = 30  # from so many on, a cluster of one row is worth a warning


class CentersModel(
    Saving, ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, BaseEstimator
):
    """Prediction, distances, score and imputation from the fitted centres."""

    cluster_centers_: np.ndarray
    labels_: np.ndarray
    inertia_: float
    loss_path_: Any
    n_iter_: int
    start_losses_: np.ndarray
    lam_: float | np.ndarray
    reference_: np.ndarray
    missingness_: Missingness
    n_features_in_: int
    feature_names_in_: np.ndarray
    _STARTS = STARTS  # by name
    _N_INIT = N_INIT
    # Of the command line: what is told the number of starts that have ended, and a mapping from k
    # to its Trial, in which a search that is interrupted remembers them.
    _progress: Callable[[int], None] | None = None
    _known: Any = None

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Find the centres."""
        raise NotImplementedError

    def predict(self, X: Any) -> np.ndarray:
        """Index of the closest centre for each row (n_samples,), gaps and all."""
        return self._labels_of(self._observe(X))

    def fit_predict(self, X: Any, y: Any = None, sample_weight: Any = None) -> np.ndarray:
        """Fit and return ``labels_``."""
        return self.fit(X, y, sample_weight=sample_weight).labels_

    def transform(self, X: Any) -> Any:
        """Square root of the penalised distance of each row to every centre: (n_samples,
        n_clusters)."""
        observed = self._observe(X)
        return row_distances(observed, self.cluster_centers_, self.lam_, self._threads())

    def fit_transform(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Fit and return the distances of the rows to the centres."""
        return self.fit(X, y, sample_weight=sample_weight).transform(X)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Minus the penalised loss of X at the fitted centres; larger is better.

        Rows without an observed value count for nothing.
        """
        observed = self._observe(X, sample_weight)
        return -finish(observed, self.cluster_centers_, self.lam_, self._threads())[1]

    @overload
    def impute(self, X: np.ndarray) -> np.ndarray: ...
    @overload
    def impute(self, X: Any) -> Any: ...
    def impute(self, X: Any) -> Any:
        """Fill the gaps of each row from its centre; observed values stay as they are.

        Returns the kind of table that was given (for sparse input a dense array).
        """
        observed = self._observe(X)
        labels = self._labels_of(observed)
        return like_input(observed.impute(self.cluster_centers_, labels, self._threads()), X)

    # ------------------------------------------------------------------------------------------

    def _threads(self) -> int:
        return effective_threads(getattr(self, "n_jobs", None))

    def _starts(self, observed: Any, X: Any, rng: np.random.RandomState) -> np.ndarray:
        """Starting centres (n_init, k, p), by ``init``; on Dask ``observed`` are blocks of rows."""
        k, p = self.n_clusters, observed.n_features
        if isinstance(self.init, str):
            return self._STARTS[self.init](observed, self._n_starts(), k, rng, self._threads())
        if callable(self.init):
            made = [self.init(X, k, random_state=rng) for _ in range(self._n_starts())]
            return np.stack([check_init_centers(centers, k, p) for centers in made])
        if self._n_starts() not in (1, self._N_INIT):
            warn(
                f"Explicit initial centre positions were passed: there is one start, and "
                f"n_init={self.n_init} is not used. Leave n_init out, or set n_init=1.",
                RuntimeWarning,
            )
        return check_init_centers(self.init, k, p)[None]

    def _with_better_starts(
        self, observed: Observed, starts: np.ndarray, lam: Any, found: np.ndarray | None
    ) -> np.ndarray:
        """Of several starts by k-means++ the first goes on from the centres that the choice of lam
        found, and in wide tables the last one from principal components."""
        if not isinstance(self.init, str) or self.init != "k-means++" or len(starts) == 1:
            return starts
        if found is not None:
            starts = np.concatenate([found[None], starts[1:]])
        return with_component_start(observed, starts, lam, self._threads())

    def _reference(self) -> Any:
        """The reference as given; None is "auto" where lam is, otherwise zero."""
        if self.reference is not None:
            return self.reference
        return "auto" if isinstance(self.lam, str) else 0.0

    def _n_starts(self) -> int:
        return self._N_INIT if isinstance(self.n_init, str) else self.n_init

    def _stopping_rule(self) -> Any:
        return dict(max_iter=self.max_iter, tol=float(self.tol))

    def _check_parameters(self) -> Any:
        check_count("n_clusters", self.n_clusters)
        if not is_auto(self.n_init):
            check_count("n_init", self.n_init)
        check_count("max_iter", self.max_iter)
        check_number("tol", self.tol)
        if isinstance(self.init, str):
            check_choice("init", self.init, tuple(self._STARTS), ", an array or a callable")

    def _choose(
        self, observed: Observed, *, max_iter: int, tol: float
    ) -> tuple[Observed, Any, np.ndarray | None]:
        """The table with its reference, and lam: as given, or chosen from the table; and the
        centres (k, p) that the choice found."""
        features = getattr(self, "feature_names_in_", None)
        lam = check_lam(self.lam, observed.n_features, features)
        check_loss(observed, 1.0 if isinstance(lam, str) else lam)
        references = references_for(observed) if is_auto(self._reference()) else None
        if references is None and not isinstance(lam, str):
            return observed, lam, None
        choice = choose(
            observed, self.n_clusters, lams=LAMS if isinstance(lam, str) else [lam],
            references=references, max_iter=max_iter, tol=tol, threads=self._threads(),
        )  # fmt: skip
        self.missingness_ = choice.missingness
        return replace(observed, reference=choice.reference), choice.lam, choice.centers

    def _keep(
        self, results: StartResults, dtype: Any, judge: Callable[[np.ndarray], tuple[float, Any]]
    ) -> None:
        """What the starts led to; ``judge`` gives the loss at the centres and the rows of each."""
        best = results.best
        # What is reported belongs to the centres the user sees, in the precision they are kept in.
        self.cluster_centers_ = results.centers[best].astype(dtype)
        self.n_iter_, self.start_losses_ = int(results.n_iter[best]), results.losses
        self.inertia_, members = judge(self.cluster_centers_)
        # The path is that of float64 centres; no loss on it can be below the last one.
        self.loss_path_ = np.maximum(results.path(best), self.inertia_)
        self._warn_if_few(members)

    def _warn_if_few(self, members: np.ndarray) -> None:
        """``members`` (k,): rows of each cluster."""
        found, rows = np.count_nonzero(members), int(members.sum())
        alone = int(np.sum(members == 1))
        if alone and rows >= ROWS_PER_CLUSTER * self.n_clusters:
            warn(
                f"{alone} of {self.n_clusters} clusters have a single row (of {rows}), which is "
                "far from all others. Check these rows: leave them out if they are errors, or ask "
                "for fewer clusters.",
                UserWarning,
            )
        if found < self.n_clusters:
            lam = np.max(self.lam_)
            pull = f", or lam={lam:g} is so large that centres collapse onto the reference"
            warn(
                f"Number of distinct clusters ({found}) found smaller than n_clusters "
                f"({self.n_clusters}). There may be duplicate rows{pull if lam > 0 else ''}.",
                ConvergenceWarning,
            )

    def _observe_to_fit(self, X: Any, sample_weight: Any, n_clusters: int) -> Observed:
        observed = observe(
            X, estimator=self, missing_values=self.missing_values, reference=self._reference(),
            sample_weight=sample_weight, threads=self._threads(),
        )  # fmt: skip
        check_enough_rows(observed.summary, n_clusters)
        return observed

    def _observe(self, X: Any, sample_weight: Any = None) -> Observed:
        check_is_fitted(self)
        observed = observe(
            X, estimator=self, fits=False, missing_values=self.missing_values,
            reference=self.reference_, sample_weight=sample_weight, threads=self._threads(),
        )  # fmt: skip
        check_loss(observed, self.lam_, self.cluster_centers_)
        return observed

    def _labels_of(self, observed: Observed) -> np.ndarray:
        centers = self.cluster_centers_[None]
        return assign_rows(observed, centers, self.lam_, self._threads())[:, 0]

    @property
    def _n_features_out(self) -> int:
        return self.cluster_centers_.shape[0]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
