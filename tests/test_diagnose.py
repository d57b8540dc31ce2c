"""diagnose: it finds the mechanism that made the gaps, and says when the method does not fit."""

import html
import re
import sys

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from mnarkmeans import MNARKMeans, MNARKMeansCV, report
from mnarkmeans._em.mechanisms import MECHANISMS
from mnarkmeans.datasets import make_gaussian_clusters
from mnarkmeans.metrics import cluster_markers
from mnarkmeans.missingness import ampute, diagnose, methods_paragraph


def table(mechanism, n=200, **options):
    options |= {"separation": 4.0, "mechanism": mechanism, "random_state": 0}
    return make_gaussian_clusters(n, 5, 3, **options).data


def intensities(middle):
    """Four groups, and a draw of what is lost around a middle."""
    rng = np.random.default_rng(0)
    centers = rng.normal(25, 2.5, size=(4, 12))
    X = centers[rng.integers(4, size=300)] + rng.normal(size=(300, 12))
    return X, rng.random(X.shape) < 1 / (1 + np.exp(2 * (X - middle)))


@pytest.fixture(scope="module")
def decaying():
    X = table("mnar0", strength=1.0)
    return X, diagnose(X)


@pytest.mark.parametrize(
    ("mechanism", "found", "strength", "kind"),
    [("mcar", "mcar", 0.3, "flat"), ("mnar0", "decay", 1.0, "decaying")],
)
def test_the_mechanism_that_made_the_gaps_is_the_likeliest(mechanism, found, strength, kind):
    rng = np.random.default_rng(0)
    centers = 4.0 * rng.choice([-1.0, 0.0, 1.0], size=(3, 8))
    X = centers[rng.integers(3, size=400)] + rng.normal(size=(400, 8))
    X = ampute(X, mechanism, strength=strength, rng=0)
    diagnosis = diagnose(X[~np.isnan(X).all(axis=1)], 0.0, n_clusters=3)
    best = max(diagnosis.mechanisms, key=lambda fit: fit.log_likelihood)
    assert best.mechanism == diagnosis.missingness.mechanism == found
    assert best.strength == pytest.approx(strength, rel=0.35)
    assert diagnosis.kind == kind
    assert "cannot prove" in diagnosis.advice[-1]
    assert not re.search("significant|p-value|reject|hypothesis", str(diagnosis))


def test_values_lost_below_or_above_a_limit_are_called_what_they_are():
    X, lost = intensities(23)
    X[lost] = np.nan
    found = diagnose(X, n_clusters=4)
    assert (found.suggested_reference, found.kind) == ("min", "one-sided")
    assert found.missingness.mechanism == "limit"
    assert "detection limit" in found.advice[0]
    np.testing.assert_array_equal(found.reference, np.nanmin(X, axis=0))
    X, kept = intensities(27)
    found = diagnose(np.where(kept, X, np.nan), n_clusters=4)
    assert (found.kind, found.suggested_lam) == ("rising", 0.0)
    assert "whereas the method assumes" in found.advice[1]


def test_the_curve_falls_below_a_limit_and_lam_0_is_explained():
    """Features of all intensities lose their low values; groups are in high ones only."""
    rng = np.random.default_rng(0)
    groups = 4.0 * np.outer(np.arange(200) % 2, np.arange(40) >= 20)
    X = rng.normal(np.linspace(18, 30, 40), 1.0, size=(200, 40)) + groups
    X[rng.random(X.shape) < 1 / (1 + np.exp(2 * (X - 21)))] = np.nan
    X = X[:, (~np.isnan(X)).sum(axis=0) > 5]
    found = diagnose(X, n_clusters=2)
    assert found.curve.missing_share[0] > 0.8
    assert found.curve.missing_share[-1] < 0.02
    assert found.trend < -0.3
    assert (np.diff(found.curve.mean) > 0).all()
    assert found.suggested_lam == 0.0, found
    assert "a penalty does not help" in found.advice[1]
    model = MNARKMeans(2, random_state=0).fit(X)
    assert report(model, X).page["diagnosis"] == found.advice[:2]
    by_chance = np.random.default_rng(0).random(X.shape) < 0.3
    X = np.where(by_chance, np.nan, np.nan_to_num(X, nan=20.0))
    assert len(diagnose(X, n_clusters=2).advice) == 2


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
def test_diagnose_and_fit_say_the_same(mechanism):
    X = table(mechanism, n=300)
    for reference in (0.0, "min", None):
        found = diagnose(X, reference, n_clusters=3)
        model = MNARKMeans(3, reference=reference, random_state=1).fit(X)
        np.testing.assert_array_equal(found.reference, model.reference_)
        assert found.suggested_lam == found.missingness.lam == model.lam_
        assert found.missingness.sentence == model.missingness_.sentence == found.advice[0]


