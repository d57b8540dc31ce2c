"""The laws of the loss, on random tables: dense and sparse, float32 and float64."""

import warnings

import numpy as np
import oracle
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.cluster import KMeans

from mnarkmeans import MNARKMeans

FORMS = ["dense", "sparse"]
quick = settings(max_examples=25, deadline=None, derandomize=True)


@st.composite
def problems(draw, gaps=True, lams=(0.0, 0.1, 0.5, 1.0, 3.0, 20.0)):
    """A table with gaps, k starting centres, a penalty, a reference and weights."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n, p, k = draw(st.integers(4, 40)), draw(st.integers(1, 9)), draw(st.integers(1, 4))
    X = rng.normal(size=(n, p)) + rng.normal(scale=3, size=(k, p))[rng.integers(k, size=n)]
    if gaps:
        X[rng.random((n, p)) < draw(st.sampled_from([0.0, 0.2, 0.6]))] = np.nan
        X[:k, 0] = rng.normal(size=k)  # at least k usable rows
    init = rng.normal(scale=2, size=(k, p))
    reference = rng.normal(size=p) if draw(st.booleans()) else np.zeros(p)
    return X, init, draw(st.sampled_from(lams)), reference, rng


def fit(X, init, lam, reference, *, form="dense", sample_weight=None, **options):
    options = {"max_iter": 50, "tol": 0.0, "algorithm": "lloyd"} | options
    table = to_sparse(X) if form == "sparse" else X
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # random tables have empty rows, features and clusters
        model = MNARKMeans(len(init), lam=lam, reference=reference, init=init, **options)
        return model.fit(table, sample_weight=sample_weight)


def to_sparse(X):
    """CSR whose stored entries are the observed ones, zeros included."""
    rows, columns = np.nonzero(~np.isnan(X))
    return sparse.csr_array((X[rows, columns], (rows, columns)), shape=X.shape)


def usable(X):
    return (~np.isnan(X).all(axis=1)).astype(float)


@quick
@given(problems(), st.sampled_from(FORMS), st.integers(1, 4))
def test_iterations_equal_the_oracle(problem, form, n_iter):
    X, init, lam, reference, _ = problem
    centers, path = init, []
    for _ in range(n_iter):
        labels, _ = oracle.assign(X, centers, lam, reference)
        # The oracle does not rescue empty clusters.
        assume(np.bincount(labels, usable(X), len(init)).min() > 0)
        centers = oracle.update(X, labels, centers, lam, reference, usable(X))
        path.append(oracle.loss(X, labels, centers, lam, reference, usable(X)))
    model = fit(X, init, lam, reference, form=form, max_iter=n_iter)
    np.testing.assert_allclose(model.loss_path_, path[: model.n_iter_], rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(model.cluster_centers_, centers, rtol=1e-9, atol=1e-9)


@quick
@given(problems(), st.sampled_from(FORMS), st.sampled_from([np.float32, np.float64]))
def test_fitted_model_is_consistent(problem, form, dtype):
    X, init, lam, reference, _ = problem
    X = X.astype(dtype)
    model = fit(X, init, lam, reference, form=form, max_iter=100, algorithm="auto")
    table = to_sparse(X) if form == "sparse" else X
    assert model.cluster_centers_.dtype == dtype
    assert np.isfinite(model.cluster_centers_).all()
    # labels, loss and score belong to the returned centres
    _, losses = oracle.assign(X, model.cluster_centers_.astype(float), lam, reference)
    total = np.sum(losses * usable(X))
    tolerance = 1e-9 if dtype == np.float64 else 1e-5
    assert model.inertia_ == pytest.approx(total, rel=tolerance, abs=tolerance)
    assert model.inertia_ == pytest.approx(-model.score(table), rel=1e-12, abs=1e-12)
    own = np.sum(model.transform(table).astype(float) ** 2 * np.eye(len(init))[model.labels_], 1)
    np.testing.assert_allclose(own, losses, rtol=1e-3, atol=1e-4)
    np.testing.assert_array_equal(model.predict(table), model.labels_)
    # the loss never rises, and the final assignment can only lower it further
    assert np.all(np.diff(model.loss_path_) <= 1e-12 * model.loss_path_[0])
    assert model.inertia_ <= model.loss_path_[-1] * (1 + 1e-5) + 1e-5


@quick
@given(problems())
def test_dense_equals_sparse(problem):
    X, init, lam, reference, _ = problem
    dense = fit(X, init, lam, reference)
    csr = fit(X, init, lam, reference, form="sparse")
    np.testing.assert_allclose(csr.loss_path_, dense.loss_path_, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(csr.cluster_centers_, dense.cluster_centers_, rtol=0, atol=1e-8)


@quick
@given(problems(lams=(1.0,)))
def test_lam_one_is_k_means_on_reference_filled_data(problem):
    X, init, lam, reference, _ = problem
    X = X[~np.isnan(X).all(axis=1)]
    filled = np.where(np.isnan(X), reference, X)
    first = oracle.assign(filled, init, lam, reference)[0]
    assume(np.bincount(first, minlength=len(init)).min() > 0)
    gaps = fit(X, init, lam, reference, max_iter=1)
    whole = fit(filled, init, lam, reference, max_iter=1)
    np.testing.assert_allclose(gaps.cluster_centers_, whole.cluster_centers_, atol=1e-9)
    gaps, theirs = fit(X, init, lam, reference), quiet_kmeans(filled, init)
    assume(len(set(theirs.labels_)) == len(init) and theirs.n_iter_ < 50)
    np.testing.assert_array_equal(gaps.labels_, theirs.labels_)
    np.testing.assert_allclose(gaps.cluster_centers_, theirs.cluster_centers_, atol=1e-9)


@quick
@given(problems(gaps=False))
def test_without_gaps_every_lam_is_k_means(problem):
    X, init, lam, reference, _ = problem
    ours = fit(X, init, lam, reference)
    one = fit(X, init, 1.0, np.zeros(X.shape[1]))
    np.testing.assert_allclose(ours.cluster_centers_, one.cluster_centers_, rtol=1e-9, atol=1e-9)
    assert ours.inertia_ == pytest.approx(one.inertia_, rel=1e-9, abs=1e-9)


def quiet_kmeans(X, init):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return KMeans(len(init), init=init, n_init=1, tol=0.0, max_iter=50).fit(X)


def test_complete_data_equal_scikit_learn():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 6)) + rng.normal(scale=4, size=(5, 6))[rng.integers(5, size=500)]
    init = X[:5]
    ours = fit(X, init, 0.7, np.zeros(6))
    theirs = quiet_kmeans(X, init)
    np.testing.assert_array_equal(ours.labels_, theirs.labels_)
    np.testing.assert_allclose(ours.cluster_centers_, theirs.cluster_centers_, atol=1e-10)
    assert ours.inertia_ == pytest.approx(theirs.inertia_, rel=1e-12)


@quick
@given(problems(lams=(0.0,)))
def test_lam_zero_is_k_pod(problem):
    """k-POD fills gaps with the row's centre and runs k-means steps on the filled table."""
    X, init, lam, reference, _ = problem
    X = X[~np.isnan(X).all(axis=1)]
    model = fit(X, init, lam, reference)
    filled = np.where(np.isnan(X), model.cluster_centers_[model.labels_], X)
    np.testing.assert_allclose(model.impute(X), filled)
    # a fixed point: the means of the filled rows are the centres again, where anything is observed
    for l in np.unique(model.labels_):
        seen = ~np.isnan(X[model.labels_ == l]).all(axis=0)
        means = filled[model.labels_ == l].mean(axis=0)
        np.testing.assert_allclose(means[seen], model.cluster_centers_[l, seen], atol=1e-8)


