"""Mechanisms that lose values around the reference, and the EM behind lam="auto" that fits them."""

import numpy as np
import pytest
from mixture_data import gaussian, rows_and_starts
from scipy.integrate import quad
from scipy.stats import norm

from mnarkmeans._core.likelihood import Decay, decay_value
from mnarkmeans._data.validation import observe
from mnarkmeans._penalty.em import Problem
from mnarkmeans._penalty.mechanisms import FAMILIES, MECHANISMS, Clusters, mechanism_of
from mnarkmeans._penalty.rows import Rows
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


@pytest.mark.parametrize("family", ["decay", "mnar0", "mnar1"])
def test_extreme_values_do_not_overflow(family):
    rows = Rows(observe(np.array([[0.0, np.nan], [1e-100, 1.0], [np.nan, 1e140]])))
    variance = np.array([[rows.scale]])
    clusters = Clusters(rows.root * np.array([[0.0, 30.0]]), variance, np.ones((1, 2)), np.ones(1))
    found = FAMILIES[family](rows, clusters)
    for _ in range(10):
        found, s = found.update_with_spread(rows, clusters, 4.0 * rows.scale)
        lost = found.lost(clusters.mean, clusters.variance)
        assert np.isfinite([found.t, s, found.total_log_observed(rows)]).all()
        assert np.isfinite(np.stack(lost[:3])).all()
        clusters = clusters._replace(variance=np.array([[s]]))


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
    mechanism, probability = around("threshold")
    rows, mu = Rows(observe(np.array([[1.0], [2.0], [3.0]]))), 1.2
    p, _, second = (by_quadrature(probability, mu, np.sqrt(VARIANCE), i) for i in range(3))
    clusters = Clusters(
        np.array([[mu]]), np.array([[VARIANCE]]), np.array([[5.0]]), np.array([8.0])
    )
    _, s = mechanism.update_with_spread(rows, clusters, 3.0)
    assert s == pytest.approx((3.0 + 5.0 * second / p) / 8.0, rel=1e-6)


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


def begun(rows, fit, family, equal_sizes):
    problem = Problem(rows, common=True)
    sums, means = problem.sums_of_fits([fit])[0], rows.reference + fit.centers
    return problem, problem.begin(sums, family, means=means, equal_sizes=equal_sizes)


@pytest.mark.parametrize("family", ["one rate", "mnar0", "mnar1", "decay", "threshold"])
@pytest.mark.parametrize("equal_sizes", [False, True])
def test_no_round_lowers_the_likelihood(family, equal_sizes):
    rows, fits = rows_and_starts(gaussian("mnar0", 0.3, n=150, p=2).data, 3)
    for fit in fits:
        problem, state = begun(rows, fit, family, equal_sizes)
        bounds = [state.bound for state in problem.run(state, max_iter=20, tol=0.0)]
        assert np.diff(bounds).min() >= -1e-6 * abs(bounds[0])


@pytest.mark.parametrize("family", ["mnar0", "mnar1", "threshold", "one rate"])
def test_another_family_begins_where_one_has_led(family):
    rows, fits = rows_and_starts(gaussian("mnar0", 1.0, n=300, p=4).data, 3)
    problem, state = begun(rows, fits[1], "decay", True)
    led = list(problem.run(state, max_iter=30, tol=1e-8))[-1]
    turned = list(problem.run(problem.turned(led, family), max_iter=60, tol=1e-8))[-1]
    problem, state = begun(rows, fits[1], family, True)
    fresh = list(problem.run(state, max_iter=60, tol=1e-8))[-1]
    assert turned.bound == pytest.approx(fresh.bound, abs=1e-4)


def test_the_units_of_the_mixture_are_those_of_the_data():
    rows, fits = rows_and_starts(gaussian("mnar0", 1.0, n=1500, p=4).data, 3)
    problem, state = begun(rows, fits[1], "mnar0", True)
    found = list(problem.run(state, max_iter=60, tol=1e-8))[-1]
    assert found.variances[0, 0] == pytest.approx(1.0, abs=0.1)
    assert found.mechanism.t == pytest.approx(1.0, rel=0.2)


def test_rows_that_lost_everything_are_counted():
    made = make_gaussian_clusters(2000, 2, 2, separation=3.0, mechanism=None, random_state=0)
    X = np.where(np.random.default_rng(0).random(made.data.shape) < 0.6, np.nan, made.data)
    rows, fits = rows_and_starts(X, 2)
    problem, state = begun(rows, fits[0], "one rate", False)
    mixture = list(problem.run(state, max_iter=40, tol=1e-6))[-1]
    # Two entries, each lost with probability q: a row that is left has one gap with 2q / (1 + q).
    one_gap = (rows.gaps_per_row == 1).mean()
    q = one_gap / (2 - one_gap)
    assert mixture.known.hidden.sum() == pytest.approx(rows.n_rows * q**2 / (1 - q**2), rel=0.02)
    rows, fits = rows_and_starts(np.column_stack([X, np.arange(2000.0)]), 2)
    problem, state = begun(rows, fits[0], "one rate", False)
    assert problem.looked(state).known.hidden.sum() == 0.0
