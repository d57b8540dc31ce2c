"""Properties of files: whatever is done to one, it is read or refused in a sentence.

pytest tests/cli/test_mutated_files.py --hypothesis-profile=explore     # new cases, and more
"""

from __future__ import annotations

import gzip
import io
import json
import shutil
import tempfile
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from mnarkmeans import MNARKMeans
from mnarkmeans._model_files import (
    ModelFileError,
    _document_sum,
    _sha256,
    load_model,
    save_model,
)
from mnarkmeans.cli._errors import UserError
from mnarkmeans.cli._formats import read_file

VALUES = np.array([[1.5, np.nan, 3.0], [4.0, 5.0, np.nan], [7.0, 8.0, 9.0], [-1.0, 0.0, 2.5]])
TEXT = "sample,a,b,c,kind\nr1,1.5,NA,3,x\nr2,4,5,,x\nr3,7,8,9,y\nr4,-1,0,2.5,y\n"


def table_files() -> dict[str, bytes]:
    """A sound file of every format that can be written here."""
    files = {
        "t.csv": TEXT.encode(),
        "t.tsv": TEXT.replace(",", "\t").encode("utf-16"),
        "t.csv.gz": gzip.compress(TEXT.encode(), mtime=0),
    }
    buffers = {name: io.BytesIO() for name in ("t.npy", "d.npz", "s.npz")}
    np.save(buffers["t.npy"], VALUES)
    np.savez(buffers["d.npz"], VALUES)
    sp.save_npz(buffers["s.npz"], sp.csr_matrix(np.nan_to_num(VALUES)))
    files |= {name: buffer.getvalue() for name, buffer in buffers.items()}
    frame = pd.DataFrame(VALUES, columns=["a", "b", "c"])
    with tempfile.TemporaryDirectory() as folder:
        try:
            frame.to_parquet(Path(folder) / "t.parquet")
            files["t.parquet"] = (Path(folder) / "t.parquet").read_bytes()
        except ImportError:
            pass
        try:
            import anndata
        except ImportError:
            return files
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            anndata.AnnData(sp.csr_matrix(np.nan_to_num(VALUES))).write_h5ad(
                Path(folder) / "t.h5ad"
            )
        files["t.h5ad"] = (Path(folder) / "t.h5ad").read_bytes()
    return files


FILES = table_files()
PIECES = st.one_of(
    st.binary(max_size=6),
    st.sampled_from(
        [
            b"\n",
            b"\r",
            b",",
            b'"',
            b"\0",
            b"NA",
            b"nan",
            b"inf",
            b"-1e999",
            b"=1+1",
            b"\xff\xfe",
            b"\t\t",
        ]
    ),
)


@st.composite
def mutations(draw, content: bytes) -> bytes:
    """Bytes changed, put in, taken out, repeated; the file cut short or longer."""
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, max(0, len(content) - 1)))
        until = at + draw(st.integers(0, 12))
        kind = draw(st.sampled_from(["change", "insert", "remove", "cut", "again", "bit"]))
        if kind == "change":
            piece = draw(PIECES)
            content = content[:at] + piece + content[at + len(piece) :]
        elif kind == "insert":
            content = content[:at] + draw(PIECES) + content[at:]
        elif kind == "remove":
            content = content[:at] + content[until:]
        elif kind == "cut":
            content = content[:at]
        elif kind == "again":
            content = content[:until] + content[at:]
        elif content:
            flipped = content[at] ^ (1 << draw(st.integers(0, 7)))
            content = content[:at] + bytes([flipped]) + content[at + 1 :]
    return content


def is_a_sentence(error):
    told = str(error)
    assert len(told.strip()) > 10
    assert "\n" not in told
    assert "Traceback" not in told


def read_or_refused(name, content):
    """The table in a file of this content, or None where a sentence refuses it."""
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = Path(folder) / name
        path.write_bytes(content)
        try:
            return read_file(path)
        except UserError as error:
            is_a_sentence(error)
            return None


@pytest.mark.parametrize("name", FILES)
@given(data=st.data())
def test_a_mutated_table_is_read_or_refused_in_a_sentence(name, data):
    table = read_or_refused(name, data.draw(mutations(FILES[name])))
    if table is None:
        return
    values = table.values.data if sp.issparse(table.values) else table.values
    assert np.issubdtype(values.dtype, np.floating)
    assert not np.isinf(values).any()
    assert table.values.shape == (len(table.ids), len(table.features))
    assert min(table.values.shape) > 0


@given(content=st.binary(max_size=200), name=st.sampled_from(sorted(FILES)))
def test_any_bytes_are_read_or_refused(content, name):
    read_or_refused(name, content)


# --- model files ------------------------------------------------------------------------------

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
        return is_a_sentence(error)
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
