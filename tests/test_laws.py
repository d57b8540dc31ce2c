"""The laws of the loss, on random tables in every backend: one block, chunks, Dask; dense and CSR.

pytest --hypothesis-profile=explore draws new tables, and more of them, instead of the same few.
"""

import warnings
from unittest import mock

import numpy as np
import oracle
import pytest
from backends import FORMS, Backend, chunks, everywhere, grouped_rows, in_memory, to_csr
from hypothesis import assume, example, given
from hypothesis import strategies as st
from sklearn.cluster import KMeans

from mnarkmeans import MNARKMeans
from mnarkmeans._solver import Bounds

BLOCK = Backend("block", "dense")


@st.composite
def problems(draw, lams=(0.0, 0.1, 0.5, 1.0, 3.0, 20.0)):
    """A table with gaps, k starting centres, penalties, a reference and what draws the rest."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n, p, k = draw(st.integers(4, 40)), draw(st.integers(1, 12)), draw(st.integers(1, 4))
    X = rng.normal(size=(n, p)) + rng.normal(scale=3, size=(k, p))[rng.integers(k, size=n)]
    X[rng.random((n, p)) < draw(st.sampled_from([0.0, 0.2, 0.6]))] = np.nan
    X[:k, 0] = rng.normal(size=k)  # at least k usable rows
    init = rng.normal(scale=2, size=(k, p))
    reference = rng.normal(size=p) if draw(st.booleans()) else np.zeros(p)
    lam = rng.choice(lams, p) if draw(st.booleans()) else draw(st.sampled_from(lams))
    return X, init, lam, reference, rng


def usable(X):
    return (~np.isnan(X).all(axis=1)).astype(float)


@everywhere
@given(problems(), st.integers(1, 6), st.booleans())
def test_iterations_equal_the_oracle(backend, problem, n_iter, weighted):
    X, init, lam, reference, rng = problem
    weights = rng.random(len(X)) if weighted else np.ones(len(X))
    centers, path = oracle.lloyd(X, init, lam, reference, weights * usable(X), n_iter)
    model = backend.fit(X, init, lam, reference, sample_weight=weights, max_iter=n_iter)
    np.testing.assert_allclose(model.loss_path_, path[: model.n_iter_], rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(model.cluster_centers_, centers, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_every_width_gives_the_centres_and_the_loss_of_the_oracle(dtype, each_level):
    """Vectors of features end somewhere: rows of clusters in order or not, few and many."""
    rng = np.random.default_rng(6)
    for p in (2, 7, 8, 9, 17, 64, 65, 73, 136):
        n, k, lam = 60 + p, 3, 0.4
        X = rng.normal(size=(n, p)) + 2.0 * rng.integers(k, size=(n, 1))
        X[rng.random(X.shape) < 0.3] = np.nan
        X[np.isnan(X).all(axis=1), 0] = 1.0
        X, weights = X.astype(dtype), rng.integers(1, 4, n).astype(float)
        init = (rng.normal(size=(k, p)) + 2.0 * np.arange(k)[:, None]).astype(dtype)
        reference = rng.normal(size=p)
        mu, path = init.astype(float), []
        for _ in range(4):
            labels = oracle.labels(X, mu, lam, reference)
            mu, _ = oracle.centers_of(X, labels, mu, lam, reference, weights)
            path.append(oracle.loss_of(X, labels, mu, lam, reference, weights))
        for table in (X, to_csr(X)):
            model = MNARKMeans(k, lam=lam, reference=reference, init=init, algorithm="lloyd",
                               max_iter=4, tol=0.0)  # fmt: skip
            model.fit(table, sample_weight=weights)
            np.testing.assert_allclose(model.cluster_centers_, mu, atol=1e-5)
            np.testing.assert_array_equal(model.labels_, oracle.labels(X, mu, lam, reference))
            np.testing.assert_allclose(model.loss_path_, path[: model.n_iter_], rtol=1e-6)


@everywhere
@given(problems(), st.sampled_from([np.float32, np.float64]))
def test_fitted_model_is_consistent(backend, problem, dtype):
    X, init, lam, reference, rng = problem
    X, weights = X.astype(dtype), rng.random(len(X))
    how = {"max_iter": 100, "algorithm": "auto", "sample_weight": weights}
    model = backend.fit(X, init, lam, reference, **how)
    table = backend.table(X)
    assert model.cluster_centers_.dtype == dtype
    assert backend.where == "dask" or model.impute(table).dtype == dtype
    assert np.isfinite(model.cluster_centers_).all()
    # labels, loss and score belong to the returned centres
    _, losses = oracle.assign(X, model.cluster_centers_.astype(float), lam, reference)
    total = losses @ (weights * usable(X))
    assert model.inertia_ == pytest.approx(total, rel=1e-9, abs=1e-9)
    score = model.score(table, sample_weight=weights)
    assert model.inertia_ == pytest.approx(-score, rel=1e-12, abs=1e-12)
    own = np.sum(model.transform(table).astype(float) ** 2 * np.eye(len(init))[model.labels_], 1)
    np.testing.assert_allclose(own, losses, rtol=1e-3, atol=1e-4)
    np.testing.assert_array_equal(model.predict(table), model.labels_)
    # the loss never rises, and the final assignment can only lower it further
    assert np.all(np.diff(model.loss_path_) <= 1e-12 * model.loss_path_[0])
    assert model.inertia_ <= model.loss_path_[-1] * (1 + 1e-5) + 1e-5


@in_memory
@given(problems(lams=(1.0,)))
def test_lam_one_is_k_means_on_reference_filled_data(backend, problem):
    X, init, lam, reference, _ = problem
    X = X[~np.isnan(X).all(axis=1)]
    filled = np.where(np.isnan(X), reference, X)
    first = oracle.assign(filled, init, lam, reference)[0]
    assume(np.bincount(first, minlength=len(init)).min() > 0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = KMeans(len(init), init=init, n_init=1, tol=0.0, max_iter=50).fit(filled)
    gaps = backend.fit(X, init, lam, reference)
    assume(len(set(theirs.labels_)) == len(init) and theirs.n_iter_ < 50)
    np.testing.assert_array_equal(gaps.labels_, theirs.labels_)
    np.testing.assert_allclose(gaps.cluster_centers_, theirs.cluster_centers_, atol=1e-9)


@in_memory
@given(problems(lams=(0.0,)))
def test_lam_zero_is_k_pod(backend, problem):
    """k-POD fills gaps with the row's centre and runs k-means steps on the filled table."""
    X, init, lam, reference, _ = problem
    X = X[~np.isnan(X).all(axis=1)]
    model = backend.fit(X, init, lam, reference)
    filled = np.where(np.isnan(X), model.cluster_centers_[model.labels_], X)
    np.testing.assert_allclose(model.impute(backend.table(X)), filled)
    # a fixed point: the means of the filled rows are the centres again, where anything is observed
    for l in np.unique(model.labels_):
        seen = ~np.isnan(X[model.labels_ == l]).all(axis=0)
        means = filled[model.labels_ == l].mean(axis=0)
        np.testing.assert_allclose(means[seen], model.cluster_centers_[l, seen], atol=1e-8)


