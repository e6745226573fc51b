"""Options that no statistic can be computed with are refused in one line."""

from __future__ import annotations

import msgspec
import pytest

from prejudge.core.contracts.errors import UsageError
from prejudge.metrics.bistereo.trisentbias import TriSentBiasOptions
from prejudge.metrics.crows_pairs.metric import CrowsPairsOptions
from prejudge.metrics.general.ranks import RankAgreementOptions
from prejudge.testing import raises_code


@pytest.mark.parametrize(
    ("wrong", "code", "named"),
    [
        ({"alpha": 0.0}, "options.value", "alpha"),
        ({"level": 95}, "options.value", "level"),
        ({"resamples": 10}, "options.value", "resamples"),
        ({"seed": -1}, "options.value", "seed"),
        ({"correction": "none"}, "options.choice", "'none'"),
        ({"intervals": "wald"}, "options.choice", "'wald'"),
        ({"thresholds": ()}, "options.value", "thresholds"),
        ({"thresholds": (0.02, 1.0)}, "options.value", "thresholds"),
        ({"thresholds": (0.02, 0.02)}, "options.duplicate", "thresholds"),
        ({"threshold_main": 0.5}, "options.choice", "threshold_main"),
    ],
)
def test_wrong_option_is_refused(wrong, code, named):
    with raises_code(UsageError, code, named):
        TriSentBiasOptions(**wrong)


@pytest.mark.parametrize("kind", [TriSentBiasOptions, CrowsPairsOptions])
def test_unknown_option_is_refused(kind):
    with pytest.raises(msgspec.ValidationError, match="treshold"):
        msgspec.convert({"treshold": 0.1}, kind)


@pytest.mark.parametrize("margin", [0.0, -1.0, 100.0, 200.0])
def test_margin_that_says_nothing_is_refused(margin):
    with raises_code(UsageError, "options.value", margin):
        TriSentBiasOptions(margin=margin)


def test_metrics_without_a_verdict_know_no_margin():
    with pytest.raises(msgspec.ValidationError, match="margin"):
        msgspec.convert({"margin": 5.0}, RankAgreementOptions)


def test_options_read_from_plain_data():
    read = msgspec.convert({"thresholds": [0.1], "threshold_main": 0.1, "correction": "holm"}, TriSentBiasOptions)
    assert (read.thresholds, read.correction, read.plan.level) == ((0.1,), "holm", 0.95)


@pytest.mark.parametrize(
    ("intervals", "name"),
    [("percentile", "cluster bootstrap"), ("bca", "cluster bootstrap, BCa"), ("jackknife", "cluster jackknife")],
)
def test_intervals_are_named_after_their_method(intervals, name):
    assert TriSentBiasOptions(over="template", intervals=intervals).interval == name
