"""prejudge: measure what a model prejudges.

The door for users and for authors of plugins. `__init__.pyi` lists its names and where each is from; a name is loaded
on first use, so that importing the package is light.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
