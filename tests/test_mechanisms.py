"""Mechanisms that lose values around the reference, and the EM behind lam="auto" that fits them."""

import numpy as np
import pytest
from mixture_data import gaussian, rows_and_starts
from scipy.integrate import quad
from scipy.stats import norm

from mnarkmeans._core.likelihood import Decay, decay_value
from mnarkmeans._core.rounds import Until
from mnarkmeans._penalty.common import Problem
from mnarkmeans._penalty.mechanisms import MECHANISMS, BelowLimit, Clusters, mechanism_of
from mnarkmeans._penalty.rows import Rows, Start
from mnarkmeans._validation import observe
from mnarkmeans.datasets import make_gaussian_clusters


def log_likelihood_by_loops(theta, squares, weights, gaps, residual):
    """The formula at the head of ``decay.h``, term by term."""
    t, s = np.exp(theta[:2])
    c, r = 1 / (1 + np.exp(-theta[2:]))
    total = -0.5 * residual / s - 0.5 * sum(weights) * np.log(2 * np.pi * s)
    for x2, w in zip(squares, weights, strict=True):
        total += w * np.log(1 - c * (r + (1 - r) * np.exp(-t * x2)))
    for mu2, w, spread in gaps.T:
        d = 2 * s * spread * t + 1
        q = d**-0.5 * np.exp(-t * mu2 / d)
        total += w * np.log(c * (r + (1 - r) * q))
    return total


def test_log_likelihood_is_the_formula_and_the_gradient_is_its_derivative():
    rng = np.random.default_rng(0)
    squares, weights, gaps = rng.exponential(size=8), rng.random(8), rng.random((3, 6))
    observed, residual = float(weights.sum()), 3.0
    data = Decay(squares, weights, *gaps, observed, residual)
    for _ in range(5):
        theta = rng.normal(size=4)
        value, gradient = decay_value(data, theta)
        assert value == pytest.approx(log_likelihood_by_loops(theta, squares, weights, gaps, 3.0))
        for j in range(4):
            step = np.zeros(4)
            step[j] = 1e-6
            rise, _ = decay_value(data, theta + step)
            fall, _ = decay_value(data, theta - step)
            assert gradient[j] == pytest.approx((rise - fall) / 2e-6, rel=1e-5, abs=1e-6)


AUTO = ["one rate", "mnar0", "mnar1", "decay", "threshold"]


@pytest.mark.parametrize("family", AUTO)
def test_extreme_values_do_not_overflow(family):
    rows = Rows(observe(np.array([[0.0, np.nan], [1e-100, 1.0], [np.nan, 1e140]])))
    fit = Start(rows.root * np.array([[0.0, 30.0]]), 0.0)
    _, state = from_fit(rows, fit, family, Until(10, 0.0))
    mechanism, clusters = state.mechanism, Problem(rows).clusters(state)
    assert np.isfinite([mechanism.t, state.variance, mechanism.total_log_observed(rows)]).all()
    assert np.isfinite(state.looked.whole).all()
    assert np.isfinite(np.stack(mechanism.lost(clusters.mean, clusters.variance)[:3])).all()


def by_quadrature(probability, mu, sd, power):
    """Integral of P(missing | x) (x - mu)^power over the cluster, beyond which nothing is left."""
    reach = 9 * sd

    def integrand(x):
        return probability(x) * norm.pdf(x, mu, sd) * (x - mu) ** power

    return quad(integrand, mu - reach, mu + reach, points=[-0.7, 0.0, 0.7], limit=200)[0]


AROUND = {
    "decay": ({"t": 1.3, "c": 0.6}, lambda x: 0.6 * np.exp(-1.3 * x**2)),
    "threshold": ({"tau": np.array([0.7])}, lambda x: float(abs(x) < 0.7)),
}
VARIANCE = 0.8


def around(name):
    """A mechanism for one feature, and P(missing | x)."""
    parameters, probability = AROUND[name]
    return mechanism_of(name, parameters, np.array([True])), probability


