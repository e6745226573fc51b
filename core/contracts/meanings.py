"""The option that a person means by a name that no option has: by spelling, by its declared aliases, or by its meaning.

A name is compared with the words of each option's name and with the description under it in the source.
"""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections import Counter
from collections.abc import Iterator
from functools import cache

import msgspec

from .errors import nearest

MISSPELT = 0.8
"""Similarity from which a name is taken for a misspelling, whatever it means."""
SYNONYMS = (
    {"cell", "group", "category", "stratum", "class", "label", "dimension", "condition"},
    {"sample", "repeat", "repetition", "draw", "replicate", "trial", "epoch", "generation"},
    {"max", "maximum", "most", "limit", "cap"},
    {"order", "position", "permutation", "shuffle"},
    {"prompt", "wording", "template", "phrasing"},
    {"data", "dataset", "file", "path", "input"},
    {"length", "token"},
    {"number", "count", "num", "size"},
    {"resample", "bootstrap", "iteration"},
    {"axis", "axe", "domain", "topic"},
    {"asking", "mode", "scoring", "method"},
    {"gender", "sex", "pronoun"},
    {"timeout", "wait"},
    {"url", "endpoint", "host", "address"},
    {"seed", "random", "rng"},
)
"""Words that name the same in designs of studies and in settings of models, in the singular."""
SEED = "seed"
"""An option that says how something is drawn: its description names that thing, which is another's meaning."""
_KEPT = frozenset("status bias class axis address".split())
"""Words that end with `s` in the singular."""


def meant(name: str, kind: type[msgspec.Struct]) -> str | None:
    """Return the option of a record that a name means; None if nothing points to one."""
    known = list(kind.__struct_encode_fields__)
    aliases: dict[str, str] = {alias: own for alias, own in getattr(kind, "aliases", {}).items() if own in known}
    close = nearest(name, [*known, *aliases], MISSPELT)
    return aliases.get(close, close) if close is not None else _alike(name, kind, known)


def _alike(name: str, kind: type[msgspec.Struct], known: list[str]) -> str | None:
    """Return the option that shares most words with a name; its own name counts most, a common word little."""
    asked = set(_words(name))
    wide = {word for one in asked for word in _synonyms(one)}
    said = descriptions(kind)
    own = {option: set(_words(option)) for option in known}
    about = {option: set(_words(said.get(option, ""))) if option != SEED else set() for option in known}
    common = Counter(word for words in about.values() for word in words)

    def score(option: str) -> float:
        named = 4 * len(own[option] & asked) + 3 * len((own[option] & wide) - asked)
        return named + sum(1 / common[word] for word in about[option] & asked)

    # Of equals, the option of fewer other words.
    best = max(known, key=lambda option: (score(option), -len(own[option])), default=None)
    return best if best is not None and score(best) >= 1 else None


@cache
def descriptions(kind: type[msgspec.Struct]) -> dict[str, str]:
    """Return the description of each option: the text under it in the source; none where there is no source."""
    found: dict[str, str] = {}
    for base in reversed(kind.__mro__):
        if base.__module__ == "builtins" or not issubclass(base, msgspec.Struct):
            continue
        try:
            found |= dict(_described(ast.parse(textwrap.dedent(inspect.getsource(base)))))
        except (OSError, TypeError, SyntaxError):
            continue  # made at run time
    return {name: text for name, text in found.items() if name in kind.__struct_fields__}


def _described(tree: ast.Module) -> Iterator[tuple[str, str]]:
    (top,) = tree.body
    body = top.body if isinstance(top, ast.ClassDef) else []
    for one, text in zip(body, body[1:], strict=False):
        if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name) and isinstance(text, ast.Expr):
            if isinstance(text.value, ast.Constant) and isinstance(text.value.value, str):
                yield one.target.id, text.value.value


def _words(text: str) -> Iterator[str]:
    """Yield the words of a name or description, in lower case and in the singular."""
    for word in re.findall(r"[a-z]+", re.sub(r"(?<=[a-z])(?=[A-Z])", " ", text).lower()):
        yield word[:-1] if len(word) > 3 and word.endswith("s") and word not in _KEPT else word


def _synonyms(word: str) -> set[str]:
    return {other for words in SYNONYMS if word in words for other in words}
