"""lam="auto", reference=None: laws of the choice, and what it takes where that is known."""

from dataclasses import replace

import numpy as np
import pytest
from limit_data import NOISE, lost_below_a_limit, mixture
from scipy import sparse
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

from mnarkmeans import MiniBatchMNARKMeans, MissingDataWarning, MNARKMeans, MNARKMeansCV
from mnarkmeans._missingness import MechanismFit
from mnarkmeans.metrics import center_mse
from mnarkmeans.missingness import Missingness, ampute


def auto(X, k=3, **settings):
    weights = settings.pop("sample_weight", None)
    return MNARKMeans(k, random_state=0, **settings).fit(X, sample_weight=weights)


def lost(mechanism="mnar0", fraction=0.3, **options):
    X, classes = mixture(**options)
    X = ampute(X, mechanism, fraction=fraction, rng=0)
    some = ~np.isnan(X).all(axis=1)
    return X[some], classes[some]


def same_choice(one, two):
    np.testing.assert_array_equal(one.lam_, two.lam_)
    np.testing.assert_allclose(one.missingness_.candidates["score"],
                               two.missingness_.candidates["score"], atol=1e-6)  # fmt: skip


# --- laws ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("mechanism", ["mnar0", "limit"])
def test_shift_and_scale_leave_the_choice_alone(mechanism):
    X = lost(mechanism)[0]
    plain = auto(X, reference="min")
    moved = auto(4.0 * X + np.arange(X.shape[1]), reference="min")
    assert moved.lam_ == plain.lam_
    np.testing.assert_array_equal(moved.labels_, plain.labels_)
    np.testing.assert_allclose(moved.missingness_.candidates["behind"],
                               plain.missingness_.candidates["behind"], atol=1e-6)  # fmt: skip
    scaled = auto(8.0 * X)
    assert scaled.lam_ == auto(X).lam_


def test_a_jitter_in_the_tenth_digit_moves_nothing():
    X = lost()[0]
    jitter = 1e-9 * np.random.default_rng(1).normal(size=X.shape)
    assert auto(X + jitter).lam_ == auto(X).lam_


def test_a_weight_is_a_row_repeated():
    X = lost(n=150)[0]
    weights = np.where(np.arange(len(X)) % 3 == 0, 2.0, 1.0)
    weighted = auto(X, sample_weight=weights)
    repeated = auto(np.repeat(X, weights.astype(int), axis=0))
    assert weighted.missingness_.reference == repeated.missingness_.reference
    # Copies of a row may fall into different folds, which one row cannot.
    assert abs(np.log(weighted.lam_ / repeated.lam_)) < np.log(2.6)


def test_rows_without_weight_are_not_there():
    X = lost(n=150)[0]
    noise = np.full((20, X.shape[1]), 50.0)
    noise[:, 1:] = np.nan
    weights = np.r_[np.ones(len(X)), np.zeros(20)]
    same_choice(auto(np.vstack([X, noise]), sample_weight=weights), auto(X))


def test_rows_of_next_to_no_weight_say_nothing():
    """Half of the rows lost values around zero, the others by chance."""
    parts = [lost("mnar0", n=150)[0], lost("mcar", n=150, seed=10)[0]]
    X, which = np.vstack(parts), np.repeat([0, 1], [len(part) for part in parts])
    for number, part in enumerate(parts):
        weighted = auto(X, sample_weight=np.where(which == number, 1.0, 1e-6))
        alone = auto(part)
        assert (weighted.lam_ > 0.0) == (alone.lam_ > 0.0) == (number == 0)
        # Without a penalty, before others: the folds are not the same, the rows that count are.
        for name, tolerance in (("score", 0.3), ("behind", 1.0)):
            found = (one.missingness_.candidates[name][0] for one in (weighted, alone))
            assert next(found) == pytest.approx(next(found), abs=tolerance)


@pytest.mark.parametrize("n", [500, 1500])
def test_every_number_of_threads_chooses_the_same(n):
    X = lost(n=n, p=20)[0]
    one, two = auto(X, n_jobs=1), auto(X, n_jobs=2)
    np.testing.assert_array_equal(one.lam_, two.lam_)
    for name in ("score", "behind"):
        np.testing.assert_array_equal(
            one.missingness_.candidates[name], two.missingness_.candidates[name]
        )


