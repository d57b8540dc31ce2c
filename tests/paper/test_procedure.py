"""The authors' procedure: each part against a slow or an outside version."""

import numpy as np
import pytest
from sklearn.cluster import KMeans

from mnarkmeans import MNARKMeans
from mnarkmeans._core.partitions import move_rows
from mnarkmeans.datasets import make_gaussian_clusters
from mnarkmeans.paper import _procedure
from mnarkmeans.paper._kmeans import plus_plus, same_partitions


@pytest.fixture(scope="module")
def toy():
    return make_gaussian_clusters(120, 4, 3, separation=4, fraction=0.3, random_state=0)


def inertia(X, labels):
    return sum(((X[labels == g] - X[labels == g].mean(axis=0)) ** 2).sum() for g in set(labels))


def test_single_row_moves_end_where_no_move_helps(toy):
    X = toy.complete
    centers = plus_plus(X, 3, 5, np.random.default_rng(0))
    labels = move_rows(X, centers, 100)
    for own, m in zip(labels, centers, strict=True):
        np.testing.assert_allclose(m, [X[own == g].mean(axis=0) for g in range(3)])
        least = inertia(X, own)
        for i in range(0, len(X), 7):
            for g in range(3):
                moved = own.copy()
                moved[i] = g
                assert inertia(X, moved) >= least - 1e-9


def test_single_row_moves_reach_the_best_kmeans(toy):
    centers = plus_plus(toy.complete, 3, 20, np.random.default_rng(0))
    labels = move_rows(toy.complete, centers, 100)
    best = min(inertia(toy.complete, own) for own in labels)
    plain = KMeans(3, n_init=20, random_state=0).fit(toy.complete)
    assert best <= plain.inertia_ + 1e-9


def test_partitions_that_differ_in_names_only_are_one():
    labels = np.array([[0, 0, 1, 2], [2, 2, 0, 1], [0, 1, 1, 2]])
    first, which = same_partitions(labels, 3)
    assert len(first) == 2
    assert which[0] == which[1] != which[2]


def test_plus_plus_picks_rows_and_spreads_them():
    X = np.repeat([[0.0, 0.0], [10.0, 0.0], [0.0, 10.0]], 5, axis=0)
    starts = plus_plus(X, 3, 50, np.random.default_rng(0))
    for centers in starts:  # a row at distance 0 from a centre has no chance
        assert len(np.unique(centers, axis=0)) == 3


def test_fit_is_the_penalised_loop_from_those_starts(toy):
    rng = np.random.default_rng(0)
    starts = _procedure.draw_starts(toy.data, 3, 10, rng)
    found = _procedure.fit(toy.data, 3, 0.7, rng, starts=starts)
    losses = [
        MNARKMeans(3, lam=0.7, init=centers, n_init=1, algorithm="lloyd", max_iter=100)
        .fit(toy.data)
        .inertia_
        for centers in starts.centers
    ]
    assert found.loss == pytest.approx(min(losses), rel=1e-4)
    np.testing.assert_allclose(found.start_losses, np.array(losses)[starts.which], rtol=1e-4)
    assert len(found.start_losses) == 10
    assert len(found.path) == found.n_iter
    assert (np.diff(found.path) <= 1e-9).all()


def test_instability_counts_pairs_with_the_authors_denominator(toy, monkeypatch):
    """All rows together against one row apart: m - 1 pairs differ, over (m-1)(m-2)/2."""

    def opposite(table, centers, lam, threads=1):
        apart = np.zeros(table.n_rows, dtype=np.int32)
        apart[0] = 1
        return np.column_stack([np.zeros_like(apart), apart])

    monkeypatch.setattr(_procedure, "_three_parts", lambda X, k, rng: [X[:40], X[40:80], X[80:]])
    monkeypatch.setattr(_procedure, "assign_rows", opposite)
    m = len(toy.data) - 80
    value = _procedure.instability(toy.data, 3, 1.0, np.random.default_rng(0), n_splits=2)
    np.testing.assert_allclose(value, 2 / (m - 2))


def test_the_rule_that_takes_a_candidate():
    mean, sd = np.array([0.3, 0.1, 0.2]), np.array([0.1, 0.1, 0.1])
    assert _procedure.take(mean, sd) == 1
    # the last is smallest: the first below its mean + sd
    assert _procedure.take(np.array([0.3, 0.14, 0.1]), np.array([0.1, 0.1, 0.05])) == 1
    assert _procedure.take(np.array([0.3, 0.2, 0.1]), np.array([0.1, 0.1, 0.0])) == 2


def test_choice_is_seeded(toy):
    one, two = (
        _procedure.choose_lam(toy.data, 3, [0.2, 1.0], np.random.default_rng(3), n_splits=3)
        for _ in range(2)
    )
    assert one.lam == two.lam
    np.testing.assert_array_equal(one.mean, two.mean)
