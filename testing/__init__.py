"""`AdapterContract`: the tests that every model adapter must pass. Third parties run them with a class of their own.

    from prejudge.testing import AdapterContract

    class TestMine(AdapterContract):
        make = staticmethod(lambda: MyAdapter(MyOptions(model="tiny")))
        requests = [Generate(messages=...), Generate(messages=...)]

pytest finds the class and runs each rule as a test. The requests should have one answer (temperature 0, or a seed),
differ in length, and cover what the adapter can do; three or more per operation show most. Each rule makes an adapter
anew and closes it, so `make` should give a small model.
"""

from __future__ import annotations

from ._garbage import GARBAGE
from .adapters import AdapterContract

__all__ = ["GARBAGE", "AdapterContract"]
