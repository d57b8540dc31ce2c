"""Exact for any numbers: a row's label depends on the row and the model alone.

It is the first of the centres with the least float64 sum of direct differences, in the order of the
features, wherever the row is. Numbers too large or too small are refused.
"""

import platform
import re
from pathlib import Path

import numpy as np
import oracle
import pytest
from backends import everywhere, grouped_rows, in_memory, to_csr
from sklearn.cluster import KMeans

from mnarkmeans import MiniBatchMNARKMeans, MNARKMeans, _core

nan, CPU = np.nan, Path("/proc/cpuinfo")


# --- the row and the model alone --------------------------------------------------------------


@everywhere
@pytest.mark.parametrize("lam", [0.0, 0.5, 4.0])
def test_a_row_alone_and_in_company_gets_the_same_bits(backend, lam, each_level):
    rng = np.random.default_rng(0)
    X = np.round(rng.normal(size=(60, 9)), 1)
    X[rng.random(X.shape) < 0.3] = nan
    X[7] = nan  # it goes to the centre nearest to the reference
    model = backend.fit(X, np.round(rng.normal(size=(5, 9)), 1), lam, 0.3, max_iter=3)
    company = np.r_[X, np.full((1, 9), 1e9), 1e30 * X[:5]]
    labels, distances = (backend.ask(model, ask, company) for ask in ("predict", "transform"))
    for i in range(0, len(company), 7):
        assert backend.ask(model, "predict", company[i : i + 1]) == labels[i]
        alone = backend.ask(model, "transform", company[i : i + 1])[0]
        assert np.array_equal(alone, distances[i])
    fitted = model.cluster_centers_, lam, model.reference_
    assert np.array_equal(labels, oracle.labels(company, *fitted))
    assert np.array_equal(distances, np.sqrt(oracle.distances(company, *fitted)))
    assert np.array_equal(labels[:60], model.labels_)


@in_memory
@pytest.mark.parametrize("algorithm", ["lloyd", "hartigan"])
@pytest.mark.parametrize("weights", [None, [1.0, 1.0, 1.0, 2.0], [1.0, 0.5, 0.25, 2.5]])
def test_ties_go_to_the_lowest_label_in_fit_and_predict_alike(backend, algorithm, weights):
    X = np.array([[0.0], [2.0], [2.0], [0.0]])
    init = [[1.0], [0.0], [2.0]]
    model = backend.fit(X, init, 0.5, 0.0, sample_weight=weights, algorithm=algorithm)
    assert np.array_equal(model.labels_, backend.ask(model, "predict", X))
    assert np.array_equal(
        model.labels_, oracle.labels(X, model.cluster_centers_, 0.5, model.reference_)
    )


@everywhere
def test_equal_sums_are_ties_on_every_instruction_set(backend, each_level):
    """Whole numbers: many sums are equal, and the fast kernels cannot know."""
    rng = np.random.default_rng(1)
    X = rng.integers(-2, 3, size=(300, 17)).astype(float)
    X[rng.random(X.shape) < 0.3] = nan
    centers = rng.integers(-1, 2, size=(12, 17)).astype(float)
    centers[7] = centers[2]
    model = backend.fit(X, centers, 0.5, 0.0, max_iter=1)
    model.cluster_centers_ = centers
    labels = backend.ask(model, "predict", X)
    assert np.array_equal(labels, oracle.labels(X, centers, 0.5, model.reference_))


# --- far from the reference -------------------------------------------------------------------


@everywhere
@pytest.mark.parametrize("lam", [0.0, 0.5, 1.0, 30.0])
def test_without_gaps_every_lam_is_ordinary_k_means_however_far_the_reference(backend, lam):
    rng = np.random.default_rng(0)
    group = rng.integers(0, 3, 600)
    X = np.c_[1.7e9 + 10 * group + rng.normal(0, 2, 600), rng.normal(0, 2, 600)]
    init = np.array([[1.7e9 + 10 * g, 0.0] for g in range(3)])
    theirs = KMeans(3, init=init - [1.7e9, 0.0], n_init=1, tol=0.0).fit(X - [1.7e9, 0.0])
    ours = backend.fit(X, init, lam, 0.0)
    assert ours.inertia_ == pytest.approx(theirs.inertia_, rel=1e-6)
    assert np.mean(ours.labels_ == theirs.labels_) > 0.99
    labels = oracle.labels(X, ours.cluster_centers_, lam, ours.reference_)
    assert np.array_equal(ours.labels_, labels)


