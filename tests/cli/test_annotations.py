"""A second file says where the rows come from: joined by name, compared with the clusters."""

from __future__ import annotations

import json

import numpy as np
import pytest
from lab_files import annotated
from outputs import FILES, rows

from mnarkmeans.cli._annotations import agreements, eta_squared, read_annotations
from mnarkmeans.cli._errors import UserError

IDS = np.array(["S1", "S2", "S3"], dtype=object)


def read(tmp_path, text, ids=IDS, name="about.csv"):
    (tmp_path / name).write_text(text)
    return read_annotations(tmp_path / name, ids)


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


def test_rows_are_found_in_any_order_and_some_may_be_absent(tmp_path):
    found = read(tmp_path, "x,sample,time\na,S3,1.5\nb,S1,n.d.\n")
    assert found.columns == {"x": ["b", None, "a"], "time": [None, None, 1.5]}
    assert found.notes == ["1 of 3 rows are not in about.csv"]


@pytest.mark.parametrize(
    "ids",
    [
        ["LFQ intensity S1", "LFQ intensity S2", "LFQ intensity S3"],
        ["D:\\runs\\S1.raw", "D:\\runs\\S2.raw", "D:\\runs\\S3.raw"],
        ["/data/S1.mzML", "/data/S2.mzML", "/data/S3.mzML"],
    ],
)
def test_names_of_columns_and_raw_files_are_shortened(tmp_path, ids):
    found = read(tmp_path, "sample,group\nS2,b\nS1,a\nS3,b\n", np.array(ids, dtype=object))
    assert found.columns == {"group": ["a", "b", "b"]}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("sample,group\nT1,a\nT2,b\n", "no column of .* has the names of the rows, such as 'S1'"),
        ("sample,group\nS1,a\nS1,b\nS2,c\n", "more than one row for 'S1' in column 'sample'"),
        ("sample\nS1\nS2\n", "no column besides 'sample'"),
    ],
)
def test_files_that_cannot_be_joined_are_told(tmp_path, text, message):
    with pytest.raises(UserError, match=message):
        read(tmp_path, text)


def test_numbers_are_measured_by_the_variance_between_clusters(tmp_path):
    labels = np.arange(30) % 3
    values = labels * 10.0 + np.arange(30) / 1000
    assert eta_squared(values, labels) > 0.999
    assert eta_squared(np.ones(5), np.zeros(5, int)) is None
    text = "id,x,y\n" + "".join(f"r{i},{v},{i % 2}\n" for i, v in enumerate(values))
    ids = np.array([f"r{i}" for i in range(30)], dtype=object)
    told = agreements(read(tmp_path, text, ids), labels)
    assert [one["kind"] for one in told] == ["numbers", "groups"]
    assert told[0]["agreement"] > 0.999
