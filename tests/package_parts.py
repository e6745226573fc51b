"""What the package is made of: the folders that pyproject.toml names, and the files beside them."""

from __future__ import annotations

import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
_PACKAGES = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["setuptools"]["packages"]
PARTS = tuple(dict.fromkeys(name.split(".")[1] for name in _PACKAGES if "." in name))
FILES = ("__init__.py", "__init__.pyi", "py.typed", "registry.toml")


def link_package(folder: Path, *others: str) -> Path:
    """Make the package of links to this one's parts and files, but for the `others`; return its folder."""
    package = folder / "prejudge"
    package.mkdir(parents=True)
    for name in {*PARTS, *FILES} - {*others}:
        (package / name).symlink_to(ROOT / name)
    return package
