"""`hf-classifier`: which outputs there are, what they are called, and how they become probabilities."""

from __future__ import annotations

import json

import pytest

from prejudge.core.contracts.errors import ModelLoadError
from prejudge.testing import raises_code

from .asking import NLI, SINGLES, TOXIC, ask, build, change, naive


def test_labels_follow_configuration_in_order(nli, copied):
    (before,) = ask(nli, SINGLES[:1])
    change(copied, id2label={"2": "c", "0": "a", "1": "b"}, label2id={"a": 0, "b": 1, "c": 2})
    (after,) = ask(copied, SINGLES[:1])
    assert list(before.probabilities) == list(NLI)
    assert list(after.probabilities) == ["a", "b", "c"]
    assert list(after.probabilities.values()) == list(before.probabilities.values())


def test_generic_labels_are_kept(make_classifier):
    (answer,) = ask(make_classifier(num_labels=3), SINGLES[:1])
    assert list(answer.probabilities) == ["LABEL_0", "LABEL_1", "LABEL_2"]


def test_two_unnamed_labels_are_generic(copied, make_classifier):
    folder = make_classifier()
    assert "id2label" not in json.loads((folder / "config.json").read_text())
    (answer,) = ask(folder, SINGLES[:1])
    assert list(answer.probabilities) == ["LABEL_0", "LABEL_1"]


def test_multi_label_takes_sigmoids(toxic):
    for request, answer in zip(SINGLES, ask(toxic, SINGLES), strict=True):
        expected = naive(toxic, request, "sigmoid")
        assert answer.probabilities == pytest.approx(dict(zip(TOXIC, expected, strict=True)), abs=1e-5)
        assert sum(answer.probabilities.values()) != pytest.approx(1, abs=0.01)


def test_multi_label_can_be_set(toxic, nli):
    assert build(toxic).identity.settings["activation"] == "sigmoid"
    assert build(nli).identity.settings["activation"] == "softmax"
    assert build(toxic, multi_label=False).identity.settings["activation"] == "softmax"
    (answer,) = ask(nli, SINGLES[:1], multi_label=True)
    assert list(answer.probabilities.values()) == pytest.approx(naive(nli, SINGLES[0], "sigmoid"), abs=1e-5)


@pytest.mark.parametrize(
    ("fields", "code", "named"),
    [
        ({"id2label": {"0": "yes", "1": "no", "2": "yes"}}, "model.labels", "'yes'"),
        ({"id2label": {"1": "yes", "2": "no"}}, "model.labels", ""),
        ({"id2label": {"one": "yes"}}, "model.labels", ""),
        ({"id2label": ["yes", "no"]}, "model.labels", ""),
        ({"id2label": {}}, "model.labels", ""),
        ({"id2label": {"0": "score"}}, "model.activation", ""),
        ({"problem_type": "regression"}, "model.activation", ""),
    ],
)
def test_unusable_outputs_are_refused(fields, code, named, copied):
    change(copied, **fields)
    with raises_code(ModelLoadError, code, named):
        build(copied)


def test_single_output_is_read_when_asked(make_classifier):
    folder = make_classifier(labels=("toxic",))
    with raises_code(ModelLoadError, "model.activation", "multi_label"):
        build(folder)
    (answer,) = ask(folder, SINGLES[:1], multi_label=True)
    assert answer.probabilities == pytest.approx({"toxic": naive(folder, SINGLES[0], "sigmoid")[0]}, abs=1e-5)
