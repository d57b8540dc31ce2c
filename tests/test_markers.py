"""Markers: what makes a cluster is found, by value or by gaps, and nothing else is."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scipy import stats

from mnarkmeans.metrics import cluster_markers


@pytest.fixture
def table():
    """Cluster 1 is higher in x2 and hardly seen in x5; the others differ by chance alone."""
    rng = np.random.default_rng(0)
    labels = np.repeat([0, 1, 2], [80, 40, 60])
    X = rng.normal(loc=20.0, size=(180, 8))
    X[labels == 1, 2] += 3.0
    X[rng.random(X.shape) < 0.2] = np.nan
    X[(labels == 1) & (rng.random(180) < 0.9), 5] = np.nan
    return X, labels


def test_what_makes_a_cluster_comes_first_and_names_are_kept(table):
    found = cluster_markers(*table, top=2).to_frame()
    assert ((found["low"] < found["effect"]) & (found["effect"] < found["high"])).all()
    first = found[found["cluster"] == 1].set_index("feature")
    assert first["direction"].to_dict() == {"x2": "higher", "x5": "seen less often"}
    assert first["rank"].tolist() == [1, 2]
    assert {*found[found["feature"] == "x5"]["direction"]} == {"seen less often", "seen more often"}
    assert first["effect"].min() > 1.0
    assert first.loc["x2", "mean_inside"] == pytest.approx(23.0, abs=0.5)
    assert first.loc["x5", "observed_inside"] < 0.2
    X, labels = pd.DataFrame(table[0], columns=list("abcdefgh")), np.array([*"rst"])[table[1]]
    named = cluster_markers(X, labels, top=1).to_frame()
    assert named.set_index("cluster").loc["s", "feature"] in ("c", "f")
    assert list(named)[:6] == ["cluster", "rank", "feature", "effect", "low", "high"]


def test_effect_and_interval_of_one_feature_are_those_of_students_t():
    inside, outside = np.array([10.0, 11.0, 13.5]), np.array([0.0, 1.5, 2.0, 4.0])
    found = cluster_markers(np.r_[inside, outside][:, None], [1] * 3 + [0] * 4)
    test = stats.ttest_ind(inside, outside)
    pooled = (inside.mean() - outside.mean()) / (test.statistic * np.sqrt(1 / 3 + 1 / 4))
    ends = np.array(test.confidence_interval()) / pooled
    np.testing.assert_allclose([found.low[1], found.high[1]], ends)
    assert found.effect[1] == pytest.approx(ends.mean())


@pytest.mark.parametrize("size", [1, 2, 100])
def test_clusters_of_noise_have_no_markers(size):
    """However few rows they have: what permuted labels would list is left out."""
    draws = [np.random.default_rng(seed).normal(size=(200, 300)) for seed in range(5)]
    found = [cluster_markers(X, np.arange(200) < size) for X in draws]
    counts = [len(markers.feature) for markers in found]
    assert sum(counts) <= 0.01 * 5 * 300
    assert counts.count(0) >= 4
    assert repr(found[-1]).startswith("No markers")


def test_a_feature_seen_once_in_six_samples_does_not_lead():
    rng = np.random.default_rng(0)
    labels = np.repeat([0, 1], 3)
    X = rng.normal(25.0, 1.0, size=(6, 400))
    X[3:, :40] += 6.0
    X[1:, 40] = np.nan
    X[0, 40] = 60.0
    X[[0, 5], 41], X[1:5, 41] = [23.0, 27.5], np.nan
    found = cluster_markers(X, labels)
    true = np.isin(found.feature, [f"x{j}" for j in range(40)])
    assert true[found.rank <= 30].all()
    assert true.mean() > 0.85
    assert true.sum() > 70


def test_sparse_marks_and_shifted_tables_tell_the_same(table):
    X, labels = table
    dense = cluster_markers(X, labels)
    filled = np.nan_to_num(X)
    for same in (sp.csr_matrix(filled), sp.csc_array(filled), X + 1e6, filled):
        code = 0 if same is filled else np.nan
        found = cluster_markers(same, labels, missing_values=code)
        np.testing.assert_array_equal(found.feature, dense.feature)
        np.testing.assert_allclose(found.effect, dense.effect, rtol=1e-6)


def test_texts_are_short():
    wide = np.random.default_rng(0).normal(size=(90, 500)) + 9.0 * (np.arange(90) % 3)[:, None]
    many = cluster_markers(wide, np.arange(90) % 3)
    assert len(many.feature) > 900
    assert len(repr(many)) < 1_000


def test_edges_are_answered_and_mistakes_are_named():
    X = np.array([[1.0, np.nan], [1.0, np.nan], [2.0, np.nan], [2.0, np.nan]])
    assert len(cluster_markers(X, [0, 0, 0, 0]).feature) == 0
    assert np.isfinite(cluster_markers(X, [0, 0, 1, 1]).effect).all()
    for labels, settings, message in (
        ([0, 0, 1, 1], {"top": 0}, "top must be"),
        ([0, 1], {}, "inconsistent numbers"),
        ([0, 0, 1, 1], {"feature_names": ["a"]}, "feature_names"),
    ):
        with pytest.raises(ValueError, match=message):
            cluster_markers(X, labels, **settings)
