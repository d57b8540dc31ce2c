"""Values lost below a detection limit: simulate it, recognise it, take a penalty that suits."""

import numpy as np
import pytest
from limit_data import NOISE, lost_below_a_limit, mixture
from places import to_csr
from scipy.integrate import quad
from scipy.optimize import minimize
from scipy.stats import norm
from sklearn.metrics import adjusted_rand_score

from mnarkmeans import MNARKMeans, MNARKMeansCV
from mnarkmeans._penalty.cells import Cells
from mnarkmeans._penalty.groups import below_their_limit, gains
from mnarkmeans._penalty.limit import Limited
from mnarkmeans._penalty.mechanisms import BelowLimit
from mnarkmeans._penalty.rows import Rows, Start
from mnarkmeans._validation import observe
from mnarkmeans.missingness import ampute

PSEUDO = 0.25  # of a gap and of a value in each cell, as in shares.h


@pytest.mark.parametrize("softness", [0.0, 0.4])
def test_every_feature_loses_its_share_below_a_limit(softness):
    X = mixture(n=2000)[0] * [1.0, 2.0, 3.0, 10.0, 1.0, 1.0] + 7.0
    gone = np.isnan(ampute(X, "limit", strength=0.3, softness=softness, rng=0))
    np.testing.assert_allclose(gone.mean(axis=0), 0.3, atol=0.03 if softness else 1e-3)
    for values, lost in zip(X.T, gone.T, strict=True):
        overlap = np.mean(values[lost] > values[~lost].min())
        assert overlap == 0 if softness == 0 else 0.1 < overlap < 1.0


def test_words_for_the_papers_mechanisms():
    X = mixture()[0]
    for word, name in (("decay", "mnar0"), ("threshold", "mnar2")):
        expected = ampute(X, name, fraction=0.2, rng=0)
        np.testing.assert_array_equal(ampute(X, word, fraction=0.2, rng=0), expected)
    with pytest.raises(ValueError, match="softness belongs to mechanism='limit'"):
        ampute(X, "mnar0", fraction=0.2, softness=0.5)
    with pytest.raises(ValueError, match="softness must be a finite number >= 0, found -1"):
        ampute(X, "limit", fraction=0.2, softness=-1)


@pytest.mark.parametrize("zeta", [1e-3, 0.6])
@pytest.mark.parametrize("mu", [-0.5, 0.8, 2.0])
def test_moments_of_what_lies_below_a_limit(zeta, mu):
    limit = BelowLimit(np.array([0.3]), np.array([zeta]), np.array([True]))
    center, s, sd = np.array([[mu]]), 0.7, np.sqrt(0.7)

    def integral(power, center=0.0):
        def integrand(x):
            return norm.cdf((0.3 - x) / zeta) * norm.pdf(x, mu, sd) * (x - center) ** power

        return quad(integrand, mu - 9 * sd, mu + 9 * sd, points=[0.3], limit=200)[0]

    log_p, mean, variance = limit.lost(center, np.array([[s]]))[:3]
    p = integral(0)
    assert log_p[0, 0] == pytest.approx(np.log(p), rel=1e-5)
    assert mean[0, 0] == pytest.approx(integral(1) / p, rel=1e-4, abs=1e-4)
    assert variance[0, 0] == pytest.approx(integral(2, mean[0, 0]) / p, rel=1e-3)
    if mu > 0:
        lam = Limited(limit, s, center).penalties[0, 0]
        assert lam == pytest.approx(max(1 - mean[0, 0] / mu, 0.0))


@pytest.mark.parametrize("mechanism", ["mcar", "limit", "decay"])
def test_cells_find_the_likeliest_curve(mechanism):
    X, classes = mixture(n=200, p=3)
    X = ampute(X, "limit", strength=0.3, softness=0.5, rng=0)
    observed = observe(X, reference=0.0)
    rows = Rows(observed.take(np.flatnonzero(observed.weights > 0)))
    centers = np.array([np.nanmean(X[classes == c], axis=0) for c in range(3)])
    cells = Cells(rows, [Start(centers + 0.1, 1.0), Start(centers, 0.5)]).take([1])
    means = cells.means[0]
    z = {"mcar": 0 * means, "limit": means, "decay": np.abs(means)}[mechanism]
    g, n = cells.gaps[0] + PSEUDO, (cells.gaps + cells.observed)[0] + 2 * PSEUDO

    def cost(theta):
        logits = theta[:-1] - theta[-1] * z
        return -(g * logits - n * np.logaddexp(0.0, logits)).sum()

    best = minimize(cost, np.zeros(4), method="BFGS")
    found = cells.fit(mechanism)
    assert found.log_likelihood[0] == pytest.approx(cells.of_values[0] - best.fun, abs=1e-3)
    assert cost(np.append(found.alpha[0], found.slope)) == pytest.approx(best.fun, abs=1e-3)


@pytest.mark.parametrize("noise", NOISE)
@pytest.mark.parametrize("softness", [0.0, 0.5])
def test_a_limit_is_recognised_whatever_the_noise(noise, softness):
    X, classes = mixture(noise)
    X = ampute(X, "limit", strength=0.28, softness=softness, rng=0)
    seen = ~np.isnan(X).all(axis=1)
    X, classes = X[seen], classes[seen]
    model = MNARKMeans(3, reference="min", random_state=0).fit(X)
    found = model.missingness_
    assert found.mechanism == "limit"
    assert model.lam_ >= 0.1
    assert found.log_likelihood > found.log_likelihood_mcar + 20
    fixed = [
        adjusted_rand_score(
            classes, MNARKMeans(3, lam=lam, reference="min", random_state=0).fit_predict(X)
        )
        for lam in (0.0, 0.25, 0.5, 1.0, 2.0)
    ]
    assert adjusted_rand_score(classes, model.labels_) >= max(fixed) - 0.05


