"""The compiled library as a file: found, recognised, run at the instruction set asked for."""

import ctypes
import ctypes.util
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from mnarkmeans import _core


def import_core(path, **environment):
    """What a fresh process says that imports the bindings from another place."""
    code = "import sys; sys.path.insert(0, sys.argv[1])\n"
    code += "import mnarkmeans._core as core; print(core.level())"
    return subprocess.run(
        [sys.executable, "-c", code, path],
        capture_output=True,
        text=True,
        env=os.environ | environment,
    )


def copy_bindings(folder):
    package = folder / "mnarkmeans"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "_core.py").write_bytes(Path(_core.__file__).read_bytes())
    return package


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """A folder with the bindings and the library alone."""
    folder = tmp_path_factory.mktemp("core")
    package = copy_bindings(folder)
    (package / _core.NAME).write_bytes(_core.find_library().read_bytes())
    return folder


@pytest.mark.parametrize("name", ["", "baseline", "avx2", "avx512", "sse9"])
def test_the_environment_forces_an_instruction_set_or_hears_why_not(name, alone):
    ran = import_core(alone, MNARKMEANS_CPU=name)
    if name in ("", *_core.available_levels()):  # the best one by default
        assert ran.stdout.split() == [name or _core.available_levels()[-1]], ran.stderr
    else:
        assert ran.returncode != 0
        said = (
            f"MNARKMEANS_CPU: this machine cannot run the instruction set {name!r}, only baseline"
        )
        assert said in ran.stderr


def test_a_library_built_from_another_header_is_refused_with_the_way_out(monkeypatch):
    path = _core.find_library()
    monkeypatch.setattr(Path, "is_file", lambda self: True)  # also without a checkout
    monkeypatch.setattr(Path, "read_text", lambda self: "struct Other {};")
    with pytest.raises(ImportError, match="belongs to another version of mnarkmeans") as error:
        _core.load(path)
    assert "pip install" in str(error.value)
    assert "cmake --build" in str(error.value)


@pytest.mark.parametrize(
    "wrong", [np.zeros(3, np.float32), np.zeros(6)[::2], np.zeros(3, np.int64)], ids=str
)
def test_arrays_of_another_type_or_layout_never_reach_the_core(wrong):
    with pytest.raises(TypeError, match="contiguous array of float64"):
        _core.structs.Stats(sizes=wrong)
    with pytest.raises(TypeError, match="contiguous array of float64"):
        _core.call("fill_rows", _core.structs.Table(), None, 0, wrong, None)
    with pytest.raises(TypeError, match="takes a Table here"):
        _core.call("fill_rows", _core.structs.Stats(), None, 0, None, None)
    with pytest.raises(TypeError, match="has no field"):
        _core.structs.Stats(other=1)


def test_somebody_elses_library_is_refused(tmp_path):
    with pytest.raises(ImportError, match="cannot be loaded"):
        _core.load(Path(__file__))
    other = ctypes.util.find_library("c")
    if other is None:
        pytest.skip("no other library at hand")
    with pytest.raises(ImportError, match="is not the library of this version of mnarkmeans"):
        _core.load(Path(other))


def test_a_package_that_was_not_built_says_so(tmp_path):
    package = copy_bindings(tmp_path)
    ran = import_core(tmp_path)
    assert ran.returncode != 0
    assert f"mnarkmeans is not built: no {_core.NAME} in {package}" in ran.stderr
    assert "cmake --build" in ran.stderr
