"""The page of docs/reference on files of one's own: what each reader does with an example, column by column."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from prejudge.core.catalogue.plugins import Plugins
from prejudge.core.catalogue.study import Catalogue
from prejudge.core.catalogue.validation import field_docs
from prejudge.core.contracts.errors import DataError
from prejudge.core.design.folder import About, Answers, Crossing
from prejudge.core.design.record import Roles
from prejudge.core.tables import csv_text

from .reference_tables import WRITTEN, line, table

Row = dict[str, str]
UNKNOWN = "§"
"""What no column takes that takes certain values."""


class Format(NamedTuple):
    """An example of the files of some studies, with every column that the reader knows."""

    studies: tuple[str, ...]
    rows: tuple[Row, ...]
    option: str = "data"
    pictures: str = ""
    """Column that names images, which lie beside the table in a folder; empty: a table alone."""
    others: Mapping[str, tuple[Row, ...]] = {}
    """Further files that the example needs, by option."""


def _rows(columns: str, *rows: str) -> tuple[Row, ...]:
    names = columns.split(",")
    return tuple(dict(zip(names, row.split("|"), strict=True)) for row in rows)


PICTURES = _rows("file,descriptor,dimension", "1.png|old person|age", "2.png|young person|age")
MASKED = _rows(
    "Stereo_Antistereo,Bias_Type,Masked_Sentence,Ground_Truths,id",
    "stereo|gender|The <MASK> stayed at home.|wife|0",
    "antistereo|gender|The <MASK> cooked dinner.|husband|1",
)
TRUTHS = _rows(
    "prompt,type,text",
    "0|anti-stereotype|The husband stayed at home.",
    "1|stereotype|The wife cooked dinner.",
)
FORMATS = (
    Format(
        ("bistereo-pairs",),
        _rows(
            "desirable,undesirable,axis,gender,sentiment,pair,template,attribute,noun,number,phrase",
            "Ann met a gentle tall girl.|Ann met a gentle short girl.|height|women|positive|met-1|met|gentle|girl|one|",
            "Ann met a surly tall girl.|Ann met a surly short girl.|height|women|negative|met-2|met|surly|girl|one|",
            "Bob saw a gentle tall girl.|Bob saw a gentle short girl.|height|women|positive|saw-1|saw|gentle|girl|one|",
        ),
    ),
    Format(
        ("crows-pairs",),
        _rows(
            "sent_more,sent_less,stereo_antistereo,bias_type",
            "The old clerk was slow.|The young clerk was slow.|stereo|age",
            "The girl won at chess.|The boy won at chess.|antistereo|gender",
        ),
    ),
    Format(
        ("subtle-sai",),
        _rows(
            "bias_type,item_category,type_category,target_gender,context,stereotype,anti_stereotype,unrelated,template,term",
            "ageism|positive|type1|male|He is 30, and he is BLANK.|quick|slow|tall|age|30",
            "ageism|negative|type1|male|He is 80, and he is BLANK.|slow|quick|tall|age|80",
        ),
    ),
    Format(
        ("subtle-asa",),
        _rows(
            "bias_type,item_category,type_category,target_gender,context,stereotype,anti_stereotype,unrelated,template,term",
            "ageism|positive|type2|female|She is quick, and she is BLANK.|30|80|55|speed|quick",
            "ageism|negative|type2|female|She is slow, and she is BLANK.|80|30|55|speed|slow",
        ),
    ),
    Format(
        ("attractiveness",),
        _rows(
            "face_id,file,variant,gender,age_group,race,source,rating_trustworthiness",
            "f1|f1.png|original|female|young|Asian|own|4;5",
            "f1|f1-filtered.png|filtered|female|young|Asian|own|4;5",
            "f2|f2.png|original|male|old|Black|own|3;4",
            "f2|f2-filtered.png|filtered|male|old|Black|own|3;4",
        ),
        pictures="file",
    ),
    Format(
        ("attractiveness",),
        _rows(
            "first,second,category,kind,positive,stereotype,rating,article",
            "Patient|Hasty|traits|directed|first|||",
            "Baker|Welder|jobs|gender||female vs male||a",
        ),
        option="scenarios",
    ),
    Format(
        ("bistereo-tuples",),
        _rows(
            "dimension,descriptor,term,attribute,sentiment,score,annotators,opposite,standing,mirrored,people,meaning,"
            "gender,phrase",
            "height|short|woman|timid|negative|4|5|bold|disadvantaged|yes|short|timid|women|Short woman",
            "height|tall|woman|bold|positive|5|5||advantaged|yes|tall|bold|women|Tall woman",
            "height|tiny|woman|meek|negative|4|5|bold|disadvantaged|yes|short|timid|women|Tiny woman",
        ),
    ),
    Format(
        ("bistereo-nli",),
        _rows(
            "pair,group,premise,hypothesis,sentiment,gender,kind,category,direction,template,noun,attribute",
            "1|town|A man from town called.|He was kind.|positive|men|behaviour|good|group in premise|called|man|kind",
            "1|village|A villager called.|He was kind.|positive|men|behaviour|good|group in premise|called|man|kind",
            "2|town|A man from town called.|He was rude.|negative|men|behaviour|bad|group in premise|called|man|rude",
            "2|village|A villager called.|He was rude.|negative|men|behaviour|bad|group in premise|called|man|rude",
        ),
    ),
    Format(
        ("bistereo-nli-prompts",),
        _rows(
            "premise,hypothesis,label",
            "A man slept.|Somebody rested.|entailment",
            "A man slept.|Somebody ran.|contradiction",
            "A man slept.|He had a dream.|neutral",
        ),
    ),
    Format(
        ("dora-t2t", "dora-t2i", "dora-i2t"),
        _rows("dimension,singular,plural", "age|old person|old people", "age|young person|young people"),
    ),
    Format(("dora-i2t",), PICTURES, option="images", pictures="file"),
    Format(("indicasa",), MASKED, others={"truths": TRUTHS}),
    Format(("indicasa",), TRUTHS, option="truths", others={"data": MASKED}),
)


def formats_page(plugins: Plugins) -> str:
    """Return the page."""
    catalogue = Catalogue.load(None)
    lines = [
        "# Files of your own",
        "",
        WRITTEN,
        "",
        "What the reader of each study does with an example, column by column. [Your own data](../guides/own-data.md) "
        "says how files are named, and the pages of the studies what columns mean. Files are CSV with a header; other "
        "columns are ignored. The role is that of the factor that the study [declares](designs.md) by the column's "
        "name.",
    ]
    for form in FORMATS:
        names = ", ".join(f"`{name}`" for name in form.studies)
        folder = ": a folder of images with `metadata.csv`" if form.pictures else ""
        lines += ["", f"## {names}: `{form.option}`", "", f"`--set {form.option}={_given(form)}`{folder}.", ""]
        lines += table(("column", "needed", "takes", "role", "example"), map(tuple, columns(catalogue, form)))
    return "\n".join([*lines, *folder_part(catalogue)]) + "\n"


def folder_part(catalogue: Catalogue) -> Iterator[str]:
    """Yield what a folder says of itself, and what each study takes of it."""
    yield from ("", "## Folders: `about.toml`", "")
    yield (
        "`--data FOLDER` takes a folder with the table as `data.csv` (or another form), further tables of the study by "
        "the name of their option (`truths.csv`, `scenarios.csv`), and `about.toml`:"
    )
    yield ""
    for kind, prefix in ((About, ""), (Answers, "questions."), (Crossing, "tables.NAME.")):
        docs = SAID | field_docs(kind)
        rows = [(f"`{prefix}{field.name}`", line(docs[field.name])) for field in msgspec.structs.fields(kind)]
        yield from [*table(("key", "meaning"), rows), ""]
    yield from ("What studies take:", "")
    yield from table(("study", "`words`, in place of", "`wordings`"), _taken(catalogue))


SAID = {
    "title": "Title of the report.",
    "limits": "Limits of these data, as sentences.",
    "questions": "Words of the report on questions of the study.",
    "measure": "Measure that answers the question.",
    "asks": "The question.",
    "above": "What a value above neutral means, as a clause.",
    "below": "The same of a value below it.",
}
"""What keys mean whose class does not say it."""


def _taken(catalogue: Catalogue) -> Iterator[tuple[str, str, str]]:
    for name, entry in sorted(catalogue.registry.studies.items()):
        worded = catalogue.plugins.load("probe", entry.probe).options.worded
        words = {key: phrases[0] for part in entry.material for key, phrases in part.words.items()}
        if words or worded:
            replaced = "; ".join(f"`{key}`: {phrase}" for key, phrase in words.items())
            yield f"`{name}`", replaced, ", ".join(f"`{option}`" for option in sorted(worded))


def _given(form: Format) -> str:
    return "FOLDER" if form.pictures else "FILE"


class Column(NamedTuple):
    """What a reader does with a column."""

    name: str
    needed: str
    takes: str
    role: str
    example: str


def columns(catalogue: Catalogue, form: Format) -> Iterator[Column]:
    """Yield what the reader does where a column is left out, empty, or has a value that it may not know."""
    roles = {name: role for study in form.studies for name, role in _roles(_read(catalogue, study, form))}
    for name in form.rows[0]:
        study = form.studies[0]
        absent = [{key: cell for key, cell in row.items() if key != name} for row in form.rows]
        if _fault(catalogue, study, form, absent) is None:
            needed = "no"
        else:
            blank = [{**row, name: ""} for row in form.rows]
            needed = "yes" if _fault(catalogue, study, form, blank) else "may be empty"
        yield Column(
            f"`{name}`",
            needed,
            _takes(_fault(catalogue, study, form, _with(form.rows, name, UNKNOWN))),
            roles.get(name, ""),
            line(next((row[name] for row in form.rows if row[name]), "")),
        )


def _takes(fault: DataError | None) -> str:
    if fault is None or fault.code not in ("data.unknown-value", "data.number"):
        return ""
    if fault.code == "data.number":
        return "a number"
    return ", ".join(f"`{value}`" for value in fault.fields["known"] if value)


def _with(rows: Sequence[Row], name: str, cell: str) -> list[Row]:
    """Return the rows with another cell in the first."""
    return [{**rows[0], name: cell}, *rows[1:]]


def _fault(catalogue: Catalogue, study: str, form: Format, rows: Sequence[Row]) -> DataError | None:
    try:
        _read(catalogue, study, form._replace(rows=tuple(rows)))
    except DataError as error:
        return error
    return None


def _read(catalogue: Catalogue, study: str, form: Format) -> Roles | None:
    """Let a study read an example, and return its design, if it declares one."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        given = {form.option: str(_written(form, place))}
        for option, rows in form.others.items():
            given[option] = str(place / f"{option}.csv")
            (place / f"{option}.csv").write_text(_csv(rows), "utf-8")
        instrument = catalogue.instrument(catalogue.study(study, {}, given))
        first = instrument.every_stage()[0]
        if next(iter(first.trials({})), None) is None:
            raise DataError("nothing is asked.", code="data.no-rows")
        return instrument.design


def _written(form: Format, place: Path) -> Path:
    if not form.pictures:
        path = place / "own.csv"
        path.write_text(_csv(form.rows), "utf-8")
        return path
    from PIL import Image

    (place / "metadata.csv").write_text(_csv(form.rows), "utf-8")
    named = next(own for own in FORMATS if (own.studies, own.option) == (form.studies, form.option)).rows
    for number, row in enumerate(named):
        Image.effect_noise((64, 64), 10 + number).save(place / row[form.pictures])
    return place


def _csv(rows: Sequence[Row]) -> str:
    return csv_text(tuple(rows[0]), rows)


def _roles(design: Roles | None) -> Iterator[tuple[str, str]]:
    yield from ((factor.name, factor.role) for factor in (design.declared if design is not None else ()))