def test_the_seed_of_the_fit_has_no_part_in_the_choice():
    X = lost()[0]
    lams = {MNARKMeans(3, random_state=seed, n_init=1).fit(X).lam_ for seed in range(4)}
    assert len(lams) == 1


def test_sparse_is_dense_and_float32_is_float64():
    X = lost()[0]
    stored = sparse.csr_array(np.nan_to_num(X))
    same_choice(auto(stored), auto(X))
    single = auto(X.astype(np.float32))
    assert single.lam_ == pytest.approx(auto(X).lam_, rel=0.02)


def test_the_fit_is_the_plain_one_with_the_numbers_chosen():
    X = lost()[0]
    chosen = auto(X)
    plain = auto(X, lam=chosen.lam_, reference=chosen.reference_)
    assert plain.inertia_ == pytest.approx(chosen.inertia_, rel=1e-12)
    assert adjusted_rand_score(plain.labels_, chosen.labels_) == 1.0


# --- parameters ---------------------------------------------------------------------------------


def test_none_is_zero_where_lam_is_a_number():
    X = lost_below_a_limit()
    model = auto(X, lam=0.5)
    np.testing.assert_array_equal(model.reference_, 0.0)
    assert not hasattr(model, "missingness_")
    filled = auto(np.nan_to_num(X), lam=0.0)
    assert adjusted_rand_score(auto(X, lam=1.0).labels_, filled.labels_) == 1.0


def test_a_reference_given_is_kept():
    X = lost()[0]
    model = auto(X, reference=0.25)
    np.testing.assert_array_equal(model.reference_, 0.25)
    assert set(model.missingness_.candidates["reference"]) == {"given"}


@pytest.mark.parametrize("lam", [1.0, np.array([1.0, 0.5, 1.0, 1.0, 1.0, 1.0])])
def test_the_reference_alone_is_chosen_where_lam_is_given(lam):
    model = auto(lost_below_a_limit(shift=20.0), lam=lam, reference="auto")
    np.testing.assert_array_equal(model.lam_, lam)
    assert model.missingness_.reference == "min"


def test_without_a_penalty_there_is_no_reference_to_choose():
    X = lost(p=9)[0]
    chosen = auto(X, lam=0.0, reference="auto")
    assert adjusted_rand_score(chosen.labels_, auto(X, lam=0.0).labels_) == 1.0


def test_complete_data_need_no_penalty():
    X = mixture()[0]
    model = auto(X)
    assert model.lam_ == 0.0
    np.testing.assert_array_equal(model.labels_, auto(X, lam=0.0).labels_)
    assert "Nothing is missing" in model.missingness_.sentence


