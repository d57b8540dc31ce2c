"""diagnose: it finds the mechanism that made the gaps, and says when the method does not fit."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from mnarkmeans import MNARKMeans, report
from mnarkmeans._em.mechanisms import MECHANISMS
from mnarkmeans.datasets import make_gaussian_clusters
from mnarkmeans.missingness import ampute, diagnose


def table(mechanism, strength, n=200, p=5, seed=0):
    return make_gaussian_clusters(
        n, p, 3, separation=4.0, mechanism=mechanism, strength=strength, random_state=seed
    ).data


def intensities(seed=0):
    rng = np.random.default_rng(seed)
    centers = rng.normal(25, 2.5, size=(4, 12))
    return centers[rng.integers(4, size=300)] + rng.normal(size=(300, 12)), rng


@pytest.fixture(scope="module")
def decaying():
    X = table("mnar0", 1.0)
    return X, diagnose(X)


@pytest.mark.parametrize(
    ("mechanism", "found", "strength"), [("mcar", "mcar", 0.3), ("mnar0", "decay", 1.0)]
)
def test_the_mechanism_that_made_the_gaps_is_the_likeliest(mechanism, found, strength):
    rng = np.random.default_rng(0)
    centers = 4.0 * rng.choice([-1.0, 0.0, 1.0], size=(3, 8))
    X = centers[rng.integers(3, size=400)] + rng.normal(size=(400, 8))
    X = ampute(X, mechanism, strength=strength, rng=0)
    diagnosis = diagnose(X[~np.isnan(X).all(axis=1)], 0.0, n_clusters=3)
    best = max(diagnosis.mechanisms, key=lambda fit: fit.log_likelihood)
    assert best.mechanism == diagnosis.missingness.mechanism == found
    assert best.strength == pytest.approx(strength, rel=0.35)
    assert diagnosis.kind == {"mcar": "flat", "decay": "decaying"}[found]


def test_detection_limit_suggests_the_minimum():
    X, rng = intensities()
    X[rng.random(X.shape) < 1 / (1 + np.exp(2 * (X - 23)))] = np.nan
    found = diagnose(X, n_clusters=4)
    assert found.suggested_reference == "min"
    assert found.kind == "one-sided"
    assert found.missingness.mechanism == "limit"
    assert "detection limit" in found.advice[0]
    np.testing.assert_array_equal(found.reference, np.nanmin(X, axis=0))


def test_the_curve_falls_with_the_mean_below_a_limit():
    rng = np.random.default_rng(0)
    X = rng.normal(np.linspace(18, 30, 40), 1.0, size=(200, 40))  # features of all intensities
    X[rng.random(X.shape) < 1 / (1 + np.exp(2 * (X - 21)))] = np.nan
    found = diagnose(X, n_clusters=2)
    assert found.curve.missing_share[0] > 0.8
    assert found.curve.missing_share[-1] < 0.02
    assert found.trend < -0.3
    assert (np.diff(found.curve.mean) > 0).all()


def test_lam_0_on_gaps_that_are_not_random_is_explained():
    """Groups differ in features that are never lost; low features lose values in all groups."""
    rng = np.random.default_rng(0)
    groups = 4.0 * np.outer(np.arange(200) % 2, np.arange(40) >= 20)
    X = rng.normal(np.linspace(18, 30, 40), 1.0, size=(200, 40)) + groups
    X[rng.random(X.shape) < 1 / (1 + np.exp(2 * (X - 21)))] = np.nan
    X = X[:, (~np.isnan(X)).sum(axis=0) > 5]
    found = diagnose(X, n_clusters=2)
    assert found.suggested_lam == 0.0, found
    assert "a penalty does not help" in found.advice[1]
    model = MNARKMeans(2, random_state=0).fit(X)
    assert report(model, X).page["diagnosis"] == found.advice[:2]
    chance = np.where(rng.random(X.shape) < 0.3, np.nan, np.nan_to_num(X, nan=20.0))
    assert len(diagnose(chance, n_clusters=2).advice) == 2


def test_many_zeros_of_a_complete_table_are_mentioned():
    counts = np.random.default_rng(0).poisson(1.0, size=(60, 4)).astype(float)
    found = diagnose(counts)
    assert (found.kind, found.mechanisms) == ("complete", [])
    assert "0.0% missing" in str(found)
    assert found.advice[1].startswith(f"{np.mean(counts == 0):.0%} of the values are exactly 0")
    assert "missing_values=0" in found.advice[1]
    for other in (diagnose(counts + 1.0), diagnose(np.where(counts > 2, np.nan, counts))):
        assert "exactly 0" not in str(other)


@pytest.mark.parametrize("mechanism", ["mcar", "mnar0", "limit"])
@pytest.mark.parametrize("reference", [0.0, "min", None])
def test_diagnose_and_fit_say_the_same(mechanism, reference):
    complete = table("mcar", 0.0, n=300)
    X = ampute(complete, mechanism, fraction=0.3, rng=0)
    X = X[~np.isnan(X).all(axis=1)]
    found = diagnose(X, reference, n_clusters=3)
    model = MNARKMeans(3, reference=reference, random_state=1).fit(X)
    np.testing.assert_array_equal(found.reference, model.reference_)
    assert found.suggested_lam == found.missingness.lam == model.lam_
    assert found.missingness.sentence == model.missingness_.sentence == found.advice[0]


def test_gaps_at_high_values_are_called_what_they_are():
    X, rng = intensities()
    lost = rng.random(X.shape) < 1 / (1 + np.exp(-2 * (X - 27)))
    found = diagnose(np.where(lost, np.nan, X), n_clusters=4)
    assert found.kind == "rising"
    assert found.suggested_lam == 0.0
    assert "whereas the method assumes" in found.advice[1]


def test_words_do_not_claim_a_test(decaying):
    for found in (decaying[1], diagnose(table("mcar", 0.3))):
        text = str(found).lower()
        assert "cannot prove" in text
        for claim in ("significant", "p-value", "reject", "hypothesis"):
            assert claim not in text


def test_tables():
    pandas = pytest.importorskip("pandas")
    X = pandas.DataFrame(table("mnar0", 1.0), columns=list("abcde"))
    found = diagnose(X)
    frame = found.to_frame()
    assert frame["feature"].tolist() == list("abcde")
    np.testing.assert_allclose(frame["missing_share"], X.isna().mean())
    assert found.missing_share == pytest.approx(X.isna().to_numpy().mean())
    np.testing.assert_allclose(frame["observed_min"], X.min())
    np.testing.assert_allclose(found.to_frame("rows")["missing_share"], X.isna().mean(axis=1))
    assert found.to_frame("mechanisms")["mechanism"].tolist() == list(MECHANISMS)
    curves = found.to_frame("magnitude").set_index("mean_of")
    np.testing.assert_array_equal(
        curves.loc["cluster and feature", "missing_share"], found.curve.missing_share
    )
    np.testing.assert_array_equal(curves.loc["feature", "mean"], found.feature_curve.mean)
    with pytest.raises(ValueError, match="table must be"):
        found.to_frame("columns")


def test_sparse_is_read_like_dense(decaying):
    X, dense = decaying
    stored = diagnose(sparse.csr_array(np.nan_to_num(X)))
    assert stored.kind == dense.kind
    np.testing.assert_allclose(stored.feature_share, dense.feature_share)
    pd.testing.assert_frame_equal(stored.to_frame(), dense.to_frame())
    assert stored.trend == pytest.approx(dense.trend, abs=0.02)
    zeros = diagnose(np.nan_to_num(X), missing_values=0)
    assert zeros.missing_share == pytest.approx(dense.missing_share)


def test_plot_draws_the_curve(decaying):
    pytest.importorskip("matplotlib").use("Agg")
    found = decaying[1]
    display = found.plot()
    np.testing.assert_array_equal(display.line_.get_ydata(), found.curve.missing_share)
    np.testing.assert_array_equal(
        display.feature_line_.get_ydata(), found.feature_curve.missing_share
    )


@pytest.mark.parametrize(
    "X", [[[1.0, np.nan]], [[1.0, np.nan], [np.nan, 2.0]], [[0.0, np.nan], [0.0, 0.0]]]
)
def test_tiny_tables(X):
    assert str(diagnose(X))


def test_empty_rows_and_features_are_counted():
    X = ampute(np.random.default_rng(0).normal(size=(60, 4)), "mcar", strength=0.2, rng=0)
    X[0] = np.nan
    X[:, 3] = np.nan
    for reference in (0.0, "min", "auto"):
        found = diagnose(X, reference)
        assert found.feature_share[3] == 1.0
        assert "without a single value" in str(found)
        assert 0 <= found.curve.missing_share.min() <= found.curve.missing_share.max() <= 1
