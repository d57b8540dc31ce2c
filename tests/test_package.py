"""What the package promises as a package: its public names, and what importing it costs."""

import re
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

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


def test_whoever_waits_for_a_compilation_is_told_once(monkeypatch, capsys):
    from mnarkmeans import _compiling

    monkeypatch.setattr(_compiling, "PATIENCE", 0.0)
    monkeypatch.delenv("MNARKMEANS_QUIET", raising=False)
    watch = _compiling._Watch()
    ours, foreign = (
        SimpleNamespace(data={"dispatcher": SimpleNamespace(py_func=SimpleNamespace(__module__=m))})
        for m in ("mnarkmeans._kernels", "elsewhere")
    )
    for event in (foreign, ours, ours):
        watch.on_start(event)
        watch.on_start(event)  # compilations nest
        time.sleep(0.05)
        watch.on_end(event)
        watch.on_end(event)
    assert capsys.readouterr().err.count("compiling for this machine") == 1
    assert 0.1 <= watch.seconds < 10


def test_the_map_of_the_code_shows_every_folder_and_module_and_no_other():
    guide = Path(__file__).parent.parent / "CONTRIBUTING.md"
    table = guide.read_text().split("<!-- map -->")[1].split("<!-- end of map -->")[0]
    rows = [line.split("|")[1] for line in table.splitlines() if line.startswith("| `")]
    shown = {name for row in rows for name in re.findall(r"`([^`]+)`", row)}
    package = Path(mnarkmeans.__file__).parent
    there = {p.name for p in package.glob("*.py")} - {"__init__.py"}
    there |= {f"{p.parent.name}/" for p in package.glob("*/__init__.py")}
    assert shown == there
