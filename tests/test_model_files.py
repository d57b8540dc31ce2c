"""Model files: whole, safe, clear about what is wrong with them; save and load.

pytest tests/test_model_files.py --hypothesis-profile=explore     # new mutations, and more
"""

import errno
import io
import json
import pickle
import tempfile
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mutations import assert_one_sentence, mutations
from sklearn.exceptions import NotFittedError

import mnarkmeans
from mnarkmeans import MiniBatchMNARKMeans, MNARKMeans, MNARKMeansCV, MNARMixture, _io
from mnarkmeans._io import pack
from mnarkmeans._model_files import (
    FORMAT_VERSION,
    ModelFileError,
    _document_sum,
    _sha256,
    load_model,
    save_model,
)
from mnarkmeans.datasets import make_gaussian_clusters

DATA = Path(__file__).parent / "data"
X = np.array([[0.0, 1.0, np.nan], [0.2, np.nan, 5.0], [5.0, 6.0, 1.0], [5.1, 6.2, np.nan]])


@pytest.fixture(scope="module")
def model():
    return MNARKMeans(2, lam=0.5, reference=np.array([0.0, 0.1, 0.2]), random_state=0).fit(X)


@pytest.fixture
def folder(tmp_path, model):
    extra = {"scale": np.array([1.0, 2.0]), "deep": {"list": [1, np.array([3])], "nan": np.nan}}
    save_model(model, tmp_path, feature_names=["a", "b", "c"], extra=extra)
    return tmp_path


def rewrite(folder, **changes):
    """A document whose own checksum is right; part__name is a field inside a part."""
    document = json.loads((folder / "model.json").read_text())
    for place, value in changes.items():
        *parts, name = place.split("__")
        inside = document[parts[0]] if parts else document
        inside[name] = value
    document["sha256"] = _document_sum(document)
    (folder / "model.json").write_text(json.dumps(document))


def replace_arrays(folder, packed):
    (folder / "model.npz").write_bytes(packed)
    rewrite(folder, arrays={"file": "model.npz", "sha256": _sha256(packed)})


def cut(path):
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def swap(path, old, new):
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def refused(folder, message):
    """In one sentence."""
    with pytest.raises(ModelFileError, match=message) as caught:
        load_model(folder)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 600


def test_round_trip_and_the_same_model_gives_the_same_bytes(folder, model, tmp_path_factory):
    saved = load_model(folder)
    assert saved.feature_names == ["a", "b", "c"]
    np.testing.assert_array_equal(saved.estimator.transform(X), model.transform(X))
    assert np.isnan(saved.estimator.missing_values)
    np.testing.assert_array_equal(saved.extra["scale"], [1.0, 2.0])
    np.testing.assert_array_equal(saved.extra["deep"]["list"][1], [3])
    assert np.isnan(saved.extra["deep"]["nan"])
    assert load_model(folder / "model.json").feature_names == ["a", "b", "c"]
    other = tmp_path_factory.mktemp("other")
    save_model(saved.estimator, other, feature_names=saved.feature_names, extra=saved.extra)
    assert (other / "model.json").read_bytes() == (folder / "model.json").read_bytes()


def field(place, value):
    return lambda folder: rewrite(folder, **{place: value})


def array(name, value):
    def damage(folder):
        with np.load(folder / "model.npz") as archive:
            replace_arrays(folder, pack(dict(archive) | {f"fitted/{name}": value}))
        rewrite(folder, **{f"fitted__{name}": {"$array": f"fitted/{name}"}})

    return damage


