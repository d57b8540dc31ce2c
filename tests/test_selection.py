"""MNARKMeansCV: the criteria against slow oracles, the choice, and what it promises."""

import warnings
from types import SimpleNamespace

import numpy as np
import pytest
from backends import grouped_rows
from scipy import sparse
from sklearn.metrics import adjusted_rand_score

from mnarkmeans import MNARKMeans, MNARKMeansCV, SelectionWarning
from mnarkmeans._cv import (
    CRITERIA,
    Trial,
    choose_k,
    cluster_stability,
    disagreements,
    least_unstable,
    pairwise_adjusted_rand,
)
from mnarkmeans.datasets import make_gaussian_clusters
from mnarkmeans.metrics import clustering_error_rate


def gaussian(n=150, p=4, k=3, seed=0, separation=5.0, **parameters):
    return make_gaussian_clusters(
        n, p, k, separation=separation, random_state=seed, strength=1.0, **parameters
    )


def quick(n_clusters=3, **parameters):
    chosen = {"n_splits": 4, "n_init": 3, "random_state": 0, **parameters}
    return MNARKMeansCV(n_clusters, **chosen)


# --- pieces ---------------------------------------------------------------------------------


def test_agreement_from_the_table_equals_counting_pairs_of_shared_rows():
    rng = np.random.default_rng(0)
    labels, kept = rng.integers(3, size=(3, 30, 2)).astype(np.int32), rng.random((3, 30)) < 0.8
    u, v = labels[:2, kept[0] & kept[1], 1]
    m = len(u)
    differ = sum((u[i] == u[j]) != (v[i] == v[j]) for i in range(m) for j in range(i))
    found = disagreements(labels, kept, [(0, 1)], 3)[0, 1]
    assert found == pytest.approx(differ / ((m - 1) * (m - 2) / 2))
    found = pairwise_adjusted_rand(labels, kept, 3)[0, 1]
    assert found == pytest.approx(adjusted_rand_score(u, v))
    alone = np.zeros((2, 30, 1), np.int32)  # one cluster agrees with itself
    assert pairwise_adjusted_rand(alone, kept[:2], 1).tolist() == [[1.0]]


def test_cluster_stability_tells_solid_from_loose():
    reference = np.repeat([0, 1, 2], 10)
    rng = np.random.default_rng(0)
    labels = np.tile(reference, (6, 1))
    for own in labels:  # clusters 1 and 2 are torn apart, 0 always comes back
        own[10:] = rng.integers(1, 3, size=20)
    found = cluster_stability(reference, labels, np.ones((6, 30), bool), 3)
    assert found[0] == 1.0
    assert (found[1:] < 0.6).all()


def test_paper_rule_at_the_edge():
    """The last candidate is the best: the smallest below last mean + last sd is taken."""
    instability = np.array([[0.5, 0.12, 0.1], [0.4, 0.12, 0.2]])
    assert least_unstable(instability) == 1
    assert least_unstable(instability[:, [0, 2, 1]]) == 2  # the last never varies
    assert least_unstable(instability[:, [1, 0, 2]]) == 0


@pytest.mark.parametrize(
    ("stability", "whole", "best"),
    [
        ([1.0, 0.99, 0.985], [True, True, False], 1),  # one row by itself comes back in any split
        ([1.0, 0.99, 0.985], [True, True, True], 2),
        ([0.8, 1.0, 0.9], [True, False, True], 1),  # but it may be all there is
        ([-np.inf, -np.inf], [True, True], 0),
    ],
)
def test_more_clusters_are_taken_if_as_stable_and_none_is_next_to_empty(stability, whole, best):
    trials = [
        SimpleNamespace(stability=s, is_whole=w) for s, w in zip(stability, whole, strict=True)
    ]
    assert choose_k(trials) == best


# --- the estimator --------------------------------------------------------------------------


@pytest.mark.parametrize("criterion", CRITERIA)
def test_every_criterion_finds_clear_clusters(criterion):
    bunch = gaussian()
    model = quick(criterion=criterion, lams=[0.0, 0.5, 1.0, 2.0]).fit(bunch.data)
    assert clustering_error_rate(bunch.target, model.labels_) < 0.05
    results = model.cv_results_
    assert {len(column) for column in results.values()} == {4}
    assert results["param_lam"][model.best_index_] == model.lam_
    assert results["param_n_clusters"].tolist() == [3] * 4
    assert results["rank_instability"].min() == 1
    assert model.stability_.shape == (3,)
    assert (model.stability_ > 0.7).all()
    plain = MNARKMeans(3, lam=model.lam_, n_init=3, random_state=5).fit(bunch.data)
    assert clustering_error_rate(model.labels_, plain.labels_) == 0
    assert model.inertia_ == pytest.approx(-model.score(bunch.data))
    assert model.get_feature_names_out().tolist() == [f"mnarkmeanscv{i}" for i in range(3)]


