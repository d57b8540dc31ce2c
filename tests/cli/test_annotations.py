"""What else is known about the rows is compared with the clusters."""

import json

import numpy as np
import pandas as pd
import pytest
from commands import do, labels, read_json, refused, rows
from lab_files import annotated
from sklearn.metrics import adjusted_rand_score


@pytest.fixture
def file(tmp_path):
    return annotated(tmp_path)[0]


def test_fit_compares_annotations_with_the_clusters(file):
    done = do("fit", file, "-k", 3, "--annotations", "about.csv", "-o", "out")
    assert "tissue\t1.00" in done.out
    tissue, batch, age = read_json("out/summary.json")["annotations"]
    assert [tissue["column"], batch["column"], age["column"]] == ["tissue", "batch", "age"]
    assert tissue["agreement"] == 1.0
    assert len(age["groups"]) == 4  # quarters
    assert abs(batch["agreement"]) < 0.2
    assert np.sum(tissue["rows_by_cluster"]) == len(rows(file)) - 1
    page = read_json("out/report.json")
    assert [one["name"] for one in page["annotations"]] == ["tissue", "batch", "age"]


def test_known_classes_may_be_in_the_annotations_and_a_batch_in_the_table(file, tables):
    known = ["--annotations", "about.csv", "--labels", "tissue"]
    done = do("fit", file, "-k", 3, *known, "-o", "out")
    assert "The clusters follow" not in done.err  # they are what was looked for
    done = do("compare", file, "-k", 3, *known, "--methods", "zero", "--json")
    assert json.loads(done.out)["methods"][0]["cer"] == 0.0
    done = do("diagnose", file, *known, "--json")
    assert "--annotations about.csv --labels tissue" in json.loads(done.out)["command"]
    error = refused("fit", file, "-k", 3, *known[:-1], "tissues", "-o", "no")
    assert "did you mean 'tissue'?" in error
    for batch, features in (("kind", 5), ("e", 4)):  # a batch is no feature
        found = json.loads(do("diagnose", tables / "t.csv", "--batch", batch, "--json").out)
        assert f"--batch {batch}" in found["command"]
        assert found["features"] == features


@pytest.mark.parametrize("where", ["table", "annotations"])
def test_a_batch_is_removed_and_remembered(where):
    """Two runs that differ more than the groups: without --batch a warning, with it the groups."""
    rng = np.random.default_rng(0)
    group, run = np.tile([0, 1], 24), np.repeat(["r1", "r2"], 24)
    X = rng.normal(0, 0.3, (48, 20)) + 2.0 * group[:, None] * (np.arange(20) < 10)
    X += 3.0 * (run == "r2")[:, None] * rng.normal(1, 0.5, 20)
    X[rng.random(X.shape) < 0.1] = np.nan
    table = pd.DataFrame(X.round(4)).add_prefix("f").assign(id=[f"s{i}" for i in range(48)])
    about = table.assign(run=run)
    in_table = where == "table"
    (about if in_table else table).to_csv("t.csv", index=False)
    known = [] if in_table else ["--annotations", "about.csv"]
    arguments = ["fit", "t.csv", "-k", 2, *known, "--lam", 0, "-o"]
    if in_table:
        about.assign(group=run).to_csv("same.csv", index=False)
        same = ["fit", "same.csv", "-k", 2, "--labels", "group", "--batch", "run", "-o", "no"]
        assert "cannot be told apart" in refused(*same)
        assert "a batch of its own" in refused(*arguments, "no", "--batch", "id")
    else:
        about[["id", "run"]].to_csv("about.csv", index=False)
        done = do(*arguments, "plain")
        assert "The clusters follow 'run'" in done.err
        assert "--batch run" in read_json("plain/summary.json")["notes"][0]
    do(*arguments, "out", "--batch", "run")
    found = labels("out/labels.csv")
    assert adjusted_rand_score(group, found) > 0.9
    do("predict", "out", "t.csv", *known, "-o", "p.csv")
    assert labels("p.csv") == found
    do("impute", "out", "t.csv", *known, "-o", "f.csv")
    values = pd.read_csv("f.csv")[[f"f{j}" for j in range(20)]].to_numpy()
    assert np.isfinite(values).all()
    filled = [values[run == name][np.isnan(X)[run == name]].mean() for name in ("r1", "r2")]
    assert filled[1] > filled[0] + 1.0  # in the units of the run
