"""Preparation of a table: what it does to values, to the reference, and on new tables."""

import numpy as np
import pytest
import scipy.sparse as sp

from mnarkmeans.tables import Preparation, Table, TableError

VALUES = np.array([[1.5, np.nan, 3.0], [4.0, 5.0, np.nan], [7.0, 8.0, 9.0]])
DENSE_OR_SPARSE = pytest.mark.parametrize("sparse", [False, True])


def table_of(values, features=None, sparse=False):
    """A table; sparse: NaN is not stored."""
    ids = np.array([str(i) for i in range(values.shape[0])], dtype=object)
    features = features or [f"f{j}" for j in range(values.shape[1])]
    return Table(sp.csr_matrix(np.nan_to_num(values)) if sparse else values, ids, features)


def dense(values):
    return Table(values, np.array([]), []).dense()


STEPS = [
    {"log1p": True, "scale": "std"}, {"log1p": True, "center": True, "scale": "maxabs"},
    {"log2": True, "normalize": "total", "scale": "std"}, {"center_rows": True},
    {"center": True}, {"zscore_rows": True}, {"log2": True, "center_rows": True},
    {"log1p": True, "zscore_rows": True, "scale": "std"},
    {"normalize": "median", "log2": True, "zscore_rows": True, "center": True, "scale": "maxabs"},
]  # fmt: skip


@DENSE_OR_SPARSE
@pytest.mark.parametrize("steps", STEPS)
def test_every_preparation_can_be_undone_and_stored(steps, sparse):
    rng = np.random.default_rng(0)
    values = rng.uniform(1, 9, (6, 5))
    values[rng.random(values.shape) < 0.2] = np.nan
    fitted, table, X = Preparation(**steps).fit_apply(table_of(values, sparse=sparse))
    np.testing.assert_array_equal(np.isnan(dense(X)), np.isnan(values))
    np.testing.assert_allclose(fitted.undo(dense(X), table), values)
    again = Preparation.from_dict(fitted.to_dict(), list(fitted.features))
    np.testing.assert_array_equal(dense(again.apply(table)), dense(X))
    if "center_rows" not in steps and "zscore_rows" not in steps:
        assert fitted.own_units
        return
    assert not fitted.own_units
    with pytest.raises(TableError, match="no place where rows are centred"):
        fitted.reference(2.0)
    if "scale" not in steps:
        np.testing.assert_allclose(np.nanmean(dense(X), axis=1), 0, atol=1e-12)
        if steps.get("zscore_rows"):
            np.testing.assert_allclose(np.nanstd(dense(X), axis=1), 1)
    if len(steps) == 1:  # a row without values is undone as one of mean 0
        table = table_of(np.vstack([values, np.full(5, np.nan)]), sparse=sparse)
        fitted, table, X = Preparation(**steps).fit_apply(table)
        assert np.isnan(dense(X)[6]).all()
        np.testing.assert_array_equal(fitted.undo(np.full((7, 5), 0.25), table)[6], 0.25)


def test_damaged_or_contradictory_preparations_are_refused():
    steps = Preparation(log2=True, normalize="total", scale="std")
    stored = steps.fit_apply(table_of(VALUES))[0].to_dict()
    for wrong in ([], stored | {"spread": np.ones(2)}, stored | {"unknown": 1}):
        with pytest.raises(TableError, match="of the model is damaged"):
            Preparation.from_dict(wrong, list("abc"))
    both = {"center_rows": True, "zscore_rows": True}
    for wrong in ({"scale": "log"}, {"log1p": True, "log2": True}, both):
        with pytest.raises(TableError):
            Preparation(**wrong)


