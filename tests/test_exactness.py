"""Exact for any numbers: every case here once gave a wrong answer somewhere.

A row's label is the first of the centres with the least float64 sum of direct differences, in the
order of the features: a function of the row and the model alone, wherever the row is.
"""

import numpy as np
import oracle
import pytest
from places import IN_MEMORY, PLACES, Place, names, to_csr
from sklearn.cluster import KMeans

from mnarkmeans import MiniBatchMNARKMeans, MNARKMeans

nan = np.nan
everywhere = pytest.mark.parametrize("place", PLACES, ids=names)
in_memory = pytest.mark.parametrize("place", IN_MEMORY, ids=names)
BLOCK = Place("block", "dense")


# --- the row and the model alone --------------------------------------------------------------


@everywhere
@pytest.mark.parametrize("far", [1e9, 1e10, 1e16, 1e100])
def test_labels_do_not_depend_on_who_else_is_asked(place, far):
    X = np.r_[np.zeros((5, 1)), np.ones((5, 1))]
    model = place.fit(X, [[0.0], [1.0]], 0.5, 0.0)
    alone = place.ask(model, "predict", np.array([[0.0], [1.0]]))
    beside = place.ask(model, "predict", np.array([[0.0], [1.0], [far]]))
    assert alone.tolist() == [0, 1]
    assert beside[:2].tolist() == [0, 1]


@everywhere
@pytest.mark.parametrize("lam", [0.0, 0.5, 4.0])
def test_a_row_alone_and_in_company_gets_the_same_bits(place, lam, each_level):
    rng = np.random.default_rng(0)
    X = np.round(rng.normal(size=(60, 9)), 1)
    X[rng.random(X.shape) < 0.3] = nan
    model = place.fit(X, np.round(rng.normal(size=(5, 9)), 1), lam, 0.3, max_iter=3)
    company = np.r_[X, np.full((1, 9), 1e9), 1e30 * X[:5]]
    labels, distances = (place.ask(model, ask, company) for ask in ("predict", "transform"))
    for i in range(0, len(company), 7):
        assert place.ask(model, "predict", company[i : i + 1]) == labels[i]
        alone = place.ask(model, "transform", company[i : i + 1])[0]
        assert np.array_equal(alone, distances[i])
    squares = oracle.distances(company, model.cluster_centers_, lam, model.reference_)
    assert np.array_equal(labels[:60], np.argmin(squares, axis=1)[:60])
    assert np.array_equal(distances, np.sqrt(squares))


def test_score_and_impute_of_a_row_do_not_depend_on_its_company():
    X = np.r_[np.zeros((5, 2)), np.ones((5, 2))]
    model = BLOCK.fit(X, [[0.0, 0.0], [1.0, 1.0]], 0.5, 0.0)
    rows = np.array([[0.1, nan], [0.9, nan]])
    far = np.r_[rows, [[1e9, 1e9]]]
    assert np.array_equal(model.impute(far)[:2], model.impute(rows))
    assert model.score(far, sample_weight=[1.0, 1.0, 0.0]) == model.score(rows)


@in_memory
@pytest.mark.parametrize("algorithm", ["lloyd", "hartigan"])
@pytest.mark.parametrize("weights", [None, [1.0, 1.0, 1.0, 2.0], [1.0, 0.5, 0.25, 2.5]])
def test_ties_go_to_the_lowest_label_in_fit_and_predict_alike(place, algorithm, weights):
    X = np.array([[0.0], [2.0], [2.0], [0.0]])
    init = [[1.0], [0.0], [2.0]]
    model = place.fit(X, init, 0.5, 0.0, sample_weight=weights, algorithm=algorithm)
    assert np.array_equal(model.labels_, place.ask(model, "predict", X))
    assert np.array_equal(
        model.labels_, oracle.labels(X, model.cluster_centers_, 0.5, model.reference_)
    )


@everywhere
def test_equal_sums_are_ties_on_every_instruction_set(place, each_level):
    """Whole numbers: many sums are equal, and the fast kernels cannot know."""
    rng = np.random.default_rng(1)
    X = rng.integers(-2, 3, size=(300, 17)).astype(float)
    X[rng.random(X.shape) < 0.3] = nan
    centers = rng.integers(-1, 2, size=(12, 17)).astype(float)
    centers[7] = centers[2]
    model = place.fit(X, centers, 0.5, 0.0, max_iter=1)
    model.cluster_centers_ = centers
    labels = place.ask(model, "predict", X)
    assert np.array_equal(labels, oracle.labels(X, centers, 0.5, model.reference_))


# --- far from the reference -------------------------------------------------------------------


@everywhere
@pytest.mark.parametrize("lam", [0.0, 0.5, 1.0, 30.0])
def test_without_gaps_every_lam_is_ordinary_k_means_however_far_the_reference(place, lam):
    rng = np.random.default_rng(0)
    group = rng.integers(0, 3, 600)
    X = np.c_[1.7e9 + 10 * group + rng.normal(0, 2, 600), rng.normal(0, 2, 600)]
    init = np.array([[1.7e9 + 10 * g, 0.0] for g in range(3)])
    theirs = KMeans(3, init=init - [1.7e9, 0.0], n_init=1, tol=0.0).fit(X - [1.7e9, 0.0])
    ours = place.fit(X, init, lam, 0.0)
    assert ours.inertia_ == pytest.approx(theirs.inertia_, rel=1e-6)
    assert np.mean(ours.labels_ == theirs.labels_) > 0.99
    labels = oracle.labels(X, ours.cluster_centers_, lam, ours.reference_)
    assert np.array_equal(ours.labels_, labels)


