"""Fetch files of a resolved commit from the Hugging Face hub, without progress bars and with helpful errors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ...core.contracts.errors import ModelLoadError
from ...core.contracts.steps import step

LONGEST = 300
"""Characters of another library's message."""


def download(name: str, commit: str, wanted: Iterable[str], unwanted: Iterable[str] = ()) -> Path:
    """Return the directory with those files of a model that match `wanted`, and none of `unwanted`.

    Raises:
        ModelLoadError: the hub does not give them.
    """
    import huggingface_hub
    from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError

    try:
        with no_bars(), step(f"fetch the files of {name}"):
            folder = huggingface_hub.snapshot_download(
                name, revision=commit, allow_patterns=list(wanted), ignore_patterns=list(unwanted)
            )
    except (HfHubHTTPError, LocalEntryNotFoundError, OSError) as error:
        raise ModelLoadError(
            f"cannot download {name!r} at {commit}: {one_line(error)}", code="model.download"
        ) from error
    return Path(folder)


def download_file(model: str, commit: str, name: str) -> Path | None:
    """Return one small file of a model; None if the model has none of that name.

    Raises:
        ModelLoadError: the hub does not answer for it.
    """
    import huggingface_hub
    from huggingface_hub.errors import EntryNotFoundError, HfHubHTTPError

    try:
        with no_bars():
            return Path(huggingface_hub.hf_hub_download(model, name, revision=commit))
    # Offline, a file that is not cached counts as not there: what then loads is the same.
    except EntryNotFoundError:
        return None
    except (HfHubHTTPError, OSError) as error:
        raise ModelLoadError(
            f"cannot download {name} of {model!r}: {one_line(error)}", code="model.download"
        ) from error


def pin_file(model: str, revision: str | None, name: str) -> Path:
    """Return a file in the root of a hub model; its folder in the cache is named by the commit, even offline.

    Raises:
        ModelLoadError: no hub name, no such file, or the hub does not give it.
    """
    import huggingface_hub
    from huggingface_hub.errors import EntryNotFoundError, HfHubHTTPError, HFValidationError, LocalEntryNotFoundError

    try:
        with no_bars():
            return Path(huggingface_hub.hf_hub_download(model, name, revision=revision))
    except HFValidationError:
        raise ModelLoadError(
            f"{model!r} is neither a directory nor a hub name (owner/name).", code="model.not-found"
        ) from None
    except LocalEntryNotFoundError:
        raise ModelLoadError(
            f"{model!r} is not a directory, and as a hub name it is neither cached nor reachable from here. "
            "Check the spelling and the connection, or give a directory.",
            code="model.not-found",
        ) from None
    except EntryNotFoundError:
        raise ModelLoadError(
            f"hub model {model!r} has no {name}, so it cannot be loaded here.", code="model.files"
        ) from None
    except (HfHubHTTPError, OSError) as error:
        at = f" at revision {revision!r}" if revision else ""
        raise ModelLoadError(
            f"{model!r}{at} is not a directory, and not on the hub: {type(error).__name__}. Check the spelling; "
            "a private or gated model needs the environment variable HF_TOKEN.",
            code="model.not-found",
        ) from None


def one_line(error: BaseException) -> str:
    """Return the first informative line of another library's error message, with the list that it announces."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    told = " ".join(lines) if lines and lines[0].endswith(":") else lines[0] if lines else type(error).__name__
    return told if len(told) <= LONGEST else f"{told[:LONGEST]}..."


@contextmanager
def no_bars() -> Iterator[None]:
    """Keep the hub's progress bars off the console while files are fetched."""
    import huggingface_hub.utils

    # The functions are public, but the package does not re-export them for type checkers.
    hub: Any = huggingface_hub.utils
    before = hub.are_progress_bars_disabled()
    hub.disable_progress_bars()
    try:
        yield
    finally:
        if not before:
            hub.enable_progress_bars()
