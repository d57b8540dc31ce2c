"""MNARKMeansCV: the criteria against slow oracles, the choice, and what it promises."""

import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.metrics import adjusted_rand_score
from sklearn.utils.estimator_checks import parametrize_with_checks

from mnarkmeans import MissingDataWarning, MNARKMeans, MNARKMeansCV, SelectionWarning
from mnarkmeans._selection import agreement, criteria
from mnarkmeans._selection.criteria import Asked
from mnarkmeans._selection.evidence import Evidence, subsamples, thirds
from mnarkmeans._selection.grid import candidate_lams
from mnarkmeans._selection.trials import Trial, Trials
from mnarkmeans.datasets import make_gaussian_clusters
from mnarkmeans.metrics import clustering_error_rate
from mnarkmeans.missingness import ampute

CRITERIA = sorted(criteria.CRITERIA)


def gaussian(n=150, p=4, k=3, seed=0, separation=5.0, **parameters):
    return make_gaussian_clusters(
        n, p, k, separation=separation, random_state=seed, strength=1.0, **parameters
    )


def quick(n_clusters=3, **parameters):
    chosen = {"n_splits": 4, "n_init": 3, "random_state": 0, **parameters}
    return MNARKMeansCV(n_clusters, **chosen)


def made_up(labels, inside=None, held_out=None, lams=None, k=3):
    labels = np.asarray(labels, np.int32)
    parts, n, size = labels.shape
    inside = np.ones((parts, n), bool) if inside is None else inside
    lams = np.arange(size, dtype=float) if lams is None else lams
    held_out = np.full((parts, size), np.nan) if held_out is None else held_out
    return Evidence(k, lams, labels, inside, held_out, np.zeros(parts), np.arange(parts))


# --- pieces ---------------------------------------------------------------------------------


def test_agreement_from_the_table_equals_counting_pairs():
    rng = np.random.default_rng(0)
    a, b = rng.integers(3, size=(2, 30)).astype(np.int32)
    keep = rng.random(30) < 0.7
    u, v = a[keep], b[keep]
    m = len(u)
    differ = sum((u[i] == u[j]) != (v[i] == v[j]) for i in range(m) for j in range(i))
    assert agreement.disagreement(a, b, keep, 3) == pytest.approx(differ / ((m - 1) * (m - 2) / 2))
    assert agreement.adjusted_rand(a, b, keep, 3) == pytest.approx(adjusted_rand_score(u, v))


def test_pairwise_agreement_looks_at_shared_rows_only():
    rng = np.random.default_rng(1)
    labels = rng.integers(3, size=(3, 25, 2)).astype(np.int32)
    inside = rng.random((3, 25)) < 0.8
    found = agreement.pairwise_adjusted_rand(labels, inside, np.arange(3), 3)
    shared = inside[1] & inside[0]
    assert found[0, 1] == pytest.approx(
        adjusted_rand_score(labels[1, shared, 1], labels[0, shared, 1])
    )


def test_cluster_stability_tells_solid_from_loose():
    reference = np.repeat([0, 1, 2], 10)
    rng = np.random.default_rng(0)
    labels = np.tile(reference, (6, 1))
    for own in labels:  # clusters 1 and 2 are torn apart, 0 always comes back
        own[10:] = rng.integers(1, 3, size=20)
    found = agreement.cluster_stability(reference, labels, np.ones((6, 30), bool), 3)
    assert found[0] == 1.0
    assert (found[1:] < 0.6).all()


def test_splits():
    rng = np.random.RandomState(0)
    parts = subsamples(50, 5, 0.8, rng)
    assert (parts.sum(axis=1) == 40).all()
    halves = thirds(300, 4, rng)
    assert halves.shape == (8, 300)
    assert not (halves[:4] & halves[4:]).any()


