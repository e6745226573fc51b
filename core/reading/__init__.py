"""Reading answers: reasoning, refusals, and what is said, each with a version and measured errors.

`from prejudge import reading` is for authors of studies. A reader takes an answer in words and returns a `Value`, with
the way it was read, or `Unread`, with one of a closed list of reasons; no text makes it raise an error. All readers
first take off the wrapping of an answer. `__init__.pyi` lists what is promised to stay.

Example:
    >>> from prejudge import reading
    >>> reading.read_label("**Answer:** (b), because of the coat.", ("a", "b")).value
    'b'
    >>> reading.read_number("4 out of 10", 1, 5).reason
    'out of range'
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
