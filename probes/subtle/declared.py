"""What the subtle-bias studies vary: items with their words and options, the order of options, and the question."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from ...core.design import AnswerForm, Balanced, By, Design, Fixed, Group, Levels, Sampled
from ...core.design.factors import AnyFactor
from ...core.design.levels import Value
from .asking import EVERY, Order, Prompt, name_of
from .items import AS_PUBLISHED, Item
from .terms import POLARITIES

COLUMNS = ("item", "direction", "domain", "pronoun", "given", "template", "term", "context", *POLARITIES)
PARTS = (
    *(By("domain"), By("pronoun"), Group("given"), Sampled("template"), Sampled("term")),
    *(Sampled("positive"), Sampled("negative"), Sampled("neutral")),
)
Ordered = Sequence[tuple[Item, tuple[Order | None, ...]]]


def subtle_design(
    ordered: Ordered, prompts: Sequence[Prompt], *, recorded: Sequence[str] = (), own: Sequence[AnyFactor] = ()
) -> Design:
    """Return the design of some items.

    Args:
        ordered: The items, each with the orders in which it is asked; None: an order that nobody recorded.
        prompts: Wordings of the question.
        recorded: Factors of the trials besides those of every study: `prompt`, the columns of a published file.
        own: Parts of the items that a folder of data declares.
    """
    items = Levels.of_rows({"name": item.id} | {**item.factors(), **item.parts} for item, _ in ordered)
    listed = [(item.id, orders) for item, orders in ordered]
    # Where each item has orders of its own, they lie within the item, and a sample balances them.
    apart = len({orders for _, orders in listed}) > 1
    order = Balanced("order", _orders(listed, apart), within=("item",) if apart else ())
    wordings = Levels(tuple(prompts), {"ending": tuple("" if name == "ours" else f"/{name}" for name in prompts)})
    columns = {name: name if name == "item" else f"item.{name}" for name in COLUMNS}
    published = {name: f"item.{name}" for name in recorded if name in AS_PUBLISHED}
    asked = {name: name for name in recorded if name == "prompt"}
    return Design(
        (Sampled("item", items, (*PARTS, *own)), order, Fixed("prompt", wordings)),
        columns=columns | {"order": "order.shown"} | published | asked,
        id="{item}{order.ending}{prompt.ending}",
        within_unit=("prompt",) if apart else ("order", "prompt"),
        answer=AnswerForm("option", outcome="chosen", answers=POLARITIES, up=POLARITIES[:1]),
    )


def _orders(listed: Sequence[tuple[str, tuple[Order | None, ...]]], apart: bool) -> Levels:
    """Return the orders that occur, each with the items that are asked in it."""
    places: dict[Order | None, list[str]] = defaultdict(list)
    for item, item_orders in listed:
        for order in item_orders:
            places[order].append(item)
    ranks = {order: rank for rank, order in enumerate(EVERY)}
    orders = sorted(places, key=lambda order: -1 if order is None else ranks[order]) if apart else list(places)
    rows: list[dict[str, Value]] = []
    for order in orders:
        digits = "" if order is None else "".join(map(str, order))
        row: dict[str, Value] = {"name": digits or "unrecorded", "ending": f"/{digits}" if digits else ""}
        row |= {"shown": None if order is None else name_of(order)}
        rows.append(row | ({"item": tuple(places[order])} if apart else {}))
    return Levels.of_rows(rows)
