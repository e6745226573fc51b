"""Common options of the three studies `dora-*`: descriptors, and assessment of the associations."""

from __future__ import annotations

from typing import Literal

from ...core.contracts import harmless
from ...core.contracts.errors import UsageError
from ...core.contracts.records import Sampling
from ...core.tables import TableOptions
from ..shared.sampling import ensure_drawable
from .salience import Method

Articles = Literal["fitting", "listed"]
Classified = Literal["word", "pair"]
Modality = Literal["t2t", "t2i", "i2t"]


class DoraOptions(TableOptions, frozen=True, kw_only=True):
    """Parameters of every `dora-*` study."""

    option_effects = {
        "data": "file",
        **harmless("dimensions sentiment_labels toxic_label"),
    }

    data: str | None = None
    """Your own descriptors: a CSV file, or the folder of the authors' lists; None: the project's 406."""
    dimensions: tuple[str, ...] = ()
    """Dimensions to ask about; empty: all."""
    per_dimension: int | None = None
    """Maximum number of descriptors per dimension, the first ones; None: all."""
    samples: int = 10
    """Answers or images per prompt. The paper, sections 2.1 and 2.2: ten."""
    wordings: int = 10
    """Wordings of each setting, of 10, over which the samples are divided; 1 asks in the paper's words only."""
    articles: Articles = "fitting"
    """`fitting`: `a` or `an`, as in Figures 8 and 9; `listed`: `a/an`, as in the authors' lists."""
    temperature: float | None = 0.7
    """Temperature of answers in words, but not of the judge. The paper, appendix: 0.7."""
    top_p: float | None = 0.95
    """The paper, appendix: 0.95."""
    max_tokens: int = 200
    """The paper, appendix: 200."""
    classified: Classified = "word"
    """Text for sentiment and toxicity: the `word` alone, or the `pair`, as `alcoholic person: ashamed`."""
    sentiment_labels: tuple[str, ...] = ("positive", "negative", "neutral")
    """The sentiment classifier's names of positive, negative and neutral; the third may be omitted."""
    toxic_label: str = "toxic"
    """The toxicity classifier's name of toxic."""
    salience: Method = "exact"
    """The judge is asked about the associations that this method keeps."""
    salience_keep: Literal["within", "above"] = "within"
    """For `tf-idf`: scores within one standard deviation of the mean, as in Table 4, or above."""
    salience_level: float = 0.05
    salience_correction: Literal["discrete", "bh"] = "discrete"
    """Of `exact` over wordings: by the p that each test can give, or Benjamini-Hochberg."""
    judgements: int = 3
    """Number of judgements per association."""
    judge_temperature: float | None = 0.7
    """Temperature of the judge. At 0, most models always give the same judgement, and self-agreement has no meaning."""

    def __post_init__(self) -> None:
        """Refuse invalid numbers and labels."""
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
        """Return the sampling settings of answers in words."""
        return Sampling(temperature=self.temperature, top_p=self.top_p, max_tokens=self.max_tokens)
