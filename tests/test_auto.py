"""lam="auto": what the likelihood of the missing pattern must find, and what must not change it."""

import numpy as np
import pytest
from mixture_data import gaussian, rows_and_starts
from scipy import sparse

from mnarkmeans import MNARKMeans
from mnarkmeans._penalty.choice import sample_table
from mnarkmeans._penalty.evidence import estimate_missingness
from mnarkmeans._penalty.mar import gain_of_complete_features
from mnarkmeans._validation import observe
from mnarkmeans.metrics import clustering_error_rate
from mnarkmeans.missingness import ampute


def auto(X, k=3, **parameters):
    return MNARKMeans(k, random_state=0, **parameters).fit(X)


@pytest.mark.parametrize(
    ("mechanism", "strength", "share"),
    [("mnar0", 2.0, 1.0), ("mnar1", 1.0, 0.5), ("mnar2", 0.4, 1)],
)
def test_the_shape_of_the_mechanism_is_recognised(mechanism, strength, share):
    rows, fits = rows_and_starts(gaussian(mechanism, strength, n=1500, p=4).data, 3)
    assert estimate_missingness(rows, fits).share_at_reference == pytest.approx(share, abs=0.12)


def lost_by_the_first_column(n=400, seed=0):
    """Values of all other columns go missing where the first, complete one is small: MAR."""
    rng = np.random.default_rng(seed)
    classes = rng.integers(3, size=n)
    X = np.array([[0, 0, 1], [3, 0, 3], [0, 3, 2.0]])[classes] + rng.normal(size=(n, 3))
    gone = rng.random((n, 2)) < 1 / (1 + np.exp(2 * X[:, :1] - 1))
    X[:, 1:][gone] = np.nan
    return X


def test_gaps_that_follow_a_complete_feature_need_no_penalty():
    assert [auto(lost_by_the_first_column(seed=seed)).lam_ for seed in range(3)] == [0.0] * 3


@pytest.mark.parametrize("tied", [False, True])
def test_a_complete_feature_beside_others_that_lose_small_values_changes_nothing(tied):
    made = gaussian("mnar0", 1.0, n=600, p=4)
    extra = np.random.default_rng(0).normal(size=len(made.data)) + 2.0 * tied * made.target
    lam = auto(np.column_stack([extra, made.data])).lam_
    assert lam == pytest.approx(auto(made.data).lam_, abs=0.06)


def test_the_gain_of_complete_features_knows_no_order_and_no_repetition():
    X = lost_by_the_first_column()
    gaps, mixed = np.isnan(X), np.random.default_rng(1).permutation(len(X))

    def gain(rows, weights):
        return gain_of_complete_features(X[rows], gaps.any(axis=0), gaps[rows].sum(axis=1), weights)

    every = np.arange(len(X))
    whole = gain(every, np.ones(len(X)))
    assert whole > 20
    assert gain(mixed, np.ones(len(X))) == pytest.approx(whole)
    twice = gain(np.tile(every, 2), np.ones(2 * len(X)))
    assert gain(every, np.full(len(X), 2.0)) == pytest.approx(twice)
    stored = sparse.csr_array(np.nan_to_num(X))
    as_sparse = gain_of_complete_features(
        stored, gaps.any(axis=0), gaps.sum(axis=1), np.ones(len(X))
    )
    assert as_sparse == pytest.approx(whole)
    assert gain_of_complete_features(X[:, 1:], gaps[:, 1:].any(axis=0), gaps.sum(axis=1), 1.0) == 0


@pytest.mark.parametrize(("strength", "theory"), [(0.5, 0.5), (1.0, 2 / 3), (2.0, 0.8)])
def test_theory_is_recovered(strength, theory):
    model = auto(gaussian("mnar0", strength, n=1500).data)
    assert model.missingness_.lam_theory == pytest.approx(theory, abs=0.04)
    assert model.missingness_.sigma2 == pytest.approx(1.0, abs=0.1)
    assert model.missingness_.lam_star == pytest.approx(strength, rel=0.2)
    assert model.missingness_.log_likelihood > model.missingness_.log_likelihood_mcar + 50


@pytest.mark.parametrize("share", [0.1, 0.3, 0.6])
def test_gaps_at_random_give_a_penalty_near_zero(share):
    bunch = gaussian("mcar", share, n=900, p=4)
    model = auto(bunch.data)
    assert model.lam_ < 0.05
    kpod = MNARKMeans(3, lam=0.0, random_state=0).fit(bunch.data)
    errors = [clustering_error_rate(bunch.target, m.labels_) for m in (model, kpod)]
    assert errors[0] == pytest.approx(errors[1], abs=0.01)


@pytest.mark.parametrize(
    ("mechanism", "strength"), [("mnar0", 1.0), ("mnar1", 1.5), ("mnar2", 0.3)]
)
def test_close_to_the_best_penalty(mechanism, strength):
    bunch = gaussian(mechanism, strength, n=900, p=4)
    error = clustering_error_rate(bunch.target, auto(bunch.data).labels_)
    models = [MNARKMeans(3, lam=lam, random_state=0) for lam in (0.0, 0.3, 0.6, 0.8, 1.0, 2.0)]
    fixed = [clustering_error_rate(bunch.target, m.fit_predict(bunch.data)) for m in models]
    assert error <= min(fixed) + 0.01