def test_large_lam_drives_centres_to_the_reference_where_there_are_gaps():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(60, 4)) + 5.0
    X[rng.random(X.shape) < 0.3] = np.nan
    reference = np.array([1.0, 2.0, 3.0, 4.0])
    model = fit(X, np.array([[4.0] * 4, [6.0] * 4]), 1e12, reference, max_iter=20)
    for l in range(2):
        rows = np.isnan(X[model.labels_ == l])
        if len(rows):
            gaps = rows.any(axis=0)
            np.testing.assert_allclose(model.cluster_centers_[l, gaps], reference[gaps], atol=1e-6)


@quick
@given(problems(), st.sampled_from(FORMS))
def test_shift_and_scale(problem, form):
    X, init, lam, reference, rng = problem
    base = fit(X, init, lam, reference, form=form)
    move, scale = rng.normal(size=X.shape[1]) * 3, 2.5
    moved = fit(X + move, init + move, lam, reference + move, form=form)
    np.testing.assert_allclose(moved.cluster_centers_ - move, base.cluster_centers_, atol=1e-7)
    assert moved.inertia_ == pytest.approx(base.inertia_, rel=1e-7, abs=1e-7)
    scaled = fit(X * scale, init * scale, lam, reference * scale, form=form)
    np.testing.assert_allclose(scaled.cluster_centers_ / scale, base.cluster_centers_, atol=1e-7)
    assert scaled.inertia_ == pytest.approx(scale**2 * base.inertia_, rel=1e-7, abs=1e-7)


