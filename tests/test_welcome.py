"""What greets newcomers is true: llms.txt, the changelog, the citation, the classifiers."""

from __future__ import annotations

import contextlib
import importlib
import inspect
import re
import tomllib
from pathlib import Path

import pytest

import mnarkmeans

ROOT = Path(__file__).parents[1]
GUIDE = (ROOT / "llms.txt").read_text("utf8")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf8"))["project"]


def test_names_for_programs_exist():
    names = set(re.findall(r"`mnarkmeans\.([\w.]+)`", GUIDE))
    assert len(names) > 10
    for name in names:
        module, _, last = f"mnarkmeans.{name}".rpartition(".")
        with contextlib.suppress(ModuleNotFoundError):  # of an extra that is not installed
            assert last in importlib.import_module(module).__all__, name


def test_parameters_and_methods_for_programs_are_those_of_the_estimators():
    line = GUIDE.split("`mnarkmeans.MNARKMeans`:")[1].split("\n- ")[0]
    parameters, methods = (re.findall(r"`(\w+)`", part) for part in line.split("methods"))
    assert parameters == list(inspect.signature(mnarkmeans.MNARKMeans).parameters)
    assert all(callable(getattr(mnarkmeans.MNARKMeans, method)) for method in methods)
    assert all(hasattr(mnarkmeans.MNARMixture, name) for name in ("predict_proba", "bic"))
    assert hasattr(mnarkmeans.MiniBatchMNARKMeans, "partial_fit")


def test_the_code_for_programs_runs():
    for code in re.findall(r"```python\n(.*?)```", GUIDE, re.DOTALL):
        exec(code, {})


def test_commands_for_programs_are_all_there_are():
    pytest.importorskip("typer")
    from typer.main import get_command

    from mnarkmeans.cli import _verbs  # noqa: F401  they join the app
    from mnarkmeans.cli._app import app

    verbs = {n for n, verb in get_command(app).commands.items() if not verb.hidden}
    assert set(re.findall(r"`mnarkmeans (\w+)`", GUIDE)) == verbs


def test_extras_for_programs_are_those_of_users():
    named = GUIDE.split("Extras,")[1].split("##")[0].split(":", 1)[1]
    ours = set(PROJECT["optional-dependencies"]) - {"test", "docs", "bench"}
    assert set(re.findall(r"`(\w+)`", named)) == ours


def test_links_for_programs_lead_to_pages():
    links = re.findall(r"\]\(([^)]+)\)", GUIDE)
    assert len(links) > 15
    if not (ROOT / "docs").exists():
        pytest.skip("the documentation is not part of this copy of the sources")
    assert [link for link in links if not (ROOT / link).is_file()] == []


def test_this_version_has_its_place_in_the_changelog_and_the_citation():
    version = mnarkmeans.__version__
    assert f"## [{version}]" in (ROOT / "CHANGELOG.md").read_text("utf8")
    assert f"\nversion: {version}\n" in (ROOT / "CITATION.cff").read_text("utf8")


def test_pythons_are_the_same_everywhere():
    named = re.findall(r"Python :: (3\.\d+)", "\n".join(PROJECT["classifiers"]))
    assert PROJECT["requires-python"] == f">={named[0]}"
    runner = ROOT / "noxfile.py"
    if not runner.exists():
        pytest.skip("the task runner is not part of this copy of the sources")
    assert f"PYTHONS = {named}".replace("'", '"') in runner.read_text("utf8")


def test_every_step_of_ci_can_be_run_alone_by_its_name():
    every_change, runner = ROOT / ".ci" / "run", ROOT / "noxfile.py"
    if not runner.exists():
        pytest.skip("the task runner is not part of this copy of the sources")
    steps = re.findall(r"^step ([\w-]+)$", every_change.read_text("utf8"), re.M)
    sessions = re.findall(
        r'@nox\.session(?:.*name="([\w-]+)".*|.*)\ndef (\w+)', runner.read_text("utf8")
    )
    longer = {"coverage", "nightly"}
    assert {name or function for name, function in sessions} - longer == set(steps)
    sections = re.search(r"^SECTIONS=\((.*)\)$", (ROOT / ".ci" / "nightly").read_text("utf8"), re.M)
    workflow = (ROOT / ".github" / "workflows" / "nightly.yml").read_text("utf8")
    matrix = re.search(r"section:\s+\[(.*)\]", workflow)
    assert matrix[1].split(", ") == sections[1].split()