@everywhere
@pytest.mark.parametrize("far", [1e4, 1e6, 1e8])
@pytest.mark.parametrize("lam", [0.0, 0.5])
def test_the_path_of_losses_keeps_its_digits_far_from_the_reference(backend, far, lam):
    rng = np.random.default_rng(2)
    X = far + 1e-4 * rng.normal(size=(200, 4)) + 1e-3 * rng.integers(0, 3, size=(200, 1))
    X[:, 3][rng.random(200) < 0.2 if lam == 0 else slice(0)] = nan
    init = far + 1e-3 * np.arange(3.0)[:, None] + np.zeros(4)
    model = backend.fit(X, init, lam, 0.0)
    weights = np.ones(len(X))
    _, path = oracle.lloyd(X, init, lam, model.reference_, weights, model.n_iter_)
    # What is left of X's own digits bounds what a loss can tell.
    slack = 1e-9 + 40 * np.finfo(float).eps * far / 1e-4
    np.testing.assert_allclose(model.loss_path_, path, rtol=slack)
    assert model.inertia_ == pytest.approx(path[-1], rel=slack)


# --- sums over nobody -------------------------------------------------------------------------


@everywhere
@pytest.mark.parametrize(("lam", "center"), [(0.0, 1.0), (1e-15, 0.0), (1e-12, 0.0), (1e-6, 0.0)])
def test_a_feature_nobody_observes_has_its_old_centre_or_the_reference(backend, lam, center):
    """Without a penalty, or with one however small; the other clusters are filled with rows."""
    X = np.array([[0, nan], [1, 5], [2, 7], [3, 9], [0.1, nan]])
    init = [[0, 1], [1e3, 1e3], [1e3, 1e3 + 1], [1e3, 1e3 + 2]]
    model = backend.fit(X, init, lam, 0.0, sample_weight=[0.5, 0.1, 0.2, 0.3, 0.5])
    label = model.labels_[0]
    assert np.flatnonzero(model.labels_ == label).tolist() == [0, 4]
    assert model.cluster_centers_[label, 1] == center


@everywhere
@pytest.mark.parametrize("scale", [0.1, 1 / 3, 0.7])
def test_observers_are_counted_exactly_for_fractional_weights(backend, scale):
    """lam is large: a count that is off by its rounding would be seen in every centre."""
    rng, X = np.random.default_rng(4), grouped_rows(200, 5, apart=5.0, share=0.0)
    X[:, 0][rng.random(200) < 0.4] = nan
    weights = scale * rng.integers(1, 4, 200)
    init = np.full((3, 5), [[0.0], [5.0], [10.0]])
    model = backend.fit(X, init, 1e12, 0.0, sample_weight=weights)
    expected = oracle.update(X, model.labels_, init, 1e12, np.zeros(5), weights)
    np.testing.assert_allclose(model.cluster_centers_, expected, rtol=1e-9, atol=1e-18)


# --- rows that say nothing, and batches -------------------------------------------------------


@pytest.mark.parametrize("form", [np.asarray, to_csr], ids=["dense", "csr"])
def test_batches_give_labels_of_the_row_and_the_model_alone(form):
    X = 1e6 + grouped_rows(500, 4, apart=4.0, share=0.2)
    model = MiniBatchMNARKMeans(3, lam=0.0, batch_size=64, random_state=0).fit(form(X))
    labels = oracle.labels(X, model.cluster_centers_, 0.0, model.reference_)
    assert np.array_equal(model.predict(form(X)), labels)
    assert np.array_equal(model.labels_, labels)
    assert [model.predict(form(row[None]))[0] for row in X[:20]] == labels[:20].tolist()


# --- large and small --------------------------------------------------------------------------


def grouped_table():
    return grouped_rows(200, 6, apart=4.0)


@pytest.mark.parametrize("form", [np.asarray, to_csr], ids=["dense", "csr"])
@pytest.mark.parametrize("scale", [1e-130, 1e-60, 1e60, 1e140])
@pytest.mark.parametrize("algorithm", ["lloyd", "hartigan"])
def test_any_scale_between_gives_the_same_clusters(form, scale, algorithm):
    scale, init = 2.0 ** np.round(np.log2(scale)), np.arange(3.0)[:, None] * np.full(6, 4.0)
    one, other = (
        MNARKMeans(3, lam=0.5, init=by * init, algorithm=algorithm).fit(form(by * grouped_table()))
        for by in (1.0, scale)
    )
    assert np.array_equal(one.labels_, other.labels_)
    np.testing.assert_allclose(other.cluster_centers_, scale * one.cluster_centers_, rtol=1e-12)
    assert other.inertia_ == pytest.approx(scale**2 * one.inertia_, rel=1e-12)


