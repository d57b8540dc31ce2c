"""What the package promises as a package: its public names, and what importing it costs."""

import subprocess
import sys

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
