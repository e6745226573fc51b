"""How answers are drawn: values no model can draw with are refused by every probe that has them."""

from __future__ import annotations

import math

import pytest

from prejudge.core.contracts.errors import UsageError
from prejudge.probes.attractiveness.probe import AttractivenessOptions
from prejudge.probes.bistereo.nli_asking import AskingOptions
from prejudge.probes.bistereo.nli_prompts import NLIPromptsOptions
from prejudge.probes.bistereo.tuples import BIStereoTuplesOptions
from prejudge.probes.bistereo.tuples_draft import TuplesDraftOptions
from prejudge.probes.dora.options import DoraOptions
from prejudge.probes.indicasa.probe import IndiCASAOptions
from prejudge.probes.subtle.probe import SubtleOptions
from prejudge.testing import raises_code

ALL = (
    AskingOptions,
    AttractivenessOptions,
    BIStereoTuplesOptions,
    DoraOptions,
    IndiCASAOptions,
    NLIPromptsOptions,
    SubtleOptions,
    TuplesDraftOptions,
)
WRONG = {
    "temperature": (-1.0, math.inf, math.nan),
    "judge_temperature": (-1.0,),
    "top_p": (0.0, -0.1, 1.1, math.nan),
    "max_tokens": (0, -5),
}
CASES = [(kind, name, value) for kind in ALL for name, values in WRONG.items() for value in values]


@pytest.mark.parametrize(("kind", "name", "value"), [case for case in CASES if case[1] in case[0].__struct_fields__])
def test_impossible_draws_are_refused(kind, name, value):
    with raises_code(UsageError, "options.value", name, value):
        kind(**{name: value})


@pytest.mark.parametrize("kind", ALL)
def test_edges_and_the_models_own_choice_are_taken(kind):
    edges = {"temperature": 0.0, "judge_temperature": None, "top_p": 1.0, "max_tokens": 1}
    kind(**{name: value for name, value in edges.items() if name in kind.__struct_fields__})