@in_memory
@given(problems())
def test_results_follow_origin_units_and_order(backend, problem):
    X, init, lam, reference, rng = problem
    n, p = X.shape
    lams, move, scale = np.broadcast_to(lam, p), 3 * rng.normal(size=p), 2.5
    rows, columns = rng.permutation(n), rng.permutation(p)
    base = backend.fit(X, init, lam, reference)
    mu = base.cluster_centers_
    for changed, expected, unit in (
        ((X, init, lams, reference), mu, 1.0),  # a number for each feature
        ((X + move, init + move, lam, reference + move), mu + move, 1.0),
        ((X * scale, init * scale, lam, reference * scale), mu * scale, scale**2),
        ((X[rows], init, lam, reference), mu, 1.0),
        ((X[:, columns], init[:, columns], lams[columns], reference[columns]), mu[:, columns], 1.0),
    ):
        model = backend.fit(*changed)
        np.testing.assert_allclose(model.cluster_centers_, expected, atol=1e-7)
        assert model.inertia_ == pytest.approx(unit * base.inertia_, rel=1e-7, abs=1e-7)
    first = oracle.assign(X, init, lam, reference)[0]
    empty = np.sum(np.bincount(first, usable(X), len(init)) == 0)
    if empty < 2 or np.all(lams > 0):
        # Several empty clusters take rows in the order of their names: compare them as a set. Which
        # row comes to which centre shows where nobody observes a feature without a penalty.
        turned = backend.fit(X, init[::-1], lam, reference).cluster_centers_
        np.testing.assert_allclose(np.sort(turned, axis=0), np.sort(mu, axis=0), atol=1e-8)