@pytest.mark.parametrize("name", AROUND)
@pytest.mark.parametrize("mu", [0.01, -0.6, 2.5])
def test_what_is_missing_is_what_the_integrals_say(name, mu):
    mechanism, probability = around(name)
    lost = mechanism.lost(np.array([[mu]]), np.array([[VARIANCE]]))
    p, first, second = (by_quadrature(probability, mu, np.sqrt(VARIANCE), i) for i in range(3))
    assert lost.log_missing[0, 0] == pytest.approx(np.log(p), rel=1e-5)
    assert lost.mean[0, 0] == pytest.approx(mu + first / p, abs=1e-4)
    assert lost.variance[0, 0] == pytest.approx(second / p - (first / p) ** 2, rel=1e-3)


def test_theorem_3_2_is_the_penalty_around_the_reference():
    mechanism, _ = around("decay")
    lam = 1 - mechanism.lost(np.array([[2.0]]), np.array([[VARIANCE]])).mean[0, 0] / 2.0
    assert lam == pytest.approx(1 - 1 / (2 * VARIANCE * 1.3 + 1), rel=1e-4)


def test_one_gap_far_away_does_not_speak_against_the_whole_curve():
    mechanism, _ = around("decay")
    lost = mechanism.lost(np.array([[30.0]]), np.array([[VARIANCE]]))
    assert lost.log_missing[0, 0] > -16
    assert lost.mean[0, 0] == pytest.approx(30.0)
    assert lost.variance[0, 0] == pytest.approx(VARIANCE)


def test_a_common_variance_takes_in_the_spread_of_what_is_missing():
    """At the end of all rounds, where nothing moves any more."""
    X = np.array([[-1.3], [2.0], [3.0], [np.nan], [np.nan]])
    rows = Rows(observe(np.column_stack([X, np.full(5, 4.0)])))
    _, state = from_fit(rows, Start(np.array([[1.0, 4.0]]), 0.0), "threshold", Until(3000, 1e-13))
    (mu, _), v = state.looked.mean[0], state.variance
    parts = (by_quadrature(lambda x: float(abs(x) < 1.3), mu, np.sqrt(v), i) for i in range(3))
    p, first, second = parts
    values = X[:3, 0]
    assert mu == pytest.approx((values.sum() + 2 * (mu + first / p)) / 5, rel=1e-4)
    assert v == pytest.approx((np.square(values - mu).sum() + 2 * second / p) / 10, rel=1e-4)


@pytest.mark.parametrize("tau", [1e-5, 1.0, 1e3])
@pytest.mark.parametrize("s", [1e-10, 1.0, 1e6])
def test_extreme_thresholds_stay_finite(tau, s):
    centers = np.array([[0.0, 1e-8, 1.0, -50.0]])
    mechanism = MECHANISMS["threshold"](np.full(4, tau), np.ones(4, bool))
    lost = mechanism.lost(centers, np.array([[s]]))
    assert (lost.log_missing <= 0).all()
    most = np.maximum(np.abs(centers), 1e-4 * np.sqrt(s)) * (1 + 1e-12)
    assert (np.abs(lost.mean) <= most).all()
    assert ((lost.variance >= 0) & (lost.variance <= s)).all()


