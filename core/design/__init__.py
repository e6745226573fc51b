"""The declared design: what a study varies, in which roles; sizes, samples, twins and trials are derived from it.

`from prejudge import design` is for authors of studies. `__init__.pyi` lists what is promised to stay, and where each
name is from; a name is loaded on first use.

Example:
    >>> from prejudge import design
    >>> plan = design.Design((design.Sampled("word", ("kind", "rude")), design.Group("side", ("she", "he"))))
    >>> plan.size, plan.sample(limit=2).tolist()
    (4, [2, 3])
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
