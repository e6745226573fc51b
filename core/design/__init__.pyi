# What authors of studies may rely on, once each: type checkers and editors read it here, and so does `__init__.py`.

from .cells import Cell as Cell
from .design import Design as Design
from .design import Rows as Rows
from .factors import AnswerForm as AnswerForm
from .factors import Balanced as Balanced
from .factors import By as By
from .factors import Context as Context
from .factors import Draw as Draw
from .factors import Factor as Factor
from .factors import Fixed as Fixed
from .factors import Group as Group
from .factors import Question as Question
from .factors import Repeat as Repeat
from .factors import Rotation as Rotation
from .factors import Sampled as Sampled
from .levels import Levels as Levels
from .levels import crossed as crossed
from .levels import stacked as stacked
from .record import Declared as Declared
from .record import Facet as Facet
from .record import Incidence as Incidence
from .record import Roles as Roles
from .stage import DesignedStage as DesignedStage
from .wording import Worded as Worded
from .wording import Wording as Wording
