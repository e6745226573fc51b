"""Lines that install an extra, or a newer version, in the way in which this package was installed."""

from __future__ import annotations

import shlex
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import msgspec

PACKAGE = "prejudge"
ROOT = Path(__file__).resolve().parents[2]
"""The folder of the package: of a checkout, its root."""


def install_line(extra: str) -> str:
    """Return the command that installs an extra, into the environment that has this package.

    From a checkout it is `pip install -e '.[hf]'`, with the checkout's path where the working directory is another;
    from a file, a URL or a repository `pip install 'prejudge[hf] @ URL'`, and else `pip install 'prejudge[hf]'`.
    """
    if (place := _checkout()) is not None:
        return f"pip install -e {_quoted(f'{place}[{extra}]')}"
    url = _source()
    return f"pip install {_quoted(f'{PACKAGE}[{extra}] @ {url}' if url else f'{PACKAGE}[{extra}]')}"


def upgrade_line() -> str:
    """Return the command that installs the newest version."""
    if (place := _checkout()) is not None:
        return f"git -C {shlex.quote(place)} pull && pip install -e {shlex.quote(place)}"
    return f"pip install -U {PACKAGE}"


def _quoted(text: str) -> str:
    # Brackets are quoted also where no shell at hand reads them as a pattern.
    return f"'{text}'" if "'" not in text else shlex.quote(text)


def _checkout() -> str | None:
    """Return the checkout that the package runs from, as a word for pip; None if it was built and installed."""
    if not (ROOT / "pyproject.toml").is_file():
        return None
    try:
        here = Path.cwd().resolve() == ROOT
    except OSError:  # the working directory was removed
        here = False
    return "." if here else str(ROOT)


@cache
def _source() -> str:
    """Return the URL that the package was installed from, which pip records without passwords; empty: an index."""
    try:
        recorded = distribution(PACKAGE).read_text("direct_url.json")
        url = msgspec.json.decode(recorded or "{}", type=_Recorded)
    except (PackageNotFoundError, msgspec.MsgspecError, OSError):
        return ""
    kind = f"{url.vcs_info.vcs}+" if url.vcs_info.vcs else ""
    return f"{kind}{url.url}" if url.url else ""


class _Repository(msgspec.Struct, frozen=True):
    vcs: str = ""


class _Recorded(msgspec.Struct, frozen=True):
    url: str = ""
    vcs_info: _Repository = _Repository()
