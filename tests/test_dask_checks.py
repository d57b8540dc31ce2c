"""scikit-learn's own checks of estimators, on the one for Dask."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

pytest.importorskip("dask.array")

from places import DRAWN_BY_POSITION

from mnarkmeans.dask import MNARKMeans


# Some checks give sparse rows without any stored value.
@pytest.mark.filterwarnings("ignore::mnarkmeans.MissingDataWarning")
@parametrize_with_checks(
    [MNARKMeans(3, lam=0.5, n_init=2, init=init) for init in ("k-means||", "k-means++")],
    expected_failed_checks=lambda _: DRAWN_BY_POSITION,
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)
