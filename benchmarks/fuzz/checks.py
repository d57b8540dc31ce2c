"""What must hold of a case, against the oracle. Every failure is a sentence."""

from __future__ import annotations

import contextlib
import warnings
from dataclasses import replace

import backends
import numpy as np
import oracle

from mnarkmeans import MiniBatchMNARKMeans, MNARKMeans, _core

from .cases import Case

LARGEST_FOR_ORACLE = 2e8  # n p k; of larger tables, it looks at some rows
EPSILON = np.finfo(np.float64).eps
LOSS = 1e-9  # share of a loss that rounding may take
PATH = 1e-7  # the same where it comes from sums


class Different(AssertionError):
    """The core and the oracle say different things."""


def require(holds, what: str) -> None:
    if not holds:
        raise Different(what)


def check(case: Case, levels: tuple[str, ...]) -> None:
    """Raises ``Different`` with what is wrong; the first of ``levels`` does the most."""
    before = _core.level()
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            _core.set_level(levels[0])
            model = fit(case)
            _check_model(case, model)
            _check_rows(case, model)
            _check_first_step(case)
            if case.place == "chunks":
                _same(model, fit(case, n_jobs=3), "with three threads")
            for level in levels[1:2] if case.place == "dask" else levels[1:]:
                _core.set_level(level)
                _same(model, fit(case), f"on {level}")
                _same_answers(case, model, levels[0], level)
    finally:
        _core.set_level(before)