def test_tables_and_plot(decaying):
    pytest.importorskip("matplotlib").use("Agg")
    values, found = decaying[0], diagnose(pd.DataFrame(decaying[0], columns=list("abcde")))
    frame = found.to_frame()
    assert frame["feature"].tolist() == list("abcde")
    np.testing.assert_allclose(frame["missing_share"], np.isnan(values).mean(axis=0))
    assert found.missing_share == pytest.approx(np.isnan(values).mean())
    np.testing.assert_allclose(frame["observed_min"], np.nanmin(values, axis=0))
    rows = found.to_frame("rows")
    np.testing.assert_allclose(rows["missing_share"], np.isnan(values).mean(axis=1))
    assert found.to_frame("mechanisms")["mechanism"].tolist() == list(MECHANISMS)
    curves, display = found.to_frame("magnitude").set_index("mean_of"), found.plot()
    for name, curve, line in (
        ("cluster and feature", found.curve, display.line_),
        ("feature", found.feature_curve, display.feature_line_),
    ):
        np.testing.assert_array_equal(curves.loc[name, "mean"], curve.mean)
        np.testing.assert_array_equal(curves.loc[name, "missing_share"], curve.missing_share)
        np.testing.assert_array_equal(line.get_ydata(), curve.missing_share)
    with pytest.raises(ValueError, match="table must be"):
        found.to_frame("columns")


def test_notebooks_show_a_short_table_and_text_without_pandas(decaying, monkeypatch):
    frame = pd.DataFrame(decaying[0], columns=["<b>", "&", "c", "d", "e"])
    model = MNARKMeans(3, lam="auto", random_state=0).fit(frame)
    shown = [diagnose(frame), cluster_markers(frame, model), model.missingness_]
    for found, words in zip(shown, ("5 features", "5 markers", "lam"), strict=True):
        page = found._repr_html_()
        assert page.count("<tr") <= 12
        assert words in page
        assert "<b>" not in page
    assert shown[0].advice[-1] in shown[0]._repr_html_()
    monkeypatch.setitem(sys.modules, "pandas", None)
    for found in shown:
        assert html.escape(repr(found)) in found._repr_html_()


def test_sparse_is_read_like_dense(decaying):
    X, dense = decaying
    stored = diagnose(sparse.csr_array(np.nan_to_num(X)))
    assert stored.kind == dense.kind
    pd.testing.assert_frame_equal(stored.to_frame(), dense.to_frame())
    assert stored.trend == pytest.approx(dense.trend, abs=0.02)
    zeros = diagnose(np.nan_to_num(X), missing_values=0)
    assert zeros.missing_share == pytest.approx(dense.missing_share)


def test_tiny_tables_and_those_with_empty_rows_and_features():
    for X in ([[1.0, np.nan]], [[1.0, np.nan], [np.nan, 2.0]], [[0.0, np.nan], [0.0, 0.0]]):
        assert str(diagnose(X))
    X = ampute(np.random.default_rng(0).normal(size=(60, 4)), "mcar", strength=0.2, rng=0)
    X[0] = np.nan
    X[:, 3] = np.nan
    for reference in (0.0, "min", "auto"):
        found = diagnose(X, reference)
        assert found.feature_share[3] == 1.0
        assert "without a single value" in str(found)
        assert 0 <= found.curve.missing_share.min() <= found.curve.missing_share.max() <= 1


def test_the_methods_paragraph_says_what_was_chosen_and_how():
    X = table("mnar0", n=60, fraction=0.2)
    few, wide = X[:, :3], np.hstack([X, X + 1.0])
    search = {"n_init": 2, "n_splits": 3, "random_state": 0}
    for model, data, said, unsaid in (
        (MNARKMeans(2, lam=1.0, reference=np.arange(3.0)), few, "a reference for each", "chosen"),
        (MNARKMeans(2, random_state=0), few, "the BIC of mixture models", "Wang"),
        (MNARKMeans(2, random_state=0), wide, "bi-cross-validation", "BIC"),
        (MNARKMeansCV([2, 3], **search), few, "number of clusters (from 2 to 3)", "in Guan 2026"),
        (MNARKMeansCV([3], criterion="paper", **search), few, "in Guan 2026", "(from 3"),
    ):
        text = methods_paragraph(model.fit(data[~np.isnan(data).all(axis=1)]))
        assert said in text
        assert unsaid not in text
        assert f"Here k = {len(model.cluster_centers_)} and lam = " in text
