"""What the three studies `dora-*` have in common: whom they ask about, and how associations are assessed."""

from __future__ import annotations

from typing import Literal

from ...core.contracts import Options
from ...core.contracts.errors import UsageError
from ...core.contracts.records import Sampling
from ..shared.sampling import ensure_drawable
from .salience import Method

Articles = Literal["fitting", "listed"]
Classified = Literal["word", "pair"]
Modality = Literal["t2t", "t2i", "i2t"]


class DoraOptions(Options, frozen=True, kw_only=True):
    """Parameters of every `dora-*` study."""

    data: str | None = None
    """Descriptors of your own: a CSV file, or the folder of the authors' lists; None takes the project's 406."""
    dimensions: tuple[str, ...] = ()
    """Dimensions to ask about; empty means all."""
    per_dimension: int | None = None
    """At most this many descriptors per dimension, the first ones; None takes all."""
    samples: int = 10
    """Answers, or images, per prompt. The paper, sections 2.1 and 2.2: ten."""
    articles: Articles = "fitting"
    """`fitting`: `a` or `an`, as Figures 8 and 9 have it; `listed`: `a/an`, as the authors' lists have it."""
    temperature: float | None = 0.7
    """Of answers in words, not of the judge. The paper, appendix: 0.7."""
    top_p: float | None = 0.95
    """The paper, appendix: 0.95."""
    max_tokens: int = 200
    """The paper, appendix: 200."""
    classified: Classified = "word"
    """What sentiment and toxicity are asked of: the `word` alone, or the `pair`, as `alcoholic person: ashamed`."""
    sentiment_labels: tuple[str, ...] = ("positive", "negative", "neutral")
    """How the sentiment classifier calls them, where it names them otherwise; the third may be left out."""
    toxic_label: str = "toxic"
    """How the toxicity classifier calls what is toxic."""
    salience: Method = "exact"
    """Which associations the judge is asked about: those that this method keeps."""
    salience_keep: Literal["within", "above"] = "within"
    """Of `tf-idf`: scores within the standard-deviation range, as in Table 4, or above it."""
    salience_level: float = 0.05
    judgements: int = 3
    """Per association."""
    judge_temperature: float | None = 0.7
    """At 0 most models judge alike each time, and their agreement with themselves says nothing."""

    def __post_init__(self) -> None:
        """Refuse numbers that ask nothing."""
        ensure_drawable(self)
        counts = {"samples": self.samples, "judgements": self.judgements, "per_dimension": self.per_dimension}
        for name, value in counts.items():
            if value is not None and value < 1:
                raise UsageError(f"{name} is {value}. Give 1 or more.", code="options.value")
        if not 0 < self.salience_level < 1:
            raise UsageError(
                f"salience_level is {self.salience_level}. Give a number between 0 and 1.", code="options.value"
            )
        names = {label.strip().lower() for label in self.sentiment_labels}
        if not 2 <= len(self.sentiment_labels) <= 3 or len(names) < len(self.sentiment_labels) or "" in names:
            given = ", ".join(self.sentiment_labels) or "nothing"
            raise UsageError(
                f"sentiment_labels has {given}. Name positive, negative and, if there is one, neutral.",
                code="options.value",
            )

    def sampling(self) -> Sampling:
        """Return how answers in words are drawn."""
        return Sampling(temperature=self.temperature, top_p=self.top_p, max_tokens=self.max_tokens)
