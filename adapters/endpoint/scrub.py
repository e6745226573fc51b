"""No key leaves the wire: it is removed from error texts of other libraries and servers, and found in answers.

An answer that holds it is refused. Answers are never changed.
"""

from __future__ import annotations

import base64
import json
import re
from urllib.parse import quote

from ...core.contracts.secrets import HIDDEN, LEAST, hide, key_pattern

_SHOWN = 300
_ESCAPED = re.compile(rb"\\(?:u00([2-7][0-9A-Fa-f])|/)")


class Scrubber:
    """Removes a key from error texts, and finds it in answers, however it is written there."""

    def __init__(self, key: str | None) -> None:
        self._known: set[str] = set()
        self._patterns: list[re.Pattern[str]] = []
        self._raw: list[bytes] = []
        if key is not None:
            self.add(key)

    def add(self, key: str) -> None:
        """Remove and find this key, too; a placeholder that is a word, such as `local`, is left where it stands."""
        if key in self._known or key_pattern(key) is None:
            return
        self._known.add(key)
        coded = base64.b64encode(key.encode()).decode()
        forms = {key, quote(key, safe=""), json.dumps(key)[1:-1], coded, coded.rstrip("=")}
        patterns = (key_pattern(form) for form in sorted(forms, key=len, reverse=True))
        self._patterns += [re.compile(pattern) for pattern in patterns if pattern is not None]
        if len(key) >= LEAST:
            self._raw = [*self._raw, *(form.encode() for form in forms)]

    def __repr__(self) -> str:
        """Show nothing of the key."""
        return "Scrubber()"

    def text(self, text: str) -> str:
        """Return another program's text as one short line without keys or text that looks like a key."""
        for pattern in self._patterns:
            text = pattern.sub(HIDDEN, text)
        line = " ".join(hide(text).split())
        return line if len(line) <= _SHOWN else f"{line[: _SHOWN - 3]}..."

    def raw(self, body: bytes) -> bytes:
        """Return another program's reply without keys or text that looks like a key."""
        text = _plainly(body).decode("utf-8", "replace")
        for pattern in self._patterns:
            text = pattern.sub(HIDDEN, text)
        return hide(text).encode()

    def finds(self, body: bytes) -> bool:
        """Return whether the body of an answer holds the key, if that has `LEAST` characters or more."""
        return bool(self._raw) and (self._holds(body) or (bool(_ESCAPED.search(body)) and self._holds(_plainly(body))))

    def _holds(self, body: bytes) -> bool:
        return any(form in body for form in self._raw)


def _plainly(body: bytes) -> bytes:
    """Return JSON text with its escapes of printable ASCII characters resolved, which a key could hide behind."""
    return _ESCAPED.sub(lambda found: b"/" if found[1] is None else bytes([int(found[1], 16)]), body)