@quick
@given(problems())
def test_permutations_permute_the_result(problem):
    X, init, lam, reference, rng = problem
    base = fit(X, init, lam, reference)
    rows, columns = rng.permutation(len(X)), rng.permutation(X.shape[1])
    by_rows = fit(X[rows], init, lam, reference)
    np.testing.assert_allclose(by_rows.cluster_centers_, base.cluster_centers_, atol=1e-8)
    by_columns = fit(X[:, columns], init[:, columns], lam, reference[columns])
    np.testing.assert_allclose(
        by_columns.cluster_centers_, base.cluster_centers_[:, columns], atol=1e-8
    )
    by_clusters = fit(X, init[::-1], lam, reference)
    # Several empty clusters take rows in the order of their names: compare them as a set.
    np.testing.assert_allclose(
        np.sort(by_clusters.cluster_centers_, axis=0), np.sort(base.cluster_centers_, axis=0),
        atol=1e-8,
    )  # fmt: skip


@pytest.mark.parametrize("algorithm", ["lloyd", "hartigan"])
@quick
@given(problems(), st.sampled_from(FORMS))
def test_weights_equal_repetition(algorithm, problem, form):
    X, init, lam, reference, rng = problem
    weights = rng.integers(0, 4, size=len(X))
    weights[: len(init)] = 1
    labels = oracle.assign(X, init, lam, reference)[0]
    # An empty cluster takes one row: the copies of a repeated row follow an iteration later.
    assume(np.bincount(labels, weights * usable(X), len(init)).min() > 0)
    repeated_rows = np.repeat(X, weights, axis=0)
    weighted = fit(X, init, lam, reference, form=form, sample_weight=weights, max_iter=1)
    repeated = fit(repeated_rows, init, lam, reference, form=form, max_iter=1)
    np.testing.assert_allclose(weighted.cluster_centers_, repeated.cluster_centers_, atol=1e-9)
    assert weighted.inertia_ == pytest.approx(repeated.inertia_, rel=1e-9, abs=1e-9)
    if algorithm == "lloyd":
        return
    # Copies move one by one, a weighted row as a whole: both end where no move helps.
    weighted = fit(X, init, lam, reference, form=form, sample_weight=weights, algorithm=algorithm)
    without = fit(X[weights > 0], init, lam, reference, form=form, algorithm=algorithm,
                  sample_weight=weights[weights > 0])  # fmt: skip
    np.testing.assert_allclose(weighted.cluster_centers_, without.cluster_centers_, atol=1e-9)


