"""scikit-build-core, and zig from PyPI as the compiler where the system has none that works.

PEP 517 hooks: the front end installs what ``get_requires_for_build_*`` names and then calls
``build_*`` in the same environment. All the rest is scikit-build-core's.

``CC`` names a compiler that is used unseen; ``MNARKMEANS_USE_ZIG=1`` asks for zig.
"""

import importlib.util
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from scikit_build_core import build as _build
from scikit_build_core.build import build_sdist, get_requires_for_build_sdist  # noqa: F401

ZIG = "ziglang==0.15.2"
OLDEST_GLIBC = (2, 28)  # what a library made by zig asks for: manylinux_2_28
COMPILERS: tuple[str, ...] = ("cc", "gcc", "clang")
if sys.platform == "win32":
    # cl has no vector extensions; clang-cl needs what a developer's prompt of Visual Studio sets.
    COMPILERS = ("clang-cl",) if os.environ.get("VSCMD_VER") else ()
TRIAL = """
#include <math.h>
#include <stdlib.h>
#include <string.h>
typedef double Doubles __attribute__((vector_size(32)));
extern "C" double trial(double x) { Doubles v = x - Doubles{}; return sqrt(v[0] + v[3]); }
"""


@cache
def compiler() -> str | None:
    """What CMake shall use for C, or None: zig.

    A program of the right name is not enough: macOS has a stub, and a gcc may lack its C++ part
    or the headers of libc.
    """
    if os.environ.get("MNARKMEANS_USE_ZIG", "0") not in ("", "0"):
        return None
    if os.environ.get("CC"):
        return os.environ["CC"]
    return next((name for name in COMPILERS if shutil.which(name) and builds_a_library(name)), None)


def builds_a_library(name: str) -> bool:
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "trial.cpp")
        source.write_text(TRIAL)
        if name == "clang-cl":
            command = [name, "/LD", "/clang:-std=c++17", str(source)]
        else:
            command = [name, "-shared", "-x", "c++", "-std=c++17", "-fPIC", str(source)]
            command += ["-lm", "-o", "trial.out"]
        try:
            ran = subprocess.run(command, cwd=folder, capture_output=True, timeout=120)
        except (OSError, subprocess.TimeoutExpired):
            return False
        return ran.returncode == 0


def zig() -> Path | None:
    """The program in the ``ziglang`` package, if that is installed."""
    spec = importlib.util.find_spec("ziglang")
    if spec is None or spec.origin is None:
        return None
    return Path(spec.origin).parent / ("zig.exe" if sys.platform == "win32" else "zig")


def check_tools() -> None:
    """One clear end where something is missing (without build isolation nothing is fetched)."""
    missing, packages = [], []
    if not compiler() and not zig():
        tried = ", ".join(COMPILERS) or "none: this is no developer's prompt of Visual Studio"
        missing.append(f"no working C++ compiler (tried {tried})")
        packages.append(ZIG)
    if not shutil.which("cmake") and not importlib.util.find_spec("cmake"):
        missing.append("no cmake")
        packages += ["cmake", "ninja"]
    if missing:
        raise SystemExit(
            f"mnarkmeans cannot be built: {' and '.join(missing)} was found.\n"
            f"Without build isolation they have to be there: pip install {' '.join(packages)}\n"
            "A compiler of your own comes with: apt install g++ (Debian), xcode-select --install "
            "(macOS), LLVM's clang-cl (Windows); CC names one that is not in PATH."
        )


def zig_command() -> str:
    """zig's C compiler, for the plainest processor of this kind and an old enough libc."""
    # Without -mcpu it compiles for the processor it runs on; it knows no -march=x86-64.
    return " ".join([f'"{zig()}"', "cc", "-mcpu=baseline", *zig_target()])


def zig_target() -> list[str]:
    machine = platform.machine().lower()
    machine = {"amd64": "x86_64", "arm64": "aarch64"}.get(machine, machine)
    if machine not in ("x86_64", "aarch64"):
        return []
    if sys.platform == "win32":
        return ["-target", f"{machine}-windows-gnu"]
    libc, version = platform.libc_ver()
    if sys.platform == "linux" and libc == "glibc":
        oldest = min(OLDEST_GLIBC, tuple(map(int, version.split(".")[:2])))
        return ["-target", f"{machine}-linux-gnu.{oldest[0]}.{oldest[1]}"]
    return []


@contextmanager
def a_compiler():
    """The environment in which CMake finds the compiler that was chosen."""
    check_tools()
    before = dict(os.environ)
    try:
        with tempfile.TemporaryDirectory() as cache_folder:
            if compiler():
                os.environ["CC"] = compiler()
            else:
                os.environ["CC"] = zig_command()  # CMake splits off the arguments
                os.environ.setdefault("ZIG_GLOBAL_CACHE_DIR", cache_folder)
                print(f"mnarkmeans: building with {os.environ['CC']}", file=sys.stderr)
            _want_ninja()
            yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def _want_ninja() -> None:
    """Visual Studio, the default on Windows, would choose a compiler by itself."""
    if sys.platform == "win32":
        os.environ.setdefault("CMAKE_GENERATOR", "Ninja")


def _requires(hook, config_settings):
    _want_ninja()
    more = [] if compiler() else [ZIG]
    return [*hook(config_settings), *more]


def get_requires_for_build_wheel(config_settings=None):
    return _requires(_build.get_requires_for_build_wheel, config_settings)


def get_requires_for_build_editable(config_settings=None):
    return _requires(_build.get_requires_for_build_editable, config_settings)


def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None):
    check_tools()
    return _build.prepare_metadata_for_build_wheel(metadata_directory, config_settings)


def prepare_metadata_for_build_editable(metadata_directory, config_settings=None):
    check_tools()
    return _build.prepare_metadata_for_build_editable(metadata_directory, config_settings)


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    with a_compiler():
        return _build.build_wheel(wheel_directory, config_settings, metadata_directory)


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    with a_compiler():
        return _build.build_editable(wheel_directory, config_settings, metadata_directory)
