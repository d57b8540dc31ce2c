"""ampute: each mechanism against its formula, the share solved for, and what it refuses."""

import numpy as np
import pandas as pd
import pytest
from limit_data import mixture
from scipy import sparse

from mnarkmeans.missingness import ampute


@pytest.fixture(scope="module")
def X():
    return np.random.default_rng(0).normal(1.0, 2.0, size=(4000, 5))


@pytest.mark.parametrize("mechanism", ["mcar", "mar", "mnar0", "mnar1", "mnar2", "limit"])
def test_fraction_is_met_and_what_stays_is_untouched(X, mechanism):
    before, holes = X.copy(), X.copy()
    holes[::3, 1:] = np.nan
    for table, fraction in ((X, 0.1), (X, 0.45), (holes, 0.5)):
        amputed = ampute(table, mechanism, fraction=fraction, rng=1)
        lost = np.isnan(amputed)
        assert lost.mean() == pytest.approx(fraction, abs=0.015)
        assert lost[np.isnan(table)].all()
        np.testing.assert_array_equal(amputed[~lost], table[~lost])
    np.testing.assert_array_equal(X, before)


@pytest.mark.parametrize(
    ("mechanism", "formula"),
    [
        ("mnar0", lambda x: np.exp(-0.7 * x**2)),
        ("mnar1", lambda x: 1 / (1 + np.exp(0.7 * x**2))),
        ("mcar", lambda x: 0.7),
    ],
)
def test_share_missing_near_a_value_follows_the_formula(mechanism, formula):
    for value in (0.0, 0.5, 1.5):
        column = np.full((20_000, 1), value)
        share = np.isnan(ampute(column, mechanism, strength=0.7, rng=3)).mean()
        assert share == pytest.approx(formula(value), abs=0.015)


def test_mnar2_cuts_below_the_quantile_of_each_feature():
    X = np.array([[1.0, -10.0], [-2.0, 20.0], [3.0, 30.0], [-4.0, -40.0], [5.0, 50.0]])
    lost = np.isnan(ampute(X, "mnar2", strength=0.5))
    np.testing.assert_array_equal(lost, [[1, 1], [1, 1], [0, 0], [0, 0], [0, 0]])


def test_mar_depends_on_the_complete_feature_only(X):
    amputed = ampute(X, "mar", fraction=0.4, rng=1)
    lost = np.isnan(amputed[:, 1:])
    assert not np.isnan(amputed[:, 0]).any()
    near = np.abs(X[:, 0]) < 0.5
    assert lost[near].mean() > 2 * lost[~near].mean()
    # given the driver, a feature's own size says nothing
    middle = (np.abs(X[:, 0]) > 1) & (np.abs(X[:, 0]) < 2)
    size = np.abs(X[middle, 1:])
    assert size[lost[middle]].mean() == pytest.approx(size[~lost[middle]].mean(), rel=0.1)


@pytest.mark.parametrize("softness", [0.0, 0.4])
def test_every_feature_loses_its_share_below_a_limit(softness):
    X = mixture(n=2000)[0] * [1.0, 2.0, 3.0, 10.0, 1.0, 1.0] + 7.0
    gone = np.isnan(ampute(X, "limit", strength=0.3, softness=softness, rng=0))
    np.testing.assert_allclose(gone.mean(axis=0), 0.3, atol=0.03 if softness else 1e-3)
    for values, lost in zip(X.T, gone.T, strict=True):
        overlap = np.mean(values[lost] > values[~lost].min())
        assert overlap == 0 if softness == 0 else 0.1 < overlap < 1.0


def test_reference_seed_words_and_kinds_of_tables(X):
    names, expected = list("abcde"), ampute(X, strength=0.5, rng=2)
    shifted = ampute(X + 25, "mnar0", strength=0.5, reference=[25.0] * 5, rng=2)
    np.testing.assert_array_equal(np.isnan(shifted), np.isnan(expected))
    np.testing.assert_array_equal(
        ampute(X, "threshold", fraction=0.2, rng=0), ampute(X, "mnar2", fraction=0.2, rng=0)
    )
    single = ampute(X.astype(np.float32), "decay", strength=0.5, rng=np.random.default_rng(2))
    frame = ampute(
        pd.DataFrame(X, columns=names, index=range(10, 10 + len(X))), strength=0.5, rng=2
    )
    assert (single.dtype, list(frame.columns)) == (np.float32, names)
    for same in (single, frame.to_numpy()):
        np.testing.assert_allclose(same, expected, rtol=1e-6)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (dict(mechanism="mnar9", fraction=0.1), "got 'mnar9'"),
        (dict(), "either strength= or fraction="),
        (dict(strength=1, fraction=0.1), "either strength= or fraction="),
        (dict(fraction=1.5), "cannot make 1.5"),
        (dict(strength=-1), "got -1"),
        (dict(strength=np.nan), "got nan"),
        (dict(mechanism="mcar", strength=2), "between 0 and 1; got 2"),
        (dict(mechanism="mnar1", fraction=0.8), "cannot make 0.8"),
        (dict(mechanism="mar", fraction=0.95), "cannot make 0.95"),
        (dict(fraction=0.2, reference=[1, 2]), "n_features=5"),
        (dict(fraction=0.2, reference=np.inf), "finite"),
        (dict(mechanism="class", fraction=0.2), "class by class"),
        (dict(fraction=0.2, softness=0.5), "softness belongs to mechanism='limit'"),
        (dict(mechanism="limit", fraction=0.2, softness=-1), "a finite number >= 0; got -1"),
    ],
)
def test_mistakes_are_named(X, arguments, message):
    with pytest.raises(ValueError, match=message):
        ampute(X, **arguments)


def test_tables_that_cannot_lose_more_are_refused(X):
    with pytest.raises(ValueError, match="missing already"):
        ampute(ampute(X, fraction=0.4, rng=0), fraction=0.1)
    with pytest.raises(ValueError, match="one of them complete"):
        ampute(np.array([[1.0, np.nan], [np.nan, 1.0]]), "mar", fraction=0.6)
    with pytest.raises(TypeError, match="not stored already count as missing"):
        ampute(sparse.csr_array(np.eye(3)), fraction=0.1)
