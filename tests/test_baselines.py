"""Every baseline alike; fills, dissimilarities and mixtures by hand or against a rival."""

import pickle
from functools import partial

import numpy as np
import pytest
from backends import to_csr
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.experimental import enable_iterative_imputer  # noqa: F401  makes the next line work
from sklearn.impute import IterativeImputer

from mnarkmeans.baselines import BASELINES
from mnarkmeans.baselines._direct import fwpd, regularised_kpod
from mnarkmeans.baselines._imputation import FILLS, chained_equations
from mnarkmeans.baselines._scimpute import FLOOR, group_cells, impute_group, scimpute
from mnarkmeans.datasets import make_gaussian_clusters
from mnarkmeans.metrics import clustering_error_rate

nan = np.nan


def fitted(name, X, k=2, n_init=5):
    return BASELINES[name](k, random_state=0).set_params(n_init=n_init).fit(X)


@pytest.mark.parametrize("name", BASELINES)
def test_labels_and_centres_in_data_units(name):
    toy = make_gaussian_clusters(60, 4, 2, separation=9, fraction=0.1, random_state=0)
    data = toy.data + 4 if name != "scimpute" else np.abs(toy.data) * 50
    before = data.copy()
    if name.startswith("gmm"):
        pytest.importorskip("stepmix")
    make = pickle.loads(pickle.dumps(BASELINES[name]))  # for processes of their own
    model = make(2, 0).set_params(n_init=5)
    assert (model.n_clusters, model.random_state) == (2, 0)
    labels, centers = model.fit_predict(data), model.cluster_centers_
    assert (labels.shape, centers.shape, {*labels}) == ((len(data),), (2, 4), {0, 1})
    if name != "gmm_mask":  # which looks only at what is missing
        assert clustering_error_rate(toy.target, labels) < 0.1
    np.testing.assert_array_equal(labels, model.labels_)
    low, high = np.nanmin(data) - 1, np.nanmax(data) + 1
    assert ((centers > low) & (centers < high) | np.isnan(centers)).all()
    np.testing.assert_array_equal(data, before)
    with pytest.raises(ValueError, match="Ask for fewer clusters"):
        make(9, 0).fit(np.zeros((4, 1)))


def test_fills_by_hand():
    X = np.array([[1.0, nan], [3.0, 4.0], [nan, 8.0], [5.0, 6.0]])
    mean = np.array([[1, 6], [3, 4], [3, 8], [5, 6]])
    np.testing.assert_array_equal(fitted("zero", X).imputed_, [[1, 0], [3, 4], [0, 8], [5, 6]])
    for table in (X, to_csr(X)):
        np.testing.assert_array_equal(fitted("mean", table).imputed_, mean)
    # Eleven rows observe the feature; the farthest, with value 1000, is not among the ten.
    first = np.array([0.0, *(0.1 * i for i in range(1, 11)), 50.0])
    second = np.array([nan, *range(1, 11), 1000.0])
    filled = FILLS["knn"](np.column_stack([first, second]), None)
    assert filled[0, 1] == pytest.approx(5.5)


@pytest.mark.parametrize("name", FILLS)
def test_imputation_then_kmeans(name):
    """Observed values stay, the seed decides, and complete data are left to k-means."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 4)) + 5 * rng.integers(3, size=(60, 1))
    model = fitted(name, X, 3)
    assert model.inertia_ == pytest.approx(KMeans(3, n_init=5, random_state=1).fit(X).inertia_)
    centers = [X[model.labels_ == label].mean(axis=0) for label in range(3)]
    np.testing.assert_allclose(model.cluster_centers_, centers)
    X[rng.random(X.shape) < 0.3] = nan
    X[:, 3] = nan
    one, two = (fitted(name, X, 3) for _ in range(2))
    np.testing.assert_array_equal(one.imputed_, two.imputed_)
    np.testing.assert_array_equal(one.labels_, two.labels_)
    assert np.isfinite(one.imputed_).all()
    np.testing.assert_array_equal(one.imputed_[~np.isnan(X)], X[~np.isnan(X)])


def test_qrilc_draws_below_and_recovers_the_mean():
    rng = np.random.default_rng(0)
    whole = rng.normal(3.0, 1.5, (4000, 2))
    low = np.quantile(whole, 0.3, axis=0)
    X = np.where(whole < low, nan, whole)
    filled = FILLS["qrilc"](X, rng)
    np.testing.assert_allclose(filled.mean(axis=0), 3.0, atol=0.1)
    np.testing.assert_allclose(filled.std(axis=0), 1.5, atol=0.1)
    assert (filled[np.isnan(X)] < low.max() + 0.1).all()
    around = FILLS["minprob"](X, rng)[np.isnan(X)]
    assert abs(around.mean() - np.nanquantile(X, 0.01, axis=0).mean()) < 0.1


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_chained_equations_draw_as_iterative_imputer_does():
    """Mean and spread of the draws of every missing value agree with scikit-learn's sampling."""
    rng = np.random.default_rng(0)
    mixing = rng.normal(size=(4, 4))
    X = rng.normal(size=(100, 4)) @ mixing + [1, -2, 0, 3]
    X[rng.random(X.shape) < 0.2] = nan
    gaps = np.isnan(X)
    ours = np.array([chained_equations(X, 5, rng) for _ in range(30)])[:, gaps]
    imputer = IterativeImputer(sample_posterior=True, max_iter=5)
    draws = [clone(imputer).set_params(random_state=i).fit_transform(X) for i in range(30)]
    theirs = np.array(draws)[:, gaps]
    spread = theirs.std(axis=0)
    difference = (ours.mean(axis=0) - theirs.mean(axis=0)) / spread
    assert np.abs(difference.mean()) < 0.05
    assert difference.std() < 2 * np.sqrt(2 / 30)  # two means of 30 draws each
    assert np.median(ours.std(axis=0) / spread) == pytest.approx(1, abs=0.1)


