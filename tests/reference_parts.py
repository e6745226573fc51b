"""Tables within pages that are otherwise written by hand: `make reference` writes them from the code, between marks."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

from prejudge.core.catalogue.study import Catalogue
from prejudge.core.lab.calibration.gallery import registered_gallery
from prejudge.testing import BEHAVIOURS

from .reference_tables import line, table

ROOT = Path(__file__).resolve().parents[1]


def _gallery() -> Iterator[str]:
    gallery = registered_gallery(Catalogue.load(), "simulated")
    rows = ((f"`{name}`", line(null.meaning)) for name, null in gallery.items())
    return table(("model", "what it does"), rows)


def _behaviours() -> Iterator[str]:
    kinds = dict.fromkeys(one.taken for one in BEHAVIOURS.values())
    names = {kind: ", ".join(f"`{name}`" for name, one in BEHAVIOURS.items() if one.taken == kind) for kind in kinds}
    return table(("taken for", "behaviours"), ((kind.replace("_", " "), named) for kind, named in names.items()))


TOPS = ("core", "adapters", "probes", "metrics", "testing")


def _rooms() -> Iterator[str]:
    """Yield a table of the folders, each with the first sentence of its docstring."""
    folders = [ROOT / top for top in TOPS]
    folders += [path.parent for top in TOPS for path in (ROOT / top).rglob("__init__.py") if path.parent.name != top]
    rows = ((f"`{folder.relative_to(ROOT).as_posix()}/`", line(_purpose(folder))) for folder in sorted(folders))
    return table(("folder", "what it is"), rows)


def _purpose(folder: Path) -> str:
    text = ast.get_docstring(ast.parse((folder / "__init__.py").read_text("utf-8"))) or ""
    return text.partition("\n\n")[0]


def _floors() -> Iterator[str]:
    """Yield the floors of the core as the import contract has them, the highest first."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    (layers,) = (
        contract["layers"]
        for contract in settings["tool"]["importlinter"]["contracts"]
        if contract["type"] == "layers" and contract["containers"] == ["prejudge.core"]
    )
    yield "```text"
    yield from (layer.replace(" | ", ", ") for layer in layers)
    yield "```"


PARTS: dict[str, tuple[Path, Callable[[], Iterator[str]]]] = {
    "gallery": (ROOT / "docs/guides/calibrate.md", _gallery),
    "behaviours": (ROOT / "docs/testing.md", _behaviours),
    "rooms": (ROOT / "docs/design/house.md", _rooms),
    "floors": (ROOT / "docs/design/house.md", _floors),
}
"""Page and rows of each table, by the name in its marks."""


def with_part(name: str, text: str) -> str:
    """Return a page with a table as the code has it.

    Raises:
        ValueError: the page lacks the marks, or has them twice.
    """
    begin, end = f"<!-- {name}: written by `make reference` -->", f"<!-- end of {name} -->"
    body = "\n".join(PARTS[name][1]())
    new, found = re.subn(
        f"{re.escape(begin)}.*?{re.escape(end)}", lambda _: f"{begin}\n\n{body}\n\n{end}", text, flags=re.S
    )
    if found != 1:
        raise ValueError(f"the marks of {name} stand {found} times")
    return new


def write_parts() -> None:
    """Write every table into its page."""
    for name, (page, _) in PARTS.items():
        page.write_text(with_part(name, page.read_text("utf-8")), "utf-8")