def test_seeded_starts_do_not_depend_on_order_storage_or_repetition():
    """k-means++ draws rows by their content, so a whole fit obeys the laws as well."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(120, 5)) + rng.normal(scale=3, size=(4, 5))[rng.integers(4, size=120)]
    X[rng.random(X.shape) < 0.3] = np.nan
    X[np.isnan(X).all(axis=1)] = 1.0
    options = {"lam": 0.5, "random_state": 7, "n_init": 3}
    base = MNARKMeans(4, **options).fit(X)
    order = rng.permutation(len(X))
    weights = rng.integers(1, 4, size=len(X))
    others = {
        "shuffled": (MNARKMeans(4, **options).fit(X[order]), base),
        "sparse": (MNARKMeans(4, **options).fit(to_sparse(X)), base),
        "columns": (MNARKMeans(4, **options).fit(X[:, ::-1]), base),
        "weights": (
            MNARKMeans(4, **options).fit(X, sample_weight=weights),
            MNARKMeans(4, **options).fit(np.repeat(X, weights, axis=0)),
        ),
    }
    for name, (one, other) in others.items():
        assert one.inertia_ == pytest.approx(other.inertia_, rel=1e-9), name


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("weighted", [False, True])
def test_slabs_and_threads_change_nothing(form, weighted, monkeypatch):
    """The same table in one compiled call, cut into slabs, and on any number of threads."""
    from mnarkmeans._core import arrays

    rng = np.random.default_rng(5)
    X = rng.normal(size=(700, 7)) + rng.normal(scale=2, size=(4, 7))[rng.integers(4, size=700)]
    X[rng.random(X.shape) < 0.4] = np.nan
    X[np.isnan(X).all(axis=1)] = 0.5
    table = to_sparse(X) if form == "sparse" else X
    weights = rng.random(700) if weighted else None

    def run(n_jobs):
        model = MNARKMeans(4, lam=0.3, n_init=5, random_state=1, n_jobs=n_jobs)
        return model.fit(table, sample_weight=weights)

    whole = [run(n_jobs) for n_jobs in (1, 2, 3)]
    monkeypatch.setattr(arrays, "ENTRIES_OF_ONE_SLAB", 100)
    monkeypatch.setattr(arrays, "ENTRIES_PER_SLAB", 500)
    cut = [run(n_jobs) for n_jobs in (1, 2, 3)]
    for group in (whole, cut):
        for model in group[1:]:
            np.testing.assert_array_equal(model.cluster_centers_, group[0].cluster_centers_)
            np.testing.assert_array_equal(model.labels_, group[0].labels_)
            np.testing.assert_array_equal(model.start_losses_, group[0].start_losses_)
            assert model.inertia_ == group[0].inertia_
    np.testing.assert_allclose(cut[0].cluster_centers_, whole[0].cluster_centers_, atol=1e-10)
    np.testing.assert_allclose(cut[0].start_losses_, whole[0].start_losses_, rtol=1e-10)


@quick
@given(problems(), st.sampled_from(FORMS))
def test_hartigan_is_never_worse_than_lloyd(problem, form):
    X, init, lam, reference, _ = problem
    lloyd = fit(X, init, lam, reference, form=form)
    hartigan = fit(X, init, lam, reference, form=form, algorithm="hartigan")
    assert hartigan.inertia_ <= lloyd.inertia_ * (1 + 1e-9) + 1e-9
    np.testing.assert_allclose(hartigan.inertia_, hartigan.loss_path_[-1], rtol=1e-7, atol=1e-7)


@quick
@given(problems())
def test_no_single_move_improves_a_hartigan_solution(problem):
    X, init, lam, reference, _ = problem
    X = X[~np.isnan(X).all(axis=1)][:12]
    model = fit(X, init, lam, reference, algorithm="hartigan", max_iter=200)
    ones = np.ones(len(X))
    for i in range(len(X)):
        if np.sum(model.labels_ == model.labels_[i]) == 1:
            continue
        for l in range(len(init)):
            labels = model.labels_.copy()
            labels[i] = l
            centers = oracle.update(X, labels, model.cluster_centers_, lam, reference, ones)
            moved = oracle.loss(X, labels, centers, lam, reference, ones)
            assert moved >= model.inertia_ * (1 - 1e-7) - 1e-7
