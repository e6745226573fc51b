"""The pair of answers beside a finding: two questions that differ in the compared group alone, with what was said."""

from __future__ import annotations

from ..answer.twins import TwinPair
from ..contracts.canonical import decode_request, decode_response
from ..contracts.errors import DataError
from ..store import Store, used_answers
from .content import Twin, Twins
from .examples import show_request, show_response
from .marked import marked


def show_twins(pair: TwinPair | None, store: Store, run_id: int) -> Twins | None:
    """Return the texts of a pair; None where the store does not have both."""
    if pair is None:
        return None
    used = used_answers(store, run_id, {*pair.keys})
    if len(used) < len({*pair.keys}):
        return None
    rows = {number: texts for number, *texts in store.exchanges(used.values())}
    asked, answers = [], []
    for key in pair.keys:
        try:
            request, response = decode_request(rows[used[key]][0]), decode_response(rows[used[key]][1])
        except DataError:
            return None
        asked.append("\n\n".join(text for _, text in show_request(request)))
        texts = show_response(response)
        answers.append(next((text for label, text in texts if label == "answer"), "; ".join(text for _, text in texts)))
    first, second = map(Twin, pair.levels, marked(asked), answers)
    return Twins(pair.factor.replace("_", " "), (first, second), pair.differ, pair.pairs)
