"""The question of a study under every defensible choice: how much of the answer is the choice's."""

from .choices import MultiverseOptions as MultiverseOptions
from .choices import Universe as Universe
from .choices import universes as universes
from .multiverse import Found as Found
from .multiverse import Missing as Missing
from .multiverse import multiverse as multiverse
from .multiverse import unasked as unasked
from .page import chart as chart
from .page import frame as frame
from .page import write_multiverse as write_multiverse
from .words import conclusion as conclusion
from .words import priced as priced
