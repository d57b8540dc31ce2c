"""`mnarkmeans compare` and `demo`: other methods on the same rows."""

import json
from pathlib import Path
from unittest import mock

import numpy as np
from commands import FILES, do, names, rows
from sklearn.metrics import adjusted_rand_score

from mnarkmeans import MNARKMeans
from mnarkmeans.baselines import BASELINES
from mnarkmeans.cli.compare import MIXTURE, Comparison, make, run_one
from mnarkmeans.metrics import clustering_error_rate


def test_compare_with_known_classes_and_output(tables):
    done = do(
        "compare", tables / "t.csv", "-k", 2, "--labels", "kind", "--methods", "kpod,mean",
        "--methods", "zero,mice", "--without", "mean,mice", "--json", "-o", "out",
    )  # fmt: skip
    found = {m["method"]: m for m in json.loads(done.out)["methods"]}
    assert set(found) == {"mnarkmeans", "kpod", "zero"}
    assert found["mnarkmeans"]["cer"] < 0.1
    assert names("out") == FILES | {"comparison.csv", "comparison_labels.csv"}
    assert rows("out/comparison.csv")[0][:2] == ["method", "cer"]
    columns = rows("out/comparison_labels.csv")[0]
    assert columns == ["id", "class", "mnarkmeans", "kpod", "zero"]
    assert "Methods compared" in Path("out/report.html").read_text()
    assert names() == {"out"}


def test_without_known_classes_the_numbers_are_agreement_and_ours_has_none(tables):
    only = ",".join(name for name in BASELINES if name != "zero")
    done = do("compare", tables / "t.csv", "-k", 2, "--without", only)
    lines = [line.split("\t") for line in done.out.splitlines() if "\t" in line]
    assert lines[0] == ["method", "agreement", "seconds"]
    assert lines[1][:2] == ["mnarkmeans", ""]
    assert lines[2][0].startswith("Gaussian mixture with missing values")
    assert len(lines) == 4
    assert all(-1 <= float(line[1]) <= 1 for line in lines[2:])


def test_rows_of_unknown_class_do_not_count():
    truth, labels = np.array([0, 0, 1, 1, -1, -1]), np.array([1, 1, 0, 1, 0, 1])
    found = Comparison(truth)
    found.add("zero", labels, 0.5)
    assert found.results[0]["cer"] == clustering_error_rate(truth[:4], labels[:4])
    assert found.results[0]["ari"] == adjusted_rand_score(truth[:4], labels[:4])
    assert found.results[0]["clusters"] == 2


def test_the_mixture_has_the_reference_of_the_table():
    X = 10.0 + np.random.default_rng(0).normal(size=(60, 3))
    X[X < 9.5] = np.nan
    X = X[~np.isnan(X).all(axis=1)]
    model = make(MIXTURE, MNARKMeans(2, reference="min", random_state=0)).fit(X)
    np.testing.assert_allclose(model.reference_, np.nanmin(X, axis=0))


def test_the_demo_names_only_files_that_stay():
    done = do("demo", "-o", "shown")
    assert "mnarkmeans-new" not in done.out + done.err  # the folder it was written in at first
    for name in ("report.html", "summary.json"):
        assert "mnarkmeans-new" not in Path(f"shown/{name}").read_text()
    assert "<h1>mnarkmeans demo" in Path("shown/report.html").read_text()
    assert names() == {"shown"}


def test_a_method_that_is_not_installed_is_named_with_the_command():
    absent = ImportError('stepmix is not installed: pip install "mnarkmeans[rivals]"')
    found = Comparison(None)
    found.add("gmm", **run_one(mock.Mock(side_effect=absent), np.zeros((3, 2))))
    assert found.notes()[0].endswith('not installed: run pip install "mnarkmeans[rivals]"')
    assert found.table()[1][0][1] == "not installed"
