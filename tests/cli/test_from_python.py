"""Models of the command line in Python, and the other way round."""

from __future__ import annotations

import numpy as np
import pytest
from outputs import rows

import mnarkmeans


def test_a_model_of_the_command_line_is_loaded(server, tables, fitted, frame, tmp_path):
    model = mnarkmeans.load(fitted)
    labels = [int(r[1]) for r in rows(fitted / "labels.csv")[1:]]
    np.testing.assert_array_equal(model.predict(frame[list("abcde")]), labels)
    done = server.run("fit", tables / "t.csv", "-k", 2, "--log1p", "-o", tmp_path / "out")
    assert done.code == 0, done.err
    with pytest.warns(UserWarning, match=r"fitted on prepared values \(log\(1 \+ x\)\)"):
        model = mnarkmeans.load(tmp_path / "out")
    labels = [int(r[1]) for r in rows(tmp_path / "out" / "labels.csv")[1:]]
    np.testing.assert_array_equal(model.predict(np.log1p(frame[list("abcde")])), labels)


def test_the_command_line_uses_a_model_of_python(server, tables, frame, tmp_path):
    model = mnarkmeans.MNARKMeans(2, lam=0.5, random_state=0).fit(frame[list("abcde")])
    model.save(tmp_path / "model")
    done = server.run("predict", "model", tables / "t.csv", "-o", "l.csv", cwd=tmp_path)
    assert done.code == 0, done.err
    assert [int(r[1]) for r in rows(tmp_path / "l.csv")[1:]] == model.labels_.tolist()
    done = server.run("impute", "model", tables / "t.csv", "-o", "f.csv", cwd=tmp_path)
    assert done.code == 0, done.err