def test_the_limits_are_found():
    X, _ = mixture(n=3000, p=4)
    limits = np.quantile(X, 0.3, axis=0)
    X = ampute(X, "limit", strength=0.3, rng=0)
    X = X[~np.isnan(X).all(axis=1)]
    found = MNARKMeans(3, reference="min", random_state=0).fit(X).missingness_
    np.testing.assert_allclose(found.limit, limits, atol=0.5)
    assert found.softness < 0.8


@pytest.mark.parametrize("noise", NOISE)
@pytest.mark.parametrize("reference", ["min", 0.0])
def test_chance_is_chance_whatever_the_noise(noise, reference):
    X, _ = mixture(noise, seed=1)
    X = ampute(X, "mcar", strength=0.3, rng=0)
    model = MNARKMeans(3, reference=reference, random_state=0).fit(X)
    assert model.lam_ == 0.0
    assert model.missingness_.mechanism == "mcar"
    assert model.missingness_.limit is None


def test_a_feature_without_gaps_has_no_limit():
    X, _ = mixture()
    X[:, 1:] = ampute(X[:, 1:], "limit", strength=0.3, rng=0)
    found = MNARKMeans(3, reference="min", random_state=0).fit(X).missingness_
    assert np.isnan(found.limit[0])
    assert np.isfinite(found.limit[1:]).all()


def half_by_chance(seed=0):
    """Three features complete, three that lose values by chance, six below a limit."""
    X, classes = mixture(n=600, p=12, seed=seed)
    complete = X[:, :3].copy()
    X[:, :6] = ampute(X[:, :6], "mcar", strength=0.4, rng=seed)
    X[:, 6:] = ampute(X[:, 6:], "limit", strength=0.4, rng=seed)
    X[:, :3] = complete
    return X, classes


@pytest.mark.parametrize("form", [np.asarray, to_csr])
def test_the_search_gives_them_none_either(form):
    X, classes = half_by_chance()
    table = form(X)
    model = MNARKMeansCV([2, 3], reference="min", random_state=0).fit(table)
    assert model.n_clusters_ == 3
    lam = model.cv_results_["param_lam"][model.best_index_]
    np.testing.assert_array_equal(model.lam_, lam * model.missingness_.features)
    assert adjusted_rand_score(classes, model.labels_) > 0.8
    assert model.inertia_ == pytest.approx(-model.score(table), rel=1e-12)


@pytest.mark.filterwarnings("ignore::mnarkmeans.SelectionWarning")
def test_candidates_that_were_given_are_for_all_features():
    X, _ = half_by_chance()
    model = MNARKMeansCV(3, lams=[0.5, 1.0], reference="min", random_state=0).fit(X)
    assert model.missingness_.features is not None
    assert model.lam_ in (0.5, 1.0)


def test_features_that_lose_values_by_chance_get_no_penalty():
    X, classes = half_by_chance()
    model = MNARKMeans(3, reference="min", random_state=0).fit(X)
    found = model.missingness_
    assert found.mechanism == "limit"
    assert found.features[3:6].sum() <= 1  # of means that do not differ nobody can tell
    assert found.features[6:].all()
    np.testing.assert_array_equal(model.lam_, found.lam * found.features)
    assert "feature(s) whose gaps look like chance" in found.sentence
    alike = MNARKMeans(3, lam=found.lam, reference="min", random_state=0).fit_predict(X)
    assert adjusted_rand_score(classes, model.labels_) > adjusted_rand_score(classes, alike) + 0.1


def test_one_penalty_where_all_features_have_a_limit():
    X = lost_below_a_limit(n=600)
    model = MNARKMeans(3, reference="min", random_state=0).fit(X)
    assert model.missingness_.features is None
    assert isinstance(model.lam_, float)


def test_the_slope_of_features_that_follow_it():
    X, classes = half_by_chance(1)
    observed = observe(X, reference="min")
    rows = Rows(observed)
    centers = np.array([np.nanmean(X[classes == c], axis=0) for c in range(3)])
    cells = Cells(rows, [Start(centers - observed.reference, 0.0)])
    np.testing.assert_array_equal(below_their_limit(gains(cells)), np.arange(9) >= 3)
    for slope in (0.0, 1.5):
        for j, value in enumerate(cells.pattern_of_features(slope)):
            g = cells.gaps[0, :, j] + PSEUDO
            n = g + cells.observed[0, :, j] + PSEUDO
            z = cells.means[0, :, j]
            best = minimize(
                lambda a, g=g, n=n, z=z, b=slope: (
                    -(g * (a - b * z) - n * np.logaddexp(0.0, a - b * z)).sum()
                ),
                [0.0],
            )
            assert value == pytest.approx(-best.fun, abs=1e-3)


def test_one_number_for_all_features_is_a_number():
    """Whatever the search over groups of features ends with, lam_ is an array only if it varies."""
    rng = np.random.default_rng(8)
    for seed in range(6):
        profiles = rng.normal(24.0, 1.5, size=(3, 40))
        kind = rng.integers(0, 3, 36)
        X = profiles[kind] + 0.9 * rng.normal(size=(36, 40))
        X[rng.random(X.shape) > 1 / (1 + np.exp(-2.5 * (X - 22)))] = np.nan
        lam = MNARKMeans(3, reference="min", random_state=seed).fit(X).lam_
        assert np.ndim(lam) == 0 or len(np.unique(lam)) > 1
