"""Frames of every kind give the result of the plain array, and come back as the kind they were."""

import sys

import numpy as np
import pytest

from mnarkmeans import MNARKMeans

narwhals = pytest.importorskip("narwhals")
pandas = pytest.importorskip("pandas")
polars = pytest.importorskip("polars")
pyarrow = pytest.importorskip("pyarrow")

NAMES = ["a", "b", "c"]


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    values = rng.normal(size=(30, 3)).round(2)
    values[15:] += 5.0
    values[5, 1] = values[7, 0] = values[20, 2] = np.nan
    return values


def columns(table):
    """Gaps as None, the way each library reads a null."""
    return {
        name: [None if np.isnan(v) else float(v) for v in table[:, j]]
        for j, name in enumerate(NAMES)
    }


KINDS = {
    "pandas": lambda t: pandas.DataFrame(t, columns=NAMES, index=[f"r{i}" for i in range(len(t))]),
    "pandas nullable": lambda t: pandas.DataFrame(t, columns=NAMES).astype("Float64"),
    "pandas arrow": lambda t: pandas.DataFrame(t, columns=NAMES).astype("double[pyarrow]"),
    "polars": lambda t: polars.DataFrame(columns(t)),
    "pyarrow": lambda t: pyarrow.table(columns(t)),
    "narwhals": lambda t: narwhals.from_native(polars.DataFrame(columns(t))),
}


def model(**kwargs):
    return MNARKMeans(2, lam=0.5, random_state=0, **kwargs)


def to_numpy(frame):
    if isinstance(frame, pyarrow.Table):
        return frame.to_pandas().to_numpy()
    return np.asarray(frame.to_numpy(), dtype=float)


@pytest.fixture(params=KINDS)
def frame(request, table):
    return KINDS[request.param](table)


def test_a_frame_gives_the_result_of_the_array(frame, table):
    by_frame, by_array = model().fit(frame), model().fit(table)
    assert by_frame.inertia_ == by_array.inertia_
    np.testing.assert_array_equal(by_frame.predict(frame), by_array.predict(table))
    assert by_frame.feature_names_in_.tolist() == NAMES


def test_impute_returns_the_kind_it_was_given(frame, table):
    fitted = model().fit(frame)
    filled = fitted.impute(frame)
    assert type(filled) is type(frame)
    np.testing.assert_array_equal(to_numpy(filled), model().fit(table).impute(table))
    names = filled.column_names if isinstance(filled, pyarrow.Table) else list(filled.columns)
    assert names == NAMES


@pytest.mark.parametrize("kind", ["float32", "Float32", "Float64", "float[pyarrow]"])
def test_impute_keeps_the_float_type_of_pandas_columns(table, kind):
    frame = pandas.DataFrame(table, columns=NAMES).astype(kind)
    filled = model().fit(frame).impute(frame)
    assert (filled.dtypes == frame.dtypes).all()
    assert not filled.isna().any().any()


def test_impute_keeps_the_index(table):
    frame = pandas.DataFrame(table, columns=NAMES, index=range(100, 130))
    assert model().fit(frame).impute(frame).index.equals(frame.index)


@pytest.mark.parametrize("kind", ["Int64", "int64[pyarrow]"])
def test_whole_numbers_with_gaps_become_floats(table, kind):
    frame = (pandas.DataFrame(table, columns=NAMES) * 100).round().astype("Int64").astype(kind)
    fitted = model().fit(frame)
    expected = model().fit(np.round(table * 100))
    assert fitted.inertia_ == expected.inertia_
    assert fitted.impute(frame).dtypes.tolist() == [np.dtype(float)] * 3


def test_the_order_of_columns_is_checked_at_predict(frame):
    fitted = model().fit(frame)
    turned = frame.select(["c", "a", "b"]) if hasattr(frame, "select") else frame[["c", "a", "b"]]
    for method in (fitted.predict, fitted.transform, fitted.impute, fitted.score):
        with pytest.raises(ValueError, match="same order"):
            method(turned)


def test_a_frame_of_one_kind_predicts_rows_of_another(table):
    fitted = model().fit(KINDS["pandas"](table))
    for make in KINDS.values():
        np.testing.assert_array_equal(fitted.predict(make(table)), fitted.labels_)


@pytest.mark.parametrize(
    ("output", "kind"), [("pandas", "DataFrame"), ("polars", "DataFrame"), ("default", "ndarray")]
)
def test_set_output_names_the_distances(frame, output, kind):
    out = model().set_output(transform=output).fit_transform(frame)
    assert type(out).__name__ == kind
    if output != "default":
        assert type(out).__module__.startswith(output)
        assert list(out.columns) == ["mnarkmeans0", "mnarkmeans1"]


def test_a_lazy_frame_says_to_collect_it(table):
    lazy = polars.DataFrame(columns(table)).lazy()
    for given in (lazy, narwhals.from_native(lazy)):
        with pytest.raises(TypeError, match="collect"):
            model().fit(given)


def test_text_columns_are_named_as_the_trouble(table):
    frame = polars.DataFrame(columns(table)).with_columns(polars.lit("x").alias("kind"))
    with pytest.raises(ValueError, match="numbers only"):
        model().fit(frame)


def test_without_narwhals_other_frames_are_still_read(table, monkeypatch):
    monkeypatch.setitem(sys.modules, "narwhals", None)  # import narwhals now fails
    from mnarkmeans._validation import like_input, native

    frame = KINDS["polars"](table)
    assert native(frame) is frame
    assert isinstance(like_input(table, frame), np.ndarray)