@in_memory
def test_the_unit_of_the_weights_changes_no_bit(backend):
    """Also where the sums were made anew because a row of a huge value had left its cluster."""
    unit = 2.0**20
    for seed in range(100):
        rng, X = np.random.default_rng(seed), grouped_rows(40, 2, share=0.0, seed=seed)
        X[:3] *= 10.0 ** rng.uniform(2, 8, size=(3, 1))
        init = X[rng.choice(40, 4, replace=False)]
        one, other = (
            backend.fit(X, init, 0.5, 0.0, sample_weight=np.full(40, weight))
            for weight in (1.0, unit)
        )
        np.testing.assert_array_equal(other.cluster_centers_, one.cluster_centers_)
        np.testing.assert_array_equal(other.loss_path_, unit * one.loss_path_)


@everywhere
def test_seeded_starts_do_not_depend_on_storage_or_repetition(backend):
    """k-means++ draws rows by their share of the weight, so a whole fit obeys these laws."""
    X = grouped_rows(120, 5, k=4)
    weights = np.random.default_rng(3).integers(1, 4, size=len(X))

    def fit(X, backend=backend, sample_weight=None):
        options = {"init": "k-means++", "random_state": 7, "n_init": 3, "algorithm": "lloyd"}
        nowhere = np.zeros((4, X.shape[1]))
        return backend.fit(X, nowhere, 0.5, 0.0, sample_weight=sample_weight, **options).inertia_

    base = fit(X)
    assert fit(X[:, ::-1]) == pytest.approx(base, rel=1e-12)
    assert fit(X, BLOCK) == pytest.approx(base, rel=1e-12)
    repeated = fit(np.repeat(X, weights, axis=0))
    assert fit(X, sample_weight=weights) == pytest.approx(repeated, rel=1e-12)


def test_starts_of_k_means_parallel_are_as_good_as_those_of_k_means_plus_plus():
    """A candidate counts as many times as rows follow it, so few rows far out win no centres."""
    da = pytest.importorskip("dask.array")
    import mnarkmeans.dask

    options = {"lam": 0.0, "n_init": 20, "max_iter": 1, "random_state": 0}
    losses = {"k-means||": 0.0, "k-means++": 0.0}
    for seed in range(2):
        rng = np.random.default_rng(seed)
        groups = rng.normal(scale=0.5, size=(2000, 2)) + np.tile(
            [[3.0, 3.0], [3.0, -3.0], [-3.0, 3.0], [-3.0, -3.0]], (500, 1)
        )
        angles = rng.uniform(0, 2 * np.pi, 40)
        X = np.vstack([groups, 8.0 * np.stack([np.cos(angles), np.sin(angles)], axis=1)])
        blocks = da.from_array(rng.permutation(X), chunks=(700, 2))
        parallel = mnarkmeans.dask.MNARKMeans(4, init="k-means||", **options).fit(blocks)
        losses["k-means||"] += parallel.start_losses_.mean()
        losses["k-means++"] += (
            MNARKMeans(4, algorithm="lloyd", **options).fit(X).start_losses_.mean()
        )
    assert losses["k-means||"] < 1.4 * losses["k-means++"]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("p", "n_init"), [(9, 1), (9, 5), (400, 5)])
