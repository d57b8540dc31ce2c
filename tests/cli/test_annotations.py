"""What else is known about the rows is compared with the clusters."""

import json

import numpy as np
import pandas as pd
import pytest
from commands import do, labels, read_json, refused, rows
from lab_files import annotated
from sklearn.metrics import adjusted_rand_score


def test_fit_compares_annotations_with_the_clusters(tmp_path):
    file, _ = annotated(tmp_path)
    done = do("fit", file, "-k", 3, "--annotations", "about.csv", "-o", "out", cwd=tmp_path)
    assert "tissue\t1.00" in done.out
    tissue, batch, age = read_json(tmp_path / "out" / "summary.json")["annotations"]
    assert [tissue["column"], batch["column"], age["column"]] == ["tissue", "batch", "age"]
    assert tissue["agreement"] == 1.0
    assert len(age["groups"]) == 4  # quarters
    assert abs(batch["agreement"]) < 0.2
    assert np.sum(tissue["rows_by_cluster"]) == len(rows(tmp_path / file)) - 1
    page = read_json(tmp_path / "out" / "report.json")
    assert [one["name"] for one in page["annotations"]] == ["tissue", "batch", "age"]


def test_known_classes_may_be_in_the_annotations(tmp_path):
    file, _ = annotated(tmp_path)
    known = ["--annotations", "about.csv", "--labels", "tissue"]
    done = do("fit", file, "-k", 3, *known, "-o", "out", cwd=tmp_path)
    assert "The clusters follow" not in done.err  # they are what was looked for
    done = do("compare", file, "-k", 3, *known, "--methods", "zero", "--json", cwd=tmp_path)
    assert json.loads(done.out)["methods"][0]["cer"] == 0.0
    done = do("diagnose", file, *known, "--json", cwd=tmp_path)
    assert "--annotations about.csv --labels tissue" in json.loads(done.out)["command"]
    error = refused("fit", file, "-k", 3, *known[:-1], "tissues", "-o", "no", cwd=tmp_path)
    assert "did you mean 'tissue'?" in error


def test_diagnose_takes_a_batch_and_puts_it_into_the_command(tables):
    done = do("diagnose", tables / "t.csv", "--batch", "kind", "--json")
    assert "--batch kind" in json.loads(done.out)["command"]
    done = do("diagnose", tables / "t.csv", "--batch", "e", "--json")
    assert json.loads(done.out)["features"] == 4  # the batch is none of them


@pytest.mark.parametrize("where", ["table", "annotations"])
def test_a_batch_is_removed_and_remembered(tmp_path, where):
    """Two runs that differ more than the groups: without --batch a warning, with it the groups."""
    rng = np.random.default_rng(0)
    group, run = np.tile([0, 1], 24), np.repeat(["r1", "r2"], 24)
    X = rng.normal(0, 0.3, (48, 20)) + 2.0 * group[:, None] * (np.arange(20) < 10)
    X += 3.0 * (run == "r2")[:, None] * rng.normal(1, 0.5, 20)
    X[rng.random(X.shape) < 0.1] = np.nan
    table = pd.DataFrame(X.round(4)).add_prefix("f").assign(id=[f"s{i}" for i in range(48)])
    about = table[["id"]].assign(run=run)
    in_table = where == "table"
    (table.assign(run=run) if in_table else table).to_csv(tmp_path / "t.csv", index=False)
    about.to_csv(tmp_path / "about.csv", index=False)
    known = [] if in_table else ["--annotations", "about.csv"]
    arguments = ["fit", "t.csv", "-k", 2, *known, "--lam", 0, "-o"]
    if known:
        done = do(*arguments, "plain", cwd=tmp_path)
        assert "The clusters follow 'run'" in done.err
        assert "--batch run" in read_json(tmp_path / "plain" / "summary.json")["notes"][0]
    if in_table:
        table.assign(run=run, group=run).to_csv(tmp_path / "same.csv", index=False)
        same = ["fit", "same.csv", "-k", 2, "--labels", "group", "--batch", "run", "-o", "no"]
        assert "cannot be told apart" in refused(*same, cwd=tmp_path)
        assert "a batch of its own" in refused(*arguments, "no", "--batch", "id", cwd=tmp_path)
    do(*arguments, "out", "--batch", "run", cwd=tmp_path)
    found = labels(tmp_path / "out" / "labels.csv")
    assert adjusted_rand_score(group, found) > 0.9
    do("predict", "out", "t.csv", *known, "-o", "p.csv", cwd=tmp_path)
    assert labels(tmp_path / "p.csv") == found
    do("impute", "out", "t.csv", *known, "-o", "f.csv", cwd=tmp_path)
    filled = pd.read_csv(tmp_path / "f.csv")
    values = filled[[f"f{j}" for j in range(20)]].to_numpy()
    assert np.isfinite(values).all()
    gap = np.isnan(X)
    late = values[run == "r2"][gap[run == "r2"]].mean()
    assert late > values[run == "r1"][gap[run == "r1"]].mean() + 1.0  # in the units of the run
