"""Wrong input: the message names what was found and says what to do."""

import numpy as np
import pytest

from mnarkmeans import MNARKMeans

X = np.array([[1.0, 2.0], [np.nan, 3.0], [4.0, np.nan], [5.0, 6.0]])


def fit(table=X, n_clusters=2, sample_weight=None, **options):
    return MNARKMeans(n_clusters, **{"lam": 0.5, **options}).fit(table, sample_weight=sample_weight)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"lam": -1.0}, ValueError, "lam must be a finite number >= 0; got -1.0"),
        ({"lam": np.nan}, ValueError, "lam must be a finite number >= 0; got nan"),
        ({"lam": np.inf}, ValueError, "lam must be a finite number >= 0; got inf"),
        (
            {"lam": "best"},
            ValueError,
            "lam must be 'auto', a number >= 0 or an array of them; got 'best'",
        ),
        ({"lam": None}, TypeError, "lam must be a number >= 0; got None"),
        ({"n_clusters": 0}, ValueError, "n_clusters must be a whole number >= 1; got 0"),
        ({"n_clusters": 2.5}, TypeError, "n_clusters must be a whole number >= 1; got 2.5"),
        ({"n_clusters": 5}, ValueError, "n_samples=4 usable rows .* n_clusters=5"),
        ({"n_init": 0}, ValueError, "n_init must be a whole number >= 1; got 0"),
        ({"max_iter": 0}, ValueError, "max_iter must be a whole number >= 1; got 0"),
        ({"tol": -1e-3}, ValueError, "tol must be a finite number >= 0; got -0.001"),
        ({"algorithm": "elkan"}, ValueError, "algorithm must be 'auto', 'lloyd', 'hartigan'; got"),
        ({"init": "pca"}, ValueError, "init must be 'k-means..', 'random', an array or a callable"),
        (
            {"init": [[1.0]]},
            ValueError,
            r"init must have shape \(n_clusters=2, n_features=2\); got",
        ),
        ({"init": X[1:3]}, ValueError, "init must be finite"),
        ({"reference": [0.0] * 3}, ValueError, r"one per feature \(n_features=2\); got .*\(3,\)"),
        ({"reference": np.nan}, ValueError, "reference must be finite; got nan"),
        ({"reference": "max"}, ValueError, "reference must be 'min', 'auto', a number or an array"),
        ({"reference": object()}, TypeError, "reference must be a number"),
        ({"missing_values": "NA"}, TypeError, "missing_values must be nan or a number; got 'NA'"),
        ({"missing_values": np.inf}, ValueError, "missing_values must be nan or a finite number"),
        ({"n_jobs": 0}, ValueError, "n_jobs == 0"),
        ({"sample_weight": [1.0, 1.0]}, ValueError, "sample_weight"),
        ({"sample_weight": [1.0, -1.0, 1, 1]}, ValueError, "(?i)negative"),
        ({"sample_weight": [0.0] * 4}, ValueError, "0 for every row|at least one non-zero"),
        ({"table": np.where(X == 6, np.inf, X)}, ValueError, "infinity: inf in row 3, column 1"),
        ({"table": np.full((4, 2), np.nan)}, ValueError, "All 4 x 2 values are missing"),
        ({"table": np.empty((0, 2))}, ValueError, r"0 sample\(s\)"),
        ({"table": np.empty((3, 0))}, ValueError, r"0 feature\(s\)"),
        ({"table": [1.0, 2.0]}, ValueError, "Expected 2D array, got 1D array"),
        ({"table": [["a", 1.0], ["b", 2.0]]}, ValueError, "numbers only: column 0 holds"),
        ({"table": [[1.0, 2.0]]}, ValueError, "n_samples=1 usable rows .* n_clusters=2"),
    ],
)
def test_bad_input(options, error, message):
    with pytest.raises(error, match=message):
        fit(**options)


def test_wrong_width_at_predict():
    with pytest.raises(ValueError, match="3 features, but MNARKMeans is expecting 2"):
        fit().predict(np.ones((2, 3)))


def test_infinite_values_at_predict():
    with pytest.raises(ValueError, match="infinity"):
        fit().predict([[np.inf, 0.0]])


def test_overflowing_values_are_refused():
    with pytest.raises(ValueError, match="too large"):
        fit(np.full((4, 2), 1.5e308))
