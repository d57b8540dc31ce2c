"""scikit-learn's own checks of estimators, on the one for Dask."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

pytest.importorskip("dask.array")

from mnarkmeans.dask import MNARKMeans

ONE_BY_ONE = (
    "k-means|| lets every row draw a number of its own: a row that stands there twice draws twice, "
    "a row of weight two once (init='k-means++' draws by content, and passes)"
)
CANNOT_APPLY = {
    "check_sample_weight_equivalence_on_dense_data": ONE_BY_ONE,
    "check_sample_weight_equivalence_on_sparse_data": ONE_BY_ONE,
}


def cannot_apply(estimator):
    return CANNOT_APPLY if estimator.init == "k-means||" else {}


# Some checks give sparse rows without any stored value.
@pytest.mark.filterwarnings("ignore::mnarkmeans.MissingDataWarning")
@parametrize_with_checks(
    [MNARKMeans(3, lam=0.5, n_init=2, init=init) for init in ("k-means||", "k-means++")],
    expected_failed_checks=cannot_apply,
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)
