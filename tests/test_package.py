"""What the package promises as a package: public names, cheap imports, true texts for newcomers."""

import inspect
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest
import scipy
import sklearn

import mnarkmeans
from mnarkmeans import _core

ROOT = Path(__file__).parents[1]
OPTIONAL = [
    "pandas", "polars", "matplotlib", "typer", "rich", "jinja2", "dask", "distributed", "anndata",
    "scanpy", "pooch", "pyarrow", "umap", "zarr",
]  # fmt: skip


def python(code):
    """What a fresh interpreter prints."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_public_names():
    assert set(mnarkmeans.__all__) >= {
        "MNARKMeans", "MNARKMeansCV", "MNARMixture", "MiniBatchMNARKMeans", "MissingDataWarning",
        "SelectionWarning", "__version__", "load", "read_table", "report", "show_versions",
    }  # fmt: skip
    assert set(mnarkmeans.SUBMODULES) >= {
        "baselines", "dask", "datasets", "displays", "metrics", "missingness", "tl",
    }  # fmt: skip
    for name in mnarkmeans.__all__:
        assert hasattr(mnarkmeans, name)
    with pytest.raises(AttributeError, match="no attribute 'kmeans_with_gaps'"):
        mnarkmeans.kmeans_with_gaps  # noqa: B018


def test_importing_the_package_imports_nothing_optional_and_submodules_when_they_are_used():
    submodules = [f"mnarkmeans.{name}" for name in mnarkmeans.SUBMODULES]
    words = python(
        "import sys, sklearn.cluster; before = set(sys.modules); import mnarkmeans;"
        "assert set(mnarkmeans.SUBMODULES) <= set(dir(mnarkmeans));"
        "print(*sorted(set(sys.modules) - before), '/');"
        f"print(*(thing.__name__ for thing in ({', '.join(submodules)})))"
    )
    loaded, used = set(words[: words.index("/")]), words[words.index("/") + 1 :]
    assert not {name.split(".")[0] for name in loaded} & set(OPTIONAL)
    assert not set(submodules) & loaded - {"mnarkmeans.missingness"}
    assert used == submodules


def test_importing_costs_little_more_than_scikit_learn():
    """Processor time, so that other work on the machine does not matter."""
    code = "import time, {0}; print(time.process_time())"
    attempts = (
        float(*python(code.format("mnarkmeans"))) / float(*python(code.format("sklearn.cluster")))
        for _ in range(4)
    )
    assert any(ratio < 1.3 for ratio in attempts)


def test_versions_are_those_of_the_packages_and_of_the_citation(capsys):
    mnarkmeans.show_versions()
    lines, levels = capsys.readouterr().out.splitlines(), ", ".join(_core.available_levels())
    assert f"instruction set {_core.level()} (this machine has {levels})" in lines
    for module in (mnarkmeans, np, scipy, sklearn):
        name = module.__name__.replace("sklearn", "scikit-learn")
        assert f"{name} {module.__version__}" in lines
    citation = (ROOT / "CITATION.cff").read_text("utf8")
    assert f"\nversion: {mnarkmeans.__version__}\n" in citation


def test_llms_txt_is_true():
    """It lists names, parameters and extras of the package; its code runs."""
    text = (ROOT / "llms.txt").read_text("utf8")
    names = set(re.findall(r"`mnarkmeans\.([A-Za-z_.]+)`", text))
    assert len(names) > 10
    for name in names:
        thing = mnarkmeans
        for part in name.split("."):
            thing = getattr(thing, part)
    parameters = re.findall(r"`(\w+)`", text.split("Parameters:")[1].split("Methods:")[0])
    assert parameters == list(inspect.signature(mnarkmeans.MNARKMeans).parameters)
    for code in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
        exec(code, {})
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf8"))["project"]
    extras = re.findall(r"`(\w+)`", text.split("Extras:")[1].split("\n\n")[0])
    assert set(extras) == set(project["optional-dependencies"]) - {"test", "docs", "bench"}
    if (ROOT / "docs").exists():
        for link in re.findall(r"\]\(([^)]+)\)", text):
            assert (ROOT / link).is_file(), link
