"""Scripts of `benchmarks/`, loaded so that tests can call their functions."""

from __future__ import annotations

import importlib.util
import sys
from types import ModuleType

from prejudge.core.contracts.installing import ROOT


def benchmark_script(name: str) -> ModuleType:
    """Return the script `benchmarks/NAME.py` as a module."""
    spec = importlib.util.spec_from_file_location(f"bench_{name}", ROOT / "benchmarks" / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module
