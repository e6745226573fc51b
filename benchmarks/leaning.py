"""Fair and biased models whose words, groups, items or faces lean, for `calibrate_leans.py`: drawn, or simulated.

A study draws its observations in closed form, as `simulated` would answer: that takes milliseconds. The same study asks
`simulated` itself through the probe's stage, with the same amounts, so that both can be compared.
"""

from __future__ import annotations

import asyncio
import csv
import math
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from prejudge.adapters.simulated.adapter import Simulated, SimulatedOptions
from prejudge.adapters.simulated.pictures import face_in
from prejudge.core.catalogue.trust import load_registry
from prejudge.core.contracts import Estimate, Metric, Stage, Trial
from prejudge.core.contracts.adapter import Services
from prejudge.core.statistics.declaration import Declaration
from prejudge.core.statistics.declared import DeclaredMetric
from prejudge.core.statistics.declared_rows import parts
from prejudge.core.statistics.inference import estimate
from prejudge.core.statistics.summing import concerned
from prejudge.metrics.attractiveness.measures import halo_of
from prejudge.metrics.attractiveness.metric import Attractiveness, AttractivenessMetricOptions
from prejudge.metrics.attractiveness.scores import Scores, gather
from prejudge.metrics.bistereo.nli import BIStereoNLI as NLIMetric
from prejudge.metrics.bistereo.nli_prompts import NLIPrompts as PromptsMetric
from prejudge.metrics.bistereo.trisentbias import TriSentBias
from prejudge.metrics.bistereo.tuples import BIStereoTuples as TuplesMetric
from prejudge.metrics.crows_pairs.metric import CrowsPairs as CrowsMetric
from prejudge.metrics.subtle.metric import Subtle as SubtleMetric
from prejudge.probes.attractiveness.probe import AttractivenessOptions, LikelihoodStage
from prejudge.probes.attractiveness.terms import VARIANTS
from prejudge.probes.bistereo.nli import BIStereoNLI, BIStereoNLIOptions
from prejudge.probes.bistereo.nli_prompts import NLIPrompts, NLIPromptsOptions
from prejudge.probes.bistereo.pairs import BIStereoOptions, BIStereoPairs
from prejudge.probes.bistereo.terms import GROUPS, LABELS, SWAPPED
from prejudge.probes.bistereo.tuples import BIStereoTuples, BIStereoTuplesOptions
from prejudge.probes.crows_pairs.probe import CrowsOptions, CrowsPairs
from prejudge.probes.subtle.probe import Subtle, SubtleOptions

Array = npt.NDArray[np.float64]
Generator = np.random.Generator
NOISE, TEMPLATE = 1.0, 0.5
"""Standard deviations of noise and of templates' leans, in nats: those of `simulated`."""
UNEQUAL = 0.7
"""How unequal leans are where they are: standard deviation of the logarithm of their size."""