def test_limits_at_their_best_are_looked_at_once(monkeypatch):
    """Of many features some are a digit worse after any step: no reason to step back with all."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 300))
    X[rng.random(X.shape) < norm.cdf((-0.5 - X) / 0.3)] = np.nan
    rows, value, looks = Rows(observe(X)), BelowLimit._value, []
    gaps = np.isnan(X).sum(axis=0)[None].astype(float)
    clusters = Clusters(np.zeros((1, 300)), np.ones((1, 300)), gaps, np.array([200.0]))
    limits = BelowLimit.begin(rows, clusters)._with_limits(clusters, 30)
    monkeypatch.setattr(BelowLimit, "_value", lambda *of: looks.append(1) or value(*of))
    limits._with_limits(clusters, 1)
    assert len(looks) == 2  # before the step, and after it


def from_fit(rows, fit, family, until, equal_sizes=True):
    problem = Problem(rows)
    return problem, problem.begin(fit, family, until, equal_sizes=equal_sizes)


@pytest.mark.parametrize("family", AUTO)
@pytest.mark.parametrize("equal_sizes", [False, True])
def test_no_round_lowers_the_likelihood(family, equal_sizes):
    rows, fits = rows_and_starts(gaussian("mnar0", 0.3, n=150, p=2).data, 3)
    for fit in fits:
        problem, state = from_fit(rows, fit, family, Until(1, 0.0), equal_sizes)
        bounds = [state.bound]
        for _ in range(19):
            state = problem.on(state, Until(1, 0.0))
            bounds.append(state.bound)
        assert np.diff(bounds).min() >= -1e-6 * abs(bounds[0])


@pytest.mark.parametrize("family", AUTO)
def test_rounds_in_one_go_are_those_one_by_one(family):
    rows, fits = rows_and_starts(gaussian("mnar0", 0.3, n=150, p=3).data, 3)
    problem, state = from_fit(rows, fits[1], family, Until(1, 0.0), False)
    before = state.looked.whole.copy()
    at_once = problem.on(state, Until(7, 0.0))
    np.testing.assert_array_equal(state.looked.whole, before)
    for _ in range(7):
        state = problem.on(state, Until(1, 0.0))
    np.testing.assert_array_equal(state.looked.whole, at_once.looked.whole)
    assert (state.bound, state.mechanism.t) == (at_once.bound, at_once.mechanism.t)


@pytest.mark.parametrize("family", AUTO)
def test_rounds_end_where_they_are_told_to(family):
    rows, fits = rows_and_starts(gaussian("mnar0", 0.3, n=150, p=3).data, 3)
    problem, one = from_fit(rows, fits[1], family, Until(1, 0.0))
    _, hopeless = from_fit(rows, fits[1], family, Until(9, 0.0, one.bound * rows.n_rows + 1.0))
    assert not one.converged
    assert hopeless.bound == one.bound
    settled = problem.on(one, Until(500, 1e-6))
    assert settled.converged
    assert problem.on(settled, Until(1, 0.0)).bound == pytest.approx(settled.bound, abs=1e-6)


@pytest.mark.parametrize("family", ["mnar0", "mnar1", "threshold", "one rate"])
def test_another_family_begins_where_one_has_led(family):
    rows, fits = rows_and_starts(gaussian("mnar0", 1.0, n=300, p=4).data, 3)
    problem, led = from_fit(rows, fits[1], "decay", Until(30, 1e-8))
    turned = problem.turned(led, family, Until(60, 1e-8))
    _, fresh = from_fit(rows, fits[1], family, Until(60, 1e-8))
    assert turned.bound == pytest.approx(fresh.bound, abs=1e-4)


def test_the_units_of_the_mixture_are_those_of_the_data():
    rows, fits = rows_and_starts(gaussian("mnar0", 1.0, n=1500, p=4).data, 3)
    _, found = from_fit(rows, fits[1], "mnar0", Until(60, 1e-8))
    assert found.variance == pytest.approx(1.0, abs=0.1)
    assert found.mechanism.t == pytest.approx(1.0, rel=0.2)


def test_rows_that_lost_everything_are_counted():
    made = make_gaussian_clusters(2000, 2, 2, separation=3.0, mechanism=None, random_state=0)
    X = np.where(np.random.default_rng(0).random(made.data.shape) < 0.6, np.nan, made.data)
    rows, fits = rows_and_starts(X, 2)
    _, mixture = from_fit(rows, fits[0], "one rate", Until(40, 1e-6), False)
    # Two entries, each lost with probability q: a row that is left has one gap with 2q / (1 + q).
    one_gap = (rows.gaps_per_row == 1).mean()
    q = one_gap / (2 - one_gap)
    assert mixture.looked.hidden.sum() == pytest.approx(rows.n_rows * q**2 / (1 - q**2), rel=0.02)
    rows, fits = rows_and_starts(np.column_stack([X, np.arange(2000.0)]), 2)
    _, mixture = from_fit(rows, fits[0], "one rate", Until(1, 1e-6), False)
    assert mixture.looked.hidden.sum() == 0.0
