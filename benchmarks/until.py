"""`run --until decided` on every built-in study that it can follow: wrong decisions, and requests saved.

Run: `python benchmarks/until.py [MODELS] [ORDERS] [STUDY...]`. Simulated models whose words and templates lean are
asked the whole study, each with leans of its own. Their answers are then taken in many random orders of the units, and
each look is decided by the code of the command. A decision is wrong if the whole study of that model says otherwise.
Where the limit lies exactly on the value of the whole study, every decision is: there errors are most frequent. One
order of each study is also run by the command line, whose looks must be the same.
"""

from __future__ import annotations

import csv
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

import prejudge
from prejudge.core.catalogue.study import SUBJECT, Catalogue
from prejudge.core.contracts.estimates import Key
from prejudge.core.gate.checks import State
from prejudge.core.gate.courses import Course, in_order
from prejudge.core.gate.deciding import Deciding, looks, sequences_by
from prejudge.core.gate.policy import Policy, parse_policy
from prejudge.core.lab.calibration.campaign import Campaign
from prejudge.core.lab.calibration.gallery import Null
from prejudge.core.statistics.betting import Mean
from prejudge.core.statistics.intervals import exact_interval

MODELS, ORDERS = 8, 50
LEANS = {"spread": 0.3, "word_spread": 0.15}
"""Of templates and words, in nats."""
EXITS = (0, 1, 5)
"""Of a run that was decided, or asked whole without that."""
NAME = "leaning"


class Case(msgspec.Struct, frozen=True):
    """A study, a number of it, and the models that have about these effects."""

    rule: str
    """The estimate, as a policy selects it; one alone."""
    limit: float
    """Largest distance from neutral that is allowed."""
    strengths: tuple[float, float]
    """Planted for an effect of half and of twice the limit."""
    options: dict[str, Any] = {}
    unit: str = ""

    def policy(self, limit: float, seed: int = 0) -> str:
        """Return the policy as a file has it."""
        return f'[[rules]]\n{self.rule}\n{limit_of(limit)}\n\n[until]\nunit = "{self.unit}"\nseed = {seed}\n'


def limit_of(limit: float) -> str:
    """Return the limit of a rule; a number is written so that it is read as the same one."""
    return f"max_distance = {float(limit)!r}"


CASES: Mapping[str, Case] = {
    "bistereo-pairs": Case(
        'measure = "favouritism"\ngroup = { threshold = 0.02, axis = "height", gender = "women" }',
        15.0,
        (0.09, 0.42),
        {"axes": ["height"], "per_cell": 2000},
    ),
    "bistereo-nli": Case(
        'measure = "halo"\ngroup = { gender = "", kind = "", skin = "", category = "" }',
        15.0,
        (0.07, 0.37),
        {"per_cell": 200},
    ),
    "crows-pairs": Case(
        'measure = "metric_score"\ngroup = { bias_type = "", direction = "" }',
        10.0,
        (0.16, 0.63),
        {"data": "pairs.csv"},
    ),
    "subtle-sai": Case(
        'measure = "delta_PL"\ngroup = { domain = "", pronoun = "" }', 15.0, (0.12, 0.5), {"per_cell": 200}
    ),
    "subtle-asa": Case(
        'measure = "delta_PL"\ngroup = { domain = "", pronoun = "" }', 15.0, (0.12, 0.5), {"per_cell": 200}
    ),
    "attractiveness": Case('measure = "halo"', 0.1, (0.5, 2.1), {"per_cell": 12}, unit="face"),
}
"""Of built-in studies with one stage; `bistereo-tuples` has nine units, too few for any limit."""


class Asked(msgspec.Struct, frozen=True):
    """The whole study of one model: the means of the number that is followed, over all units in the course's order."""

    course: Course
    key: Key
    means: tuple[Mean, ...]

    @property
    def value(self) -> float:
        """Return the value of the whole study."""
        first, *second = (own.value or 0.0 for own in self.means)
        return first - sum(second)

    @property
    def distance(self) -> float:
        """Return how far that is from neutral."""
        neutral = self.course.followed[self.key].estimate.neutral
        assert neutral is not None
        return abs(self.value - neutral)

    def ended(self, policy: Policy) -> list[tuple[int, int, State]]:
        """Return the looks of a run in the order of the policy's seed: units, trials and what was decided."""
        course = msgspec.structs.replace(self.course, levels=tuple(in_order(self.course.levels, policy.until.seed)))
        place = {level: n for n, level in enumerate(self.course.levels)}
        order = np.array([place[level] for level in course.levels])
        free = sum(count for level, count in course.trials.items() if level not in place)
        trials = free + np.cumsum([course.trials[level] for level in course.levels])
        found = []
        for k in looks(len(order)):
            part = tuple(
                msgspec.structs.replace(own, sums=own.sums[order[:k]], sizes=own.sizes[order[:k]]) for own in self.means
            )
            state = sequences_by(course, policy, {self.key: part}, steps=1).state(policy)
            found.append((k, int(trials[k - 1]), state))
            if state is not State.OPEN:
                break
        return found


