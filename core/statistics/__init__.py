"""Statistics of clustered answers: pure functions; no study is named here.

`from prejudge import statistics` is for authors of metrics. `__init__.pyi` lists what is promised to stay, and where
each name is from; a name is loaded on first use.

Example:
    >>> from prejudge import statistics
    >>> low, high = statistics.wilson_interval(30, 40, 0.95)
    >>> round(low, 3), round(high, 3)
    (0.598, 0.858)
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
