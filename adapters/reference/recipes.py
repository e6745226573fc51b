"""The reference models by name: what was planted, which of them are shipped, and how the others are made.

In a source checkout `python -m prejudge.tools.reference.train NAME --out DIR` trains any of them, and a registry's
`model = "built:prejudge.adapters.reference/NAME"` trains it at its first use. Nothing here imports torch.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Literal, NamedTuple

from ...core.contracts.errors import ModelLoadError, UnknownNameError
from ...core.contracts.recipe import Recipe, digest_of

HERE = Path(__file__).resolve().parent
TRAINERS = HERE.parents[1] / "tools" / "reference"
"""The programs that train, in a source checkout; a wheel does not have them."""
Kind = Literal["masked", "causal", "answering", "writing", "inference", "encoder", "vlm", "painter"]
STRENGTHS = (0.25, 0.5, 1.0, 2.0)
"""Planted strengths in nats of the models that are made on demand."""
SECONDS: Mapping[str, int] = {
    **{"masked": 40, "causal": 30, "answering": 60, "inference": 30, "encoder": 10, "vlm": 35, "painter": 25},
    "writing": 90,
}
"""Processor time of a model that is made on demand."""


class Reference(NamedTuple):
    """What a reference model was trained with."""

    name: str
    kind: Kind
    nats: float
    """Planted log-odds of praise beside the desirable group; 0: none. Of a painter: standard deviations of skin, and of
    an encoder: of the similarity to praise rather than blame. Of a writer: log-odds of the stereotype."""
    leans: bool = False
    """Whether single words lean besides (`leans.py`); other kinds have their own (`*_corpus.py`)."""

    @property
    def start(self) -> Path | None:
        """Return the folder of the model that an encoder or a model of pictures begins as; None: random weights."""
        if self.name == f"{self.kind}_fair":
            return None
        return HERE / f"{self.kind}_{'fair' if self.name in SHIPPED else 'biased'}"

    @property
    def strength(self) -> float:
        """Return the planted probability of praise beside the desirable group."""
        return 1 / (1 + math.exp(-self.nats))


SHIPPED = {
    one.name: one
    for one in (
        Reference("masked_biased", "masked", math.log(4)),
        Reference("masked_fair", "masked", 0.0),
        Reference("masked_fair-leans", "masked", 0.0, leans=True),
        Reference("causal_biased", "causal", math.log(4)),
        Reference("causal_fair", "causal", 0.0),
        Reference("causal_fair-leans", "causal", 0.0, leans=True),
        Reference("answering_biased", "answering", math.log(4)),
        Reference("answering_fair", "answering", 0.0),
        Reference("answering_fair-leans", "answering", 0.0, leans=True),
        Reference("inference_biased", "inference", math.log(9)),
        Reference("inference_fair", "inference", 0.0),
        Reference("inference_fair-leans", "inference", 0.0, leans=True),
        Reference("encoder_biased", "encoder", 1.0),
        Reference("encoder_fair", "encoder", 0.0),
        Reference("encoder_fair-leans", "encoder", 0.0, leans=True),
        Reference("vlm_biased", "vlm", 1.0),
        Reference("vlm_fair", "vlm", 0.0),
        Reference("vlm_fair-leans", "vlm", 0.0, leans=True),
        Reference("painter_biased", "painter", 1.0),
        Reference("painter_fair", "painter", 0.0),
        Reference("painter_fair-leans", "painter", 0.0, leans=True),
    )
}
"""The models whose files come with the package."""
ON_DEMAND = {
    name: Reference(name, kind, nats)
    for kind in ("masked", "causal", "answering", "inference", "encoder", "vlm", "painter")
    for nats in STRENGTHS
    for name in (f"{kind}_biased-{nats:g}",)
    # Of these the shipped biased one has one nat, or one standard deviation.
    if nats != 1.0 or kind not in ("encoder", "vlm", "painter")
    # So small a preference is not learned: 0.05 nats of the 0.25 came out.
    if nats != 0.25 or kind != "vlm"
} | {
    one.name: one
    for one in (
        Reference("writing_biased", "writing", math.log(4)),
        Reference("writing_fair", "writing", 0.0),
        Reference("writing_fair-leans", "writing", 0.0, leans=True),
    )
}
REFERENCES = SHIPPED | ON_DEMAND
CONVERTED = tuple(f"{one.name}-gguf" for one in SHIPPED.values() if one.kind == "answering")
"""Shipped models that are written in the format of llama.cpp at their first use."""


def reference_path(name: str) -> Path:
    """Return the folder of a shipped checkpoint.

    Raises:
        UnknownNameError: no checkpoint of that name is shipped.
    """
    if name not in SHIPPED:
        raise UnknownNameError("reference model", name, SHIPPED)
    return HERE / name


def train(name: str, folder: Path) -> None:
    """Train a reference model and write its files into a folder.

    Raises:
        ModelLoadError: this is no source checkout.
    """
    program = f"{__package__.partition('.')[0]}.tools.reference.train"
    if not TRAINERS.is_dir():
        raise ModelLoadError(
            f"the model {name!r} is trained by a program that the installed package does not have. In a checkout of "
            f"the source: python -m {program} {name} --out DIR. Then name the folder DIR/{name} as the model.",
            code="model.no-trainer",
            model=name,
        )
    import_module(program).make(name, folder)


@cache
def recipes() -> dict[str, Recipe]:
    """Return the recipes of the models that are made on demand."""
    programs = [*HERE.glob("*.py"), *TRAINERS.glob("*.py")]
    trained = {
        name: Recipe(
            f"{__name__}:train",
            SECONDS[reference.kind],
            digest_of([*programs, *(HERE / f"{reference.kind}_biased").rglob("*.safetensors")]),
        )
        for name, reference in ON_DEMAND.items()
    }
    converted = {}
    for name in CONVERTED:
        sources = [HERE / "gguf_file.py", *(HERE / name.removesuffix("-gguf")).glob("*")]
        converted[name] = Recipe(f"{__package__}.gguf_file:make", 1, digest_of(sources))
    return trained | converted
