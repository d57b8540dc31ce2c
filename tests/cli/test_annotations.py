"""What else is known about the rows is compared with the clusters."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from commands import rows
from lab_files import annotated
from sklearn.metrics import adjusted_rand_score


def test_fit_compares_annotations_with_the_clusters(server, tmp_path):
    file, _ = annotated(tmp_path)
    done = server.do("fit", file, "-k", 3, "--annotations", "about.csv", "-o", "out", cwd=tmp_path)
    assert "tissue\t1.00" in done.out
    found_by_name = {
        one["column"]: one
        for one in json.loads((tmp_path / "out" / "summary.json").read_text())["annotations"]
    }
    assert found_by_name["tissue"]["agreement"] == 1.0
    assert len(found_by_name["age"]["groups"]) == 4  # quarters
    assert abs(found_by_name["batch"]["agreement"]) < 0.2
    assert np.sum(found_by_name["tissue"]["rows_by_cluster"]) == len(rows(tmp_path / file)) - 1
    page = json.loads((tmp_path / "out" / "report.json").read_text())
    assert [one["name"] for one in page["annotations"]] == ["tissue", "batch", "age"]


def test_known_classes_may_be_in_the_annotations(server, tmp_path):
    file, _ = annotated(tmp_path)
    known = ["--annotations", "about.csv", "--labels", "tissue"]
    done = server.do("fit", file, "-k", 3, *known, "-o", "out", cwd=tmp_path)
    assert "The clusters follow" not in done.err  # they are what was looked for
    done = server.do("compare", file, "-k", 3, *known, "--methods", "zero", "--json", cwd=tmp_path)
    assert json.loads(done.out)["methods"][0]["cer"] == 0.0
    done = server.do("diagnose", file, *known, "--json", cwd=tmp_path)
    assert "--annotations about.csv --labels tissue" in json.loads(done.out)["command"]
    done = server.run("fit", file, "-k", 3, *known[:-1], "tissues", "-o", "no", cwd=tmp_path)
    assert (done.code, "did you mean 'tissue'?" in done.err) == (2, True)


def test_diagnose_takes_a_batch_and_puts_it_into_the_command(server, tables):
    done = server.do("diagnose", tables / "t.csv", "--batch", "kind", "--json")
    assert "--batch kind" in json.loads(done.out)["command"]
    done = server.do("diagnose", tables / "t.csv", "--batch", "e", "--json")
    assert json.loads(done.out)["features"] == 4  # the batch is none of them


@pytest.mark.parametrize("where", ["table", "annotations"])
def test_a_batch_is_removed_and_remembered(server, tmp_path, where):
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
        done = server.do(*arguments, "plain", cwd=tmp_path)
        assert "The clusters follow 'run'" in done.err
        notes = json.loads((tmp_path / "plain" / "summary.json").read_text())["notes"]
        assert "--batch run" in notes[0]
    if in_table:
        table.assign(run=run, group=run).to_csv(tmp_path / "same.csv", index=False)
        same = ["fit", "same.csv", "-k", 2, "--labels", "group", "--batch", "run", "-o", "no"]
        assert "cannot be told apart" in server.run(*same, cwd=tmp_path).err
        alone = server.run(*arguments, "no", "--batch", "id", cwd=tmp_path)
        assert "a batch of its own" in alone.err
    server.do(*arguments, "out", "--batch", "run", cwd=tmp_path)
    labels = np.array([int(r[1]) for r in rows(tmp_path / "out" / "labels.csv")[1:]])
    assert adjusted_rand_score(group, labels) > 0.9
    server.do("predict", "out", "t.csv", *known, "-o", "p.csv", cwd=tmp_path)
    assert [int(r[1]) for r in rows(tmp_path / "p.csv")[1:]] == labels.tolist()
    server.do("impute", "out", "t.csv", *known, "-o", "f.csv", cwd=tmp_path)
    filled = pd.read_csv(tmp_path / "f.csv")
    values = filled[[f"f{j}" for j in range(20)]].to_numpy()
    assert np.isfinite(values).all()
    gap = np.isnan(X)
    late = values[run == "r2"][gap[run == "r2"]].mean()
    assert late > values[run == "r1"][gap[run == "r1"]].mean() + 1.0  # in the units of the run
