"""The criterion "heldout": which candidate for lam it takes, from evidence that was made up."""

import numpy as np

from mnarkmeans._selection import criteria
from mnarkmeans._selection.criteria import Asked
from mnarkmeans._selection.evidence import Evidence


def made_up(labels, held_out, lams=None):
    """Evidence of parts that are all of the rows, for three clusters."""
    parts, n, size = labels.shape
    lams = np.arange(size, dtype=float) if lams is None else lams
    inside = np.ones((parts, n), bool)
    return Evidence(3, lams, labels, inside, held_out, np.zeros(parts), np.arange(parts))


def test_heldout_goes_halfway_up_the_valley_but_not_into_the_collapse():
    truth = np.repeat([0, 1, 2], 20)
    labels = np.stack([np.stack([truth] * 6, axis=1)] * 4)
    valley = np.array([5.0, 1.0, 1.01, 1.02, 1.03, 9.0])
    swing = 0.1 * np.outer([1, -1, 1, -1], np.arange(6))  # the splits differ, their mean does not
    assert criteria.heldout(made_up(labels, held_out=valley + swing), Asked()).choice == 3
    collapsed = labels.copy()
    collapsed[:, :, 2:] = np.where(truth == 2, 1, truth)[:, None]
    collapsed[:, 0, 2:] = 2  # one row is all that is left of the third cluster
    assert criteria.heldout(made_up(collapsed, held_out=valley + swing), Asked()).choice == 1


def test_heldout_keeps_the_likelihoods_lam_without_evidence_against_it():
    truth = np.repeat([0, 1, 2], 20)
    found = np.stack([np.stack([truth] * 4, axis=1)] * 4)
    lams = np.array([0.0, 0.5, 1.0, 4.0])
    swing = 0.1 * np.outer([1, -1, 1, -1], np.arange(4))
    asked = Asked(likelihood_lam=0.5)

    def choice(labels, valley):
        evidence = made_up(labels, held_out=np.array(valley) + swing, lams=lams)
        return criteria.heldout(evidence, asked).choice

    assert choice(found, [5.0, 1.0, 1.01, 1.02]) == 1  # nothing is better
    assert choice(found, [5.0, 2.0, 1.01, 1.0]) == 3  # something is, and comes back every time
    rng = np.random.default_rng(0)
    chance = found.copy()
    for own in chance:
        own[:, 1:] = rng.integers(3, size=(60, 3))
    assert choice(chance, [5.0, 2.0, 1.01, 1.0]) == 1  # better for clusters that do not come back


def test_heldout_climbs_only_while_clusters_stay_reproducible():
    truth = np.repeat([0, 1, 2], 20)
    labels = np.stack([np.stack([truth] * 4, axis=1)] * 4)
    rng = np.random.default_rng(0)
    for own in labels:
        own[:10, 3] = rng.integers(3, size=10)  # the last candidate shuffles some rows
    swing = 0.1 * np.outer([1, -1, 1, -1], np.arange(4))
    valley = np.array([5.0, 5.0, 1.0, 1.01])
    assert criteria.heldout(made_up(labels, held_out=valley + swing), Asked()).choice == 2


def test_heldout_takes_what_predicts_rows_left_out():
    truth = np.repeat([0, 1, 2], 20)
    labels = np.stack([np.stack([truth] * 5, axis=1)] * 4)
    lams = np.array([0.0, 0.5, 1.0, 2.0, 4.0])
    swing = 0.1 * np.outer([1, -1, 1, -1], np.arange(5))

    def choice(predicted, own_units=None, labels=labels, valley=(5.0, 1.0, 1.01, 1.02, 1.03)):
        evidence = made_up(labels, held_out=np.array(valley) + swing, lams=lams)
        predicted = np.array([predicted, own_units or predicted])
        asked = Asked(likelihood_lam=0.48, predicted=predicted)
        return criteria.heldout(evidence, asked).choice

    assert choice([99.0, 5.0, 5.0, 5.0, 4.0]) == 1  # what lies below the likelihood's is not asked
    assert choice([1.0, 5.0, 7.0, 7.0, 7.0]) == 3  # the middle of those with the best partition
    to_the_end = (5.0, 2.0, 1.5, 1.01, 1.0)
    assert choice([1.0, 5.0, 5.0, 5.0, 4.98], valley=to_the_end) == 4  # as good as any
    assert choice([1.0, 5.0, 4.0, 4.0, 4.0], valley=to_the_end) == 1
    assert choice([1.0, 5.0, 4.0, 4.0, 4.0], [1.0, 2.0, 2.0, 3.0, 3.0], valley=to_the_end) == 4
    collapsed = labels.copy()
    collapsed[:, :, 3:] = np.where(truth == 2, 1, truth)[:, None]
    collapsed[:, 0, 3:] = 2  # one row is all that is left of the third cluster
    assert choice([1.0, 5.0, 4.0, 7.0, 7.0], labels=collapsed) == 1