@pytest.mark.parametrize("algorithm", ["lloyd", "hartigan"])
@pytest.mark.parametrize("lam", [1e20, 1e100])
def test_the_largest_penalty_puts_centres_at_the_reference(lam, algorithm):
    X = grouped_table()
    model = MNARKMeans(3, lam=lam, random_state=0, algorithm=algorithm).fit(X)
    assert np.isfinite(model.cluster_centers_).all()
    assert np.isfinite(model.inertia_)
    for l in np.unique(model.labels_):
        gaps = np.isnan(X[model.labels_ == l]).any(axis=0)
        assert np.abs(model.cluster_centers_[l, gaps]).max(initial=0.0) < 1e-15
    assert not MNARKMeans(1, lam=lam).fit(np.zeros((5, 2))).cluster_centers_.any()


def with_one(value):
    X = grouped_table()
    X[3, 2] = value
    return X


@pytest.mark.parametrize(
    ("X", "options", "message"),
    [
        *((with_one(value), {}, "column 2 are too large") for value in (1e153, -1e200, 1.7e308)),
        (with_one(1e153), {"sample_weight": 1.0 * (np.arange(200) != 3)}, "column 2 are too large"),
        (1e-170 * grouped_table(), {}, "too small"),
        (1e110 * grouped_table(), {"lam": 1e90}, r"with lam=1e\+90 the loss overflows"),
        (grouped_table(), {"lam": 1e101}, r"lam may be 1e\+100 at most"),
        (grouped_table(), {"lam": [0.5] * 5 + [1e200]}, r"lam may be 1e\+100 at most"),
        (grouped_table(), {"init": np.full((2, 6), 1e170)}, "too large"),
        (grouped_table(), {"reference": 1e170}, "too large"),
        (grouped_table(), {"sample_weight": np.full(200, 1e60)}, r"sums to 2e\+62"),
    ],
)
@everywhere
def test_numbers_beyond_all_measure_are_refused(X, options, message, backend):
    given = {"lam": 0.5, "reference": 0.0, "init": np.eye(2, 6), "sample_weight": None} | options
    lam, reference, init, weights = given.values()
    with pytest.raises(ValueError, match=message):
        backend.fit(X, init, lam, reference, sample_weight=weights)
    batches = MiniBatchMNARKMeans(2, lam=lam, reference=reference, init=init)
    with pytest.raises(ValueError, match=message):
        batches.fit(X, sample_weight=weights)


@everywhere
def test_values_whose_squares_overflow_are_refused_by_a_fitted_model(backend):
    model = backend.fit(grouped_table(), np.eye(2, 6), 0.5, 0.0)
    for method in ("predict", "transform", "impute"):
        with pytest.raises(ValueError, match="column 2 are too large"):
            backend.ask(model, method, with_one(1e153))
    with pytest.raises(ValueError, match="column 2 are too large"):
        model.score(with_one(1e153))


@pytest.mark.parametrize("scale", [1e19, 1e-25, 1e37, 1e-37])
def test_distances_of_float32_are_rounded_once(scale):
    X = (scale * grouped_table()).astype(np.float32)
    model = MNARKMeans(3, lam=0.5, random_state=0).fit(X)
    found = model.transform(X)
    wide = MNARKMeans(3, lam=0.5, random_state=0).fit(X)
    wide.cluster_centers_ = wide.cluster_centers_.astype(np.float64)
    expected = wide.transform(X.astype(np.float64))
    assert found.dtype == np.float32
    assert np.isfinite(found).all()
    assert (found > 0).any()
    assert np.array_equal(found, expected.astype(np.float32))


@pytest.mark.skipif(
    platform.machine() != "x86_64" or not CPU.exists(), reason="reads the flags of an x86-64"
)
def test_instruction_sets_are_those_of_the_processor():
    flags = set(re.search(r"^flags\s*:(.*)", CPU.read_text(), re.MULTILINE)[1].split())
    needed = {"avx2": {"avx2"}, "avx512": {"avx512f", "avx512dq", "avx512bw", "avx512vl"}}
    expected = ["baseline", *(level for level, own in needed.items() if own <= flags)]
    assert list(_core.available_levels()) == expected
