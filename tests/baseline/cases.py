"""The cases of the baseline: studies by way of asking and by model."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from prejudge.adapters.reference import items

Write = Callable[[int, Path], None]
LABELLED = (
    ("A woman is reading.", "A person is reading.", "entailment"),
    ("A woman is reading.", "A woman is asleep.", "contradiction"),
    ("A man is at work.", "The man is a doctor.", "neutral"),
    ("Two children play in a park.", "Children are outside.", "entailment"),
    ("Two children play in a park.", "Nobody is outside.", "contradiction"),
    ("A dog runs along a beach.", "The dog chases a ball.", "neutral"),
)


def labelled(_: int, path: Path) -> None:
    """Write labelled pairs for inference, as `bistereo-nli-prompts` reads them."""
    lines = (",".join(f'"{cell}"' for cell in row) for row in LABELLED)
    path.write_text("\n".join(["premise,hypothesis,label", *lines]) + "\n", "utf-8")


class Case(NamedTuple):
    """A study asked in one way of one set of models."""

    study: str
    asking: str
    """Way of asking, for the name of the file."""
    model: str
    """Model of the subject."""
    options: Mapping[str, Any] = {}
    roles: Mapping[str, str] = {}
    odd: bool = True
    data: Write | None = None
    """What writes the data of a study that has none of its own."""

    @property
    def name(self) -> str:
        """Return the name of the case."""
        return "-".join((self.study, self.asking, "odd" if self.odd else "plain"))


FEW = {"trisentbias.resamples": 199}
PAIRS = {"axes": ["height", "skin complexion"], "per_cell": 6} | FEW
NLI = {"per_cell": 4, "bistereo-nli.resamples": 199}
SUBTLE = {"per_cell": 6, "subtle.resamples": 199}
FACES = {
    "categories": ["traits"],
    "per_cell": 1,
    "attractiveness.resamples": 199,
    "attractiveness.effect_resamples": 0,
    "attractiveness.splits": 10,
}
TUPLES = {"bistereo-tuples.resamples": 199}
DORA = {
    "dimensions": ["age", "gender"],
    "per_dimension": 3,
    "wordings": 2,
    "samples": 5,
    "dora-associations.resamples": 99,
}
WORDS = DORA | {"letters": "ab"}
IMAGES = DORA | {"size": 16}
INDICASA = {"per_cell": 8, "samples": 2}
CASES = (
    Case("bistereo-pairs", "pll", "reference-masked-biased", PAIRS | {"scoring": "pll"}, odd=False),
    Case("bistereo-pairs", "pll", "simulated-biased", PAIRS | {"scoring": "pll"}),
    Case("bistereo-pairs", "joint", "simulated-biased", PAIRS | {"scoring": "joint-minus-marginal"}),
    Case("bistereo-pairs", "joint", "reference-causal-biased", PAIRS | {"scoring": "joint-minus-marginal"}, odd=False),
    Case("bistereo-nli", "classify", "reference-inference-biased", NLI | {"asking": "classify"}, odd=False),
    Case("bistereo-nli", "classify", "simulated-biased", NLI | {"asking": "classify"}),
    Case("bistereo-nli", "generate", "simulated-biased", NLI | {"asking": "generate"}),
    Case("bistereo-nli", "likelihood", "simulated-biased", NLI | {"asking": "likelihood"}),
    Case("bistereo-tuples", "likelihood", "simulated-analogies", TUPLES | {"asking": "likelihood"}),
    Case("bistereo-tuples", "generate", "simulated-analogies", TUPLES | {"asking": "generate"}),
    Case("bistereo-tuples", "likelihood", "reference-answering-biased", TUPLES | {"asking": "likelihood"}, odd=False),
    Case("crows-pairs", "pll", "simulated-biased", {"crows-pairs.resamples": 199, "limit": 60}, data=items.pairs),
    Case(
        "crows-pairs",
        "pll",
        "reference-masked-biased",
        {"crows-pairs.resamples": 199, "limit": 60},
        odd=False,
        data=items.pairs,
    ),
    Case("subtle-sai", "generate", "simulated-biased", SUBTLE | {"asking": "generate"}),
    Case("subtle-sai", "generate", "reference-answering-biased", SUBTLE | {"asking": "generate"}, odd=False),
    Case("subtle-sai", "likelihood", "simulated-biased", SUBTLE | {"asking": "likelihood"}),
    Case("subtle-asa", "generate", "simulated-biased", SUBTLE | {"asking": "generate"}),
    Case("subtle-asa", "likelihood", "simulated-biased", SUBTLE | {"asking": "likelihood"}),
    Case("attractiveness", "generate", "simulated-halo", FACES | {"asking": "generate", "seeds": [0]}),
    Case("attractiveness", "likelihood", "simulated-halo", FACES | {"asking": "likelihood"}),
    Case("dora-t2t", "generate", "simulated-biased", WORDS, {"sentiment": "lexicon"}),
    Case("dora-t2i", "draw", "simulated-biased", IMAGES, {"sentiment": "lexicon", "describer": "simulated-biased"}),
    Case(
        "dora-i2t",
        "describe",
        "simulated-biased",
        IMAGES,
        {"sentiment": "lexicon", "drawer": "simulated-biased"},
    ),
    Case("indicasa", "generate", "simulated-biased", INDICASA, {"encoder": "simulated-biased"}),
    Case("bistereo-tuples-draft", "generate", "simulated-biased", {"limit": 8}),
    Case("bistereo-nli-prompts", "generate", "simulated-biased", {"asking": "generate"}, data=labelled),
    Case("bistereo-nli-prompts", "likelihood", "simulated-biased", {"asking": "likelihood"}, data=labelled),
)
