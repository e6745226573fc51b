"""From bytes to text: UTF-8, UTF-16, or an encoding that the user states; otherwise the likely ones are shown."""

from __future__ import annotations

import codecs
import unicodedata
from collections.abc import Iterator

from ..contracts.errors import DataError
from ..contracts.inputs import file_bytes

OTHERS = {
    b"\x1f\x8b": "compressed with gzip",
    b"%PDF": "a PDF",
    b"SQLite format 3": "an SQLite database",
}
"""Files that are no table, by their first bytes; an error names the one that was given."""
LIKELY = (
    "cp1252",
    "mac_roman",
    "iso8859-15",
    "cp1250",
    "cp850",
    "cp1251",
    "koi8_r",
    "shift_jis",
    "gb18030",
    "euc_kr",
    "big5",
)
"""Encodings that old programs write, those of western Europe first."""
MOST_LIKELY, SHOWN_LINES, SHOWN_LINE = 3, 2, 80
"""Encodings that a message shows, lines of the file as each reads them, and characters of a line."""
SAMPLE = 1 << 16
"""Bytes after the first strange one by which encodings are compared."""
TYPOGRAPHIC = frozenset("‘’“”«»„‚…–—€£°·¿¡§")


def read_bytes(path: str) -> bytes:
    """Return the content of a file; raises `DataError`."""
    try:
        return file_bytes(path)
    except FileNotFoundError:
        raise DataError(f"no such file: {path!r}. Check the path.", code="file.missing", path=path) from None
    except (OSError, ValueError) as error:
        raise DataError(
            f"cannot read {path!r}: {getattr(error, 'strerror', None) or error}.", code="file.unreadable", path=path
        ) from None


def decode(path: str, raw: bytes, encoding: str = "") -> str:
    """Return the text of a file in UTF-8 or UTF-16, with or without a byte-order mark, or in a stated encoding.

    Raises:
        DataError: it is no text, or in another encoding; with the line, and the likely encodings.
    """
    if kind := next((what for start, what in OTHERS.items() if raw.startswith(start)), None):
        raise DataError(f"{path} is {kind}. Save it as CSV, JSON or JSON Lines.", code="file.format", path=path)
    try:
        text = raw.decode(_known(encoding) if encoding else _encoding(raw)).removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        raise _undecodable(path, raw, encoding, error) from None
    if (nul := text.find("\0")) >= 0:
        line = text.count("\n", 0, nul) + 1
        raise DataError(
            f"{path}, line {line}: a NUL character, which no text has. Save the file as UTF-8.",
            code="file.encoding",
            path=path,
            line=line,
        )
    return text


def _known(encoding: str) -> str:
    try:
        codec = codecs.lookup(encoding)
        "".encode(encoding)
    except (LookupError, ValueError, TypeError):
        raise DataError(
            f"the encoding {encoding!r} is unknown. Give one such as {', '.join(LIKELY[:4])}.", code="data.encoding"
        ) from None
    return codec.name


def _encoding(raw: bytes) -> str:
    if raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    # The header of a table is ASCII, of which UTF-16 makes every second byte zero.
    if len(raw) > 1 and 0 in raw[:2]:
        return "utf-16-le" if raw[1] == 0 else "utf-16-be"
    return "utf-8-sig"


def _undecodable(path: str, raw: bytes, encoding: str, error: UnicodeDecodeError) -> DataError:
    # The codec counts from after the byte-order mark, an editor from the start of the file.
    at = error.start + len(raw) - len(error.object)
    line = raw.count(b"\n", 0, at) + 1
    problem = f"byte {at} (0x{raw[at]:02x}) is not {error.encoding.upper()}."
    likely = [] if error.encoding.startswith("utf-16") else likely_encodings(raw, at)
    mend = "Save the file as UTF-8."
    if likely and not encoding:
        readings = "; ".join(f"{name} reads {' / '.join(_as_read(raw, at, name))}" for name in likely)
        mend = f"Save the file as UTF-8, or state its encoding (such as --encoding {likely[0]}): {readings}."
    return DataError(
        f"{path}, line {line}: {problem} {mend}", code="file.encoding", path=path, line=line, encodings=likely
    )


def likely_encodings(raw: bytes, at: int = 0) -> list[str]:
    """Return encodings of a text that is not UTF-8, the most plausible first; those that read it alike are one."""
    sample = raw[max(0, at - 200) : at + SAMPLE]
    readings: dict[str, str] = {}
    for name in LIKELY:
        try:
            text = sample.decode(name)
        except UnicodeDecodeError as error:
            # A sample may end within a character of several bytes.
            if error.start < len(sample) - 3:
                continue
            text = sample[: error.start].decode(name)
        readings.setdefault(text, name)
    ranked = sorted(readings, key=lambda text: -plausibility(text))
    names = [readings[text] for text in ranked]
    # Most files that are not UTF-8 are of Windows: that reading is always shown.
    return list(dict.fromkeys([*names[: MOST_LIKELY - 1], *(name for name in names if name == LIKELY[0])]))


def plausibility(text: str) -> float:
    """Return how much the characters beyond ASCII look like writing: -1 (none does) to 1 (all do)."""
    scores = [_plausible(text[at - 1 : at], text[at], text[at + 1 : at + 2]) for at in _strange(text)]
    return sum(scores) / len(scores) if scores else 0.0


def _strange(text: str) -> Iterator[int]:
    return (at for at, character in enumerate(text) if ord(character) > 127)


def _plausible(before: str, character: str, after: str) -> float:
    if character in TYPOGRAPHIC:
        # An apostrophe stands within a word, a currency sign does not.
        return 0.9 if character in "‘’“”«»" or not (before.isalpha() and after.isalpha()) else -0.5
    if not character.isalpha():
        return -1.0
    script = _script(character)
    around = [other for other in (before, after) if other.isalpha()]
    # A capital within a word, and letters of two scripts in one word, are signs of another encoding.
    if character.isupper() and before.isalpha() and before.islower():
        return -1.0
    if any(_script(other) != script for other in around):
        return -0.7
    return 1.0 if around else 0.3


def _script(letter: str) -> str:
    """Return the script of a letter; those of Japanese, which one word mixes, are one."""
    name = unicodedata.name(letter, "").partition(" ")[0]
    return "CJK" if name in ("HIRAGANA", "KATAKANA", "KATAKANA-HIRAGANA") else name


def _as_read(raw: bytes, at: int, encoding: str) -> list[str]:
    lines = []
    position = at
    for _ in range(SHOWN_LINES):
        start = raw.rfind(b"\n", 0, position) + 1
        end = raw.find(b"\n", position)
        text = raw[start : end if end >= 0 else len(raw)].decode(encoding, "replace").strip()
        strange = next(_strange(text), 0)
        first = max(0, strange - SHOWN_LINE // 2)
        lines.append(
            f"{'…' if first else ''}{text[first : first + SHOWN_LINE]}{'…' if len(text) > first + SHOWN_LINE else ''}"
        )
        position = next((n for n in range(end, len(raw)) if raw[n] > 127), -1) if end >= 0 else -1
        if position < 0:
            break
    return [repr(line) for line in lines]