def test_k_is_chosen():
    bunch = gaussian(n=200, k=4, separation=7.0, seed=2)
    model = quick([2, 3, 4, 5, 6], n_init=5).fit(bunch.data)
    assert model.n_clusters_ == 4
    assert set(model.cv_results_["param_n_clusters"]) == {2, 3, 4, 5, 6}
    assert model.cv_results_["chosen_for_k"].sum() == 5
    assert model.cluster_centers_.shape[0] == 4


def test_a_few_outliers_are_no_cluster():
    """They come back in every part of the rows, so they are as stable as a cluster can be."""
    X = np.random.default_rng(0).normal(size=(203, 2))
    X[:100, 0] -= 5.0
    X[100:200, 0] += 5.0
    X[200:, 1] += 25.0
    assert quick([2, 3], lams=[0.0]).fit(X).n_clusters_ == 2


def test_sparse_and_large_tables(monkeypatch):
    monkeypatch.setattr("mnarkmeans._cv.MOST_ROWS", 100)
    bunch = gaussian(n=300)
    stored = sparse.csr_array(np.nan_to_num(bunch.data))
    model = quick(lams="auto").fit(stored)
    assert model.labels_.shape == (len(bunch.target),)
    assert clustering_error_rate(bunch.target, model.labels_) < 0.05


def test_complete_data_have_one_candidate():
    X = np.random.default_rng(0).normal(size=(60, 3)) + np.repeat([[0], [9], [-9]], 20, axis=0)
    model = quick().fit(X)
    assert model.cv_results_["param_lam"].tolist() == [0.0]
    assert model.n_clusters_ == 3


def test_the_search_takes_the_lam_that_the_plain_estimator_takes():
    X = gaussian().data
    model, plain = quick().fit(X), MNARKMeans(3, random_state=0).fit(X)
    assert model.lam_ == plain.lam_ > 0.0
    np.testing.assert_array_equal(model.reference_, plain.reference_)
    assert model.missingness_.sentence == plain.missingness_.sentence


def test_progress_tells_the_time_left(capsys):
    quick(verbose=1).fit(gaussian(n=60).data)
    lines = [line for line in capsys.readouterr().out.splitlines() if line.endswith("s left")]
    assert [line.partition(":")[0] for line in lines] == [f"fit {n}/4" for n in (1, 2, 3, 4)]
    assert lines[-1].endswith("about 0.0 s left")


def test_warns_at_the_edge_of_given_candidates():
    with pytest.warns(SelectionWarning, match="edge"):
        quick(lams=[50.0, 100.0], criterion="paper").fit(gaussian(n=80).data)
    upper = quick(lams=[0.0, 0.01])
    with pytest.warns(SelectionWarning, match="edge"):
        upper.fit(make_gaussian_clusters(300, 10, 3, strength=1.0, random_state=0).data)
    assert upper.lam_ == 0.01


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"lams": [-1.0]}, "lams must be"),
        ({"lams": []}, "empty"),
        ({"lams": "all"}, "lams must be"),
        ({"criterion": "best"}, "criterion must be"),
        ({"n_splits": 1}, "n_splits must be"),
        ({"n_clusters": []}, "empty"),
        ({"n_clusters": [2, 0]}, "n_clusters must be"),
        ({"init": "rows"}, "init must be"),
        ({"n_clusters": [2, 70]}, "too few to choose with n_clusters=70"),
    ],
)
def test_mistakes_are_named(parameters, message):
    chosen = {"n_clusters": 3, **parameters}
    with pytest.raises(ValueError, match=message):
        quick(**chosen).fit(gaussian(n=80).data)


def test_a_search_that_remembers_its_trials_ends_the_same():
    """What the command line keeps between two runs is all that a trial is."""
    X = grouped_rows(90, 3, apart=5.0, share=0.2)

    def search(known):
        model = MNARKMeansCV([2, 3], lams=[0.0, 0.5], n_splits=3, n_init=2, random_state=0)
        model._known = known
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SelectionWarning)
            return model.fit(X)

    known = {}
    first = search(known)
    stored = {k: trial.to_plain() for k, trial in known.items()}
    assert list(stored) == [2, 3]
    stored[2]["seconds"] = np.full(3, 12345.0)  # whoever reads it has not tried again
    second = search({k: Trial.from_plain(plain) for k, plain in stored.items()})
    assert (second.lam_, second.n_clusters_) == (first.lam_, first.n_clusters_)
    np.testing.assert_array_equal(second.labels_, first.labels_)
    np.testing.assert_array_equal(second.cluster_centers_, first.cluster_centers_)
    assert (second.cv_results_["mean_fit_time"][:2] == 12345.0).all()
