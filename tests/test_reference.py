"""reference="auto": zero or a limit, and warnings of a reference far away."""

import numpy as np
import pytest
from limit_data import lost_below_a_limit, mixture
from sklearn.datasets import load_iris

from mnarkmeans import MiniBatchMNARKMeans, MNARKMeans, MNARKMeansCV, MNARMixture
from mnarkmeans.missingness import ampute


def test_a_reference_is_chosen():
    X = lost_below_a_limit()
    model = MNARKMeans(3, reference="auto", random_state=0).fit(X)
    np.testing.assert_array_equal(model.reference_, np.nanmin(X, axis=0))
    told = MNARKMeans(3, reference="min", random_state=0).fit(X)
    np.testing.assert_array_equal(model.labels_, told.labels_)
    X = ampute(mixture()[0], "mnar0", fraction=0.3, rng=0)
    X = X[~np.isnan(X).all(axis=1)]
    model = MNARKMeans(3, reference="auto", random_state=0).fit(X)
    np.testing.assert_array_equal(model.reference_, 0.0)
    complete = MNARKMeans(3, reference="auto", random_state=0).fit(mixture()[0])
    np.testing.assert_array_equal(complete.reference_, 0.0)


def test_features_far_from_zero_have_a_limit_of_their_own():
    X = ampute(mixture()[0], "mnar0", fraction=0.3, rng=0)
    X = X[~np.isnan(X).all(axis=1)]
    X[:, 0] += 100.0
    reference = MNARKMeans(3, reference="auto", random_state=0).fit(X).reference_
    np.testing.assert_array_equal(reference[1:], 0.0)
    assert reference[0] == np.nanmin(X[:, 0])


def test_an_outlier_does_not_bring_zero_back():
    X = lost_below_a_limit(shift=20.0)
    X[0, 2] = 3.0
    X[1, 2] = 40.0
    model = MNARKMeans(3, reference="auto", random_state=0).fit(X)
    np.testing.assert_array_equal(model.reference_, np.nanmin(X, axis=0))


def test_a_reference_far_outside_the_values_is_told():
    X = lost_below_a_limit(shift=100.0)
    with pytest.warns(UserWarning, match=r"far outside the observed values of 6 of 6 feature"):
        MNARKMeans(3, lam=0.5, random_state=0).fit(X)
    MNARKMeans(3, lam=0.5, reference="min", random_state=0).fit(X)
    MNARKMeans(3, lam=0.5, random_state=0).fit(np.nan_to_num(X, nan=100.0))


def test_a_centre_at_a_sepal_of_no_length_is_warned_of():
    X = ampute(load_iris().data, "limit", strength=0.3, softness=0.3, rng=0)
    X = X[~np.isnan(X).all(axis=1)]
    with pytest.warns(UserWarning, match=r"feature\(s\) with gaps \(0, 1.*reference='min'"):
        MNARKMeans(3, random_state=0).fit(X)
    for settings in ({"reference": "min"}, {"reference": "auto"}, {"lam": 0.0}):
        MNARKMeans(3, random_state=0, **settings).fit(X)


def test_one_feature_very_far_from_the_reference_is_told():
    X = ampute(mixture(p=12)[0], "mnar0", fraction=0.3, rng=0)
    X = X[~np.isnan(X).all(axis=1)]
    MNARKMeans(3, lam=0.5, random_state=0).fit(X)
    X[:, 7] += 2000.0
    with pytest.warns(UserWarning, match=r"of 1 of 12 feature\(s\) with gaps \(7\)"):
        MNARKMeans(3, lam=0.5, random_state=0).fit(X)


@pytest.mark.parametrize("lost", ["limit", "mnar0"])
def test_batches_choose_a_reference(lost):
    X = ampute(mixture(n=3000)[0], lost, fraction=0.3, rng=0)
    X = X[~np.isnan(X).all(axis=1)]
    least = np.nanmin(X, axis=0) if lost == "limit" else np.zeros(6)
    model = MiniBatchMNARKMeans(3, reference="auto", batch_size=500, random_state=0)
    np.testing.assert_array_equal(model.fit(X).reference_, least)
    model = MiniBatchMNARKMeans(3, reference="auto", random_state=0)
    for batch in np.array_split(X, 5):
        model.partial_fit(batch)
    np.testing.assert_array_equal(model.reference_, least)


def test_the_choice_of_lam_knows_a_chosen_reference():
    X = lost_below_a_limit()
    model = MNARKMeansCV(3, reference="auto", n_splits=3, n_init=3, random_state=0).fit(X)
    np.testing.assert_array_equal(model.reference_, np.nanmin(X, axis=0))


@pytest.mark.parametrize("lost", ["limit", "mnar0"])
def test_mixtures_choose_a_reference(lost):
    X = ampute(mixture()[0], lost, fraction=0.3, rng=0)
    X = X[~np.isnan(X).all(axis=1)]
    least = np.nanmin(X, axis=0) if lost == "limit" else np.zeros(6)
    model = MNARMixture(3, reference="auto", random_state=0).fit(X)
    np.testing.assert_array_equal(model.reference_, least)
    told = MNARMixture(3, reference=least, random_state=0).fit(X)
    assert abs(model.score(X) - told.score(X)) < 0.05


def test_a_mixture_that_goes_on_keeps_its_reference():
    X = lost_below_a_limit(shift=20.0)
    model = MNARMixture(3, mechanism="mcar", reference="auto", warm_start=True, random_state=0)
    reference = model.fit(X).reference_
    part = X[X[:, 0] > np.nanmedian(X[:, 0])]
    assert (np.nanmin(part, axis=0) != reference).any()
    np.testing.assert_array_equal(model.fit(part).reference_, reference)


def test_a_soft_limit_amid_the_values_is_preferred_to_zero():
    """The lower tails are as long as the upper ones, and half of the rows lie below zero."""
    taken = []
    for seed in range(31000, 31010):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(300, 6)) + rng.normal(0, 1.3, size=(3, 6))[rng.integers(3, size=300)]
        X[rng.random(X.shape) < 1 / (1 + np.exp(2 * X + 0.5))] = np.nan
        X = X[~np.isnan(X).all(axis=1)]
        reference = MNARKMeans(3, reference="auto", random_state=0).fit(X).reference_
        taken.append(np.array_equal(reference, np.nanmin(X, axis=0)))
    assert sum(taken) >= 9


@pytest.mark.parametrize(
    ("seed", "n"),
    [(55005065, 2000), (55016065, 2000), (123400062, 300)],
)
def test_neither_a_fit_without_groups_nor_few_values_at_zero_outvote_the_limit(seed, n):
    """Half of the values are gone. Without a penalty missing shares seem to follow distance from
    zero; of the third table few values lie close to zero by luck."""
    rng = np.random.default_rng(seed)
    centers, classes = 1.2 * rng.normal(size=(3, 6)), rng.choice(3, size=n)
    X = centers[classes] + rng.laplace(size=(n, 6)) / np.sqrt(2.0)
    X = ampute(X, "limit", softness=0.5, strength=0.5, rng=rng)
    X = X[~np.isnan(X).all(axis=1)]
    reference = MNARKMeans(3, reference="auto", random_state=seed // 1000).fit(X).reference_
    np.testing.assert_array_equal(reference, np.nanmin(X, axis=0))