def fit(case: Case, *, n_jobs: int = 2, **changes):
    """The model of a case, fitted in its place."""
    options = {"lam": case.lam, "reference": case.reference, "missing_values": case.missing}
    options |= {"init": case.init, "max_iter": case.max_iter, "tol": 0.0} | changes
    if case.place == "batches":
        size = max(case.k, len(case.X) // 3)
        model = MiniBatchMNARKMeans(case.k, batch_size=size, random_state=0, **options)
        return model.fit(case.table(), sample_weight=case.weights)
    if case.place == "dask":
        return backends.fit_on_dask(case.table(), case.k, case.weights, options)
    model = MNARKMeans(case.k, algorithm=case.algorithm, n_jobs=n_jobs, **options)
    with _cut(case):
        return model.fit(case.table(), sample_weight=case.weights)


def ask(case: Case, model, method: str, X: np.ndarray | None = None, **arguments):
    """A method of the model, asked about the table of the case or other rows, in its place."""
    table = case.table(X)
    if case.place == "dask" and not arguments:
        return getattr(model, method)(backends.on_dask(table)).compute(scheduler="synchronous")
    with _cut(case):
        return getattr(model, method)(table, **arguments)


def _cut(case: Case):
    """In chunks of a few rows, or of many."""
    if case.place != "chunks":
        return contextlib.nullcontext()
    return backends.chunks(60 if case.number % 2 else max(60, case.X.size // 3))


def _some(case: Case, most: float) -> np.ndarray:
    """Rows of the case, so many that the oracle is not kept busy for long."""
    n = len(case.X)
    count = int(max(1, min(n, most / (case.X.shape[1] * case.k))))
    return np.arange(n) if count == n else np.sort(np.random.default_rng(0).choice(n, count, False))


def _check_model(case: Case, model) -> None:
    centers = model.cluster_centers_
    require(np.isfinite(centers).all(), "centres are not finite")
    require(np.isfinite(model.inertia_) and model.inertia_ >= 0, f"inertia is {model.inertia_}")
    require(centers.dtype == case.X.dtype, f"centres are {centers.dtype}")
    some = _some(case, LARGEST_FOR_ORACLE)
    labels = oracle.labels(case.X[some], centers, case.lam, model.reference_)
    wrong = np.flatnonzero(labels != np.asarray(model.labels_)[some])
    require(
        len(wrong) == 0,
        f"labels_ of {len(wrong)} row(s) are not the nearest, the first is row "
        f"{some[wrong[:1]]}: {np.asarray(model.labels_)[some][wrong[:1]]}, not {labels[wrong[:1]]}",
    )
    weights = np.ones(len(case.X)) if case.weights is None else case.weights
    weights = np.where(np.isnan(case.X).all(axis=1), 0.0, weights)
    loss = oracle.loss_of(case.X, model.labels_, centers, case.lam, model.reference_, weights)
    require(abs(model.inertia_ - loss) <= LOSS * loss, f"inertia_ is {model.inertia_}, not {loss}")
    if case.place == "batches":
        return
    path = model.loss_path_
    require(len(path) == model.n_iter_, "loss_path_ has not one loss per iteration")
    require((np.diff(path) <= 0).all(), "loss_path_ rises")
    require(np.isfinite(path).all(), "loss_path_ is not finite")
    if case.X.dtype == np.float64:
        rest = _resolution(case, weights)
        require(
            loss <= path[-1] * (1 + PATH) + rest,
            f"the last loss of the path is {path[-1]}, and the centres have {loss}",
        )
        if model.n_iter_ < case.max_iter and case.algorithm == "lloyd":
            require(
                path[-1] <= loss * (1 + PATH) + rest,
                f"the path ended at {path[-1]}, and the centres have {loss}",
            )


def _resolution(case: Case, weights: np.ndarray) -> float:
    """What a loss cannot tell: centres are rounded to float64, wherever they are."""
    X = case.X.astype(np.float64)
    largest = np.nanmax(np.abs(X), axis=0, initial=0.0, where=~np.isnan(X))
    pull = np.maximum(1.0, case.lam)
    return float(weights.sum() * np.sum(pull * (64 * EPSILON * largest) ** 2))


def _check_rows(case: Case, model) -> None:
    """predict, transform, impute and score: of the row and the model alone."""
    some = _some(case, 3e6)[:200]
    X = case.X[some]
    labels = ask(case, model, "predict")
    require(np.array_equal(labels, model.labels_), "predict does not give labels_")
    distances = oracle.distances(X, model.cluster_centers_, case.lam, model.reference_)
    expected = np.sqrt(distances).astype(X.dtype)
    require(
        np.array_equal(ask(case, model, "transform", X), expected), "transform differs in its bits"
    )
    require(
        np.array_equal(ask(case, model, "predict", X), labels[some]), "predict of some rows differs"
    )
    for row in range(min(3, len(X))):
        one = X[row : row + 1]
        require(
            ask(case, model, "predict", one)[0] == labels[some[row]], "predict of one row differs"
        )
        alone = ask(case, model, "transform", one)[0]
        require(np.array_equal(alone, expected[row]), "transform of one row differs")
    if case.place in ("dask", "batches"):
        return
    loss = -ask(case, model, "score", sample_weight=case.weights)
    require(abs(loss - model.inertia_) <= LOSS * loss, f"score is {loss}, not {model.inertia_}")
    filled = np.asarray(ask(case, model, "impute", X))
    expected = np.where(np.isnan(X), model.cluster_centers_[labels[some]], X)
    require(np.array_equal(filled, expected.astype(filled.dtype)), "impute fills wrongly")


def _check_first_step(case: Case) -> None:
    """From the starting centres to the first ones, if no cluster is empty."""
    if case.place == "batches" or case.size > LARGEST_FOR_ORACLE / 4:
        return
    model = fit(replace(case, algorithm="lloyd"), max_iter=1)
    reference = model.reference_
    weights = np.ones(len(case.X)) if case.weights is None else case.weights
    weights = np.where(np.isnan(case.X).all(axis=1), 0.0, weights)
    labels = oracle.labels(case.X, case.init, case.lam, reference)
    if (np.bincount(labels, weights, case.k) <= 0).any():
        return  # costliest rows fill empty clusters; equal costs make that hard to foretell
    centers, slack = oracle.centers_of(case.X, labels, case.init, case.lam, reference, weights)
    if case.X.dtype == np.float32:
        slack = slack + 1.2e-7 * np.abs(centers) + 1e-44
    away = np.abs(model.cluster_centers_ - centers)
    require(
        (away <= slack).all(),
        f"first centres are off by {away.max():g}: {np.argwhere(away > slack)[:1]}",
    )
    loss = oracle.loss_of(case.X, labels, centers, case.lam, reference, weights)
    path = model.loss_path_[0]
    loss = max(loss, model.inertia_)  # of centres in float32: the path ends no lower
    require(
        abs(path - loss) <= PATH * loss + _resolution(case, weights),
        f"the first loss is {path}, not {loss}",
    )


def _same(one, other, when: str) -> None:
    for name in ("cluster_centers_", "labels_", "loss_path_", "inertia_", "n_iter_"):
        mine, theirs = (np.asarray(getattr(model, name)) for model in (one, other))
        require(np.array_equal(mine, theirs), f"{name} differs {when}")


def _same_answers(case: Case, model, first: str, level: str) -> None:
    X = case.X[:100]
    for method in ("predict", "transform"):
        _core.set_level(first)
        expected = ask(case, model, method, X)
        _core.set_level(level)
        require(
            np.array_equal(ask(case, model, method, X), expected), f"{method} differs on {level}"
        )