def test_paper_rule_at_the_edge():
    """The last candidate is the best: the smallest below last mean + last sd is taken."""
    rng = np.random.default_rng(0)
    truth = np.repeat([0, 1, 2], 10)
    labels = np.empty((8, 30, 3), np.int32)
    for b in range(8):
        labels[b, :, 0] = rng.integers(3, size=30)
        labels[b, :, 1] = truth
        labels[b, :, 2] = truth
        labels[b, :1, 1:] = (b % 2) * 2  # the same small instability for both
    inside = np.zeros((8, 30), bool)
    evidence = made_up(labels, inside)
    instability = criteria.instability_of_thirds(evidence)
    assert instability[:, 0].mean() > 0.2
    assert criteria.paper(evidence, Asked()).choice == 1
    labels[:, :, 1] = labels[:, :, 0]  # now only the last is good, and it never varies
    labels[:, :, 2] = truth
    assert criteria.paper(made_up(labels, inside), Asked()).choice == 2


def test_consensus_takes_the_middle_of_the_plateau():
    truth = np.repeat([0, 1, 2], 8)
    odd = np.tile([0, 1, 2], 8)
    labels = np.stack([np.stack([odd, truth, truth, truth], axis=1)] * 4)
    full = np.stack([odd, truth, truth, truth], axis=1)
    assert criteria.consensus(made_up(labels), Asked(False, full)).choice == 2
    assert criteria.consensus(made_up(labels), Asked(True, full)).choice == 1


def test_grid_covers_both_regimes():
    grid = candidate_lams(0.28, True)
    assert grid[0] == 0.0
    assert 0.28 in grid
    assert 0.3 not in grid
    assert grid[-1] > 10
    assert candidate_lams(0.0, True)[0] == 0.0
    assert candidate_lams(0.5, False).tolist() == [0.0]


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


def test_refit_is_the_plain_estimator_with_the_choice():
    X = gaussian().data
    model = quick(lams=[0.0, 0.2, 0.8, 1.0, 50.0]).fit(X)
    plain = MNARKMeans(3, lam=model.lam_, n_init=3, random_state=5).fit(X)
    assert clustering_error_rate(model.labels_, plain.labels_) == 0
    assert model.inertia_ == pytest.approx(-model.score(X))
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    assert model.transform(X).shape == (len(X), 3)
    assert not np.isnan(model.impute(X)).any()
    assert model.get_feature_names_out().tolist() == [f"mnarkmeanscv{i}" for i in range(3)]


def test_k_is_chosen():
    bunch = gaussian(n=200, k=4, separation=7.0)
    model = quick([2, 3, 4, 5, 6], n_init=5).fit(bunch.data)
    assert model.n_clusters_ == 4
    assert set(model.cv_results_["param_n_clusters"]) == {2, 3, 4, 5, 6}
    assert model.cv_results_["chosen_for_k"].sum() == 5
    assert model.cluster_centers_.shape[0] == 4


def test_same_seed_same_result_for_every_number_of_threads():
    X = gaussian().data
    one, two = (quick(n_jobs=jobs).fit(X) for jobs in (1, 2))
    assert one.lam_ == two.lam_
    np.testing.assert_array_equal(one.cluster_centers_, two.cluster_centers_)
    for name in ("mean_instability", "mean_heldout_loss"):
        np.testing.assert_array_equal(one.cv_results_[name], two.cv_results_[name])


def test_sparse_and_large_tables(monkeypatch):
    monkeypatch.setattr("mnarkmeans._selection.search.MOST_ROWS", 100)
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


def test_gaps_below_a_limit_have_candidates_too():
    rng = np.random.default_rng(0)
    centers = 6.0 + 2.0 * np.array([[0, 1, 2, 0], [1, 2, 0, 1], [2, 0, 1, 2]])
    X = rng.normal(size=(150, 4)) + centers[np.repeat([0, 1, 2], 50)]
    model = quick(reference="min").fit(ampute(X, "limit", fraction=0.3, rng=0))
    assert model.missingness_.mechanism == "limit"
    assert len(model.cv_results_["param_lam"]) > 5


