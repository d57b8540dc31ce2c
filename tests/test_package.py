"""What the package promises as a package: its public names, and what importing it costs."""

import subprocess
import sys

import numpy as np
import pytest
import scipy
import sklearn

import mnarkmeans
from mnarkmeans import _core

OPTIONAL = [
    "pandas", "polars", "matplotlib", "typer", "rich", "jinja2", "dask", "distributed", "anndata",
    "scanpy", "pooch", "pyarrow", "umap", "zarr",
]  # fmt: skip


def test_public_names():
    assert set(mnarkmeans.__all__) == {
        "MNARKMeans",
        "MNARKMeansCV",
        "MNARMixture",
        "MiniBatchMNARKMeans",
        "MissingDataWarning",
        "SelectionWarning",
        "__version__",
        "load",
        "show_versions",
    }


@pytest.mark.parametrize("name", mnarkmeans.SUBMODULES)
def test_public_submodules_come_when_asked_for(name):
    """In a fresh process: here somebody else may have imported it already."""
    code = (
        "import sys, mnarkmeans; assert 'mnarkmeans.NAME' not in sys.modules;"
        "assert 'NAME' in dir(mnarkmeans); print(mnarkmeans.NAME.__name__)"
    )
    out = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code.replace("NAME", name)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert out.stdout.strip() == f"mnarkmeans.{name}", out.stderr


def test_a_name_that_does_not_exist_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'kmeans_with_gaps'"):
        mnarkmeans.kmeans_with_gaps  # noqa: B018


def test_show_versions_tells_what_runs_here(capsys):
    mnarkmeans.show_versions()
    said = capsys.readouterr().out
    for line in (
        f"mnarkmeans {mnarkmeans.__version__}",
        f"numpy {np.__version__}",
        f"scipy {scipy.__version__}",
        f"scikit-learn {sklearn.__version__}",
        f"instruction set {_core.level()} (this machine has {', '.join(_core.available_levels())})",
    ):
        assert line in said.splitlines()


def test_importing_the_package_imports_nothing_optional():
    code = (
        "import sys, sklearn.cluster; before = set(sys.modules); import mnarkmeans;"
        "print(*sorted({m.split('.')[0] for m in set(sys.modules) - before}))"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not set(out.stdout.split()) & set(OPTIONAL)
