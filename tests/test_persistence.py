"""Model files: whole, safe, and clear about what is wrong with them."""

from __future__ import annotations

import io
import json
import pickle

import numpy as np
import pytest

from mnarkmeans import MNARKMeans
from mnarkmeans._io.model_files import (
    ModelFileError,
    _document_sum,
    _sha256,
    load_model,
    save_model,
)

X = np.array([[0.0, 1.0, np.nan], [0.2, np.nan, 5.0], [5.0, 6.0, 1.0], [5.1, 6.2, np.nan]])


@pytest.fixture
def folder(tmp_path):
    model = MNARKMeans(2, lam=0.5, reference=np.array([0.0, 0.1, 0.2]), random_state=0).fit(X)
    extra = {"scale": np.array([1.0, 2.0]), "deep": {"list": [1, np.array([3])], "nan": np.nan}}
    save_model(model, tmp_path, feature_names=["a", "b", "c"], extra=extra)
    return tmp_path


def rewrite(folder, **changes):
    """A document whose own checksum is right."""
    document = json.loads((folder / "model.json").read_text()) | changes
    document["sha256"] = _document_sum(document)
    (folder / "model.json").write_text(json.dumps(document))


def test_round_trip(folder):
    model = MNARKMeans(2, lam=0.5, reference=np.array([0.0, 0.1, 0.2]), random_state=0).fit(X)
    saved = load_model(folder)
    assert saved.feature_names == ["a", "b", "c"]
    np.testing.assert_array_equal(saved.estimator.cluster_centers_, model.cluster_centers_)
    np.testing.assert_array_equal(saved.estimator.predict(X), model.labels_)
    np.testing.assert_array_equal(saved.estimator.transform(X), model.transform(X))
    np.testing.assert_array_equal(saved.estimator.impute(X), model.impute(X))
    assert saved.estimator.score(X) == model.score(X)
    assert np.isnan(saved.estimator.missing_values)
    np.testing.assert_array_equal(saved.extra["scale"], [1.0, 2.0])
    np.testing.assert_array_equal(saved.extra["deep"]["list"][1], [3])
    assert np.isnan(saved.extra["deep"]["nan"])
    assert load_model(folder / "model.json").feature_names == ["a", "b", "c"]


def test_the_same_model_gives_the_same_bytes(folder, tmp_path_factory):
    other = tmp_path_factory.mktemp("other")
    saved = load_model(folder)
    save_model(saved.estimator, other, feature_names=saved.feature_names, extra=saved.extra)
    assert (other / "model.json").read_bytes() == (folder / "model.json").read_bytes()


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda f: (f / "model.json").unlink(), "there is no model"),
        (lambda f: (f / "model.npz").unlink(), "other half of the model"),
        (lambda f: cut(f / "model.json"), "not a whole model file"),
        (lambda f: cut(f / "model.npz"), "does not belong to its model.json"),
        (lambda f: swap(f / "model.json", '"lam_": 0.5', '"lam_": 0.7'), "was changed after"),
        (lambda f: (f / "model.json").write_text("[]"), "not a mnarkmeans model"),
        (lambda f: (f / "model.json").write_text("[" * 100_000), "not a whole model file"),
        (lambda f: rewrite(f, format_version=99, written_by="mnarkmeans 9"), "by mnarkmeans 9;"),
        (lambda f: rewrite(f, format_version="x"), "no valid format version"),
        (lambda f: rewrite(f, params={"evil": 1}), "unknown parameter 'evil'"),
        (lambda f: rewrite(f, feature_names=["a"]), "shape .* for 1 columns"),
        (lambda f: rewrite(f, fitted={}), "lacks a part"),
    ],
)
def test_damage_is_told_in_a_sentence(folder, damage, message):
    damage(folder)
    with pytest.raises(ModelFileError, match=message) as caught:
        load_model(folder)
    assert "\n" not in str(caught.value)


def cut(path):
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def swap(path, old, new):
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def test_loading_executes_nothing(folder, tmp_path_factory):
    """A pickle smuggled in, with all checksums right, is refused and not run."""
    target = tmp_path_factory.mktemp("evil") / "ran"

    class Evil:
        def __reduce__(self):
            return (open, (str(target), "w"))

    smuggled = np.empty(1, dtype=object)
    smuggled[0] = Evil()
    packed = io.BytesIO()
    np.savez(packed, **{"fitted/cluster_centers_": smuggled})
    assert b"open" in packed.getvalue()
    (folder / "model.npz").write_bytes(packed.getvalue())
    rewrite(folder, arrays={"file": "model.npz", "sha256": _sha256(packed.getvalue())})
    with pytest.raises(ModelFileError, match="something else than numbers"):
        load_model(folder)
    assert not target.exists()
    (folder / "model.json").write_bytes(pickle.dumps(Evil()))
    with pytest.raises(ModelFileError, match="not a whole model file"):
        load_model(folder)
    assert not target.exists()


def test_what_cannot_be_stored_is_refused(tmp_path):
    model = MNARKMeans(2, lam=1.0, init=lambda X, k, random_state: np.zeros((k, 3)))
    fitted = MNARKMeans(2, lam=1.0, random_state=0).fit(X)
    fitted.init = model.init
    with pytest.raises(ModelFileError, match="params/init is a function"):
        save_model(fitted, tmp_path)
    assert not list(tmp_path.iterdir())