def test_hardly_any_missing_values_need_no_penalty():
    """The rows that are looked at lack nothing; or only a feature that was never observed does."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 9)) + 5.0 * rng.integers(0, 2, size=(20_000, 1))
    X[17, 3] = np.nan
    model = auto(X, 2)
    assert model.lam_ == 0.0
    assert "too few rows or missing values" in model.missingness_.sentence
    for p in (3, 9):
        X = rng.normal(size=(60, p)) + 5.0 * rng.integers(0, 2, size=(60, 1))
        X[:, 0] = np.nan
        with pytest.warns(MissingDataWarning, match="no observed value"):
            model = auto(X, 2)
        assert model.lam_ == 0.0
        assert "Nothing is missing" in model.missingness_.sentence
        np.testing.assert_array_equal(model.labels_, auto(X[:, 1:], 2).labels_)


def test_missingness_is_a_table_and_a_sentence():
    model = auto(lost_below_a_limit())
    found = model.missingness_
    assert isinstance(found, Missingness)
    assert f"lam={found.lam:g}" in repr(found)
    assert found.lam == model.lam_
    assert len(found.to_frame()) == len(found.candidates["lam"])
    assert found.candidates["behind"].max() == pytest.approx(0.0, abs=1e-6)
    assert 0.0 <= found.explained <= 1.0
    low, high = found.lam_range
    assert low <= found.lam <= high


# --- what it takes ------------------------------------------------------------------------------


@pytest.mark.parametrize("noise", sorted(NOISE))
def test_values_below_a_limit_take_the_limit(noise):
    X, classes = lost("limit", noise=noise)
    model = auto(X + 20.0)
    np.testing.assert_array_equal(model.reference_, np.nanmin(X + 20.0, axis=0))
    assert model.lam_ > 0.0
    none = auto(X, lam=0.0)
    assert (adjusted_rand_score(classes, model.labels_)
            >= adjusted_rand_score(classes, none.labels_) - 0.02)  # fmt: skip


def test_iris_without_its_low_values_has_no_centre_at_zero_centimetres():
    flowers = load_iris()
    X = ampute(flowers.data, "limit", strength=0.3, rng=0)
    some = ~np.isnan(X).all(axis=1)
    model = auto(X[some])
    np.testing.assert_array_equal(model.reference_, np.nanmin(X, axis=0))
    assert model.cluster_centers_[:, 0].min() > 4.0
    assert adjusted_rand_score(flowers.target[some], model.labels_) > 0.65


def test_large_tables_are_judged_by_a_sample():
    X, classes = lost("mnar0", n=30_000, p=8)
    model = auto(X)
    assert model.missingness_.reference == "zero"
    assert adjusted_rand_score(classes, model.labels_) > 0.9
    batches = MiniBatchMNARKMeans(3, random_state=0).fit(X)
    assert batches.lam_ == pytest.approx(model.lam_, abs=0.25)  # less than a step


def test_wide_tables_are_judged_by_some_of_their_features():
    X, classes = lost("limit", n=60, p=3000)
    model = auto(X + 20.0)
    assert adjusted_rand_score(classes, model.labels_) > 0.95


def test_features_that_lose_values_by_chance_beside_a_limit_have_no_penalty():
    X, classes = mixture(p=12, seed=1)
    X[:, 6:] = ampute(X[:, 6:], "limit", fraction=0.3, rng=1)
    X[:, :3] = ampute(X[:, :3], "mcar", fraction=0.3, rng=2)
    model = auto(X)
    assert model.missingness_.reference == "min"
    np.testing.assert_array_equal(model.lam_[:3], 0.0)
    assert (model.lam_[6:] == model.missingness_.lam).all()
    assert model.missingness_.n_by_chance == 3
    assert "3 features" in model.missingness_.sentence
    search = MNARKMeansCV(3, n_splits=3, n_init=2, random_state=0).fit(X)
    np.testing.assert_array_equal(search.lam_ > 0, model.lam_ > 0)
    everywhere = auto(X, lam=model.missingness_.lam, reference="min")
    assert (adjusted_rand_score(classes, model.labels_)
            >= adjusted_rand_score(classes, everywhere.labels_))  # fmt: skip


@pytest.mark.parametrize("noise", sorted(NOISE))
def test_gaps_by_chance_take_no_penalty(noise):
    lams = [auto(lost("mcar", noise=noise, p=8, seed=seed)[0]).lam_ for seed in range(3)]
    assert np.median(lams) == 0.0


def test_a_penalty_is_taken_only_if_it_is_better_by_a_standard_error():
    close = []
    for seed in range(4):
        found = auto(lost("mnar0", fraction=0.1, n=60, p=8, seed=seed)[0]).missingness_
        no_penalty = found.candidates["behind"][found.candidates["lam"] == 0.0].max()
        if -1.0 <= no_penalty < 0.0:
            close.append(found.lam)
    assert close
    assert max(close) == 0.0


def test_of_two_features_the_mechanism_decides():
    found = {"mnar0": [], "mcar": []}
    for mechanism, lams in found.items():
        for seed in range(4):
            rng = np.random.default_rng(seed)
            X = np.array([[-1.5, -1.5], [1.5, 1.5]])[rng.integers(2, size=300)]
            X = X + rng.normal(size=X.shape)
            rate = 0.3 if mechanism == "mcar" else np.exp(-2.0 * X**2)
            X[rng.random(X.shape) < rate] = np.nan
            model = auto(X[~np.isnan(X).all(axis=1)], k=2)
            lams.append(model.lam_)
            if model.missingness_.decided_by == "mechanism":
                assert "few features" in model.missingness_.sentence
    assert np.median(found["mcar"]) == 0.0
    assert np.median(found["mnar0"]) > 0.5


@pytest.mark.filterwarnings("ignore:lam=.* lies at the edge")
def test_sentences_do_not_contradict_the_mechanism_or_invent_a_reason():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 3)) + 5.0 * rng.integers(3, size=(150, 1))
    X[rng.random(X.shape) < 0.2] = np.nan
    X = X[~np.isnan(X).all(axis=1)]
    few = MNARKMeansCV(3, lams=[0.5, 1.0, 2.0], n_init=2, random_state=0).fit(X).missingness_
    by_chance = "more likely to be missing by chance" in few.sentence
    assert by_chance == (few.mechanism in ("mcar", "class"))
    one = MNARKMeans(3, lam=0.0, reference="auto", random_state=0).fit(X).missingness_
    assert "there was no other candidate" in one.sentence


def test_the_theorem_is_reached_where_it_holds():
    """Normal clusters apart from each other and from zero, P(missing | x) = exp(-t x^2)."""
    t, theory = 0.2, 1 - 1 / (2 * 0.2 + 1)
    ratios = []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        centers = (
            1.0 + rng.random((3, 6)) + 4.0 * np.arange(3)[:, None] * (rng.random((3, 6)) < 0.7)
        )
        X = centers[rng.integers(3, size=800)] + rng.normal(size=(800, 6))
        X[rng.random(X.shape) < np.exp(-t * X**2)] = np.nan
        X = X[~np.isnan(X).all(axis=1)]
        chosen, best = auto(X), auto(X, lam=theory)
        errors = [center_mse(centers, model.cluster_centers_) for model in (chosen, best)]
        ratios.append(errors[0] / errors[1])
        assert chosen.missingness_.lam_theory == pytest.approx(theory, abs=0.06)
    assert np.median(ratios) < 2.0


def test_only_the_best_candidate_is_called_best_and_the_largest_is_called_so():
    """The same lam may be best with the penalty in some features and not with it in all."""
    candidates = {
        "lam": np.array([0.0, 1.0, 2.0, 1.0]), "reference": np.array(["zero"] * 4),
        "features": np.array([0, 8, 8, 5]),
        "score": np.array([-3.0, -1.2, -1.1, -1.0]), "behind": np.array([-9.0, -0.8, -0.6, 0.0]),
    }  # fmt: skip
    chance = [MechanismFit("mcar", 0.2, -1.0, 0.0)]
    everywhere = Missingness(1.0, "zero", candidates, (1.0, 2.0), chance, 0.1)
    in_some = Missingness(1.0, "zero", candidates, (1.0, 1.0), chance, 0.1, n_by_chance=3)
    edge = Missingness(2.0, "zero", candidates, (1.0, 2.0), chance, 0.1)
    assert "within one standard error" in everywhere.sentence
    assert "held-out features best" in in_some.sentence
    assert ["largest candidate" in one.sentence for one in (everywhere, edge)] == [False, True]
    assert ["lam from 1 to 2" in one.sentence for one in (edge, in_some)] == [True, False]
    assert "9.0 standard errors" in edge.sentence
    none = replace(edge, lam=0.0, lam_range=(0.0, 0.0))
    worse = replace(none, candidates=candidates | {"behind": -np.arange(4.0)})
    assert "penalty are not clearly better" in none.sentence
    assert "penalty score lower" in worse.sentence


def test_equal_rows_with_gaps_are_one_cluster_and_no_error():
    """What they differ by is the rounding error of their mean."""
    rng = np.random.default_rng(0)
    X = np.tile(rng.normal(20, 2, 20), (48, 1))
    X[rng.random(X.shape) < 0.1] = np.nan
    with pytest.warns(ConvergenceWarning):
        model = MNARKMeans(2, random_state=0).fit(X)
    assert np.isfinite(model.missingness_.candidates["score"]).all()


@pytest.mark.parametrize("n", [400, 4000])
def test_rows_of_hardly_any_weight_hide_nothing_of_the_others(n):
    """They lose high values, the others low ones."""
    rng = np.random.default_rng(0)
    centers = 3.0 * rng.choice([0.0, 1.0], size=(3, 10))
    X = centers[rng.integers(3, size=n)] + rng.normal(size=(n, 10))
    kept = np.arange(n) % 4 == 0
    lost = np.where(kept[:, None], np.exp(-(X**2)), 1.0 - np.exp(-0.3 * X**2))
    lost[:, 0] = 0.0
    X[rng.random(X.shape) < lost] = np.nan
    gains = []
    for rows, weights in ((X, np.where(kept, 1.0, 1e-6)), (X[kept], None)):
        model = MNARKMeans(3, reference=0.0, random_state=0).fit(rows, sample_weight=weights)
        found = model.missingness_.candidates
        gains.append(float(found["score"][found["lam"] == 0.5][0] - found["score"][0]))
    assert gains[0] == pytest.approx(gains[1], rel=0.1)
