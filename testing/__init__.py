"""The contract kit: tests that every adapter, probe and metric must pass. Authors of plugins run them on their classes.

    from prejudge.testing import AdapterContract, MetricContract, ProbeContract, guesses, observe

    class TestMyEndpoint(AdapterContract):
        at = staticmethod(lambda url, model: MyAdapter(MyOptions(url=url, model=model)))
        key_env = "MY_API_KEY"

    class TestMyModel(AdapterContract):
        make = staticmethod(lambda: MyModel(MyModelOptions(model="tiny")))
        requests = [Generate(messages=...), Generate(messages=...)]

    class TestMyProbe(ProbeContract):
        make = MyProbe
        options = {"per_cell": 5}

    class TestMyMetric(MetricContract):
        make = MyMetric
        observations = staticmethod(lambda: observe(MyProbe(), MyOptions(), guesses())["main"])
        outcomes = MyStage.outcomes

pytest finds the classes and runs each rule as a test. The kit stands in for the endpoint of an adapter that has `at`.
The requests of an adapter should have one answer (temperature 0, or a seed), differ in length, and cover what it can
do; three or more per operation test it best. Each rule makes a new adapter and closes it, so `make` should give a small
model.
"""

from __future__ import annotations

from ._garbage import GARBAGE
from ._hostile import HOSTILE
from .adapters import AdapterContract
from .chaos import BEHAVIOURS, Behaviour, ChaosServer, Reply
from .dialect import ANTHROPIC, CONVERSE, GEMINI, OPENAI, RESPONSES, Dialect
from .errors import raises_code
from .metrics import MetricContract
from .observing import guesses, observe
from .probes import ProbeContract

__all__ = [
    "ANTHROPIC",
    "BEHAVIOURS",
    "CONVERSE",
    "GARBAGE",
    "GEMINI",
    "HOSTILE",
    "OPENAI",
    "RESPONSES",
    "AdapterContract",
    "Behaviour",
    "ChaosServer",
    "Dialect",
    "MetricContract",
    "ProbeContract",
    "Reply",
    "guesses",
    "observe",
    "raises_code",
]
