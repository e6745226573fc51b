"""A server that misbehaves on purpose, for tests of adapters; it needs the standard library only.

    def test_my_adapter_survives(chaos_server):
        chaos_server.play("cut", "503", "429-seconds", every=5)
        ...

`chaos_server` is a fixture of pytest wherever prejudge is installed.
"""

from __future__ import annotations

from .batches import AnthropicBatches, Desk, OpenAIBatches
from .behaviours import ATTACK, BEHAVIOURS, Behaviour
from .drops import cached, cut_prompt, ignored, named, over_limit, scored, stop_left
from .http import Call, Reply
from .server import ChaosServer, Seen

__all__ = [
    "ATTACK",
    "AnthropicBatches",
    "BEHAVIOURS",
    "Behaviour",
    "Call",
    "ChaosServer",
    "Desk",
    "OpenAIBatches",
    "Reply",
    "Seen",
    "cached",
    "cut_prompt",
    "ignored",
    "named",
    "over_limit",
    "scored",
    "stop_left",
]
