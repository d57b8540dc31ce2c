"""The real command, in processes of its own: every kind of mistake."""

import contextlib
import json
import os

import pytest
from commands import do, names, refused, run

BAD_TABLES = {
    "empty.csv": b"",
    "good.csv": b"id,a,b\nr,1,2\ns,3,4\nt,5,7\n",
    "broken.npy": b"\x93NUMPY\x01",
    "labels.csv": b"feature,value\na,1\nb,2\n",
    "zero.csv": b"feature,value\na,zero\nb,2\n",
    "gap_new.csv": b"a,b\n,\n,\n",
    "other.csv": b"x,y\n1,2\n3,4\n",
}
FIT = ["-k", "2", "-o", "out"]
GOOD = ["fit", "good.csv", *FIT]
SAME = "is the same file as the input"
MISTAKES = [
    # the table
    (["fit", "none.csv", *FIT], "there is no file none.csv"),
    (["fit", "empty.csv", *FIT], "is empty"),
    (["fit", "broken.npy", *FIT], "not a readable"),
    # options
    (["fit", "good.csv", "-k", "9", "-o", "out"], "only 3 rows"),
    (["fit", "good.csv", "-k", "0", "-o", "out"], "-k must be a whole number"),
    (["fit", "good.csv", "-k", "three", "-o", "out"], "such as 4, not 'three'; see"),
    (["fit", "good.csv", "-o", "out"], "'-k'"),
    (["select", "good.csv", "-k", "5:2", "-o", "out"], "a range such as 2:8, not '5:2'"),
    (["select", "good.csv", "-k", "2:9", "-o", "out"], "only 3 rows"),
    (["select", "good.csv", "-k", "2", "--lams", "0,x", "-o", "out"], "not 'x'"),
    (["select", "good.csv", "-k", "2", "--lams", "auto,1", "-o", "out"], "--lams must be auto or"),
    (["select", "good.csv", "-k", "2", "--criterion", "luck", "-o", "out"], "'luck'"),
    ([*GOOD, "--lam", "-1"], "at least 0"),
    ([*GOOD, "--lam", "inf"], "at least 0, not 'inf'"),
    ([*GOOD, "--id-column", "ids"], "did you mean 'id'"),
    ([*GOOD, "--scale", "log"], "'none', 'std', 'maxabs'"),
    ([*GOOD, "--center", "--reference", "1"], "choose one"),
    ([*GOOD, "--reference", "max"], "auto, min, a number, or a CSV file"),
    ([*GOOD, "--reference", "zero.csv"], "has no number for the feature 'a'"),
    ([*GOOD, "--max-missing", "7"], "--max-missing: "),
    ([*GOOD, "--labels", "kind"], "no column"),
    ([*GOOD, "--transpose", "--labels", "a"], "column 'a' does not describe the rows"),
    ([*GOOD, "--colour"], "colour"),
    (["cluster", "good.csv"], "No such command 'cluster'"),
    (["compare", "good.csv", "-k", "2", "--methods", "magic"], "no method called 'magic'"),
    # the model
    (["predict", "none", "good.csv", "-o", "l.csv"], "there is no model at none"),
    (["predict", "MODEL", "other.csv", "-o", "l.csv"], "but other.csv lacks 'a'"),
    (["predict", "MODEL", "gap_new.csv", "-o", "l.csv"], "gap_new.csv holds no value of 'a' and 1"),
    (["report", "none"], "there is no file none"),
    # the output
    (["fit", "good.csv", "-k", "2", "-o", "good.csv"], "is a file"),
    (["fit", "good.csv", "-k", "2", "-o", "good.csv/out"], "Not a directory"),
    (["predict", "MODEL", "good.csv", "-o", "l.xyz"], "must end in one of"),
    (["predict", "MODEL", "good.csv", "-o", "good.csv", "--force"], SAME),
    (["predict", "MODEL", "good.csv", "-o", "other.csv"], "exists; add --force"),
    (["fit", "good.csv", "-k", "2", "-o", "new/" + 300 * "n"], "File name too long"),
    (["fit", "good.csv", "-k", "2", "-o", "/proc/out"], "could not be written"),
    (["fit", "good.csv", "-k", "2", "-o", "loop"], "could not be written"),
    (["fit", "good.csv", "-k", "2", "-o", "twin", "--force"], SAME),
    (["fit", "good.csv", "-k", "2", "-o", "taken", "--force"], "labels.csv is a folder"),
    ([*GOOD, "--reference", "labels.csv", "-o", "."], SAME),
]  # fmt: skip


@pytest.fixture(scope="module")
def bad(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bad")
    (folder / "twin").mkdir()
    with contextlib.suppress(OSError):  # Windows has no links for everybody
        (folder / "loop").symlink_to("loop")
        (folder / "twin" / "labels.csv").symlink_to(folder / "good.csv")
    (folder / "taken" / "labels.csv").mkdir(parents=True)
    for name, content in BAD_TABLES.items():
        (folder / name).write_bytes(content)
    do("fit", folder / "good.csv", "-k", 2, "--lam", 1, "-o", folder / "model")
    return folder


@pytest.mark.parametrize(
    ("arguments", "message"), MISTAKES, ids=[" ".join(m[0])[:60] for m in MISTAKES]
)
def test_a_mistake_gets_one_sentence_and_writes_nothing(bad, monkeypatch, arguments, message):
    monkeypatch.chdir(bad)
    target = arguments[-1] if "-o" in arguments else ""
    if target.startswith("/proc") and not os.path.isdir("/proc/self"):
        pytest.skip("this system has no folder that is nobody's to write to")
    if {"loop", "twin"} & {*arguments} and not (bad / "loop").is_symlink():
        pytest.skip("links are not for everybody here")
    before = sorted(bad.rglob("*"))
    arguments = ["model" if a == "MODEL" else a for a in arguments]
    assert message in refused(*arguments)
    assert sorted(bad.rglob("*")) == before


def test_a_mistake_in_json():
    done = run("fit", "none.csv", *FIT, "--json")
    assert done.code == 2
    assert json.loads(done.out) == {"error": "there is no file none.csv"}


def test_a_full_disk_leaves_nothing(tables, fitted):
    """A real limit on the size of files: the report does not fit."""
    resource = pytest.importorskip("resource")  # not on Windows
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    for arguments, limit in (
        (["fit", tables / "t.csv", "-k", 2, "-o", "out"], 6000),
        (["impute", fitted, tables / "t.csv", "-o", "new/f.csv"], 500),
    ):
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, before[1]))
        try:
            error = refused(*arguments, "-q")
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
        assert "could not be written: File too large" in error
        assert names() == set()


@pytest.mark.skipif(getattr(os, "geteuid", int)() == 0, reason="root may write everywhere")
def test_an_unwritable_folder_is_named(tables, tmp_path):
    tmp_path.chmod(0o500)
    error = refused("fit", tables / "t.csv", "-k", 2, "-q", "-o", "out")
    tmp_path.chmod(0o700)
    assert "Permission denied" in error
