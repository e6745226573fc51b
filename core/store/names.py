"""Names of runs: they become folders, files and words of commands, whoever wrote the store."""

from __future__ import annotations

import hashlib
import re
from typing import NewType

MOST_BYTES = 200
"""Maximum length of a name in UTF-8."""
_ODD = re.compile(r"[^\w.+ -]|^[. -]|[. ]$")
_RESERVED = re.compile("(?i)(?:con|prn|aux|nul|(?:com|lpt)[0-9\u00b9\u00b2\u00b3]) *(?:[.].*)?")
"""Names that Windows gives to devices, with any ending."""


RunName = NewType("RunName", str)
"""A text that `run_name` made."""


def run_name(text: str) -> RunName:
    """Return a text as the name of a run: safe as a folder or file on every system, and as a word of a command.

    Letters, digits, `_`, `-`, `.`, `+` and spaces are kept. Every other character, and a dot, hyphen or space at an
    end, is written as `+` and its code point (`../x` is `+2E.+2Fx`); the name of a device has a `+` before it, and a
    long name is cut and ends with its digest. A name that this returned stays as it is.
    """
    name = _ODD.sub(lambda found: f"+{ord(found[0]):02X}", text) or "+"
    name = f"+{name}" if _RESERVED.fullmatch(name) else name
    if len(raw := name.encode()) > MOST_BYTES:
        name = f"{raw[: MOST_BYTES - 20].decode(errors='ignore')}+{hashlib.sha256(name.encode()).hexdigest()[:16]}"
    return RunName(name)
