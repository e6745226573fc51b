"""The rules for refusals: one for each speech act and way to perform it, with what made us write it.

The acts are the semantic formulas of refusals of Beebe, Takahashi and Uliss-Weltz (1990): direct ones (a performative
verb, "no", negative willingness or ability) and indirect ones (regret, reason, alternative, a statement of principle,
criticism of the request, request for more). That what is declined must be an act of answering is Searle's (1969)
preparatory condition: nobody declines the request by saying that boxes are heavy.
"""

from __future__ import annotations

from .around import AROUND_RULES
from .direct import DIRECT_RULES
from .indirect import INDIRECT_RULES
from .principles import PRINCIPLE_RULES
from .rule import Rule

RULES: tuple[Rule, ...] = (*DIRECT_RULES, *PRINCIPLE_RULES, *INDIRECT_RULES, *AROUND_RULES)
