"""prejudge: measure what a model prejudges.

The door for users and for authors of plugins. `__init__.pyi` lists its names and where each is from; a name is loaded
on first use, so that importing the package is light.
"""

from typing import Any

import lazy_loader

_load, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)


def __getattr__(name: str) -> Any:
    """Load a name of the door; `help` of a class then has the meaning of its fields, too."""
    loaded = _load(name)
    from .core.contracts.field_help import describe

    return describe(loaded)