def test_regularised_kpod_without_penalty_is_kpod_and_shrinks_noise_with_one():
    rng = np.random.default_rng(0)
    label = rng.integers(2, size=300)
    X = rng.normal(size=(300, 4))
    X[:, 0] += 6 * label
    X[rng.random(X.shape) < 0.2] = nan
    X = (X - np.nanmean(X, axis=0)) / np.nanstd(X, axis=0)
    X = X[~np.isnan(X).all(axis=1)]
    model = fitted("rkpod", X)
    apart = np.ptp(model.cluster_centers_, axis=0)
    plain = model.set_params(method=partial(regularised_kpod, lam=0.0)).fit(X)
    assert clustering_error_rate(plain.labels_, fitted("kpod", X).labels_) == 0.0
    assert apart[0] > 1.0
    assert apart[1:].max() < 0.1


def test_fwpd_by_hand():
    rows = np.array([[1.0, 2.0, nan], [4.0, nan, 6.0], [nan, 2.0, 9.0], [1.0, 6.0, 5.0]])
    centres = np.array([[1.0, nan, 6.0], [nan, nan, nan]])
    # alpha is 3 / 12, every feature has the weight 3, and rows 2 and 3, which share features 1
    # and 2, are furthest apart of all pairs: sqrt(4^2 + 4^2).
    # Row 0 shares feature 0 with the first centre (distance 0) and misses 1, 2: 6 of 9 weights;
    # row 1 shares 0 and 2: |(3, 0)| = 3, misses 1; row 2 shares 2: 3, misses 0, 1;
    # row 3 shares 0 and 2: |(0, 1)| = 1, misses 1.
    expected = 0.75 * np.array([0, 3, 3, 1]) / np.sqrt(32) + 0.25 * np.array([6, 3, 6, 3]) / 9
    np.testing.assert_allclose(fwpd(rows)(centres).T, [expected, np.full(4, 0.25)])
    holes = np.where(np.random.default_rng(0).random((30, 4)) < 0.8, nan, 1.0)
    np.testing.assert_allclose(fwpd(holes)(np.full((1, 4), nan)), 0.5)  # the most alpha may be
    model = fitted("fwpd", rows)
    costs = fwpd(rows)(model.cluster_centers_).min(axis=1)
    assert model.inertia_ == pytest.approx(costs.sum())
    few = fitted("fwpd", np.array([[0.0], [0.0], [0.0], [5.0]]))
    assert set(few.labels_) == {0, 1}  # none is left empty


def test_a_dropout_is_rebuilt_from_the_other_cells():
    """All cells are one profile, so any non-negative fit must return the profile's value."""
    rng = np.random.default_rng(0)
    profile = rng.uniform(2, 3, size=12)
    profile[7] = 0.4  # hardly more than one count
    holed = np.repeat(profile[None], 10, axis=0) + rng.normal(0, 1e-3, size=(10, 12))
    holed[0, 3] = holed[4, 7] = FLOOR
    completed = impute_group(holed)
    assert completed[0, 3] == pytest.approx(profile[3], abs=0.02)
    assert completed[4, 7] == pytest.approx(profile[7], abs=0.02)
    kept = holed > FLOOR
    np.testing.assert_array_equal(completed[kept], holed[kept])
    y = np.where(rng.random((20, 15)) < 0.3, FLOOR, rng.normal(2, 0.5, size=(20, 15)))
    assert (impute_group(y).max(axis=0) <= y.max(axis=0) + 1e-12).all()


def test_a_far_cell_is_set_aside():
    rng = np.random.default_rng(0)
    cells = rng.normal(size=(40, 6)) + 6 * np.repeat([0, 1], 20)[:, None]
    cells[0] += 60
    groups = group_cells(cells, 2, 0)
    assert groups[0] == -1
    one, two = set(groups[1:20]) - {-1}, set(groups[20:]) - {-1}
    assert len(one) == len(two) == 1
    assert one != two


def test_counts_keep_their_units_and_their_clusters():
    rng = np.random.default_rng(0)
    means = np.array([[50, 5] * 10, [5, 50] * 10])
    target = np.repeat([0, 1], 30)
    counts = rng.poisson(means[target]).astype(float)
    holes = np.where(rng.random(counts.shape) < 0.2, 0.0, counts)
    model = fitted("scimpute", np.where(holes == 0, nan, holes))
    assert clustering_error_rate(target, model.labels_) == 0
    order = [model.labels_[0], model.labels_[-1]]
    np.testing.assert_allclose(model.cluster_centers_[order], means, atol=20)
    imputed = scimpute(counts, 2, random_state=0)
    np.testing.assert_allclose(imputed[counts > 20], counts[counts > 20])
    with pytest.raises(ValueError, match=r"negative values \(down to -2\)"):
        BASELINES["scimpute"](2).fit(np.array([[1.0, -2.0], [3.0, 4.0], [1.0, 1.0]]))
