"""The lowest versions pyproject.toml names, as constraints for pip: numpy>=1.26 is numpy==1.26."""

import re
import tomllib
from pathlib import Path

project = tomllib.loads(Path(__file__).parents[1].joinpath("pyproject.toml").read_text())["project"]
named = [*project["dependencies"]]
for extra, requirements in project["optional-dependencies"].items():
    if extra not in ("docs", "bench"):
        named += requirements

lowest: dict[str, tuple[int, ...]] = {}
for requirement in named:
    if found := re.fullmatch(r"([\w.-]+)(?:\[[^]]*\])?\s*>=\s*([\d.]+)", requirement):
        version = tuple(map(int, found[2].split(".")))
        lowest[found[1]] = max(version, lowest.get(found[1], ()))
print("pyparsing<3.3")  # it warns of what matplotlib 3.8 calls, and warnings are errors in tests
for name, version in sorted(lowest.items()):
    print(f"{name}=={'.'.join(map(str, version))}")
