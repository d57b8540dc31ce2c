"""Markers: what makes a cluster is found, by value or by gaps, and nothing else is."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

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


def by_hand(X, inside, j):
    """The formula that opens the module, for one cluster and feature."""
    one, rest = X[inside, j], X[~inside, j]
    a, b = one[~np.isnan(one)], rest[~np.isnan(rest)]
    pooled = ((a - a.mean()) ** 2).sum() + ((b - b.mean()) ** 2).sum()
    freedom = len(a) + len(b) - 2
    d = (a.mean() - b.mean()) / np.sqrt(pooled / freedom) * (1 - 3 / (4 * freedom - 1))
    q1, q0 = len(a) / len(one), len(b) / len(rest)
    h = 2 * np.arcsin(np.sqrt(q1)) - 2 * np.arcsin(np.sqrt(q0))
    value = (q1 + q0) / 2 * max(d**2 - 1 / len(a) - 1 / len(b), 0)
    return np.sqrt(value + max(h**2 - 1 / len(one) - 1 / len(rest), 0))


def test_two_values_make_no_marker():
    """Their deviation is nothing, so that any difference would be without bounds."""
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=20), np.repeat([0.0, 3.0], 10) + rng.normal(size=20)])
    X[:, 0][np.delete(np.arange(20), [3, 15])] = np.nan
    found = cluster_markers(X, np.repeat([0, 1], 10))
    assert list(found.feature) == ["x1", "x1"]


def test_the_effect_is_the_formula(table):
    X, labels = table
    found = cluster_markers(X, labels)
    for l, name, effect in zip(found.cluster, found.feature, found.effect, strict=True):
        assert effect == pytest.approx(by_hand(X, labels == l, int(name[1:])), abs=1e-9)


def test_what_makes_a_cluster_comes_first(table):
    found = cluster_markers(*table, top=2)
    own = found.cluster == 1
    assert set(found.feature[own]) == {"x2", "x5"}
    told = dict(zip(found.feature[own], found.direction[own], strict=True))
    assert told == {"x2": "higher", "x5": "seen less often"}
    assert found["rank"][own].tolist() == [1, 2]
    assert found.effect[own].min() > 1.0
    assert found.mean_inside[own][found.feature[own] == "x2"] == pytest.approx(23.0, abs=0.5)
    assert found.observed_inside[own][found.feature[own] == "x5"] < 0.2


def test_chance_alone_makes_no_marker():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(400, 200))
    X[rng.random(X.shape) < 0.3] = np.nan
    found = cluster_markers(X, rng.integers(0, 4, 400))
    assert found.effect.max() < 0.6
    assert np.median(found.effect) < 0.2


def test_sparse_marks_and_shifted_tables_tell_the_same(table):
    X, labels = table
    dense = cluster_markers(X, labels)
    filled = np.nan_to_num(X)
    for same in (
        cluster_markers(sp.csr_matrix(filled), labels),
        cluster_markers(sp.csc_array(filled), labels),
        cluster_markers(filled, labels, missing_values=0),
    ):
        np.testing.assert_array_equal(same.feature, dense.feature)
        np.testing.assert_allclose(same.effect, dense.effect, rtol=1e-9)
    far = cluster_markers(X + 1e6, labels)
    np.testing.assert_allclose(far.effect, dense.effect, rtol=1e-6)


def test_names_of_clusters_and_features_are_kept(table):
    pd = pytest.importorskip("pandas")
    X, labels = table
    frame = pd.DataFrame(X, columns=list("abcdefgh"))
    found = cluster_markers(frame, np.array(["one", "two", "three"])[labels], top=1).to_frame()
    assert found.set_index("cluster").loc["two", "feature"] in ("c", "f")
    assert list(found)[:4] == ["cluster", "rank", "feature", "effect"]


def test_edges_are_answered():
    X = np.array([[1.0, np.nan], [1.0, np.nan], [2.0, np.nan], [2.0, np.nan]])
    assert len(cluster_markers(X, [0, 0, 0, 0]).feature) == 0
    found = cluster_markers(X, [0, 0, 1, 1])
    assert np.isfinite(found.effect).all()
    assert set(found.feature) == {"x0"}
    with pytest.raises(ValueError, match="top must be"):
        cluster_markers(X, [0, 0, 1, 1], top=0)
    with pytest.raises(ValueError, match="inconsistent numbers"):
        cluster_markers(X, [0, 1])
    with pytest.raises(ValueError, match="feature_names"):
        cluster_markers(X, [0, 0, 1, 1], feature_names=["a"])
