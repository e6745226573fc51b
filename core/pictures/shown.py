"""Pictures on their way to a model: those of another form than models see are converted once, stored, and sent."""

from __future__ import annotations

from collections.abc import Callable

from ..contracts.errors import DataError
from .names import MEDIA, NORMALISER, converted_name
from .normalise import normalise


class ShownPictures:
    """The pictures of a store, as models see them."""

    def __init__(self, blobs: Callable[[str], bytes], keep: Callable[[bytes, str], str]) -> None:
        """Take what returns the bytes of a sha256, and what stores bytes of a media type and returns their sha256."""
        self._blobs, self._keep, self._converted = blobs, keep, dict[str, str]()

    def get(self, name: str) -> bytes:
        """Return the bytes of a picture by its name. Blocks while they are read, and at first converted.

        A stored conversion may have come with somebody else's bundle, so what is sent is always converted here.

        Raises:
            DataError: the store does not have the picture, or it cannot be converted.
        """
        if (converted := converted_name(name)) is None:
            return self._blobs(name)
        if converted.normaliser != NORMALISER:
            raise DataError(
                f"picture {name} was converted by normaliser {converted.normaliser}; this version has {NORMALISER}.",
                code="data.images",
            )
        if name not in self._converted:
            try:
                data = normalise(self._blobs(converted.sha256), converted.background)
            except ValueError as error:
                raise DataError(f"picture {converted.sha256} cannot be read: {error}.", code="data.images") from error
            self._converted[name] = self._keep(data, MEDIA + name)
        return self._blobs(self._converted[name])