DAMAGED = [
    (lambda f: (f / "model.json").unlink(), "there is no model"),
    (lambda f: (f / "model.npz").unlink(), "second file of the model"),
    (lambda f: cut(f / "model.json"), "not a whole model file"),
    (lambda f: cut(f / "model.npz"), "does not belong to its model.json"),
    (lambda f: swap(f / "model.json", '"lam_": 0.5', '"lam_": 0.7'), "was changed after"),
    (lambda f: swap(f / "model.json", '"a"', r'"\ud800"'), "surrogates not allowed"),
    (lambda f: (f / "model.json").write_text("[]"), "not a mnarkmeans model"),
    (lambda f: (f / "model.json").write_text("[" * 100_000), "nested too deeply"),
    (lambda f: rewrite(f, format_version=99, written_by="mnarkmeans 9"), "by 'mnarkmeans 9';"),
    # From here on with the right checksum.
    (field("format_version", "x"), "the format version 'x'"),
    (field("arrays", None), "arrays must name a checksum, found None"),
    (field("estimator", "Robot"), "must be 'MNARKMeans' or 'MNARMixture', found 'Robot'"),
    (field("feature_names", ["a"]), r"cluster_centers_ has the shape \(2, 3\) instead of 2 x 1"),
    (field("feature_names", "abc"), "feature_names must be a list"),
    (field("fitted", {}), "fitted lacks cluster_centers_"),
    (field("fitted", None), "fitted must be an object"),
    (field("extra", 3), "extra must be an object"),
    (field("extra", {"when": {"$date": "today"}}), "extra/when has the unknown tag '\\$date'"),
    (field("extra", {"x": {"$array": "no"}}), "extra/x has the tag .* unknown value 'no'"),
    (field("extra", {"x": {"$number": "1e999"}}), "extra/x has the tag .* unknown value '1e999'"),
    (field("params", {"evil": 1}), "unknown parameter 'evil'"),
    (field("params__n_clusters", 3), r"cluster_centers_ .* shape \(2, 3\) instead of 3 x 3"),
    (field("params__n_init", "many"), "params: n_init must be a whole number"),
    (field("params__n_jobs", "all"), "params: n_jobs must be None or a whole number"),
    (field("params__missing_values", "n.d."), "params: missing_values must be"),
    *((field("fitted__lam_", value), "lam_ must be (a finite number|>= 0), found")
      for value in (-1, {"$number": "nan"}, {"$number": "inf"}, "much", None, True, [0.5])),
    (field("fitted__inertia_", -1.0), "inertia_ must be >= 0"),
    (field("fitted__n_iter_", 10**999), "n_iter_ must be a finite number"),
    (field("fitted__cluster_centers_", [[1, 2, 3]]), "cluster_centers_ must be a 2-dimensional"),
    (array("cluster_centers_", np.zeros((0, 3))), r"cluster_centers_ has the shape \(0, 3\)"),
    (array("cluster_centers_", np.zeros((2, 0))), r"cluster_centers_ has the shape \(2, 0\)"),
    (array("cluster_centers_", np.full((2, 3), np.nan)), "cluster_centers_ must be a 2-dim"),
    (array("cluster_centers_", np.zeros((2, 3), int)), "cluster_centers_ must be a 2-dim"),
    (array("cluster_centers_", np.array([["x"]])), "cluster_centers_ holds <U1"),
    (array("lam_", np.array([0.0, -1.0, 0.0])), "lam_ must be >= 0, found -1"),
    (array("reference_", np.zeros(2)), r"reference_ has the shape \(2,\)"),
    (array("loss_path_", np.array([np.inf])), "loss_path_ must be a 1-dimensional array of finite"),
]  # fmt: skip


@pytest.mark.parametrize(("damage", "message"), DAMAGED)
def test_damage_is_named_in_a_sentence(folder, damage, message):
    damage(folder)
    refused(folder, message)


def test_an_archive_that_promises_more_than_it_holds_takes_no_memory(folder):
    """1e15 numbers in a header of 128 bytes, and a gigabyte of zeros in a compressed kilobyte."""
    header = io.BytesIO()
    promised = {"descr": "<f8", "fortran_order": False, "shape": (10**15, 3)}
    np.lib.format.write_array_header_1_0(header, promised)
    for how, content, message in (
        (zipfile.ZIP_STORED, header.getvalue() + bytes(48), "is not an array of numbers"),
        (zipfile.ZIP_DEFLATED, bytes(10**7), "is compressed"),
    ):
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w", how) as archive:
            archive.writestr("fitted/cluster_centers_.npy", content)
        replace_arrays(folder, packed.getvalue())
        refused(folder, f"cluster_centers_ {message}")


def test_a_model_written_by_earlier_code_is_read():
    """tests/data/model-2 stays as it was first written: files of users do not change either."""
    saved = load_model(DATA / f"model-{FORMAT_VERSION}")
    assert saved.estimator.predict(X).tolist() == [0, 0, 1, 1]


