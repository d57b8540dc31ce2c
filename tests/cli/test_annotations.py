"""What else is known about the rows is compared with the clusters."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
from outputs import FILES, rows

from mnarkmeans.report._annotations import agreement, eta_squared

sys.path.insert(0, str(Path(__file__).parents[1] / "tables"))
from lab_files import annotated


def test_fit_compares_annotations_with_the_clusters(server, tmp_path):
    file, _ = annotated(tmp_path)
    done = server.run("fit", file, "-k", 3, "--annotations", "about.csv", "-o", "out", cwd=tmp_path)
    assert done.code == 0, done.err
    assert "tissue\tadjusted Rand\t1.00" in done.out
    assert {p.name for p in (tmp_path / "out").iterdir()} == FILES | {"annotations.csv"}
    told = {
        one["column"]: one
        for one in json.loads((tmp_path / "out" / "summary.json").read_text())["annotations"]
    }
    assert told["tissue"]["agreement"] == 1.0
    assert told["age"]["measure"] == "eta squared"
    assert abs(told["batch"]["agreement"]) < 0.2
    table = rows(tmp_path / "out" / "annotations.csv")
    assert table[0] == ["annotation", "group", "cluster", "rows"]
    assert sum(int(r[3]) for r in table if r[0] == "tissue") == len(rows(tmp_path / file)) - 1
    page = json.loads((tmp_path / "out" / "report.json").read_text())
    assert [one["name"] for one in page["annotations"]] == ["tissue", "batch", "age"]
    done = server.run("diagnose", file, "--annotations", "about.csv", "--json", cwd=tmp_path)
    assert "--annotations about.csv" in json.loads(done.out)["command"]


def test_a_column_of_known_classes_is_compared_and_takes_no_part(server, tables, tmp_path):
    done = server.run("fit", tables / "t.csv", "-k", 2, "--labels", "kind", "--json", "-o", "out",
                      cwd=tmp_path)  # fmt: skip
    assert done.code == 0, done.err
    summary = json.loads(done.out)
    (known,) = summary["annotations"]
    assert known["column"] == "kind"
    assert known["agreement"] > 0.9
    assert summary["data"]["features"] == 5


def test_numbers_are_measured_by_the_variance_between_clusters():
    labels = np.arange(30) % 3
    values = labels * 10.0 + np.arange(30) / 1000
    assert eta_squared(values, labels) > 0.999
    assert eta_squared(np.ones(5), np.zeros(5, int)) is None
    found = agreement({"x": values.tolist(), "y": (np.arange(30) % 2).tolist()}, labels)
    assert [one["kind"] for one in found] == ["numbers", "groups"]
    assert found[0]["agreement"] > 0.999