def test_complete_data_need_no_penalty():
    X = np.random.default_rng(0).normal(size=(50, 3))
    model = auto(X)
    assert model.lam_ == 0.0
    np.testing.assert_array_equal(
        model.labels_, MNARKMeans(3, lam=0.0, random_state=0).fit_predict(X)
    )


def test_shift_and_scale_leave_lam_alone():
    X = gaussian("mnar0", 1.0, n=300, p=3).data
    lam = auto(X).lam_
    assert auto(X + 25.0, reference=25.0).lam_ == pytest.approx(lam, abs=1e-6)
    assert auto(X * 1000.0).lam_ == pytest.approx(lam, abs=1e-6)


def test_sparse_equals_dense_and_weight_two_is_the_row_twice():
    X = gaussian("mnar0", 1.0, n=200, p=4).data
    stored = sparse.csr_array(np.nan_to_num(X))
    assert auto(stored).lam_ == pytest.approx(auto(X).lam_, abs=1e-6)
    doubled = MNARKMeans(3, random_state=0).fit(X, sample_weight=np.full(len(X), 2.0))
    twice = MNARKMeans(3, random_state=0).fit(np.vstack([X, X]))
    assert doubled.lam_ == pytest.approx(twice.lam_, abs=1e-6)


def test_row_order_does_not_matter_even_when_rows_are_sampled(monkeypatch):
    monkeypatch.setattr("mnarkmeans._penalty.choice.ENTRIES_OF_SAMPLE", 1000)
    X = gaussian("mnar0", 1.0, n=800, p=4).data
    mixed = np.random.default_rng(1).permutation(len(X))
    assert auto(X).lam_ == pytest.approx(auto(X[mixed]).lam_, abs=1e-6)
    assert auto(X).missingness_.lam_theory == pytest.approx(2 / 3, abs=0.15)


@pytest.mark.parametrize(
    "X",
    [
        [[1.0, np.nan], [np.nan, 2.0]],
        [[0.0, np.nan], [0.0, 0.0], [np.nan, 0.0]],
        [[5.0, np.nan], [5.0, 5.0], [np.nan, 5.0], [4.0, 4.0]],
        [[1e-120, np.nan], [1e-120, 3e-120], [np.nan, 1e-120]],
    ],
)
@pytest.mark.filterwarnings("ignore:The reference lies far outside")
def test_tiny_and_degenerate_data_settle(X):
    model = MNARKMeans(1, random_state=0).fit(X)
    assert 0.0 <= model.lam_ <= 2.0
    assert np.isfinite(model.cluster_centers_).all()


def test_detection_limit_data():
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(22, 1, (80, 6)), rng.normal(27, 1, (80, 6))])
    X[:, 1:][rng.random((160, 5)) < 1 / (1 + np.exp(2 * (X[:, 1:] - 21.5)))] = np.nan
    model = auto(X, k=2, reference="min")
    assert 0.0 <= model.lam_ <= 1.0
    assert clustering_error_rate(np.repeat([0, 1], 80), model.labels_) < 0.02


def test_wide_tables_are_judged_by_some_of_their_features():
    rng = np.random.default_rng(0)
    centers = np.zeros((3, 6000))
    centers[:, :1500] = 2.0 * rng.normal(size=(3, 1500))
    X = centers[rng.integers(3, size=60)] + rng.normal(size=(60, 6000))
    X = ampute(X, "mnar0", strength=1.0, rng=0)
    X[:, 4000] = rng.normal(size=60)  # complete
    observed = observe(X)
    sample, columns = sample_table(observed, 3, 1)
    assert 500 <= len(columns) < 3000
    assert 4000 in columns
    np.testing.assert_array_equal(sample.source, X[:, columns])
    np.testing.assert_array_equal(sample.means, observed.means[columns])
    order = rng.permutation(6000)
    shuffled = sample_table(observe(X[:, order]), 3, 1)[1]
    np.testing.assert_array_equal(np.sort(order[shuffled]), columns)
    found = auto(X, n_init=3).missingness_
    assert found.mechanism == "decay"
    assert found.lam_theory == pytest.approx(2 / 3, abs=0.03)


def test_rows_that_observe_none_of_some_features_do_not_count():
    X = np.array([[1.0, np.nan, np.nan], [2.0, 3.0, np.nan], [np.nan, 5.0, 1.0]])
    part = observe(X).take_columns(np.array([1, 2]))
    np.testing.assert_array_equal(part.weights, [0.0, 1.0, 1.0])
    np.testing.assert_array_equal(part.means, [4.0, 1.0])
    np.testing.assert_array_equal(part.extent, [[3.0, 1.0], [5.0, 1.0]])
