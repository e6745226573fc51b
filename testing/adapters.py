"""`AdapterContract`: the tests that every model adapter must pass."""

from __future__ import annotations

from ._answers import AnswerRules
from ._effects import EffectRules
from ._faults import FaultRules
from ._identity import IdentityRules
from ._life import LifeRules
from ._reaching import ReachingRules
from ._sharing import SharingRules


class AdapterContract(AnswerRules, LifeRules, IdentityRules, ReachingRules, SharingRules, FaultRules, EffectRules):
    """The rules, one test each. Set `at`, or `make` and `requests`; the other settings are for unusual adapters."""
