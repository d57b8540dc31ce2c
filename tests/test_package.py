"""What the package promises as a package: its public names, and what importing it costs."""

import re
import subprocess
import sys
from pathlib import Path

import mnarkmeans

OPTIONAL = [
    "pandas", "polars", "matplotlib", "typer", "rich", "jinja2", "dask", "distributed", "anndata",
    "scanpy", "pooch", "pyarrow", "umap", "zarr",
]  # fmt: skip


def test_public_names():
    assert set(mnarkmeans.__all__) == {
        "MNARKMeans",
        "MNARKMeansCV",
        "MiniBatchMNARKMeans",
        "MissingDataWarning",
        "SelectionWarning",
        "__version__",
    }


def test_importing_the_package_imports_nothing_optional():
    code = (
        "import sys, sklearn.cluster; before = set(sys.modules); import mnarkmeans;"
        "print(*sorted({m.split('.')[0] for m in set(sys.modules) - before}))"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not set(out.stdout.split()) & set(OPTIONAL)


def test_the_map_of_the_code_shows_every_folder_and_module_and_no_other():
    guide = Path(__file__).parent.parent / "CONTRIBUTING.md"
    table = guide.read_text().split("<!-- map -->")[1].split("<!-- end of map -->")[0]
    rows = [line.split("|")[1] for line in table.splitlines() if line.startswith("| `")]
    shown = {name for row in rows for name in re.findall(r"`([^`]+)`", row)}
    package = Path(mnarkmeans.__file__).parent
    there = {p.name for p in package.glob("*.py")} - {"__init__.py"}
    there |= {f"{p.parent.name}/" for p in package.glob("*/__init__.py")}
    assert shown == there