class World(NamedTuple):
    """A model: how far words (or items, groups, faces) lean, in nats, and the bias that is planted."""

    lean: float = 0.0
    kind: str = "equal"
    """`equal`, `unequal` (few large leans), or `paired` (two levels each share half of the variance, as synonyms)."""
    effect: float = 0.0
    """The planted contrast of log-odds between positive and negative words, in nats."""

    def draw(self, rng: Generator, levels: int, spread: float | None = None) -> Array:
        """Return the effects of the levels of a facet."""
        found = rng.normal(0, self.lean if spread is None else spread, levels)
        if self.kind == "unequal":
            found *= np.exp(UNEQUAL * rng.normal(size=levels) - UNEQUAL**2)
        if self.kind == "paired":
            found = (found + rng.normal(0, self.lean, levels)[np.arange(levels) // 2]) * np.sqrt(0.5)
        return found


class Study:
    """A study whose default conclusion is calibrated."""

    name: ClassVar[str]
    leans: ClassVar[str]
    """What leans."""
    judged: ClassVar[tuple[str, ...]]
    """Measures whose tests are counted, of the whole study or of its one group."""
    compared: ClassVar[tuple[str, ...]] = ()
    """Measures whose spread is compared with that of `simulated` models; those that are judged if there are none."""
    resamples: ClassVar[int] = 199
    nats: ClassVar[float] = 1.0
    """The planted difference in log-odds where a contrast of 1 nat is planted."""
    plants: ClassVar[bool] = True
    """Whether a bias can be planted in it."""
    metric: Metric

    @cached_property
    def asked(self) -> tuple[Stage, list[Trial]]:
        """Return the stage and its trials, without those of questions beside the study."""
        stage = next(stage for stage in self.stages() if not stage.rules.auxiliary)
        return stage, list(stage.trials({}))

    @cached_property
    def design(self) -> pl.DataFrame:
        """Return what is known of each trial."""
        return pl.DataFrame([trial.factors for trial in self.asked[1]], infer_schema_length=None)

    def stages(self) -> Sequence[Stage]:
        """Return the one stage."""
        raise NotImplementedError

    def settings(self, world: World) -> dict[str, Any]:
        """Return the settings of `simulated` for a world."""
        raise NotImplementedError

    def draw(self, world: World, rng: Generator) -> Any:
        """Return the observations of one model, as `measure` takes them."""
        raise NotImplementedError

    def measure(self, observations: Any, **options: Any) -> list[Estimate]:
        """Return the estimates that are judged; of a declared metric nothing else is computed."""
        chosen = self.metric.options(**{"resamples": self.resamples, **options})
        if not isinstance(self.metric, DeclaredMetric) or type(self.metric).compute is not DeclaredMetric.compute:
            found = self.metric.compute(observations, chosen)
            return [e for e in found if e.metric in (*self.judged, *self.compared) and self.whole(e.group)]
        return [
            estimate(measure, part, design, chosen)
            for design, frame in self.metric._prepared(self.metric.rows(observations, chosen), chosen)
            for by in design.groups
            for measure in design.measures
            if measure.name in (*self.judged, *self.compared) and design.given(measure, by)
            for part in parts(frame, design, by)
            if self.whole(part.group | measure.group) and concerned(measure, part, design)
        ]

    def whole(self, group: Mapping[str, Any]) -> bool:
        """Return whether an estimate is of the whole study."""
        return not group

    def simulate(self, world: World, seed: int) -> pl.DataFrame:
        """Return the observations of a `simulated` model, asked and read by the study's own stage."""
        stage, trials = self.asked
        model = Simulated(SimulatedOptions(seed=seed, noise=NOISE, spread=TEMPLATE, **self.settings(world)))
        model.services = Services(blobs=self.blobs().__getitem__)
        answers = asyncio.run(model.answer([trial.request for trial in trials]))
        rows = [
            {"trial": t.id, **t.factors, **dict(stage.read(t.factors, a)), "status": "ok"}  # type: ignore[arg-type, call-overload]
            for t, a in zip(trials, answers, strict=True)
        ]
        return pl.DataFrame(rows, infer_schema_length=None)

    def blobs(self) -> Mapping[str, bytes]:
        """Return the pictures that are asked about."""
        return {}

    def at(self, frame: pl.DataFrame, column: str, effects: Callable[[int], Array]) -> Array:
        """Return the effect of each row's level of a column."""
        codes = frame[column].rank("dense").to_numpy().astype(np.int64) - 1
        return effects(int(codes.max()) + 1)[codes]


def signs(frame: pl.DataFrame, column: str, positive: str) -> Array:
    """Return 1 where a column says so, else -1."""
    return np.where((frame[column] == positive).to_numpy(), 1.0, -1.0)


class Pairs(Study):
    """`bistereo-pairs`, height, women: every template has every attribute word."""

    name, leans, judged = "bistereo-pairs", "attribute words", ("favouritism", "favouritism_log_odds")
    metric = TriSentBias()
    chosen: ClassVar[dict[str, Any]] = {"axes": ("height",), "genders": ("women",)}

    def stages(self) -> Sequence[Stage]:
        """Return the pairs in praise and blame."""
        return BIStereoPairs().stages(BIStereoOptions(sentiments=("positive", "negative"), **self.chosen))

    def settings(self, world: World) -> dict[str, Any]:
        """Return the bias of either sentiment."""
        return {"strength": world.effect / 2, "word_spread": world.lean}

    @cached_property
    def pairs(self) -> pl.DataFrame:
        """Return a row per pair."""
        return self.design.filter(pl.col("side") == "desirable").drop("side")

    def draw(self, world: World, rng: Generator) -> pl.DataFrame:
        """Return both sides of each pair; the log-odds of the pair go to its desirable side."""
        pairs = self.pairs
        d = signs(pairs, "sentiment", "positive") * world.effect / 2 + rng.normal(0, NOISE, pairs.height)
        d += self.at(pairs, "template", lambda n: rng.normal(0, TEMPLATE, n))
        d += self.at(pairs, "attribute", lambda n: world.draw(rng, n))
        sides = (
            ("desirable", pl.Series("log_probability", d - 30.0)),
            ("undesirable", pl.lit(-30.0).alias("log_probability")),
        )
        return pl.concat(
            [pairs.with_columns(value, side=pl.lit(side), status=pl.lit("ok")) for side, value in sides], how="diagonal"
        )

    def measure(self, observations: Any, **options: Any) -> list[Estimate]:
        """Return the measures at the main threshold."""
        options = {"thresholds": (0.02,), "resamples": 999} | options
        found = self.metric.compute(observations, self.metric.options(**options))
        return [e for e in found if e.metric in self.judged]


class SixGroups(Pairs):
    """All axes and both genders: six tests, corrected."""

    name, judged = "bistereo-pairs, any of six groups", ("favouritism",)
    chosen: ClassVar[dict[str, Any]] = {}


class NLI(Study):
    """`bistereo-nli`: inferences from the looks of women; a pair has two skin tones."""

    name, leans, judged = "bistereo-nli", "attribute words", ("halo", "horn")
    metric = NLIMetric()

    def stages(self) -> Sequence[Stage]:
        """Return the pairs about the looks of women."""
        chosen = BIStereoNLIOptions(genders=("women",), categories=("attractiveness", "unattractiveness"))
        return BIStereoNLI().stages(chosen)

    @cached_property
    def asked(self) -> tuple[Stage, list[Trial]]:
        """Return those of one direction and one noun: the others are the same sentences."""
        stage, trials = super().asked
        own = {"direction": "attribute in premise", "noun": "woman"}.items()
        return stage, [trial for trial in trials if own <= trial.factors.items()]

    def settings(self, world: World) -> dict[str, Any]:
        """Return the bias of either sentiment."""
        return {"strength": world.effect / 2, "word_spread": world.lean}

    def draw(self, world: World, rng: Generator) -> pl.DataFrame:
        """Return the likelier of entailment and contradiction, as the adapter's softmax makes it."""
        rows = self.design
        lean = self.at(rows, "template", lambda n: rng.normal(0, TEMPLATE, n))
        lean += self.at(rows, "attribute", lambda n: world.draw(rng, n))
        lean += signs(rows, "sentiment", "positive") * world.effect / 2
        odds = signs(rows, "skin", "fair") * lean + rng.normal(0, NOISE, rows.height)
        return rows.with_columns(label=pl.Series(np.where(odds > 0, LABELS[0], LABELS[1])), status=pl.lit("ok"))


class Prompts(Study):
    """`bistereo-nli-prompts`: 100 premises with three hypotheses each, as in SNLI; five prompts, equally accurate."""

    name, leans, judged = "bistereo-nli-prompts", "premises, by prompt", ("less_accurate",)
    plants, metric = False, PromptsMetric()
    resamples = 1999
    """Its intervals count ten pairs of prompts, and lie far out."""
    words: ClassVar[tuple[str, ...]] = tuple(f"thing{number}" for number in range(100))

    def stages(self) -> Sequence[Stage]:
        """Return every pair with every prompt."""
        truths = np.random.default_rng(1).choice(LABELS, 3 * len(self.words))
        rows = [
            {
                "premise": f"There is a {word} here.",
                "hypothesis": f"It is {number}.",
                "label": truths[3 * place + number],
            }
            for place, word in enumerate(self.words)
            for number in range(3)
        ]
        path = written(rows)
        return NLIPrompts().stages(NLIPromptsOptions(data=path, asking="likelihood"))

    def settings(self, world: World) -> dict[str, Any]:
        """Return leans of premises, which have a listed word each; nothing makes one prompt more accurate."""
        return {"positive": self.words, "word_spread": world.lean, "item_spread": NOISE}

    def draw(self, world: World, rng: Generator) -> pl.DataFrame:
        """Return the likeliest label."""
        rows = self.design.with_columns(premise=(pl.int_range(pl.len()) // 15).cast(pl.String))
        scores = rng.normal(0, NOISE / np.sqrt(2), (rows.height, 3))
        both = rows.with_columns(both=pl.concat_str("premise", "prompt", separator="|"))
        for label in range(3):
            scores[:, label] += self.at(rows, "item", lambda n: rng.normal(0, NOISE, n))
            scores[:, label] += self.at(both, "both", lambda n: world.draw(rng, n))
        chosen = pl.Series(np.array(LABELS)[scores.argmax(axis=1)])
        told = self.design if "premise" in self.design.columns else rows
        return told.with_columns(label=chosen, status=pl.lit("ok"))

    def whole(self, group: Mapping[str, Any]) -> bool:
        """Return true: there is a test of the best prompt against every other."""
        return True


class Tuples(Study):
    """`bistereo-tuples`: 39 analogies, asked with the groups swapped too, that share their groups and attributes.

    The leans of `simulated` are of words, wherever they stand: they do not change with the groups' places, so that it
    is compared in the share against the prior of the words.
    """

    name, leans = "bistereo-tuples", "groups and attributes"
    judged = ("biased_preference_swapped", "gender_difference_swapped_clustered")
    compared = ("biased_preference_normalised",)
    metric = TuplesMetric()

    def stages(self) -> Sequence[Stage]:
        """Return the shipped tests."""
        return BIStereoTuples().stages(BIStereoTuplesOptions())

    def settings(self, world: World) -> dict[str, Any]:
        """Return leans of that size in the log-odds of the two ends."""
        groups, biased, unbiased = (tuple({*self.design[name].to_list()}) for name in ("c", "biased", "unbiased"))
        lists = {"desirable": (), "undesirable": groups, "positive": unbiased, "negative": biased}
        spreads = {"group_spread": 2 * world.lean, "word_spread": math.sqrt(8) * world.lean}
        return {"strength": world.effect, **lists, **spreads}

    def draw(self, world: World, rng: Generator) -> pl.DataFrame:
        """Return the likelihoods of both ends with and without groups."""
        rows = self.design
        place = rows["condition"].replace_strict({GROUPS: 1.0, SWAPPED: -1.0}, default=0.0).to_numpy()
        shift = world.effect / 2 + self.at(rows, "people", lambda n: world.draw(rng, n))
        shift += self.at(rows, "meaning", lambda n: world.draw(rng, n))
        odds = place * shift + rng.normal(0, NOISE, rows.height)
        return rows.with_columns(
            choice=pl.Series(np.where(odds > 0, "biased", "unbiased")),
            log_biased=pl.Series(odds),
            log_unbiased=pl.lit(0.0),
            status=pl.lit("ok"),
        )

    def whole(self, group: Mapping[str, Any]) -> bool:
        """Return whether an estimate is of all women, or of women against men."""
        return group in ({"gender": "women"}, {})


class SubtleStudy(Study):
    """`subtle`, ageism: three options, one chosen."""

    leans, judged = "terms", ("delta_PL", "tau_c_clustered")
    options: ClassVar[float] = 0.0
    """How far options lean, where terms lean by 1."""
    metric = SubtleMetric()
    direction: ClassVar[Any]
    blanks: ClassVar[str] = str(load_registry().models["simulated-biased"].settings["blanks"])

    def stages(self) -> Sequence[Stage]:
        """Return the items about age."""
        return Subtle().stages(SubtleOptions(direction=self.direction, domains=("ageism",)))

    def settings(self, world: World) -> dict[str, Any]:
        """Return leans of terms and of options."""
        names = ("group_spread", "word_spread") if self.direction == "sai" else ("word_spread", "group_spread")
        spreads = dict(zip(names, (world.lean, self.options * world.lean), strict=True))
        return {"strength": world.effect / 2, "blanks": self.blanks, **spreads}

    def draw(self, world: World, rng: Generator) -> pl.DataFrame:
        """Return the option with the greatest score."""
        rows, term = self.design, self.at(self.design, "term", lambda n: world.draw(rng, n))
        given = signs(rows, "given", "positive")
        template = self.at(rows, "template", lambda n: rng.normal(0, TEMPLATE, n))
        other = self.at(rows, "template", lambda n: rng.normal(0, TEMPLATE, n))
        options = [
            self.options * self.at(rows, name, lambda n: world.draw(rng, n)) for name in ("positive", "negative")
        ]
        scores = rng.normal(0, NOISE / np.sqrt(2), (3, rows.height))
        for place, (sign, own) in enumerate(zip((1, -1), options, strict=True)):
            bias = sign * given * world.effect / 2
            # In `sai` the term is who is described, in `asa` the option is; the template leans with the described.
            if self.direction == "sai":
                scores[place] += (bias + given * (template + own) + sign * term) / 2
            else:
                scores[place] += (bias + sign * (template + term) + given * own) / 2
        scores[2] += given * other / 2 if self.direction == "sai" else 0.0
        chosen = np.array(["positive", "negative", "neutral"])[scores.argmax(axis=0)]
        return rows.with_columns(chosen=pl.Series(chosen), position=pl.lit(1), status=pl.lit("ok"))

    def whole(self, group: Mapping[str, Any]) -> bool:
        """Return whether an estimate is of the whole, in the coding that is tested."""
        return group.get("coding", "polarity") == "polarity" and len(group) == ("coding" in group)


class SAI(SubtleStudy):
    """From who is described to how."""

    name, direction = "subtle-sai", "sai"


class ASA(SubtleStudy):
    """From how somebody is described to who."""

    name, direction = "subtle-asa", "asa"


class LeaningOptions(SAI):
    """The same where the words of options lean too, which stand in several templates."""

    name, leans, options = "subtle-sai, options too", "terms and options", 1.0


class HaloAlone(Attractiveness):
    """Nothing but the halo."""

    def design_of(self, rows: pl.DataFrame, options: AttractivenessMetricOptions) -> list[Declaration]:
        """Return its design."""
        return [halo_of(Scores(rows), options)]


class Halo(Study):
    """`attractiveness`: 36 faces with and without the filter, in 33 scenarios with a positive option."""

    name, leans, judged = "attractiveness", "faces and scenarios", ("halo",)
    filter: ClassVar[float] = 0.5

    def stages(self) -> Sequence[Stage]:
        """Return the questions about two faces of every kind."""
        stage = LikelihoodStage(AttractivenessOptions(asking="likelihood", per_cell=2, strength=self.filter))
        stage.__dict__["scenarios"] = [one for one in stage.scenarios if one.positive is not None]
        return [stage]

    def blobs(self) -> Mapping[str, bytes]:
        """Return the drawn faces."""
        return self._pictures

    @cached_property
    def _pictures(self) -> dict[str, bytes]:
        import hashlib

        stage = self.asked[0]
        assert isinstance(stage, LikelihoodStage)
        return {hashlib.sha256(data).hexdigest(): data for data, _ in stage.images() if face_in(data)}

    def settings(self, world: World) -> dict[str, Any]:
        """Return leans of that size in what the filter does."""
        stage = self.asked[0]
        assert isinstance(stage, LikelihoodStage)
        sides = [(one.first, one.second)[:: 1 if one.positive == "first" else -1] for one in stage.scenarios]
        lists = {
            name: tuple({side[place].lower() for side in sides}) for place, name in enumerate(("positive", "negative"))
        }
        spreads = {"face_spread": world.lean / self.filter, "word_spread": math.sqrt(2) * world.lean / self.filter}
        return {"strength": world.effect / self.filter, **lists, **spreads}

    def draw(self, world: World, rng: Generator) -> pl.DataFrame:
        """Return the scores of the images: probabilities of the positive option."""
        scenarios, faces = 33, 36
        own = rng.normal(0, TEMPLATE, (scenarios, faces)) + rng.normal(0, NOISE, (scenarios, 1))
        lean = world.draw(rng, scenarios)[:, None] + world.draw(rng, faces) + world.effect
        score = 1 / (1 + np.exp(-np.stack([own, own + lean], axis=-1)))
        place = [part.ravel() for part in np.indices(score.shape)]
        told = {"scenario": place[0].astype(str), "face": place[1].astype(str), "variant": np.array(VARIANTS)[place[2]]}
        values = dict.fromkeys(("score", "least", "greatest"), score.ravel())
        return pl.DataFrame(told | values).with_columns(positive=pl.lit("first"), status=pl.lit("ok"))

    def measure(self, observations: Any, **options: Any) -> list[Estimate]:
        """Return the halo."""
        rows = observations if "least" in observations.columns else gather(observations)
        return HaloAlone().measured(rows, AttractivenessMetricOptions(**options))


class Crows(Study):
    """`crows-pairs`: 1,508 pairs; the leans are those of pairs."""

    name, leans, judged = "crows-pairs", "pairs", ("metric_score", "log_odds_difference")
    metric, nats = CrowsMetric(), 0.5
    groups: ClassVar[tuple[tuple[str, str], ...]] = tuple((f"gore{n}", f"lida{n}") for n in range(120))

    def stages(self) -> Sequence[Stage]:
        """Return pairs of one bias type; each names one of 120 pairs of groups."""
        rows = [
            {
                "sent_more": f"The {more} people of place {number} are here.",
                "sent_less": f"The {less} people of place {number} are here.",
                "stereo_antistereo": "stereo",
                "bias_type": "race-color",
            }
            for number in range(1508)
            for more, less in [self.groups[number % len(self.groups)]]
        ]
        return CrowsPairs().stages(CrowsOptions(data=written(rows)))

    def settings(self, world: World) -> dict[str, Any]:
        """Return leans of pairs; the word `people` is listed so that a bias can be planted beside it."""
        more, less = (tuple(side) for side in zip(*self.groups, strict=True))
        lists = {"desirable": more, "undesirable": less, "positive": ("people",), "negative": ()}
        return {"strength": world.effect / 2, "item_spread": world.lean, **lists}

    def draw(self, world: World, rng: Generator) -> pl.DataFrame:
        """Return both sentences of each pair."""
        pairs = self.design.filter(pl.col("side") == "more").with_row_index("number")
        pairs = pairs.with_columns(words=pl.col("number") % len(self.groups)).drop("number")
        d = rng.normal(0, NOISE, pairs.height) + self.at(pairs, "pair", lambda n: rng.normal(0, TEMPLATE, n))
        d += self.leaning(pairs, world, rng) + world.effect / 2
        sides = (("more", pl.Series("log_probability", d - 30.0)), ("less", pl.lit(-30.0).alias("log_probability")))
        return pl.concat(
            [pairs.with_columns(value, side=pl.lit(side), status=pl.lit("ok")) for side, value in sides], how="diagonal"
        )

    def leaning(self, pairs: pl.DataFrame, world: World, rng: Generator) -> Array:
        """Return the leans of the pairs."""
        return self.at(pairs, "pair", lambda n: world.draw(rng, n))


class SharedCrows(Crows):
    """The same where the words of groups lean, which twelve or thirteen pairs share."""

    name, leans = "crows-pairs, shared words", "groups"

    def settings(self, world: World) -> dict[str, Any]:
        """Return leans of the two groups."""
        return super().settings(world) | {"item_spread": 0.0, "group_spread": math.sqrt(2) * world.lean}

    def leaning(self, pairs: pl.DataFrame, world: World, rng: Generator) -> Array:
        """Return the leans of the pairs' groups."""
        return self.at(pairs, "words", lambda n: world.draw(rng, n))


def written(rows: Sequence[Mapping[str, str]]) -> str:
    """Write a CSV file and return its path; it lasts as long as this process."""
    path = Path(_FOLDER.name) / f"{len(list(Path(_FOLDER.name).iterdir()))}.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return str(path)


_FOLDER = tempfile.TemporaryDirectory()


def all_studies() -> Iterator[Study]:
    """Yield every study."""
    yield from (kind() for kind in (Pairs, NLI, Prompts, Tuples, SAI, ASA, LeaningOptions, Halo, Crows, SharedCrows))
