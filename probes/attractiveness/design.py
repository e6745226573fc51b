"""What the study varies: faces with two images each, scenarios, orders of the question, and seeds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ...core.design import AnswerForm, Balanced, By, Design, Fixed, Group, Levels, Question, Repeat, Sampled
from ...core.design.levels import Value
from .asking import ORDERS
from .scenarios import Scenario
from .terms import ATTRACTIVENESS, DESIGN, ORDER, PERSON, TRAITS

COLUMNS = {
    "scenario": "scenario",
    **{name: f"scenario.{name}" for name in DESIGN[1:]},
    **{name: name for name in ("face", "variant", *PERSON)},
    # The name of the ratings; the stage replaces it by those of the image.
    "human": "scenario.rating",
    ATTRACTIVENESS: f"image.{ATTRACTIVENESS}",
    **{name: f"order.{name}" for name in ORDER},
}
FACTORS = tuple(COLUMNS)
QUESTIONS = (
    Question("one scenario", {"scenario": "fixed"}),
    *(Question(trait, {trait: "group", "variant": "by", "scenario": "fixed"}) for trait in TRAITS),
)


def face_design(
    people: Sequence[dict[str, Value]], images: Levels, scenarios: Sequence[Scenario], seeds: Sequence[int]
) -> Design:
    """Return the design: the questions about each image, image by image.

    Args:
        people: The faces, a row each: its name and the columns of the person.
        images: The images of each face, with the columns `face` and `variant`.
        scenarios: The scenarios.
        seeds: Seeds of each question; none: it has no seed.
    """
    orders = Levels.of_rows(
        ({"first_is": order.first_is, "asked": order.asked} for order in ORDERS), name="{first_is}/{asked}"
    )
    repeat = Repeat("seed", Levels(tuple(map(str, seeds)), {"value": tuple(seeds)}))
    seed = {"seed": "seed.value"} if seeds else {}
    return Design(
        (
            Sampled("face", Levels.of_rows(people), tuple(By(name) for name in PERSON)),
            Fixed("image", images, (Group("variant"),), within=("face",)),
            Sampled("scenario", _scenarios(scenarios), (By("category", parts=(By("kind"),)),)),
            Balanced("order", orders),
            *((repeat,) if seeds else ()),
        ),
        columns=COLUMNS | seed,
        id="{face}/{variant}/{scenario}/{order}" + ("/{seed}" if seeds else ""),
        questions=QUESTIONS,
        answer=AnswerForm("label", outcome="score", answers=("a", "b")),
    )


def image_table(images: Iterable[tuple[str, str]], ratings: dict[tuple[str, str], dict[str, str]]) -> Levels:
    """Return the images of each face, by face and variant, with people's ratings of how attractive the face is."""
    return Levels.of_rows(
        (
            {"face": face, "variant": variant} | {ATTRACTIVENESS: ratings.get((face, variant), {}).get(ATTRACTIVENESS)}
            for face, variant in images
        ),
        name="{face}/{variant}",
    )


def _scenarios(scenarios: Sequence[Scenario]) -> Levels:
    names = (*DESIGN[1:], "rating")
    return Levels.of_rows({"name": one.id} | {name: getattr(one, name) for name in names} for one in scenarios)
