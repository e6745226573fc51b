"""The framework: records, contracts, store, scheduler, runs, reports and the command line."""

import lazy_loader  # type: ignore[import-untyped]

# `from prejudge import statistics` finds it here, and loads it only then; `design`, `reading` and `tables` as well.
__getattr__, __dir__, __all__ = lazy_loader.attach(__name__, ["design", "reading", "statistics", "tables"])
