"""Models of the command line in Python, and the other way round."""

from __future__ import annotations

import numpy as np
import pytest
from outputs import rows

import mnarkmeans


def test_a_model_of_the_command_line_is_loaded(server, tables, fitted, frame, tmp_path):
    model = mnarkmeans.load(fitted)
    labels = [int(r[1]) for r in rows(fitted / "labels.csv")[1:]]
    np.testing.assert_array_equal(model.predict(frame[list("abcde")]), labels)
    done = server.run("fit", tables / "t.csv", "-k", 2, "--log1p", "-o", tmp_path / "out")
    assert done.code == 0, done.err
    with pytest.warns(UserWarning, match=r"fitted on prepared values \(log\(1 \+ x\)\)"):
        model = mnarkmeans.load(tmp_path / "out")
    labels = [int(r[1]) for r in rows(tmp_path / "out" / "labels.csv")[1:]]
    np.testing.assert_array_equal(model.predict(np.log1p(frame[list("abcde")])), labels)


def test_the_command_line_uses_a_model_of_python(server, tables, frame, tmp_path):
    model = mnarkmeans.MNARKMeans(2, lam=0.5, random_state=0).fit(frame[list("abcde")])
    model.save(tmp_path / "model")
    done = server.run("predict", "model", tables / "t.csv", "-o", "l.csv", cwd=tmp_path)
    assert done.code == 0, done.err
    assert [int(r[1]) for r in rows(tmp_path / "l.csv")[1:]] == model.labels_.tolist()
    done = server.run("impute", "model", tables / "t.csv", "-o", "f.csv", cwd=tmp_path)
    assert done.code == 0, done.err


def test_a_mixture_of_python_labels_and_fills(server, tables, frame, tmp_path):
    model = mnarkmeans.MNARMixture(2, random_state=0).fit(frame[list("abcde")])
    model.save(tmp_path / "model")
    done = server.run("predict", "model", tables / "t.csv", "-o", "l.csv", cwd=tmp_path)
    assert done.code == 0, done.err
    labels = rows(tmp_path / "l.csv")
    assert labels[0] == ["id", "cluster", "confidence"]
    assert [int(r[1]) for r in labels[1:]] == model.predict(frame[list("abcde")]).tolist()
    done = server.run("impute", "model", tables / "t.csv", "-o", "f.csv", cwd=tmp_path)
    assert done.code == 0, done.err
    filled = [[float(v) for v in r[1:6]] for r in rows(tmp_path / "f.csv")[1:]]
    np.testing.assert_allclose(filled, model.impute(frame[list("abcde")]), rtol=1e-12)


@pytest.mark.parametrize("verb", ["fit", "select"])
def test_labels_go_back_into_a_copy_of_the_h5ad(server, tables, tmp_path, verb):
    anndata = pytest.importorskip("anndata")
    before = (tables / "t.h5ad").read_bytes()
    k = [2] if verb == "fit" else [2, "--lams", "0.1,1", "--splits", 3]
    done = server.run(
        verb,
        tables / "t.h5ad",
        "-k",
        *k,
        "--write-h5ad",
        "new/copy.h5ad",
        "-o",
        "out",
        cwd=tmp_path,
    )
    assert done.code == 0, done.err
    assert "new/copy.h5ad" in done.out
    assert (tables / "t.h5ad").read_bytes() == before
    adata = anndata.read_h5ad(tmp_path / "new" / "copy.h5ad")
    labels = rows(tmp_path / "out" / "labels.csv")
    assert list(adata.obs["mnar_kmeans"]) == [r[1] for r in labels[1:]]
    np.testing.assert_allclose(
        adata.obs["mnar_kmeans_confidence"], [float(r[3]) for r in labels[1:]], atol=1e-6
    )
    assert max(len(r[3]) for r in labels) <= len("confidence")  # six digits tell enough
    assert list(adata.obs["kind"].cat.categories) == ["even", "odd"]
    assert adata.varm["mnar_kmeans"].shape == (5, 2)


def test_rows_that_were_dropped_have_no_label_in_the_copy(server, tables, tmp_path):
    anndata = pytest.importorskip("anndata")
    done = server.run(
        "fit", tables / "t.h5ad", "-k", 2, "--drop-rows", "kind=odd", "--write-h5ad", "c.h5ad",
        "-o", "out", cwd=tmp_path,
    )  # fmt: skip
    assert done.code == 0, done.err
    adata = anndata.read_h5ad(tmp_path / "c.h5ad")
    assert (adata.obs["mnar_kmeans"].isna() == (adata.obs["kind"] == "odd")).all()


def test_a_copy_that_cannot_be_made_is_told_before_the_work(server, tables, tmp_path):
    pytest.importorskip("anndata")
    for table, copy, message in (
        (tables / "t.csv", "c.h5ad", "both names must end in .h5ad"),
        (tables / "t.h5ad", tables / "t.h5ad", "the same file as the input"),
    ):
        done = server.run("fit", table, "-k", 2, "--write-h5ad", copy, "-o", "out", cwd=tmp_path)
        assert done.code == 2
        assert message in done.err
        assert not (tmp_path / "out").exists()
