"""Preparation of a table: what it does to values, to the reference, and on new tables."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from mnarkmeans.cli._errors import UserError
from mnarkmeans.cli._options import Normalize, Scale, Steps
from mnarkmeans.cli._prepare import Preparation, learn, matched
from mnarkmeans.cli._table import Table

VALUES = np.array([[1.5, np.nan, 3.0], [4.0, 5.0, np.nan], [7.0, 8.0, 9.0]])


def table_of(values, features=None):
    features = features or [f"f{j}" for j in range(values.shape[1])]
    ids = np.array([str(i) for i in range(values.shape[0])], dtype=object)
    return Table(values, ids, features)


@pytest.mark.parametrize("sparse", [False, True])
def test_scaling_keeps_zero_as_the_reference(sparse):
    values = VALUES if not sparse else sp.csr_matrix(np.nan_to_num(VALUES))
    table, preparation = learn(table_of(values), Steps(log1p=True, scale=Scale.std))
    X = preparation.apply(table)
    data = X.toarray()[np.nan_to_num(VALUES) != 0] if sparse else X[~np.isnan(X)]
    assert (np.asarray(data) > 0).all()
    np.testing.assert_array_equal(preparation.reference(0.0), np.zeros(3))
    carried = preparation.reference(2.0)
    np.testing.assert_allclose(preparation.undo(carried), 2.0)


def test_centring_makes_the_mean_the_reference():
    table, preparation = learn(table_of(VALUES), Steps(center=True, scale=Scale.std))
    X = preparation.apply(table)
    np.testing.assert_allclose(np.nanmean(X, axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(np.nanstd(X, axis=0), 1)
    np.testing.assert_allclose(preparation.undo(np.zeros(3)), np.nanmean(VALUES, axis=0))


def test_undo_inverts_apply():
    table, preparation = learn(table_of(VALUES), Steps(log1p=True, center=True, scale=Scale.maxabs))
    np.testing.assert_allclose(preparation.undo(preparation.apply(table)), VALUES)


def test_features_with_too_many_gaps_are_dropped_and_told():
    table, _ = learn(table_of(VALUES), Steps(max_missing=0.1))
    assert table.features == ["f0"]
    assert table.left_out == [("f1", "33% missing"), ("f2", "33% missing")]
    gappy = np.where(np.eye(3) > 0, np.nan, VALUES)
    with pytest.raises(UserError, match="raise --max-missing"):
        learn(table_of(gappy), Steps(max_missing=0.0))


def test_log1p_needs_values_above_minus_one():
    with pytest.raises(UserError, match="the table holds -2"):
        learn(table_of(np.array([[-2.0], [1.0]])), Steps(log1p=True))


def test_columns_are_matched_by_name():
    table = table_of(VALUES, ["c", "a", "b"])
    out = matched(table, ("a", "b"))
    np.testing.assert_array_equal(out.values, VALUES[:, [1, 2]])
    with pytest.raises(UserError, match="lacks 'd' and 1 more"):
        matched(table, ("a", "d", "e"))
    table.left_out.append(("gap", "no value observed"))
    out = matched(table, ("a", "gap", "c"))
    assert np.isnan(out.values[:, 1]).all()
    np.testing.assert_array_equal(out.values[:, 2], VALUES[:, 0])


def test_features_that_a_new_table_lacks_are_gaps_and_told():
    table = table_of(VALUES, ["c", "a", "b"])
    out = matched(table, ("a", "absent", "b", "c"))
    assert np.isnan(out.values[:, 1]).all()
    np.testing.assert_array_equal(out.values[:, 3], VALUES[:, 0])
    assert out.notes == [
        "1 of the model's 4 features are not in the table ('absent') and count as missing in "
        "every row"
    ]
    table.left_out.append(("absent", "text, such as 'x'"))  # it is there, and cannot be read
    with pytest.raises(UserError, match=r"lacks 'absent' \(text, such as 'x'\)"):
        matched(table, ("a", "absent", "b", "c"))


def test_preparation_survives_storage():
    _, preparation = learn(table_of(VALUES), Steps(log1p=True, center=True, scale=Scale.std))
    again = Preparation.from_dict(preparation.to_dict(), list(preparation.features))
    np.testing.assert_array_equal(again.undo(np.ones(3)), preparation.undo(np.ones(3)))


@pytest.mark.parametrize("sparse", [False, True])
def test_log2_makes_gaps_of_zeros_and_says_so(sparse):
    values = np.array([[0.0, 2.0], [4.0, 8.0]])
    table, preparation = learn(
        table_of(sp.csr_matrix(values[:, :]) if sparse else values), Steps(log2=True)
    )
    X = preparation.apply(table)
    X = Table(X, table.ids, table.features).dense() if sparse else X
    np.testing.assert_array_equal(X, [[np.nan, 1], [2, 3]])
    np.testing.assert_array_equal(preparation.undo(X[1]), [4, 8])
    if not sparse:  # there, a zero that is not stored was a gap before
        assert table.notes == ["1 zeros have no logarithm and became gaps (--log2)"]
    with pytest.raises(UserError, match=r"--log2 needs values that are not negative.* -1"):
        learn(table_of(np.array([[-1.0], [2.0]])), Steps(log2=True))
    with pytest.raises(UserError, match="two logarithms"):
        learn(table_of(values), Steps(log2=True, log1p=True))


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("kind", ["median", "total"])
def test_normalised_rows_have_the_same_level_over_observed_entries(sparse, kind):
    values = sp.csr_matrix(np.nan_to_num(VALUES)) if sparse else VALUES
    table, preparation = learn(table_of(values), Steps(normalize=Normalize(kind)))
    X = Table(preparation.apply(table), table.ids, table.features).dense()
    level = np.nanmedian if kind == "median" else np.nansum
    np.testing.assert_allclose(level(X, axis=1), level(X, axis=1)[0])
    # A new row is brought to the level of the fitted ones by its own entries.
    new = table_of(np.array([[100.0, np.nan, 300.0]]))
    np.testing.assert_allclose(level(preparation.apply(new)), level(X, axis=1)[0])
    np.testing.assert_allclose(preparation.apply(new) * preparation.row_factors(new), new.values)
    with pytest.raises(UserError, match=r"that of row '0' is -3; .*not logarithms yet"):
        learn(table_of(np.array([[-3.0], [1.0]])), Steps(normalize=Normalize(kind)))


def test_all_steps_survive_storage():
    steps = Steps(log2=True, normalize=Normalize.total, scale=Scale.std)
    table, preparation = learn(table_of(VALUES), steps)
    again = Preparation.from_dict(preparation.to_dict(), list(preparation.features))
    np.testing.assert_array_equal(again.apply(table), preparation.apply(table))
    for name, wrong in ("level", 0.0), ("log2", 1), ("normalize", "mean"), ("spread", np.zeros(3)):
        with pytest.raises(UserError, match=f"preparation/{name} of the model is damaged"):
            Preparation.from_dict(preparation.to_dict() | {name: wrong}, list("abc"))
