"""Preparation of a table: what it does to values, to the reference, and on new tables."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from mnarkmeans.tables import Preparation, Table, TableError

VALUES = np.array([[1.5, np.nan, 3.0], [4.0, 5.0, np.nan], [7.0, 8.0, 9.0]])


def learn(table, steps):
    preparation, table, _ = steps.fit_apply(table)
    return table, preparation


def matched(table, features):
    return Preparation(features=features).select(table)


def table_of(values, features=None):
    features = features or [f"f{j}" for j in range(values.shape[1])]
    ids = np.array([str(i) for i in range(values.shape[0])], dtype=object)
    return Table(values, ids, features)


@pytest.mark.parametrize("sparse", [False, True])
def test_scaling_keeps_zero_as_the_reference(sparse):
    values = VALUES if not sparse else sp.csr_matrix(np.nan_to_num(VALUES))
    table, preparation = learn(table_of(values), Preparation(log1p=True, scale="std"))
    X = preparation.apply(table)
    data = X.toarray()[np.nan_to_num(VALUES) != 0] if sparse else X[~np.isnan(X)]
    assert (np.asarray(data) > 0).all()
    np.testing.assert_array_equal(preparation.reference(0.0), np.zeros(3))
    carried = preparation.reference(2.0)
    np.testing.assert_allclose(preparation.undo(carried), 2.0)


def test_centring_makes_the_mean_the_reference():
    table, preparation = learn(table_of(VALUES), Preparation(center=True, scale="std"))
    X = preparation.apply(table)
    np.testing.assert_allclose(np.nanmean(X, axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(np.nanstd(X, axis=0), 1)
    np.testing.assert_allclose(preparation.undo(np.zeros(3)), np.nanmean(VALUES, axis=0))


def test_undo_inverts_apply():
    table, preparation = learn(
        table_of(VALUES), Preparation(log1p=True, center=True, scale="maxabs")
    )
    np.testing.assert_allclose(preparation.undo(preparation.apply(table)), VALUES)


def test_features_with_too_many_gaps_are_dropped_and_told():
    table, _ = learn(table_of(VALUES), Preparation(max_missing=0.1))
    assert table.features == ["f0"]
    assert table.left_out == [("f1", "33% missing"), ("f2", "33% missing")]
    gappy = np.where(np.eye(3) > 0, np.nan, VALUES)
    with pytest.raises(TableError, match="raise max_missing="):
        learn(table_of(gappy), Preparation(max_missing=0.0))


def test_log1p_needs_values_above_minus_one():
    with pytest.raises(TableError, match="the table holds -2"):
        learn(table_of(np.array([[-2.0], [1.0]])), Preparation(log1p=True))


def test_columns_are_matched_by_name():
    table = table_of(VALUES, ["c", "a", "b"])
    out = matched(table, ("a", "b"))
    np.testing.assert_array_equal(out.values, VALUES[:, [1, 2]])
    with pytest.raises(TableError, match="lacks 'd' and 1 more"):
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
    with pytest.raises(TableError, match=r"lacks 'absent' \(text, such as 'x'\)"):
        matched(table, ("a", "absent", "b", "c"))


def test_preparation_survives_storage():
    _, preparation = learn(table_of(VALUES), Preparation(log1p=True, center=True, scale="std"))
    again = Preparation.from_dict(preparation.to_dict(), list(preparation.features))
    np.testing.assert_array_equal(again.undo(np.ones(3)), preparation.undo(np.ones(3)))


@pytest.mark.parametrize("sparse", [False, True])
def test_log2_makes_gaps_of_zeros_and_says_so(sparse):
    values = np.array([[0.0, 2.0], [4.0, 8.0]])
    table, preparation = learn(
        table_of(sp.csr_matrix(values[:, :]) if sparse else values), Preparation(log2=True)
    )
    X = preparation.apply(table)
    X = Table(X, table.ids, table.features).dense() if sparse else X
    np.testing.assert_array_equal(X, [[np.nan, 1], [2, 3]])
    np.testing.assert_array_equal(preparation.undo(X[1]), [4, 8])
    if not sparse:  # there, a zero that is not stored was a gap before
        assert table.notes == ["1 zeros have no logarithm and became missing"]
    with pytest.raises(TableError, match=r"log2= needs values above 0, .* -1"):
        learn(table_of(np.array([[-1.0], [2.0]])), Preparation(log2=True))
    with pytest.raises(TableError, match="two logarithms"):
        learn(table_of(values), Preparation(log2=True, log1p=True))


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("kind", ["median", "total"])
def test_normalised_rows_have_the_same_level_over_observed_entries(sparse, kind):
    values = sp.csr_matrix(np.nan_to_num(VALUES)) if sparse else VALUES
    table, preparation = learn(table_of(values), Preparation(normalize=kind))
    X = Table(preparation.apply(table), table.ids, table.features).dense()
    level = np.nanmedian if kind == "median" else np.nansum
    np.testing.assert_allclose(level(X, axis=1), level(X, axis=1)[0])
    # A new row is brought to the level of the fitted ones by its own entries.
    new = table_of(np.array([[100.0, np.nan, 300.0]]))
    np.testing.assert_allclose(level(preparation.apply(new)), level(X, axis=1)[0])
    np.testing.assert_allclose(preparation.undo(preparation.apply(new), new), new.values)
    with pytest.raises(TableError, match=r"that of row '0' is -3; .*not for logarithms"):
        learn(table_of(np.array([[-3.0], [1.0]])), Preparation(normalize=kind))


def test_all_steps_survive_storage():
    steps = Preparation(log2=True, normalize="total", scale="std")
    table, preparation = learn(table_of(VALUES), steps)
    again = Preparation.from_dict(preparation.to_dict(), list(preparation.features))
    np.testing.assert_array_equal(again.apply(table), preparation.apply(table))
    for name, wrong in ("level", 0.0), ("log2", 1), ("normalize", "mean"), ("spread", np.zeros(3)):
        with pytest.raises(TableError, match=f"preparation/{name} of the model is damaged"):
            Preparation.from_dict(preparation.to_dict() | {name: wrong}, list("abc"))


STEPS = [
    {"center_rows": True}, {"zscore_rows": True}, {"log2": True, "center_rows": True},
    {"log1p": True, "zscore_rows": True, "scale": "std"},
    {"normalize": "median", "log2": True, "zscore_rows": True, "center": True, "scale": "maxabs"},
]  # fmt: skip


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("steps", STEPS)
def test_rows_are_centred_over_their_observed_entries_and_back_again(steps, sparse):
    rng = np.random.default_rng(0)
    dense = rng.uniform(1, 9, (6, 5))
    dense[rng.random(dense.shape) < 0.2] = np.nan
    values = sp.csr_matrix(np.nan_to_num(dense)) if sparse else dense
    fitted, table, X = Preparation(**steps).fit_apply(table_of(values))
    X = Table(X, table.ids, table.features).dense()
    np.testing.assert_array_equal(np.isnan(X), np.isnan(dense))
    if "scale" not in steps:
        np.testing.assert_allclose(np.nanmean(X, axis=1), 0, atol=1e-12)
        if steps.get("zscore_rows"):
            np.testing.assert_allclose(np.nanstd(X, axis=1), 1)
    np.testing.assert_allclose(fitted.undo(X, table), dense)
    again = Preparation.from_dict(fitted.to_dict(), list(fitted.features))
    np.testing.assert_array_equal(Table(again.apply(table), table.ids, table.features).dense(), X)
    assert not fitted.own_units
    with pytest.raises(TableError, match="no place where rows are centred"):
        fitted.reference(2.0)


def test_options_and_models_speak_of_the_same_steps():
    steps = Preparation(log2=True, normalize="median", zscore_rows=True, max_missing=0.5)
    assert steps.typed() == [
        "--max-missing", "0.5", "--normalize", "median", "--log2", "--zscore-rows",
    ]  # fmt: skip
    assert steps.units == "log2, z-score by row"
    both = {"center_rows": True, "zscore_rows": True}
    for wrong in ({"scale": "log"}, {"log1p": True, "log2": True}, both):
        with pytest.raises(TableError):
            Preparation(**wrong)


def test_batches_are_removed_remembered_and_put_back():
    rng = np.random.default_rng(0)
    group, plate = np.arange(40) % 2, np.repeat(["p1", "p2"], 20)
    values = rng.normal(20, 0.3, (40, 6)) + 3.0 * group[:, None]
    values[plate == "p2"] += rng.normal(5, 1, 6)
    values[rng.random(values.shape) < 0.1] = np.nan
    table = table_of(values)
    table.annotations["plate"] = list(plate)
    steps = Preparation(batch="plate", scale="std")
    fitted, table, X = steps.fit_apply(table, n_clusters=2)
    between = np.nanmean(X[plate == "p2"], axis=0) - np.nanmean(X[plate == "p1"], axis=0)
    assert np.abs(between).max() < 0.3
    np.testing.assert_allclose(fitted.undo(X, table), values)
    again = Preparation.from_dict(fitted.to_dict(), list(fitted.features))
    np.testing.assert_array_equal(again.apply(table), X)
    assert "--batch" in steps.typed()
    new = table_of(values[:2])
    for names, message in (
        (None, "no column for batch= called 'plate'"),
        (["p1", "p9"], "Batch p9 was not among those of the fit"),
        (["p1", None], r"1 row\(s\) have no batch"),
    ):
        if names:
            new.annotations["plate"] = names
        with pytest.raises(TableError, match=message):
            again.apply(new)
