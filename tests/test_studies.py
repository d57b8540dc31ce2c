"""The study: every rule on the same data, and tables that can be read."""

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("benchmarks.study", reason="the benchmarks are not part of the package")

from benchmarks.study import designs, report, rules


def small(k=2):
    make = designs.gaussian(k, 60, 2, 5, "mnar0", 1.0)
    return designs.Design("small", "one", k, (0.1, 1.0, 4.0), make)


def test_every_rule_sees_the_same_data(monkeypatch):
    monkeypatch.setattr(rules, "SETTINGS", rules.replace(rules.SETTINGS, n_init=2))
    rows = pd.DataFrame(rules.evaluate(small(), small().make(0), seed=0)).assign(number=0)
    assert set(rows.rule) >= {"paper", "subsample", "consensus", "heldout", "auto", "oracle"}
    for _, part in rows[rows.grid != "none"].groupby("grid"):
        oracle = part[part.rule == "oracle"].cer.item()
        assert (part.cer >= oracle).all()
    given = rows[rows.grid == "paper"]
    assert given.lam.isin([0.1, 1.0, 4.0]).all()
    text = report.as_markdown(rows)
    assert "| heldout |" in text
    assert "confirmed" in text


@pytest.mark.parametrize("name", ["figure2", "figure2-others", "random", "figure3", "own"])
def test_designs_make_fresh_tables_with_gaps(name):
    design = next(iter(designs.GROUPS[name]()))
    first, again, other = design.make(1), design.make(1), design.make(2)
    np.testing.assert_array_equal(first.X, again.X)
    assert np.isnan(first.X).any()
    assert not np.isnan(first.X).all(axis=1).any()
    assert len(np.unique(first.classes)) == design.k
    assert first.X.shape != other.X.shape or not np.array_equal(first.X, other.X, equal_nan=True)


def test_figure_2_has_45_designs_and_figure_3_has_18():
    assert len(list(designs.figure_2())) == 45
    assert len(list(designs.figure_3())) == 18
