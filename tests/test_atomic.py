"""One way to write a file: whole or not at all."""

from __future__ import annotations

import ast
import os
from pathlib import Path

import pytest

import mnarkmeans
from mnarkmeans import _io


def test_a_file_is_replaced_at_once(tmp_path):
    target = tmp_path / "a.txt"
    target.write_text("old")
    with _io.replacing(target) as hidden:
        hidden.write_text("new")
        assert target.read_text() == "old"
    assert target.read_text() == "new"
    assert [p.name for p in tmp_path.iterdir()] == ["a.txt"]


def test_after_an_error_nothing_has_changed(tmp_path):
    target = tmp_path / "a.txt"
    target.write_text("old")

    def fail_half_way():
        with _io.replacing(target) as hidden:
            hidden.write_text("ne")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail_half_way()
    assert target.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["a.txt"]


def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "folder").mkdir()
    link = tmp_path / "link.txt"
    link.symlink_to(tmp_path / "folder" / "real.txt")
    _io.write_text(link, "é")
    assert link.is_symlink()
    assert (tmp_path / "folder" / "real.txt").read_text(encoding="utf-8") == "é"


@pytest.mark.skipif(not hasattr(os, "pathconf"), reason="nobody tells how long names may be")
def test_the_longest_name_a_folder_takes(tmp_path):
    name = "n" * os.pathconf(tmp_path, "PC_NAME_MAX")
    _io.write_bytes(tmp_path / name, b"x")
    assert (tmp_path / name).read_bytes() == b"x"


def test_nobody_else_renames_files():
    """os.replace and os.rename have two homes: one for files, one for the folders of the cli."""
    package = Path(mnarkmeans.__file__).parent
    at_home = {package / "_io.py", package / "cli" / "_output.py"}
    for path in sorted(set(package.rglob("*.py")) - at_home):
        used = {
            node.attr
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
            if isinstance(node, ast.Attribute)
            and isinstance(node.value, ast.Name)
            and node.value.id == "os"
        }
        assert not used & {"replace", "rename", "fsync"}, path