def test_chunks_and_threads_change_nothing(form, weighted, p, n_init):
    """The same table in one compiled call, cut into chunks, and on any number of threads."""
    X = grouped_rows(600, p, k=4, apart=1.0, share=0.4)
    weights = np.random.default_rng(5).random(len(X)) if weighted else None

    def run(n_jobs):
        model = MNARKMeans(4, lam=0.3, n_init=n_init, random_state=1, n_jobs=n_jobs)
        return model.fit(Backend("block", form).table(X), sample_weight=weights)

    whole = [run(n_jobs) for n_jobs in (1, 2, 3)]
    follow = mock.patch.object(Bounds, "follow", autospec=True, side_effect=Bounds.follow)
    with chunks(), follow as followed:
        cut = [run(n_jobs) for n_jobs in (1, 2, 3)]
    assert n_init > 1 or followed.call_count > 0  # in the chunks bounds were kept
    for group in (whole, cut):
        for model in group[1:]:
            np.testing.assert_array_equal(model.cluster_centers_, group[0].cluster_centers_)
            np.testing.assert_array_equal(model.labels_, group[0].labels_)
            np.testing.assert_array_equal(model.start_losses_, group[0].start_losses_)
            assert model.inertia_ == group[0].inertia_
    np.testing.assert_array_equal(cut[0].labels_, whole[0].labels_)
    np.testing.assert_allclose(cut[0].cluster_centers_, whole[0].cluster_centers_, atol=1e-12)
    np.testing.assert_allclose(cut[0].start_losses_, whole[0].start_losses_, rtol=1e-12)