def test_one_standard_error_takes_no_larger_lam():
    X = gaussian().data
    for criterion in CRITERIA:
        plain = quick(criterion=criterion, lams=[0.1, 0.5, 1, 2, 4]).fit(X)
        careful = quick(criterion=criterion, lams=[0.1, 0.5, 1, 2, 4], one_standard_error=True)
        with warnings.catch_warnings():  # the smallest is the edge of this short list
            warnings.simplefilter("ignore", SelectionWarning)
            assert careful.fit(X).lam_ <= plain.lam_


def test_progress_tells_the_time_left(capsys):
    quick(verbose=1).fit(gaussian(n=60).data)
    out = capsys.readouterr().out
    assert "fit 4/4" in out
    assert "left" in out


def test_warns_at_the_edge_of_given_candidates():
    with pytest.warns(SelectionWarning, match="edge"):
        quick(lams=[50.0, 100.0], criterion="subsample").fit(gaussian(n=80).data)


def test_warns_when_nothing_tells_the_candidates_apart():
    X = np.random.default_rng(0).normal(size=(80, 3))
    X[0, 0] = np.nan  # one gap: lam changes nothing
    with pytest.warns(SelectionWarning, match="equally unstable"):
        quick(lams=[0.1, 0.2, 0.3]).fit(X)


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
        ({"n_clusters": 70}, "too few"),
    ],
)
def test_mistakes_are_named(parameters, message):
    chosen = {"n_clusters": 3, **parameters}
    with pytest.raises(ValueError, match=message):
        quick(**chosen).fit(gaussian(n=80).data)


@pytest.mark.parametrize("criterion", ["heldout", "paper"])
def test_too_many_clusters_are_refused_before_any_is_tried(criterion):
    model = quick([2, 70], criterion=criterion)
    tried = []
    model._trial = lambda judged, k, *rest: tried.append(k)
    with pytest.raises(ValueError, match="too few to choose with n_clusters=70"):
        model.fit(gaussian(n=80).data)
    assert tried == []


SAMPLE_WEIGHT_CHECKS = {
    "check_sample_weight_equivalence_on_dense_data": "splits are of rows, not of weight",
    "check_sample_weight_equivalence_on_sparse_data": "splits are of rows, not of weight",
}


@parametrize_with_checks(
    [MNARKMeansCV(2, n_splits=2, n_init=2, lams=[0.0, 0.5])],
    expected_failed_checks=lambda estimator: SAMPLE_WEIGHT_CHECKS,
)
def test_scikit_learn_checks(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SelectionWarning)
        warnings.simplefilter("ignore", MissingDataWarning)  # sparse checks have empty rows
        check(estimator)


def test_a_search_that_remembers_its_trials_ends_the_same():
    """What the command line keeps between two runs is all that a trial is."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 3)) + 5.0 * rng.integers(0, 3, size=(90, 1))
    X[:, 1:][rng.random((90, 2)) < 0.2] = np.nan

    class Remembered(Trials):
        def __init__(self, kept):
            self.kept, self.tried = kept, []

        def load(self, k):
            found = self.kept.get(k)
            return None if found is None else Trial.from_plain(found)

        def done(self, k, trial):
            self.tried.append(k)
            self.kept[k] = trial.to_plain()

    def search(kept):
        model = MNARKMeansCV([2, 3], lams=[0.0, 0.5], n_splits=3, n_init=2, random_state=0)
        model._known = Remembered(kept)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SelectionWarning)
            return model.fit(X)

    kept = {}
    first = search(kept)
    assert first._known.tried == [2, 3]
    kept[2]["evidence"]["seconds"] = np.full(3, 12345.0)  # whoever reads it has not tried again
    second = search(kept)
    assert (second.lam_, second.n_clusters_) == (first.lam_, first.n_clusters_)
    np.testing.assert_array_equal(second.labels_, first.labels_)
    np.testing.assert_array_equal(second.cluster_centers_, first.cluster_centers_)
    assert (second.cv_results_["mean_fit_time"][:2] == 12345.0).all()