def test_loading_executes_nothing(folder, tmp_path_factory):
    """A pickle smuggled in, with all checksums right, is refused and not run."""
    target = tmp_path_factory.mktemp("evil") / "ran"

    class Evil:
        def __reduce__(self):
            return (open, (str(target), "w"))

    packed = pack({"fitted/cluster_centers_": np.array([Evil()], dtype=object)})
    assert b"open" in packed
    replace_arrays(folder, packed)
    refused(folder, "cluster_centers_ is not an array of numbers")
    (folder / "model.json").write_bytes(pickle.dumps(Evil()))
    refused(folder, "not a whole model file")
    assert not target.exists()


# --- save and load -------------------------------------------------------------------------------

CLUSTERS = make_gaussian_clusters(90, 4, 3, separation=5.0, strength=1.0, random_state=0).data
MODELS = {
    "kmeans": MNARKMeans(3, random_state=0),
    "generator": MNARKMeans(3, random_state=np.random.RandomState(0)),
    "per feature": MNARKMeans(3, lam=[0.1, 0.2, 0.3, 0.4], reference="min", random_state=0),
    "search": MNARKMeansCV([2, 3], lams=[0.1, 1.0], n_splits=3, random_state=0),
    "whole numbers": MNARKMeans(3, reference=np.array([0, 1, 0, 0]), init=np.eye(3, 4, dtype=int)),
    "batches": MiniBatchMNARKMeans(3, lam=0.5, random_state=0),
    "mixture": MNARMixture(3, random_state=0),
    "spherical": MNARMixture(3, covariance_type="spherical", random_state=0),
}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.filterwarnings("ignore::mnarkmeans.SelectionWarning")
def test_a_model_does_the_same_after_it_was_saved(tmp_path, name):
    model, folder = MODELS[name].fit(CLUSTERS), tmp_path / "new" / "folder"
    for _ in range(2):  # then the saved one replaces itself
        model.save(folder)
        again = mnarkmeans.load(folder)
        assert isinstance(again, type(model) if isinstance(model, MNARMixture) else MNARKMeans)
        np.testing.assert_array_equal(again.predict(CLUSTERS), model.predict(CLUSTERS))
        np.testing.assert_array_equal(again.impute(CLUSTERS), model.impute(CLUSTERS))
        assert again.score(CLUSTERS) == model.score(CLUSTERS)
        model = again


@pytest.mark.parametrize("lam", ["auto", 0.5])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_model_of_blocks_is_saved_with_what_it_was_told(tmp_path, lam):
    dask = pytest.importorskip("mnarkmeans.dask")
    model = dask.MNARKMeans(3, lam=lam, max_iter=7, tol=1e-3, random_state=0).fit(CLUSTERS)
    model.save(tmp_path)
    again = mnarkmeans.load(tmp_path)
    np.testing.assert_array_equal(again.predict(CLUSTERS), model.predict(CLUSTERS))
    assert (again.lam, again.lam_) == (lam, model.lam_)
    assert (again.max_iter, again.tol, again.n_init) == (7, 1e-3, 3)
    assert again.algorithm == "lloyd"  # on a cluster no single rows are moved
    assert again.init == "k-means++"  # k-means|| is for clusters


@pytest.mark.parametrize("full_at", [1, 2])
def test_a_full_disk_leaves_the_old_model_whole(tmp_path, monkeypatch, full_at):
    old, new = (MNARKMeans(3, lam=lam, random_state=0).fit(CLUSTERS) for lam in (0.0, 1.0))
    old.save(tmp_path)
    write, written = Path.write_bytes, []

    def full(path, content):
        written.append(path)
        if len(written) == full_at:
            write(path, content[:10])
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(path, content)

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(OSError, match="No space"):
        new.save(tmp_path)
    np.testing.assert_array_equal(mnarkmeans.load(tmp_path).cluster_centers_, old.cluster_centers_)
    assert {path.name for path in tmp_path.iterdir()} == {"model.json", "model.npz"}


def test_names_of_columns_are_kept(tmp_path):
    frame = pytest.importorskip("pandas").DataFrame(CLUSTERS, columns=list("abcd"))
    MNARKMeans(3, lam=0.5, random_state=0).fit(frame).save(tmp_path)
    again = mnarkmeans.load(tmp_path)
    assert list(again.feature_names_in_) == list("abcd")
    with pytest.raises(ValueError, match="feature names"):
        again.predict(frame.rename(columns={"a": "z"}))


