"""The compiled library as a file: found, recognised, run at the instruction set asked for."""

import ctypes
import ctypes.util
import hashlib
import os
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import numpy as np
import pytest

import mnarkmeans
from mnarkmeans import MNARKMeans
from mnarkmeans._core import library as _core

ROOT = Path(__file__).parents[2]
PACKAGE = Path(_core.__file__).parent.parent
DOOR = sorted(Path(_core.__file__).parent.glob("*.py"))


def import_core(path=PACKAGE.parent, **environment):
    """What a fresh process says that imports the door, perhaps from another place."""
    code = "import sys; sys.path.insert(0, sys.argv[1])\n"
    code += "import mnarkmeans._core as core; print(core.level())"
    return subprocess.run(
        [sys.executable, "-c", code, path],
        capture_output=True,
        text=True,
        env=os.environ | environment,
    )


@pytest.mark.parametrize("name", _core.ALL_LEVELS)
def test_the_environment_forces_an_instruction_set_or_hears_why_not(name):
    ran = import_core(MNARKMEANS_CPU=name)
    if name in _core.available_levels():
        assert ran.stdout.split() == [name], ran.stderr
    else:
        assert ran.returncode != 0
        assert f"MNARKMEANS_CPU: this machine cannot run {name}" in ran.stderr


def test_an_unknown_instruction_set_is_named_with_those_that_exist():
    ran = import_core(MNARKMEANS_CPU="sse9")
    assert ran.returncode != 0
    assert "MNARKMEANS_CPU: the instruction set is one of baseline, avx2, avx512" in ran.stderr
    assert "'sse9'" in ran.stderr


def test_the_best_instruction_set_is_used_unless_told():
    assert import_core(MNARKMEANS_CPU="").stdout.split() == [_core.available_levels()[-1]]


def test_labels_centers_and_losses_do_not_depend_on_the_level(each_level):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 13)) + rng.integers(0, 3, size=(500, 1))
    X[rng.random(X.shape) < 0.3] = np.nan

    def fit():
        return MNARKMeans(4, lam=0.7, n_init=3, random_state=0, n_jobs=2).fit(X)

    here = fit()
    _core.set_level("baseline")
    baseline = fit()
    np.testing.assert_array_equal(here.labels_, baseline.labels_)
    np.testing.assert_array_equal(here.cluster_centers_, baseline.cluster_centers_)
    np.testing.assert_allclose(here.loss_path_, baseline.loss_path_, rtol=1e-12)


def test_a_library_of_another_interface_is_refused_with_the_way_out(monkeypatch):
    monkeypatch.setattr(_core, "INTERFACE", "0123456789abcdef")
    with pytest.raises(ImportError, match="belongs to another version of mnarkmeans") as error:
        _core.load(_core.find_library())
    assert "pip install" in str(error.value)
    assert "cmake --build" in str(error.value)


def test_a_library_with_other_structs_is_refused(monkeypatch):
    class Control(ctypes.Structure):
        _fields_ = [*_core.Control._fields_, ("more", ctypes.c_double)]

    others = tuple(Control if struct is _core.Control else struct for struct in _core.STRUCTS)
    for structs in (others, (*_core.STRUCTS, Control), _core.STRUCTS[:-1]):
        monkeypatch.setattr(_core, "STRUCTS", structs)
        with pytest.raises(ImportError, match="belongs to another version"):
            _core.load(_core.find_library())


def test_a_library_that_lacks_a_function_is_refused(monkeypatch):
    monkeypatch.setitem(_core.FUNCTIONS, "of_tomorrow", [])
    with pytest.raises(ImportError, match="another version of mnarkmeans: it has no of_tomorrow"):
        _core.load(_core.find_library())


def test_somebody_elses_library_is_refused(tmp_path):
    with pytest.raises(ImportError, match="cannot be loaded"):
        _core.load(Path(__file__))
    other = ctypes.util.find_library("c")
    if other is None:
        pytest.skip("no other library at hand")
    with pytest.raises(ImportError, match="is not the library of this version of mnarkmeans"):
        _core.load(Path(other))


def test_a_package_that_was_not_built_says_so(tmp_path):
    package = tmp_path / "mnarkmeans"
    (package / "_core").mkdir(parents=True)
    (package / "__init__.py").touch()
    for module in DOOR:
        (package / "_core" / module.name).write_bytes(module.read_bytes())
    ran = import_core(tmp_path)
    assert ran.returncode != 0
    assert f"mnarkmeans is not built: no {_core.NAME} in {package}" in ran.stderr
    assert "cmake --build" in ran.stderr


def test_the_library_is_found_in_a_zip_file(tmp_path):
    archive = tmp_path / "package.zip"
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("mnarkmeans/__init__.py", "")
        for module in DOOR:
            file.write(module, f"mnarkmeans/_core/{module.name}")
        file.write(_core.find_library(), f"mnarkmeans/{_core.NAME}")
    ran = import_core(archive)
    assert ran.stdout.split() == [_core.level()], ran.stderr


def test_the_library_shadows_no_module():
    stem = _core.find_library().name.partition(".")[0]
    modules = {path.stem for path in PACKAGE.glob("*.py")}
    modules |= {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    assert stem not in modules


def test_both_sides_know_the_interface_as_it_is_written():
    header = (ROOT / "src" / "core" / "core.h").read_bytes().replace(b"\r", b"")
    assert hashlib.sha256(header).hexdigest()[:16] == _core.INTERFACE
    library = ctypes.CDLL(str(_core.find_library()))
    library.mnarkmeans_interface.restype = ctypes.c_char_p
    assert library.mnarkmeans_interface().decode() == _core.INTERFACE


def test_the_build_ends_where_only_one_side_of_the_interface_has_changed(tmp_path):
    """Before anything is compiled, and with the line to write."""
    cmake = shutil.which("cmake")
    if cmake is None:
        pytest.skip("no cmake")
    for name in ("CMakeLists.txt", "src/core", "src/mnarkmeans/_core"):
        source, target = ROOT / name, tmp_path / name
        target.parent.mkdir(parents=True, exist_ok=True)
        (shutil.copytree if source.is_dir() else shutil.copy)(source, target)
    header = tmp_path / "src" / "core" / "core.h"
    header.write_text(header.read_text() + "// one more word\n")
    # A sanitizer's run time is for the library: under that for threads CMake waits for ever.
    env = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    ran = subprocess.run(
        [cmake, "-S", tmp_path, "-B", tmp_path / "build"], env=env, capture_output=True, text=True
    )
    assert ran.returncode != 0
    assert "core.h has changed" in ran.stderr
    assert f'INTERFACE = "{hashlib.sha256(header.read_bytes()).hexdigest()[:16]}"' in ran.stderr


def test_the_version_is_written_once():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf8"))
    assert "version" not in settings["project"]
    assert settings["project"]["dynamic"] == ["version"]
    (source,) = settings["tool"]["dynamic-metadata"]
    init = (ROOT / source["input"]).read_text()
    assert f'__version__ = "{mnarkmeans.__version__}"' in init
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf8")  # a copy, for people and indexes
    assert f"version: {mnarkmeans.__version__}\n" in citation
