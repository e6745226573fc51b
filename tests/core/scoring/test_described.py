"""What scoring adds to the estimates of a metric: the words of their measures, and verdicts that follow from p."""

from types import SimpleNamespace

import pytest

from prejudge.core.contracts import Metric
from prejudge.core.contracts.estimates import Estimate, Measure
from prejudge.core.scoring import score


class Named(Metric):
    measures = {"m": Measure("Mean", "The mean.", "points", "more")}

    def compute(self, observations, options):
        return []


def described(metric="m", options=None, **fields):
    estimate = Estimate.from_flat(metric=metric, group={}, value=1.0, neutral=0.0, test="t", **fields)
    return score.described(estimate, Named(), options or SimpleNamespace())


def test_words_of_the_measure_are_filled_in_and_own_ones_stay():
    assert (described().label, described().unit, described(unit="nats").unit) == ("Mean", "points", "nats")
    assert described("missing").label == "Missing answers" and described("other").label == ""


@pytest.mark.parametrize(
    ("p", "alpha", "verdict"), [(0.01, 0.05, "above"), (0.3, 0.05, "open"), (0.03, 0.01, "open"), (None, 0.05, None)]
)
def test_estimates_without_a_verdict_get_the_one_that_follows_from_their_corrected_p(p, alpha, verdict):
    found = described(options=SimpleNamespace(alpha=alpha), p=p, p_adjusted=p)
    assert found.verdict == verdict
