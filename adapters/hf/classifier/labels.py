"""The configuration of a classifier: its labels in order, and how its outputs become probabilities."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from ....core.contracts.errors import ModelLoadError
from ..load import Kind

Activation = Literal["softmax", "sigmoid"]
CLASSIFIER = Kind(
    "text classifier",
    "AutoModelForSequenceClassification",
    lambda architecture: architecture.endswith("ForSequenceClassification"),
)


def read_labels(id2label: Mapping[Any, Any] | None, name: str) -> tuple[str, ...]:
    """Return the labels in the order of the model's outputs; `LABEL_0`, `LABEL_1` if it names none.

    Raises:
        ModelLoadError: numbers that are not 0, 1, 2 ..., or two outputs of one name.
    """
    # What Transformers itself assumes, and so leaves out of the file.
    given = {0: "LABEL_0", 1: "LABEL_1"} if id2label is None else id2label
    try:
        labels = {int(number): str(label) for number, label in given.items()}
    except (AttributeError, TypeError, ValueError):
        raise ModelLoadError(
            f"id2label in the configuration of {name!r} does not map numbers to labels.", code="model.labels"
        ) from None
    if not labels or sorted(labels) != list(range(len(given))):
        raise ModelLoadError(
            f"id2label in the configuration of {name!r} has the numbers {sorted(labels)}, not 0 to n.",
            code="model.labels",
        )
    ordered = tuple(labels[number] for number in range(len(labels)))
    if len(set(ordered)) < len(ordered):
        twice = next(label for label in ordered if ordered.count(label) > 1)
        raise ModelLoadError(
            f"model {name!r} calls two outputs {twice!r}; give them different names in id2label.",
            code="model.labels",
        )
    return ordered


def choose_activation(config: Mapping[str, Any], name: str, *, multi_label: bool | None) -> Activation:
    """Return how outputs become probabilities: softmax over the labels, or a sigmoid for each of several labels.

    Raises:
        ModelLoadError: a regression model, or a single output whose meaning the configuration does not say.
    """
    if multi_label is not None:
        activation: Activation = "sigmoid" if multi_label else "softmax"
    else:
        activation = "sigmoid" if config.get("problem_type") == "multi_label_classification" else "softmax"
    single = len(read_labels(config.get("id2label"), name)) == 1
    if activation == "softmax" and single:
        raise ModelLoadError(
            f"model {name!r} has one output, whose softmax is always 1. "
            "If its sigmoid is the probability of its label, set multi_label = true; if it is a score, it has none.",
            code="model.activation",
        )
    if multi_label is None and config.get("problem_type") == "regression":
        raise ModelLoadError(
            f"model {name!r} is a regression model: its outputs are not probabilities. "
            "Set multi_label = true or false if the configuration is wrong about that.",
            code="model.activation",
        )
    return activation
