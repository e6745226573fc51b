"""What the studies `dora-*` vary, declared: descriptors against all others, over wordings in several settings."""

from __future__ import annotations

from collections.abc import Sequence

from ...core.contracts.records import Scalar
from ...core.design import AnswerForm, By, Design, Fixed, Group, Levels, Repeat, Rotation, Sampled
from ...core.design.levels import Value
from .descriptors import T2I_SETTINGS, Entry
from .options import DoraOptions, Modality
from .wordings import DRAWINGS, QUESTIONS, Sentence, block_of, in_block, question_id, sentences_of

LISTING = "entry.listing"
PLACE = {name: name for name in ("dimension", "descriptor")} | {"form": "entry.form"}
COLUMNS = {"modality": "setting.modality", "setting": "setting", **PLACE}
IN_TURN = Rotation(("sample.turn",))
"""The samples of a prompt are divided over the wordings."""


def completions_design(
    entries: Sequence[Entry],
    settings: tuple[str, ...],
    letters: str,
    options: DoraOptions,
    own: Sequence[Sentence] = (),
) -> Design:
    """Return the design of the sentences: a wording is one level in all settings that have it."""
    sentences = sentences_of(settings, options.wordings, own)
    wordings = Levels(tuple(text.id for text in sentences), {"setting": tuple(text.settings for text in sentences)})
    return Design(
        (
            By("setting", _settings(settings, "t2t")),
            _entries(entries, "setting"),
            Fixed("letter", tuple(letters)),
            _samples(entries, options),
            Sampled("wording", wordings, within=("setting",), assigned=IN_TURN),
        ),
        columns={**COLUMNS, "letter": "letter", "wording": "wording", "sample": "sample.number"},
        id="{setting}/{dimension}/{entry.stem}/{letter}/{sample.number}",
        answer=AnswerForm("words", outcome="word"),
    )


def drawings_design(entries: Sequence[Entry], settings: tuple[str, ...], options: DoraOptions) -> Design:
    """Return the design of the drawings."""
    return Design(
        (
            By("setting", _settings(settings, "t2i")),
            _entries(entries, "setting"),
            _samples(entries, options),
            Sampled("wording", Levels(tuple(DRAWINGS)[: options.wordings]), assigned=IN_TURN),
        ),
        columns={**COLUMNS, "wording": "wording", "sample": "sample.number"},
        id="{setting}/{dimension}/{entry.stem}/{sample.number}",
        answer=AnswerForm("image", outcome="image"),
    )


def impressions_design(
    entries: Sequence[Entry], numbers: tuple[str, ...], settings: tuple[str, ...], options: DoraOptions
) -> Design:
    """Return the design of the questions about drawings: whole cells of the drawings, and the wording of the question.

    Wordings of drawing and question are crossed within blocks, by numbers and samples in turn.
    """
    count = options.wordings
    places = range(count)
    wordings: dict[str, tuple[Value, ...]] = {
        "block": tuple(str(block_of(place, count)) for place in places),
        "turn": tuple(in_block(place, count).index(place) for place in places),
    }
    by = ("wording.turn", "sample.round", "number.turn")
    return Design(
        (
            Fixed("number", Levels(numbers, {"turn": tuple(T2I_SETTINGS.index(name) for name in numbers)})),
            _entries(entries, "number"),
            _samples(entries, options),
            Sampled("wording", Levels(tuple(DRAWINGS)[:count], wordings), parts=(Sampled("block"),), assigned=IN_TURN),
            By("setting", _settings(settings, "i2t")),
            Sampled("question", _questions(settings, count), within=("setting", "block"), assigned=Rotation(by)),
        ),
        columns={
            **COLUMNS,
            "block": "block",
            "wording": "wording",
            "question": "question",
            "sample": "sample.number",
        },
        id="{setting}/{dimension}/{entry.form}/{sample.number}/{number}",
        answer=AnswerForm("words", outcome="text"),
    )


def folder_design(
    pictures: Sequence[tuple[str, str, str, int]], settings: tuple[str, ...], options: DoraOptions
) -> Design:
    """Return the design of the questions about the images of a folder: the wording of the question by image in turn.

    Args:
        pictures: Dimension, descriptor, form and number of each image.
        settings: Settings of the questions.
        options: Those of the study.
    """
    rows: list[dict[str, Value]] = [
        {"name": str(at), **dict(zip((*PLACE, "number"), picture, strict=True))} for at, picture in enumerate(pictures)
    ]
    return Design(
        (
            Sampled("picture", Levels.of_rows(rows), parts=(By("dimension"), Group("descriptor"))),
            By("setting", _settings(settings, "i2t")),
            Sampled(
                "question",
                _questions(settings, options.wordings),
                within=("setting",),
                assigned=Rotation(("picture.number",)),
            ),
        ),
        columns={**COLUMNS, "form": "picture.form", "question": "question", "sample": "picture.number"},
        answer=AnswerForm("words", outcome="text"),
    )


def _settings(settings: tuple[str, ...], modality: Modality) -> Levels:
    return Levels(settings, {"modality": (modality,) * len(settings)})


def _entries(entries: Sequence[Entry], gate: str) -> Fixed:
    """Return the descriptors in the form of each setting."""
    rows: list[dict[str, Value]] = [
        {
            "name": str(at),
            gate: entry.setting,
            "dimension": entry.dimension,
            "descriptor": entry.descriptor,
            "form": entry.form,
            "stem": entry.stem,
            "listing": _listing(entry),
        }
        for at, entry in enumerate(entries)
    ]
    return Fixed("entry", Levels.of_rows(rows), parts=(By("dimension"), Group("descriptor")), within=(gate,))


def _samples(entries: Sequence[Entry], options: DoraOptions) -> Repeat:
    """Return the samples, those of one wording adjacent; more samples leave those there are as they are."""
    count = options.wordings
    rows: dict[str, dict[str, Scalar]] = {}
    for entry in {_listing(entry): entry for entry in entries}.values():
        for turn in range(min(count, options.samples)):
            for sample in range(turn, options.samples, count):
                number = sample + (entry.later if turn else entry.first)
                name = f"{number}" if not entry.first and not entry.later else f"{number} ({_listing(entry)})"
                rows[name] = {"number": number, "turn": turn, "round": number // count, LISTING: _listing(entry)}
    return Repeat("sample", Levels.of_rows({"name": name, **row} for name, row in rows.items()), within=(LISTING,))


def _listing(entry: Entry) -> str:
    """Return what number of samples the entries before it have that share its prompts."""
    return f"{entry.first}+{entry.later}"


def _questions(settings: tuple[str, ...], wordings: int) -> Levels:
    return Levels.of_rows(
        {"name": question_id(setting, at), "setting": setting, "block": str(block_of(at, wordings)), "text": text}
        for setting in settings
        for at, text in enumerate(QUESTIONS[setting][:wordings])
    )
