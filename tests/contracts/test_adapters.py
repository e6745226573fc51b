"""Every built-in adapter that can be made here passes the contract kit.

To add one, add a `Case` to `ADAPTERS`.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

import msgspec
import pytest

from prejudge.core.adapter import ModelAdapter
from prejudge.core.options import build_options
from prejudge.core.plugins import load_target
from prejudge.core.records import (
    AnyRequest,
    Classify,
    Draw,
    Embed,
    Generate,
    Likelihood,
    Message,
    PseudoLikelihood,
    Sampling,
    Text,
)
from prejudge.testing import AdapterContract

TEXTS = ("I saw a tall woman.", "I saw a short and charming old man in the park.", "Rain.", "They are unfriendly.")
GENERATE = [
    Generate(messages=(Message("user", (Text(f"{text} Who?\n(a) the tall one\n(b) the short one"),)),), sampling=how)
    for text in TEXTS
    for how in (Sampling(temperature=0.0, max_tokens=8), Sampling(temperature=1.0, max_tokens=8, seed=3))
]
LIKELIHOOD = [
    Likelihood(prompt=text, continuations=(" He is tall.", " Short", " It is a very long day.")) for text in TEXTS
]
PSEUDO = [
    *(PseudoLikelihood(text=text) for text in TEXTS),
    PseudoLikelihood(text=TEXTS[0], given=((8, 12),), variant="within_word_l2r"),
    PseudoLikelihood(text=TEXTS[0], contrast=TEXTS[0].replace("tall", "short"), contrast_first=True),
]
CLASSIFY = [*(Classify(text=text) for text in TEXTS), Classify(text=TEXTS[0], pair=TEXTS[1])]
EMBED = [Embed(text=text) for text in TEXTS]
DRAW = [Draw(prompt=text, width=64, height=64, steps=2, seed=seed) for seed, text in enumerate(TEXTS)]


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """One adapter with which the kit is run."""

    target: str
    settings: dict[str, Any]
    requests: Sequence[AnyRequest]
    others: tuple[dict[str, Any], ...] = ()
    """Settings on top of `settings` that change answers."""
    needs: tuple[str, ...] = ()
    """Packages without which it cannot be made."""
    tolerance: float = 1e-6


REFERENCE = Path(str(files("prejudge.adapters.reference")))

ADAPTERS = {
    "simulated": Case(
        target="prejudge.adapters.simulated:Simulated",
        settings={"strength": 1.0},
        requests=[*GENERATE, *LIKELIHOOD, *PSEUDO, *CLASSIFY, *EMBED, *DRAW],
        others=({"strength": 2.0}, {"seed": 1}, {"noise": 0.0}, {"desirable": ["rich"]}, {"varying": ["he"]}),
    ),
    "hf-masked": Case(
        target="prejudge.adapters.hf_masked:HFMasked",
        settings={"model": str(REFERENCE / "masked_fair"), "device": "cpu", "threads": 1},
        requests=PSEUDO,
        others=({"dtype": "float16"}, {"model": str(REFERENCE / "masked_biased")}),
        needs=("torch", "transformers"),
        tolerance=1e-4,
    ),
}
MAKE = """
from prejudge.core.options import build_options
from prejudge.core.plugins import load_target
kind = load_target({target!r}, "tests")
adapter = kind(build_options("model", kind.options, {settings!r}))
"""


def maker(case: Case, settings: dict[str, Any]) -> Callable[[], ModelAdapter]:
    def make() -> ModelAdapter:
        kind = load_target(case.target, "tests")
        return kind(build_options("model", kind.options, settings))  # type: ignore[no-any-return]

    return make


def contract(name: str, case: Case) -> type[AdapterContract]:
    """Return the kit for one adapter, as a class that pytest collects."""
    missing = [package for package in case.needs if importlib.util.find_spec(package) is None]
    fields = {
        "make": staticmethod(maker(case, case.settings)),
        "requests": case.requests,
        "recipe": MAKE.format(target=case.target, settings=case.settings),
        "others": [maker(case, {**case.settings, **other}) for other in case.others],
        "tolerance": case.tolerance,
    }
    kit = type(f"Test{name.title().replace('-', '')}", (AdapterContract,), fields)
    return pytest.mark.skipif(bool(missing), reason=f"needs {', '.join(missing)}")(kit)


for _name, _case in ADAPTERS.items():
    _kit = contract(_name, _case)
    globals()[_kit.__name__] = _kit
