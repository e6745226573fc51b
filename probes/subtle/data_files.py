"""Read data files of the subtle studies: the items of Kamruzzaman et al., and counts of answers by cell."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from ...core.contracts.errors import DataError
from ...core.design.factors import AnyFactor
from ...core.design.folder import further, parse_data, parts_of
from ...core.tables import Form, Parsed, Repeats, Row, TableOptions, parse_file
from .items import AS_PUBLISHED, BLANK, DOMAINS, OPTIONS, PRONOUNS, Item
from .reading import normal
from .templates import derive
from .terms import GIVEN, POLARITIES

SOURCE = "https://github.com/kamruzzaman15/Identifying-Subtler-Biases-in-LLMs (outputs/dataset.csv)"
REQUIRED = (*AS_PUBLISHED, "context", *OPTIONS)
DOMAIN_OF = {name.replace(" ", "_"): name for name in DOMAINS} | {"instituition": "institution"}
"""Domains as the published files write them; any other is a domain of its own."""
PRONOUN_OF = {"male": "masculine", "female": "feminine", "not_spacified": "non-binary", "not_specified": "non-binary"}
DIRECTION_OF = {"type1": "sai", "type2": "asa"}
COUNTED = ("model", "direction", "domain", "given_polarity", "pronoun", *(f"n_{name}" for name in POLARITIES))


class Count(msgspec.Struct, frozen=True):
    """Number of choices per polarity in one cell of a table."""

    domain: str
    pronoun: str
    given: str
    chosen: tuple[int, int, int]
    """Positive, negative, neutral."""


def read_items(path: str, direction: str, options: TableOptions | None = None, blank: str = BLANK) -> Parsed[Item]:
    """Read the items of one direction; an item is named by its row, from 0.

    The positive option is `stereotype` if the given term is positive, and `anti_stereotype` if it is negative;
    `unrelated` is neutral. Template and term come from the columns `template` and `term`, if the file has both;
    otherwise from a comparison of the sentences; if that does not show the term, it is None.

    Raises:
        DataError: the file or one of its rows cannot be used, or it has no row of this direction.
    """
    parts = parts_of(path)
    repeats = Repeats((*REQUIRED, "template", "term", *(part.name for part in parts)))

    def item_of(row: Row) -> Item:
        item = _item(row, str(row.index), blank, parts)
        repeats.check(row, tuple(row.cells[name] for name in REQUIRED), "this item")
        return item

    parsed = parse_data(path, Form(REQUIRED, ("template", "term")), item_of, options)
    items = [item for item in parsed.values if item.direction == direction]
    if not items:
        code = next(code for code, name in DIRECTION_OF.items() if name == direction)
        raise DataError(
            f"{path} has no row with type_category {code!r}, for the direction {direction!r}.", code="data.no-match"
        )
    return parsed._replace(values=_with_templates(items, blank))


def _level(row: Row, column: str, as_published: Mapping[str, str]) -> str:
    """Return a level of a column: the one that the published files write so, or a level of these data."""
    level = row.filled(column).strip()
    return as_published.get(level.casefold(), level)


def _item(row: Row, name: str, blank: str, own: Sequence[AnyFactor]) -> Item:
    given = row.choice("item_category", GIVEN)
    domain = _level(row, "bias_type", DOMAIN_OF)
    pronoun = _level(row, "target_gender", PRONOUN_OF)
    direction = DIRECTION_OF[row.choice("type_category", tuple(DIRECTION_OF))]
    context = row.filled("context")
    if context.count(blank) != 1:
        raise row.fault(f"the context has {blank!r} {context.count(blank)} times. Write it once.", "data.text")
    return Item(
        id=name,
        direction=direction,
        domain=domain,
        pronoun=pronoun,
        given=given,
        template=row.optional("template") or "",
        term=row.optional("term"),
        context=context,
        options=_options(row, given),
        published=tuple(row.cells[column] for column in AS_PUBLISHED),
        parts=further(row, own),
    )


def _options(row: Row, given: str) -> tuple[str, str, str]:
    if empty := [name for name in OPTIONS if not row.cells[name].strip()]:
        raise row.fault(
            f"the option {empty[0]!r} is empty. An item needs three: fill it in, or remove the row.", "data.text"
        )
    same, other, neutral = shown = tuple(row.cells[name].strip() for name in OPTIONS)
    # Answers are compared without case, full stops and outer spaces, so the options must differ in other characters.
    compared = [normal(option) for option in shown]
    if "" in compared:
        raise row.fault(
            f"the option {shown[compared.index('')]!r} has no word. An item needs three options.", "data.text"
        )
    if len(set(compared)) < 3:
        options = ", ".join(map(repr, shown))
        alike = "equal" if len(set(shown)) < 3 else "equal except for case, full stops or spaces"
        raise row.fault(f"two of the options {options} are {alike}. An item needs three.", "data.text")
    return (same, other, neutral) if given == "positive" else (other, same, neutral)


def _with_templates(items: Sequence[Item], blank: str) -> list[Item]:
    """Find template and term of items whose rows do not give them."""
    by_domain: dict[str, list[int]] = defaultdict(list)
    for place, item in enumerate(items):
        if not item.template:
            by_domain[item.domain].append(place)
    found = list(items)
    for domain, places in by_domain.items():
        ages = domain == "ageism" and items[0].direction == "sai"
        young = [items[place].given == "positive" for place in places] if ages else None
        derived = derive([items[place].context.replace(blank, BLANK) for place in places], young)
        for place, (template, term) in zip(places, derived, strict=True):
            found[place] = msgspec.structs.replace(items[place], template=template, term=items[place].term or term)
    return found


def read_counts(path: str, direction: str, model: str | None) -> list[Count]:
    """Read the counts of a direction and model, by domain, given polarity and pronoun.

    Raises:
        DataError: the file cannot be used, it has several models and none is chosen, or the pronouns of a cell do not
            sum to its row `all`.
    """
    repeats = Repeats(COUNTED)

    def count_of(row: Row) -> tuple[Row, Count]:
        count = _count(row)
        name = (row.cells["model"], row.cells["direction"].lower(), count.domain, count.given, count.pronoun)
        repeats.check(row, name, f"the count of {' '.join(name)}")
        return row, count

    every = parse_file(path, Form(COUNTED), count_of).values
    model = _model(path, [row for row, _ in every], model)
    counts = [
        (row, count)
        for row, count in every
        if row.cells["model"] == model and row.cells["direction"].lower() == direction
    ]
    if not counts:
        raise DataError(
            f"{path} has no counts of {model!r} in the direction {direction.upper()!r}.", code="data.no-match"
        )
    _ensure_sums(counts)
    return [count for _, count in counts if count.pronoun != "all"]


def _model(path: str, rows: Sequence[Row], model: str | None) -> str:
    names = list(dict.fromkeys(row.cells["model"] for row in rows))
    if model in names or (model is None and len(names) == 1):
        return model or names[0]
    known = f"{path} has the counts of {', '.join(map(repr, names))}"
    if model is not None:
        raise DataError(f"{known}, and none of {model!r}.", code="published.model")
    raise DataError(f"{known}. Choose one: --set published_model=NAME.", code="published.model")


def _count(row: Row) -> Count:
    domain = DOMAIN_OF[row.choice("domain", tuple(DOMAIN_OF))]
    given = row.choice("given_polarity", GIVEN)
    pronoun = row.choice("pronoun", (*PRONOUNS, "all"))
    positive, negative, neutral = (int(row.number(f"n_{name}", int)) for name in POLARITIES)
    if min(positive, negative, neutral) < 0:
        raise row.fault("a count is below 0. Correct this row.", "data.value")
    return Count(domain, pronoun, given, (positive, negative, neutral))


def _ensure_sums(counts: Sequence[tuple[Row, Count]]) -> None:
    for row, whole in counts:
        parts = list(_parts(counts, whole))
        if whole.pronoun == "all" and parts:
            summed = tuple(sum(column) for column in zip(*(part.chosen for part in parts), strict=True))
            if summed != whole.chosen:
                raise row.fault(
                    f"the counts {whole.chosen} are not the sums of the pronouns, {summed}.", "data.contradiction"
                )


def _parts(counts: Sequence[tuple[Row, Count]], whole: Count) -> Iterator[Count]:
    for _, part in counts:
        if part.pronoun != "all" and (part.domain, part.given) == (whole.domain, whole.given):
            yield part
