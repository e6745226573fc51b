"""The encoder's confusion of the classes on held-out sentences, from the file of `train-encoder`."""

from __future__ import annotations

from typing import Literal

import msgspec

from ...core.contracts import Identity
from ...core.contracts.errors import DataError, UsageError
from ...core.contracts.inputs import file_bytes
from .masked import category_named
from .terms import ANTI, KINDS, STEREOTYPE

PAIRS = tuple((true, told) for true in KINDS for told in KINDS)


class Confusion(msgspec.Struct, frozen=True):
    """Content of the file: `{"categories": {"caste": {"stereotype": {"stereotype": 40, "anti-stereotype": 8}, ...`."""

    categories: dict[str, dict[str, dict[str, int]]]
    """Number of held-out sentences by category, true class and predicted class."""
    several: Literal["pair", "mean", "nearest"] | None = None
    """Compared with one text of each class, or with the mean or the nearest of several; None: not known."""
    completions: int | None = None
    """The class is that of the majority of so many."""
    encoder: str | None = None
    """Digest of the encoder; None: not known."""

    def check_encoder(self, path: str, identity: Identity, singles: int, prompts: int) -> None:
        """Refuse the confusion of another encoder, or of another comparison.

        Args:
            path: Of the file.
            identity: Of the encoder.
            singles: Number of prompts that are compared with one text of each class.
            prompts: Number of all prompts.

        Raises:
            UsageError: it is one.
        """
        if self.encoder is not None and self.encoder != identity.digest:
            digest = f"{identity.digest[:19]}..." if identity.digest else "without a digest"
            raise UsageError(
                f"{path} is the confusion of the encoder {self.encoder[:19]}..., but the model of the role 'encoder' "
                f"is {identity.model!r} ({digest}). Give the file in the folder of this encoder.",
                code="confusion.other-encoder",
                path=path,
                encoder=self.encoder,
                given=identity.digest,
            )
        if self.several is None or (self.several == "pair") == (2 * singles >= prompts):
            return
        was = "one text" if self.several == "pair" else f"several texts ({self.several})"
        right = "confusion-mean.json, or confusion-nearest.json" if self.several == "pair" else "confusion.json"
        raise UsageError(
            f"{path} is the confusion of a comparison with {was} of each class, but {singles} of the {prompts} prompts "
            f"have one. Give {right}; the same train-encoder command writes the files that a finished training lacks.",
            code="options.conflict",
            path=path,
            several=self.several,
        )

    def notes(self, path: str, samples: int, singles: int, prompts: int) -> list[str]:
        """Return what could not be checked, or differs."""
        found = []
        if self.encoder is None:
            found.append(f"{path} names no encoder: whether it is the confusion of this one is not checked.")
        if self.completions is not None and self.completions != samples:
            found.append(
                f"{path} is the confusion of majorities of {self.completions} completions, but samples is {samples}: "
                "the corrected measures are approximate."
            )
        others, what = (prompts - singles, "several texts") if self.several == "pair" else (singles, "one text")
        if self.several is not None and others:
            found.append(f"{others} of the {prompts} prompts are compared with {what} of a class, unlike {path}.")
        return found


def read_confusion(path: str | None) -> dict[str, tuple[int, int, int, int]]:
    """Return the counts `ENCODER` by category, if both classes have held-out sentences; empty without a file.

    Raises:
        DataError: The file cannot be read or used.
    """
    if path is None:
        return {}
    found = read_file(path)
    counts = {_category(path, name): _counts(path, name, table) for name, table in found.categories.items()}
    # Without held-out sentences of a class, the encoder's error is not known.
    return {name: (ss, sa, as_, aa) for name, (ss, sa, as_, aa) in counts.items() if ss + sa and as_ + aa}


def read_file(path: str) -> Confusion:
    """Read the file, without a look at its counts.

    Raises:
        DataError: The file cannot be read.
    """
    try:
        return msgspec.json.decode(file_bytes(path), type=Confusion)
    except OSError as error:
        raise DataError(f"cannot read {path!r}: {error.strerror or error}.", code="file.unreadable") from None
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise DataError(
            f"{path} has no confusion of an encoder: {error}. `prejudge study train-encoder` writes such a file.",
            code="data.syntax",
        ) from None


def _category(path: str, name: str) -> str:
    lowered = category_named(name)
    return lowered


def _counts(path: str, name: str, table: dict[str, dict[str, int]]) -> tuple[int, int, int, int]:
    try:
        ss, sa, as_, aa = (table[true][told] for true, told in PAIRS)
    except KeyError as error:
        needs = f"needs {STEREOTYPE!r} and {ANTI!r} as true and as predicted classes"
        raise DataError(
            f"{path}: category {name!r} has no {error.args[0]!r}; it {needs}.", code="data.incomplete"
        ) from None
    if min(ss, sa, as_, aa) < 0:
        raise DataError(
            f"{path}: category {name!r} has a count below 0. Give numbers of held-out sentences.", code="data.value"
        )
    return ss, sa, as_, aa