@everywhere
@pytest.mark.parametrize("far", [1e4, 1e6, 1e8])
@pytest.mark.parametrize("lam", [0.0, 0.5])
def test_the_path_of_losses_keeps_its_digits_far_from_the_reference(place, far, lam):
    rng = np.random.default_rng(2)
    X = far + 1e-4 * rng.normal(size=(200, 4)) + 1e-3 * rng.integers(0, 3, size=(200, 1))
    X[:, 3][rng.random(200) < 0.2 if lam == 0 else slice(0)] = nan
    init = far + 1e-3 * np.arange(3.0)[:, None] + np.zeros(4)
    model = place.fit(X, init, lam, 0.0)
    weights = np.ones(len(X))
    _, path = oracle.lloyd(X, init, lam, model.reference_, weights, model.n_iter_)
    # What is left of X's own digits bounds what a loss can tell.
    slack = 1e-9 + 40 * np.finfo(float).eps * far / 1e-4
    np.testing.assert_allclose(model.loss_path_, path, rtol=slack)
    assert model.inertia_ == pytest.approx(path[-1], rel=slack)


@in_memory
def test_the_best_start_is_chosen_by_losses_that_keep_their_digits(place):
    rng = np.random.default_rng(3)
    X = 1e6 + 1e-3 * rng.normal(size=(300, 3)) + 1e-2 * rng.integers(0, 4, size=(300, 1))
    model = place.fit(X, np.zeros((4, 3)), 0.5, 0.0, init="k-means++", n_init=8, random_state=0)
    assert model.inertia_ == pytest.approx(model.start_losses_.min(), rel=1e-6)
    assert model.start_losses_.min() > 0


# --- sums over nobody -------------------------------------------------------------------------

RESCUED = {
    "X": np.array([[0, nan], [1, 5], [2, 7], [3, 9], [0.1, nan]]),
    "w": [0.5, 0.1, 0.2, 0.3, 0.5],
    "init": [[0, 1], [1e3, 1e3], [1e3, 1e3 + 1], [1e3, 1e3 + 2]],
}


@everywhere
def test_a_centre_stays_in_a_feature_that_nobody_observes(place):
    model = place.fit(RESCUED["X"], RESCUED["init"], 0.0, 0.0, sample_weight=RESCUED["w"])
    own = model.labels_[0]
    assert model.labels_[4] == own
    assert (model.labels_ == own).sum() == 2
    assert model.cluster_centers_[own, 1] == 1.0


@everywhere
@pytest.mark.parametrize("lam", [1e-15, 1e-12, 1e-6])
def test_a_small_penalty_pulls_an_unobserved_feature_to_the_reference(place, lam):
    model = place.fit(RESCUED["X"], RESCUED["init"], lam, 0.0, sample_weight=RESCUED["w"])
    assert model.cluster_centers_[model.labels_[0], 1] == 0.0


@everywhere
@pytest.mark.parametrize("scale", [0.1, 1 / 3, 0.7])
def test_observers_are_counted_exactly_for_fractional_weights(place, scale):
    """lam is large: a count that is off by its rounding would be seen in every centre."""
    rng = np.random.default_rng(4)
    X = rng.normal(size=(200, 5)) + 5 * rng.integers(0, 3, size=(200, 1))
    X[:, 0][rng.random(200) < 0.4] = nan
    weights = scale * rng.integers(1, 4, 200)
    init = np.array([[0.0] * 5, [5.0] * 5, [10.0] * 5])
    model = place.fit(X, init, 1e12, 0.0, sample_weight=weights)
    expected = oracle.update(X, model.labels_, init, 1e12, np.zeros(5), weights)
    np.testing.assert_allclose(model.cluster_centers_, expected, rtol=1e-9, atol=1e-18)


# --- rows that say nothing, and batches -------------------------------------------------------


@everywhere
@pytest.mark.parametrize("lam", [0.0, 0.5])
def test_a_row_without_values_goes_to_the_centre_nearest_to_the_reference(place, lam):
    X = np.array([[9.0, 9.0], [8.0, 9.0], [0.1, 0.1], [0.2, 0.2], [nan, nan]])
    model = place.fit(X, [[9.0, 9.0], [0.0, 0.0]], lam, 0.0)
    assert model.labels_[4] == 1
    assert place.ask(model, "predict", X)[4] == 1


@pytest.mark.parametrize("form", [np.asarray, to_csr], ids=["dense", "csr"])
def test_batches_give_labels_of_the_row_and_the_model_alone(form):
    rng = np.random.default_rng(5)
    X = 1e6 + rng.normal(size=(500, 4)) + 4 * rng.integers(0, 3, size=(500, 1))
    X[:, 1:][rng.random((500, 3)) < 0.2] = nan
    model = MiniBatchMNARKMeans(3, lam=0.0, batch_size=64, random_state=0).fit(form(X))
    labels = oracle.labels(X, model.cluster_centers_, 0.0, model.reference_)
    assert np.array_equal(model.predict(form(X)), labels)
    assert np.array_equal(model.labels_, labels)
    assert [model.predict(form(row[None]))[0] for row in X[:20]] == labels[:20].tolist()


def test_threads_change_nothing():
    rng = np.random.default_rng(6)
    X = rng.normal(size=(40_000, 20))
    X[rng.random(X.shape) < 0.3] = nan
    one, three = (
        MNARKMeans(6, lam=0.5, n_init=2, random_state=0, max_iter=8, n_jobs=jobs).fit(X)
        for jobs in (1, 3)
    )
    assert np.array_equal(one.cluster_centers_, three.cluster_centers_)
    assert np.array_equal(one.labels_, three.labels_)
    assert np.array_equal(one.loss_path_, three.loss_path_)