def test_scaling_keeps_zero_and_centring_makes_the_mean_the_reference():
    for sparse in (False, True):
        table = table_of(VALUES, sparse=sparse)
        fitted, _, X = Preparation(log1p=True, scale="std").fit_apply(table)
        assert np.nanmin(dense(X)) > 0
        np.testing.assert_array_equal(fitted.reference(0.0), np.zeros(3))
        np.testing.assert_allclose(fitted.undo(fitted.reference(2.0)), 2.0)
    fitted, _, X = Preparation(center=True, scale="std").fit_apply(table_of(VALUES))
    np.testing.assert_allclose(np.nanmean(X, axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(np.nanstd(X, axis=0), 1)
    np.testing.assert_allclose(fitted.undo(np.zeros(3)), np.nanmean(VALUES, axis=0))


def test_features_with_too_many_missing_values_are_dropped():
    _, table, _ = Preparation(max_missing=0.1).fit_apply(table_of(VALUES))
    assert table.features == ["f0"]
    assert table.left_out == [("f1", "33% missing"), ("f2", "33% missing")]
    with pytest.raises(TableError, match="raise max_missing="):
        Preparation(max_missing=0.0).fit_apply(table_of(np.where(np.eye(3) > 0, np.nan, VALUES)))


def test_columns_of_a_new_table_are_matched_by_name():
    def matched(*features):
        return Preparation(features=features).select(table)

    table = table_of(VALUES, ["c", "a", "b"])
    np.testing.assert_array_equal(matched("a", "b").values, VALUES[:, [1, 2]])
    with pytest.raises(TableError, match="lacks 'd' and 1 more"):
        matched("a", "d", "e")
    out = matched("a", "absent", "b", "c")
    assert np.isnan(out.values[:, 1]).all()
    np.testing.assert_array_equal(out.values[:, 3], VALUES[:, 0])
    (note,) = out.notes
    assert note.startswith("1 of the model's 4 features are not in the table ('absent')")
    table.left_out += [("empty", "no value observed"), ("absent", "text, such as 'x'")]
    out = matched("a", "empty", "c")
    assert np.isnan(out.values[:, 1]).all()
    assert not out.notes
    with pytest.raises(TableError, match=r"lacks 'absent' \(text, such as 'x'\)"):
        matched("a", "absent", "b", "c")


@DENSE_OR_SPARSE
def test_logarithms_need_positive_values(sparse):
    values = np.array([[0.0, 2.0], [4.0, 8.0]])
    fitted, table, X = Preparation(log2=True).fit_apply(table_of(values, sparse=sparse))
    np.testing.assert_array_equal(dense(X), [[np.nan, 1], [2, 3]])
    np.testing.assert_array_equal(fitted.undo(dense(X)[1]), [4, 8])
    if not sparse:  # there, a zero that is not stored was missing before
        assert table.notes == ["1 zeros have no logarithm and became missing"]
    for name, lowest in (("log2", 0), ("log1p", -1)):
        with pytest.raises(TableError, match=rf"{name}= needs values above {lowest}, .* -2"):
            Preparation(**{name: True}).fit_apply(table_of(np.array([[-2.0], [2.0]]), None, sparse))


@DENSE_OR_SPARSE
@pytest.mark.parametrize("kind", ["median", "total"])
def test_normalised_rows_have_the_same_level_over_observed_entries(sparse, kind):
    fitted, _, X = Preparation(normalize=kind).fit_apply(table_of(VALUES, sparse=sparse))
    level = np.nanmedian if kind == "median" else np.nansum
    levels = level(dense(X), axis=1)
    np.testing.assert_allclose(levels, levels[0])
    _, _, small = Preparation(normalize=kind).fit_apply(table_of(VALUES / 100, sparse=sparse))
    np.testing.assert_allclose(dense(small), dense(X) / 100)  # the same in other units
    # A new row is brought to the level of the fitted ones by its own entries.
    new = table_of(np.array([[100.0, np.nan, 300.0]]))
    np.testing.assert_allclose(level(fitted.apply(new)), levels[0])
    np.testing.assert_allclose(fitted.undo(fitted.apply(new), new), new.values)
    for wrong in (-3, 0):
        with pytest.raises(TableError, match=rf"that of row '0' is {wrong}; .*not for logarithms"):
            Preparation(normalize=kind).fit_apply(table_of(np.array([[float(wrong)], [1.0]])))


def test_steps_are_options_of_the_command_line():
    steps = Preparation(log2=True, normalize="median", zscore_rows=True, max_missing=0.5)
    options = "--max-missing 0.5 --normalize median --log2 --zscore-rows"
    assert steps.typed() == options.split()
    assert steps.units == "log2, z-score by row"


def test_batches_are_removed_remembered_and_put_back():
    rng = np.random.default_rng(0)
    group, plate = np.arange(40) % 2, np.repeat(["p1", "p2"], 20)
    values = rng.normal(20, 0.3, (40, 6)) + 3.0 * group[:, None]
    values[plate == "p2"] += rng.normal(5, 1, 6)
    values[rng.random(values.shape) < 0.1] = np.nan
    table = table_of(values)
    table.annotations["plate"] = list(plate)
    fitted, table, X = Preparation(batch="plate", scale="std").fit_apply(table, n_clusters=2)
    between = np.nanmean(X[plate == "p2"], axis=0) - np.nanmean(X[plate == "p1"], axis=0)
    assert np.abs(between).max() < 0.3
    np.testing.assert_allclose(fitted.undo(X, table), values)
    again = Preparation.from_dict(fitted.to_dict(), list(fitted.features))
    np.testing.assert_array_equal(again.apply(table), X)
    new = table_of(values[:2])
    for annotations, message in (
        ({}, "no column for batch= called 'plate'"),
        ({"plate": ["p1", "p9"]}, "Batch p9 was not among those of the fit"),
        ({"plate": ["p1", None]}, r"1 row\(s\) have no batch"),
    ):
        new.annotations.update(annotations)
        with pytest.raises(TableError, match=message):
            again.apply(new)