def test_a_mixture_with_a_wrong_mechanism_is_refused(tmp_path):
    MNARMixture(2, mechanism="decay", random_state=0).fit(CLUSTERS).save(tmp_path)
    stored = json.loads((tmp_path / "model.json").read_text())["fitted"]["missingness_"]
    for field, value, message in (
        ("mechanism", ["decay"], "unknown mechanism"),
        ("scores", 3, "missingness_/scores must be an object"),
        ("parameters", {"t": 1.0, "c": 1.5}, "c must be from 0 to 1"),
    ):
        rewrite(tmp_path, fitted__missingness_=stored | {field: value})
        refused(tmp_path, message)
    rewrite(tmp_path, fitted__missingness_=stored)
    array("has_gaps", np.zeros(2, bool))(tmp_path)
    refused(tmp_path, "has_gaps must be 4 times")


def test_models_that_are_not_fitted_or_hold_functions_are_not_saved(tmp_path):
    with pytest.raises(NotFittedError):
        MNARKMeans().save(tmp_path / "none")
    assert not (tmp_path / "none").exists()
    by_hand = MNARKMeans(2, init=lambda X, k, random_state: X[:k], lam=1.0).fit(np.eye(3))
    with pytest.raises(ModelFileError, match="params/init is a function"):
        by_hand.save(tmp_path)


def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "folder").mkdir()
    link = tmp_path / "link.txt"
    link.symlink_to(tmp_path / "folder" / "real.txt")
    _io.write_bytes(link, "é".encode())
    assert link.is_symlink()
    assert (tmp_path / "folder" / "real.txt").read_text(encoding="utf-8") == "é"


# --- mutations ------------------------------------------------------------------------------------

JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**20), 10**20) | st.floats() | st.text(max_size=4)
    | st.sampled_from(
        [{"$number": "nan"}, {"$number": "inf"}, {"$array": "fitted/cluster_centers_"}, {"$x": 1}]
    ),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=4,
)  # fmt: skip


@pytest.fixture(scope="module")
def whole(model, tmp_path_factory):
    return files_of(model, tmp_path_factory.mktemp("model"), "abc")


@pytest.fixture(scope="module")
def mixture(tmp_path_factory):
    model = MNARMixture(2, mechanism="class", random_state=0).fit(CLUSTERS)
    return files_of(model, tmp_path_factory.mktemp("mixture"), "abcd")


def files_of(model, folder, names):
    save_model(model, folder, feature_names=list(names), extra={"spread": np.ones(3)})
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def loaded(files):
    """The estimator of a model with these files, or None if it is refused in a sentence."""
    with tempfile.TemporaryDirectory() as folder:
        for name, content in files.items():
            (Path(folder) / name).write_bytes(content)
        try:
            return load_model(folder).estimator
        except ModelFileError as error:
            return assert_one_sentence(str(error))


def signed(document, arrays):
    """The files of a model whose document has the right checksum."""
    document["sha256"] = _document_sum(document)
    return {"model.json": json.dumps(document).encode(), "model.npz": arrays}


def assert_usable(estimator):
    if estimator is not None:
        ask = estimator.predict_proba if hasattr(estimator, "temper_") else estimator.transform
        assert not np.isnan(ask(np.zeros((2, estimator.n_features_in_)))).any()


@pytest.mark.parametrize("name", ["model.json", "model.npz"])
@given(data=st.data())
def test_a_mutated_model_is_refused_or_predicts_the_same(whole, model, name, data):
    estimator = loaded(whole | {name: data.draw(mutations(whole[name]))})
    if estimator is not None:
        assert np.array_equal(estimator.predict(X), model.predict(X))
        assert np.array_equal(estimator.transform(X), model.transform(X))


@given(data=st.data())
def test_a_model_with_right_checksums_and_wrong_fields_is_refused_or_can_be_used(
    whole, mixture, data
):
    files = data.draw(st.sampled_from([whole, mixture]))
    document = json.loads(files["model.json"])
    inside, place = document, data.draw(st.sampled_from(sorted(document)))
    while isinstance(inside[place], dict) and inside[place] and data.draw(st.booleans()):
        inside = inside[place]
        place = data.draw(st.sampled_from(sorted(inside)))
    inside[place] = data.draw(JSON_VALUES)
    assert_usable(loaded(signed(document, files["model.npz"])))


@given(data=st.data())
def test_mutated_arrays_with_right_checksums_are_refused_or_can_be_used(whole, data):
    document, arrays = json.loads(whole["model.json"]), data.draw(mutations(whole["model.npz"]))
    document["arrays"]["sha256"] = _sha256(arrays)
    assert_usable(loaded(signed(document, arrays)))
