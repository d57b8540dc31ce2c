"""The studies run, on tables that are what they say."""

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("studies", reason="the studies are not part of the package")

from mnarkmeans import MNARKMeans
from studies import cells, choice, designs, hindsight, steadiness, summary, theorem


@pytest.mark.parametrize("group", designs.GROUPS)
def test_designs_draw_fresh_tables_with_gaps(group):
    design = next(iter(designs.GROUPS[group]()))
    first, again, other = design.make(1), design.make(1), design.make(2)
    np.testing.assert_array_equal(first.X, again.X)
    assert np.isnan(first.X).any()
    assert not np.isnan(first.X).all(axis=1).any()
    assert len(np.unique(first.classes)) == design.k
    assert first.X.shape != other.X.shape or not np.array_equal(first.X, other.X, equal_nan=True)


def test_choice_compares_all_methods_on_the_same_tables(tmp_path):
    methods = ["default", "best", "filled", "k-POD", "mean"]
    file = tmp_path / "rows.csv"
    rows = choice.run(["chance"], [1], methods, every=12, file=file)
    assert len(rows) == 2 * len(methods)
    found = choice.wide(rows, "ari")
    assert (found["best"] >= found[["k-POD"]].max(axis=1) - 1e-9).all()
    again = choice.run(["chance"], [1], methods, every=12, file=file)
    again, first = (part.drop(columns="seconds").round(3) for part in (again, rows))
    pd.testing.assert_frame_equal(again, first, check_dtype=False)
    text = choice.report(rows, by_design=True)
    assert "| chance | 2 |" in text
    assert "normal k=3 10%" in text


def test_hindsight_is_never_worse_than_what_the_design_suggests():
    regrets = hindsight.regrets(next(iter(designs.by_chance())), 0, [1, 2, 3])
    assert regrets.shape == (3,)
    assert (regrets >= 0.0).all()


def test_the_theorem_lam_recovers_the_centres_better_than_k_pod():
    k, n, p, s, t = next(iter(theorem.DESIGNS.values()))
    X, centers = theorem.draw(k, n, p, s, t, seed=0)
    models = (MNARKMeans(k, lam=lam, random_state=0) for lam in (1 - 1 / (2 * s * t + 1), 0.0))
    errors = [theorem.error(centers, model.fit(X).cluster_centers_) for model in models]
    assert errors[0] < 0.5 * errors[1]


def test_the_steps_of_the_studies():
    assert len(list(designs.figure_2())) == 45
    assert len(list(designs.figure_3())) == 18
    assert steadiness.position(0.75) == 3.5
    X = next(iter(designs.by_chance())).make(0).X
    found = steadiness.moves(X, 3, draws=2, seed=0)
    assert 0 <= found["moved"] <= 1
    assert not found["by jitter"]
    X, types = cells.draw(500, 400, seed=0)
    assert 0.7 < 1 - X.nnz / np.prod(X.shape) < 0.9
    assert len(types) == 500
    assert summary.paired([1.0, 2.0, 3.0], [0.0, 1.0, 2.0]) == "+1.000 ± 0.000"
    assert summary.paired([1.0, np.nan], [0.5, 1.0]) == "+0.500"
