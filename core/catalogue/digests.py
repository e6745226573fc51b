"""Digests of what the numbers of a study depend on: code by what it says, data by its bytes.

Of code, the modules that the probe or metric imports from its own distribution count, followed through all of them, as
far as they say what numbers depend on (`said.py`), and of this package what they import of `statistics`. The syntax
tree is digested, as it is in every version of Python, so that a certificate survives an edit that changes no number.
Of data, every file in the packages of these modules counts, but for study files (their options are compared by value),
templates of words, pages, and certificates.
"""

from __future__ import annotations

import ast
import hashlib
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from .origins import digest_of
from .registry import StudyEntry
from .said import said, said_by, tree
from .study import Catalogue, Study

CORE = __package__.rpartition(".")[0]
STATISTICS = "statistics"
FOLDER = "certificates"
"""Folder of certificates beside the modules of a study."""
WORDS = frozenset({".j2", ".jinja", ".md", ".pyi", ".pyc"})
"""Endings of files that hold words or types, and nothing that a number depends on."""


def code_digests(catalogue: Catalogue, study: Study | StudyEntry) -> dict[str, str]:
    """Return the digests of the probe, the metrics and the statistics of a study, with the data in their packages."""
    modules = _modules(catalogue, study)
    own = {part: digest_of_module(module) for part, module in modules.items()}
    return own | {STATISTICS: _statistics(tuple(modules.values()))}


def folders_of(catalogue: Catalogue, study: Study | StudyEntry) -> dict[str, str]:
    """Return the digests of the folders that the others rest on, by package and path; none for modules without one.

    To compare these takes no reading of code: where they are the same, so is all that it says.
    """
    found = {f"{CORE.partition('.')[0]}/core/statistics"}
    for module in _modules(catalogue, study).values():
        top = module.partition(".")[0]
        if (root := _root(module)) is None:
            return {}
        found |= {f"{top}/{path.parent.relative_to(root).as_posix()}" for path in _imported(module, root)}
    return {name: _digest_of_folder(_folder(name)) for name in sorted(found)}


def unchanged(folders: Mapping[str, str]) -> bool:
    """Return whether folders are what they were, to the byte; not if none is known."""
    return bool(folders) and all(_digest_of_folder(_folder(name)) == digest for name, digest in folders.items())


def _folder(name: str) -> Path | None:
    top, _, inside = name.partition("/")
    root = _root(top)
    return None if root is None else root / inside


@cache
def _digest_of_folder(folder: Path | None) -> str:
    """Return the digest of the code and data in a folder; nothing where it is gone."""
    if folder is None or not folder.is_dir():
        return ""
    digest = hashlib.sha256()
    for path in sorted([*folder.glob("*.py"), *_data(folder)]):
        digest.update(f"{path.relative_to(folder).as_posix()}\0".encode(errors="surrogateescape"))
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def _modules(catalogue: Catalogue, study: Study | StudyEntry) -> dict[str, str]:
    """Return the modules of the probe and the metrics of a study."""
    parts = [("probe", study.probe), *(("metric", name) for name in study.metrics)]
    return {f"{kind} {name}": catalogue.plugins.load(kind, name).__module__ for kind, name in parts}


@cache
def digest_of_module(module: str) -> str:
    """Return the digest of a module, of all that it imports from its own distribution, and of their data."""
    root = _root(module)
    if root is None:
        own = getattr(sys.modules.get(module), "__file__", None)
        return digest_of((), [] if own is None else [Path(own)])
    files = [path for path in _imported(module, root) if path.parent != _folder_of_statistics()]
    # The root of this package holds every study.
    folders = {path.parent for path in files} - {Path(str(sys.modules[CORE].__file__)).parent.parent}
    data = [path for folder in sorted(folders) for path in _data(folder)]
    code = said_by(files, files[0]) if files else {}
    return _digest(root, [*code, *data], code)


@cache
def _statistics(modules: tuple[str, ...]) -> str:
    """Return the digest of the statistics that modules of this package import; of any other it is all of them."""
    folder, roots = _folder_of_statistics(), {_root(module) for module in modules}
    if roots != {folder.parents[1]}:
        return _digest(folder, every := [*folder.glob("*.py")], {path: said(path) for path in every})
    files = [path for module in modules for path in _imported(module, folder.parents[1]) if path.parent == folder]
    return _digest(folder, files, {path: said(path) for path in files})


def _folder_of_statistics() -> Path:
    return Path(str(sys.modules[CORE].__file__)).parent / STATISTICS


def _root(module: str) -> Path | None:
    """Return the folder of a module's outermost package; None if it stands alone, or was made at run time."""
    spec = find_spec(module.partition(".")[0])
    places = None if spec is None else spec.submodule_search_locations
    return next(iter(map(Path, places or ())), None)


def _digest(root: Path, files: Iterable[Path], code: Mapping[Path, str]) -> str:
    digest = hashlib.sha256()
    for path in sorted(set(files)):
        content = code[path] if path in code else hashlib.sha256(path.read_bytes()).hexdigest()
        digest.update(f"{path.relative_to(root).as_posix()}\0{content}\n".encode(errors="surrogateescape"))
    return digest.hexdigest()


def _imported(module: str, root: Path) -> list[Path]:
    """Return the files of a module and of all that it imports from its distribution, save this package's core."""
    found: dict[str, Path] = {}
    ahead = [module]
    while ahead:
        name = ahead.pop()
        path = _file(name, root)
        core = name == CORE or name.startswith(f"{CORE}.")
        if name in found or path is None or (core and not name.startswith(f"{CORE}.{STATISTICS}")):
            continue
        found[name] = path
        ahead += _imports(name, path)
    return list(found.values())


def _file(name: str, root: Path) -> Path | None:
    own = root.joinpath(*name.split(".")[1:])
    return next((path for path in (own.with_suffix(".py"), own / "__init__.py") if path.is_file()), None)


@cache
def _imports(name: str, path: Path) -> tuple[str, ...]:
    """Return the modules of its own distribution that a module may import, also within functions."""
    return tuple(dict.fromkeys(_named(name, path)))


def _named(name: str, path: Path) -> Iterator[str]:
    top, package = name.partition(".")[0], name if path.name == "__init__.py" else name.rpartition(".")[0]
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.partition(".")[0] == top)
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            if base.partition(".")[0] == top:
                yield base
                names = {alias.name for alias in node.names}
                yield from (f"{base}.{one}" for one in names)
                if base == f"{CORE}.{STATISTICS}":
                    yield from (f"{base}.{module}" for name, module in _offered().items() if name in names)


@cache
def _offered() -> dict[str, str]:
    """Return the module of each name that the statistics offer, which are loaded at their first use."""
    stub = ast.parse((_folder_of_statistics() / "__init__.pyi").read_bytes())
    froms = [node for node in stub.body if isinstance(node, ast.ImportFrom) and node.module]
    return {alias.asname or alias.name: str(node.module) for node in froms for alias in node.names}


def _data(folder: Path) -> Iterator[Path]:
    """Yield the files of a package that are data."""
    for path in folder.rglob("*"):
        inside = path.relative_to(folder).parts
        skipped = path.suffix in WORDS or path.suffix == ".py" or {FOLDER, "__pycache__"} & set(inside)
        if path.is_file() and not skipped and not (path.suffix == ".toml" and _is_study(path)):
            yield path


def _is_study(path: Path) -> bool:
    try:
        return isinstance(tomllib.loads(path.read_text("utf-8")).get("probe"), str)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError):
        return False