@everywhere
@given(st.integers(0, 2**32 - 1))
@example(49)  # the costliest row is alone in its cluster
@example(79)
def test_empty_clusters_are_filled_as_the_oracle_fills_them(backend, seed):
    """Rows on a grid cost alike; centres are far away; clusters of one row have none to spare."""
    rng = np.random.default_rng(seed)
    n, p, k = rng.integers(5, 14), rng.integers(1, 3), rng.integers(2, 5)
    X = rng.integers(-3, 4, size=(n, p)).astype(float)
    X[rng.random(X.shape) < 0.2] = np.nan
    X[np.isnan(X).all(axis=1)] = 1.0
    init = rng.integers(-2, 3, size=(k, p)) + rng.choice([0.0, 50.0], size=(k, 1))
    weights = rng.integers(0, 3, size=n).astype(float)
    weights[:k] = 1.0
    lam = float(rng.choice([0.5, 1.0]))
    centers, path = oracle.lloyd(X, init, lam, np.zeros(p), weights, 1)
    model = backend.fit(X, init, lam, 0.0, sample_weight=weights, max_iter=1)
    np.testing.assert_allclose(model.loss_path_, path[: model.n_iter_], rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(model.cluster_centers_, centers, rtol=1e-9, atol=1e-9)


@everywhere
@pytest.mark.parametrize("huge", [1e9, 1e15, 1e17])
@pytest.mark.parametrize("copies", [1, 2])
def test_a_huge_row_that_left_leaves_no_trace(backend, huge, copies):
    """It joins the small rows first, then fills an empty cluster, or moves in a later pass."""
    small = np.random.default_rng(0).random(50)
    X = np.concatenate([small, copies * [huge], copies * [-huge]])[:, None]
    init = np.array([[0.5], [3.0 * huge], [-huge]])
    model = backend.fit(X, init, 1.0, 0.0, max_iter=20, tol=0.0)
    centers = [small.mean(), huge, -huge]
    np.testing.assert_allclose(model.cluster_centers_.ravel(), centers, rtol=1e-6)


@in_memory
@pytest.mark.parametrize("huge", [1e3, 1e8, 1e13])
@pytest.mark.parametrize("algorithm", ["lloyd", "hartigan"])
def test_centres_are_right_to_the_digits_of_the_furthest_value(backend, huge, algorithm):
    rng = np.random.default_rng(1)
    X = rng.random((60, 2)) + np.repeat([[0.0, 0.0], [5.0, 5.0], [huge, huge]], [40, 19, 1], axis=0)
    init = [[0.5, 0.5], [5.5, 5.5], [9.0, 9.0]]
    model = backend.fit(X, init, 1.0, 0.0, algorithm=algorithm, tol=0.0)
    for l in range(3):
        expected = X[model.labels_ == l].mean(axis=0)
        np.testing.assert_allclose(model.cluster_centers_[l], expected, rtol=0, atol=1e-15 * huge)
    assert model.inertia_ <= model.loss_path_[-1]


@in_memory
@pytest.mark.parametrize("algorithm", ["lloyd", "hartigan"])
@pytest.mark.parametrize("exponent", [-138, -89, 0, 14, 125])
def test_the_loss_is_where_its_path_ends_at_every_scale(backend, algorithm, exponent):
    """Also where a row of a huge value or weight leaves its cluster, and where the weight of the
    gaps is the small difference of large ones."""
    for seed in range(25):
        rng = np.random.default_rng(seed)
        n, p, k = rng.integers((10, 1, 2), (50, 9, 5))
        X = rng.normal(size=(n, p)) + 3.0 * rng.integers(0, 3, size=(n, 1))
        X[0] *= rng.choice([1.0, 1e6])
        X = (X + rng.choice([0.0, 1e4])) * 10.0**exponent
        X[rng.random((n, p)) < 0.3] = np.nan
        weights = rng.choice([1, 2, 5], n) if seed % 3 else 10.0 ** rng.uniform(-8, 6, n)
        lam, reference = rng.choice([0.0, 0.3, 1.0, 1e6]), rng.choice([0.0, 10.0**exponent])
        model = backend.fit(
            X, np.zeros((k, p)), lam, reference, sample_weight=weights, algorithm=algorithm,
            init="k-means++", n_init=2, random_state=seed, max_iter=300,
        )  # fmt: skip
        assert model.inertia_ == pytest.approx(model.loss_path_[-1], rel=1e-12, abs=0)
        assert model.inertia_ == pytest.approx(model.start_losses_.min(), rel=1e-12, abs=0)
        assert np.all(np.diff(model.loss_path_) <= 0)


@st.composite
def rare_features(draw):
    """As `problems`, with features that hardly any row of a cluster observes, and weights."""
    X, init, lam, reference, rng = draw(problems())
    X[rng.random(X.shape) < 0.5] = np.nan
    X[: len(init), 0] = rng.normal(size=len(init))
    return X, init, lam, reference, rng.choice([0.1, 0.2, 0.3, 1.0, 3.0], size=len(X))


def partition_loss(X, labels, start, lam, reference, weights):
    """The least loss of a partition."""
    centers = oracle.update(X, labels, start, lam, reference, weights)
    return oracle.loss(X, labels, centers, lam, reference, weights)


@in_memory
@given(rare_features())
def test_hartigan_ends_where_no_move_of_a_row_helps(backend, problem):
    X, init, lam, reference, weights = problem
    weights = weights * usable(X)
    lloyd, model = (
        backend.fit(X, init, lam, reference, sample_weight=weights, algorithm=algorithm, tol=0.0)
        for algorithm in ("lloyd", "hartigan")
    )
    assert model.inertia_ <= lloyd.inertia_ * (1 + 1e-9) + 1e-12
    assert model.inertia_ <= model.loss_path_[-1]
    start = model.cluster_centers_
    least = partition_loss(X, model.labels_, start, lam, reference, weights)
    assert least == pytest.approx(model.inertia_, rel=1e-9, abs=1e-12)
    members = np.bincount(model.labels_[weights > 0], minlength=len(init))
    for i in np.flatnonzero(weights)[:8]:
        if members[model.labels_[i]] == 1:
            continue
        for l in range(len(init)):
            moved = model.labels_.copy()
            moved[i] = l
            loss = partition_loss(X, moved, start, lam, reference, weights)
            assert loss >= least * (1 - 1e-8) - 1e-12
