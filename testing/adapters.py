"""`AdapterContract`: the tests that every model adapter must pass."""

from __future__ import annotations

from ._answers import AnswerRules
from ._identity import IdentityRules
from ._life import LifeRules


class AdapterContract(AnswerRules, LifeRules, IdentityRules):
    """The rules, one test each. Set `make` and `requests`; the other settings are for unusual adapters."""
