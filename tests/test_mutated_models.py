"""Files of models: whatever is done to one, it is loaded as it was or refused in a sentence.

pytest tests/test_mutated_models.py --hypothesis-profile=explore     # new cases, and more
"""

from __future__ import annotations

import json
import shutil
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mutations import assert_one_sentence, mutations

from mnarkmeans import MNARKMeans
from mnarkmeans._model_files import (
    ModelFileError,
    _document_sum,
    _sha256,
    load_model,
    save_model,
)

VALUES = np.array([[1.5, np.nan, 3.0], [4.0, 5.0, np.nan], [7.0, 8.0, 9.0], [-1.0, 0.0, 2.5]])
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
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("model")
    fitted = MNARKMeans(2, lam=0.5, reference=np.array([0.0, 0.1, 0.2]), random_state=0).fit(VALUES)
    save_model(fitted, folder, feature_names=["a", "b", "c"], extra={"spread": np.ones(3)})
    return folder, fitted


def loads_the_same_or_is_refused(folder, fitted, changed=()):
    try:
        saved = load_model(folder)
    except ModelFileError as error:
        return assert_one_sentence(str(error))
    if not changed:
        assert np.array_equal(saved.estimator.predict(VALUES), fitted.predict(VALUES))
        assert np.array_equal(saved.estimator.transform(VALUES), fitted.transform(VALUES))
    else:  # a checksum that is right: whatever is loaded can be used
        distances = saved.estimator.transform(np.zeros((2, len(saved.feature_names))))
        assert not np.isnan(distances).any()


@pytest.mark.parametrize("name", ["model.json", "model.npz"])
@given(data=st.data())
def test_a_mutated_model_is_refused_or_predicts_the_same(model, name, data):
    folder, fitted = model
    with tempfile.TemporaryDirectory() as other:
        copy = Path(shutil.copytree(folder, Path(other) / "model"))
        (copy / name).write_bytes(data.draw(mutations((folder / name).read_bytes())))
        loads_the_same_or_is_refused(copy, fitted)


@given(data=st.data())
def test_a_model_with_right_checksums_and_wrong_fields_is_refused_or_can_be_used(model, data):
    folder, fitted = model
    document = json.loads((folder / "model.json").read_text())
    place = data.draw(st.sampled_from(sorted(document)))
    if isinstance(document[place], dict) and document[place] and data.draw(st.booleans()):
        inside = data.draw(st.sampled_from(sorted(document[place])))
        document[place][inside] = data.draw(JSON_VALUES)
    else:
        document[place] = data.draw(JSON_VALUES)
    with tempfile.TemporaryDirectory() as other:
        copy = Path(shutil.copytree(folder, Path(other) / "model"))
        document["sha256"] = _document_sum(document)
        (copy / "model.json").write_text(json.dumps(document))
        loads_the_same_or_is_refused(copy, fitted, changed=(place,))


@given(data=st.data())
def test_mutated_arrays_with_right_checksums_are_refused_or_can_be_used(model, data):
    folder, fitted = model
    content = data.draw(mutations((folder / "model.npz").read_bytes()))
    document = json.loads((folder / "model.json").read_text())
    document["arrays"] = {"file": "model.npz", "sha256": _sha256(content)}
    document["sha256"] = _document_sum(document)
    with tempfile.TemporaryDirectory() as other:
        copy = Path(shutil.copytree(folder, Path(other) / "model"))
        (copy / "model.npz").write_bytes(content)
        (copy / "model.json").write_text(json.dumps(document))
        loads_the_same_or_is_refused(copy, fitted, changed=("arrays",))