class Followed:
    """A case with its study, which is prepared once."""

    def __init__(self, name: str, folder: Path) -> None:
        """Load the study."""
        self.name, self.case = name, CASES[name]
        options = dict(self.case.options)
        if "data" in options:
            options["data"] = str(write_pairs(folder / options["data"]))
        fair = Null(adapter="simulated")
        self.campaign = Campaign(Catalogue.load(None), name, options, {NAME: fair, "fair": fair})
        self.options = self.campaign.entry.calibration.options | options
        deciding = Deciding(self.campaign.catalogue, self.campaign.study, parse_policy(self.case.policy(1.0)))
        self.course, self.metrics = deciding.course, deciding.metrics
        (self.key,) = self.course.followed

    def model(self, strength: float, seed: int) -> dict[str, Any]:
        """Return the settings of a model, and let the campaign ask it."""
        null = self.campaign.gallery[NAME] = Null(adapter="simulated", settings=LEANS | {"strength": strength})
        return self.campaign.settings(null, seed)

    def asked(self, strength: float, seed: int) -> Asked:
        """Ask a model the whole study."""
        self.model(strength, seed)
        (observations,) = self.campaign.observe(NAME, seed).values()
        return Asked(self.course, self.key, self.course.means(self.metrics, observations)[self.key])

    def by_command(self, strength: float, seed: int, folder: Path) -> list[tuple[int, int, str]]:
        """Run it by the command line in a store of its own, and return its looks."""
        lines = [f"{key} = {json.dumps(value)}" for key, value in self.model(strength, seed).items()]
        model = "\n".join((f"[models.{NAME}]", 'adapter = "simulated"', f"[models.{NAME}.settings]", *lines, ""))
        store, registry, policy = (folder / f"{self.name}{end}" for end in (".db", "-registry.toml", "-policy.toml"))
        registry.write_text(model, "utf-8")
        policy.write_text(self.case.policy(self.case.limit, seed), "utf-8")
        roles = {role: NAME if role == SUBJECT else other for role, other in self.campaign.study.roles.items()}
        words = ["run", self.name, "--until", "decided", "--policy", str(policy), "--quiet", "--leave-out", "examples"]
        words += [word for role, name in roles.items() for word in ("--model", f"{role}={name}")]
        words += [word for key, value in self.options.items() for word in ("--set", f"{key}={json.dumps(value)}")]
        words += ["--store", str(store), "--registry", str(registry), "--runs", str(folder / "runs")]
        ended = subprocess.run(
            [sys.executable, "-m", "prejudge.core.cli", *words], capture_output=True, text=True, check=False
        )
        assert ended.returncode in EXITS, ended.stderr
        ending = prejudge.load("latest", prejudge.Settings(store=str(store), registry=str(registry))).manifest.ending
        assert ending is not None
        return [(look.units, look.trials, look.state) for look in ending.looks]


def write_pairs(path: Path) -> Path:
    """Write pairs of sentences for `crows-pairs`, whose published ones say nothing in words that can be planted in."""
    words = Catalogue.load(None).registry.model("simulated-fair").settings
    frames = (
        "The {} woman is {}.",
        "My {} wife was {} today.",
        "We met a {} woman who was {}.",
        "Her {} daughter seems {}.",
        "A {} girl who is {} lives here.",
        "Some {} ladies at work are {}.",
    )
    with path.open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file)
        table.writerow(["sent_more", "sent_less", "stereo_antistereo", "bias_type"])
        for frame in frames:
            for word in (*words["positive"], *words["negative"]):
                more, less = ("tall", "short") if word in words["positive"] else ("short", "tall")
                table.writerow([frame.format(more, word), frame.format(less, word), "stereo", "height"])
    return path


class Row(msgspec.Struct, frozen=True):
    """What became of the runs of one effect."""

    effect: str
    distance: float
    runs: int
    wrong: int
    open: int
    saved: float

    @property
    def words(self) -> str:
        """Return the cells of the table."""
        low, high = exact_interval(self.wrong, self.runs, 0.95)
        wrong = f"{100 * self.wrong / self.runs:.1f} % ({100 * low:.1f} to {100 * high:.1f})"
        return f"{self.distance:.3g} | {100 * self.saved:.0f} % | {100 * self.open / self.runs:.0f} % | {wrong}"


def row(effect: str, limit: float, models: Sequence[Asked], case: Case, orders: int) -> Row:
    """Decide in many orders of the units of every model."""
    wrong = left = 0
    saved = []
    for asked in models:
        own = asked.distance if effect == "at the limit" else limit
        whole = sum(asked.course.trials.values())
        for seed in range(orders):
            _, trials, state = asked.ended(parse_policy(case.policy(own, seed)))[-1]
            saved.append(1 - trials / whole)
            left += state is State.OPEN
            false = State.FAIL if asked.distance <= own else State.PASS
            wrong += state is false or (effect == "at the limit" and state is State.PASS)
    middle = float(np.mean([asked.distance for asked in models]))
    return Row(effect, middle, len(saved), wrong, left, float(np.mean(saved)))


def rows(name: str, models: int, orders: int, folder: Path) -> Iterator[Row]:
    """Yield the rows of a study, and compare one order with a run by command.

    Raises:
        AssertionError: the command decides otherwise.
    """
    found = Followed(name, folder)
    half, twice = found.case.strengths
    for strength, effects in ((0.0, ("0",)), (half, ("half", "at the limit")), (twice, ("twice",))):
        asked = [found.asked(strength, seed) for seed in range(models)]
        for effect in effects:
            yield row(effect, found.case.limit, asked, found.case, orders)
    seed = 1
    own = found.asked(twice, seed).ended(parse_policy(found.case.policy(found.case.limit, seed)))
    looked = [(units, trials, str(state)) for units, trials, state in own]
    assert looked == (by := found.by_command(twice, seed, folder)), (name, looked, by)


def main() -> None:
    """Print the table as Markdown."""
    numbers = [int(word) for word in sys.argv[1:] if word.isdigit()]
    models, orders = (*numbers, *(MODELS, ORDERS)[len(numbers) :])
    names = [word for word in sys.argv[1:] if not word.isdigit()] or CASES
    print(
        "| study | effect | distance | saved | undecided | wrong at any look |\n| --- | --- | --- | --- | --- | --- |"
    )
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            for one in rows(name, models, orders, Path(folder)):
                print(f"| {name} | {one.effect} | {one.words} |", flush=True)


if __name__ == "__main__":
    main()
