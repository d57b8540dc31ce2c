"""Ten files as laboratories have them: the command that `diagnose` names finds the groups."""

from __future__ import annotations

import json
import shlex

import pytest
from lab_exports import EXPORTS
from lab_files import FILES, agreement
from lab_variants import VARIANTS
from sklearn.metrics import adjusted_rand_score

from mnarkmeans import MNARKMeans
from mnarkmeans.cli._formats import read_file
from mnarkmeans.cli._job import prepare
from mnarkmeans.cli._options import Reading, Source, Steps
from mnarkmeans.cli._suggest import advised, command_for

NEEDED = {
    "tenx": "anndata", "dense_counts": "anndata", "scaled_cells": "anndata",
    "two_headers": "openpyxl", "merged_cells": "openpyxl", "proteome_discoverer": "openpyxl",
    "known_above_the_names": "openpyxl",
}  # fmt: skip
OTHERS = VARIANTS | EXPORTS
SOLVED = [name for name in FILES if name != "hopeless"]


@pytest.mark.parametrize("name", SOLVED)
def test_the_command_that_diagnose_names_finds_the_groups(server, tmp_path, name):
    pytest.importorskip(NEEDED.get(name, "pandas"))
    file, group = FILES[name](tmp_path)
    done = server.run("diagnose", file, "--json", cwd=tmp_path)
    assert done.code == 0, done.err
    words = shlex.split(json.loads(done.out)["command"])
    assert words[:3] == ["mnarkmeans", "select", file]
    done = server.run(*words[1:], cwd=tmp_path)
    assert done.code == 0, done.err
    assert agreement(tmp_path / words[-1], group) >= 0.9
    # Nothing is left to suggest once the command says it all.
    assert "if so, add" not in done.err


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", OTHERS)
def test_files_that_the_rules_were_not_made_for(tmp_path, name):
    """Read and prepared as `diagnose` says, and clustered, without the search for k."""
    pytest.importorskip(NEEDED.get(name, "pandas"))
    file, group, expected = OTHERS[name](tmp_path)
    source = Source(tmp_path / file, Reading(), Steps())
    source, _ = advised(source, lambda asked: read_file(asked.data, asked.reading))
    said = shlex.split(command_for(source, len(group)))
    assert set(shlex.split(expected)) <= set(said)
    job = prepare(read_file(source.data, source.reading), source.steps)
    model = MNARKMeans(len(set(group)), reference=job.reference, random_state=0).fit(job.X)
    assert adjusted_rand_score(group, model.labels_) >= 0.9


def test_a_hopeless_file_is_told_what_to_do(server, tmp_path):
    file, _ = FILES["hopeless"](tmp_path)
    for verb in (["diagnose", file], ["fit", file, "-k", 3, "-o", "out"]):
        done = server.run(*verb, cwd=tmp_path)
        assert done.code == 2
        assert "take units and percent signs out" in done.err
        assert done.err.count("\n") == 1


def test_fit_suspects_zeros_and_says_what_to_add(server, tmp_path):
    file, _ = FILES["maxquant"](tmp_path)
    done = server.run("fit", file, "-k", 3, "-o", "out", cwd=tmp_path)
    assert done.code == 0, done.err
    for words in (
        '--columns "LFQ intensity *"', "--transpose", "--drop-rows Reverse=+",
        "are exactly 0 and nothing else is marked as missing", "--missing-value 0", "--log2",
        f"mnarkmeans diagnose {file} names the whole command",
    ):  # fmt: skip
        assert words in done.err
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert any("--missing-value 0" in note for note in summary["notes"])
