"""The page of licences is that of the installed packages; a licence that limits the use has a reason on it."""

from __future__ import annotations

import sys
from email.message import Message
from importlib.metadata import PackageNotFoundError

import pytest

from .licences import COPYLEFT, PAGE, REASONS, UNKNOWN, in_need_of_a_reason, is_copyleft, licence_of, packages, page


@pytest.fixture(scope="module", autouse=True)
def _whole_environment():
    """The page is made with all extras, with the Python and the system that constraints.txt is made for."""
    if sys.version_info[:2] != (3, 11) or sys.platform != "linux":
        pytest.skip("the page is made on Linux with Python 3.11: others need other packages")
    try:
        packages()
    except PackageNotFoundError as error:
        pytest.skip(f"needs all extras; {error} is missing")


def test_page_is_up_to_date():
    assert PAGE.read_text("utf-8") == page(), "run `make licences`"


def test_every_limit_has_a_reason():
    assert in_need_of_a_reason(packages()) == set(REASONS)


def described(**fields: str | list[str]) -> Message:
    metadata = Message()
    for name, values in fields.items():
        for value in [values] if isinstance(values, str) else values:
            metadata[name.replace("_", "-")] = value
    return metadata


@pytest.mark.parametrize(
    ("metadata", "licence"),
    [
        (described(License_Expression="MIT", License="GPL"), "MIT"),
        (described(License="Apache 2.0 License"), "Apache-2.0"),
        (described(License="BSD", Classifier="License :: OSI Approved :: BSD License"), "BSD"),
        (described(License="UNKNOWN", Classifier="License :: OSI Approved :: MIT License"), "MIT"),
        (described(License="Permission is hereby granted\nto everybody"), UNKNOWN),
        (described(Classifier="Programming Language :: Python"), UNKNOWN),
        (
            described(
                Classifier=[
                    "License :: OSI Approved :: MIT License",
                    "License :: OSI Approved :: Apache Software License",
                ]
            ),
            "MIT OR Apache-2.0",
        ),
        (
            described(Classifier="License :: OSI Approved :: GNU General Public License v3 (GPLv3)"),
            "GPL-3.0",
        ),
    ],
)
def test_licence_is_read(metadata, licence):
    assert licence_of(metadata) == licence


@pytest.mark.parametrize(
    ("licence", "limits"),
    [
        ("MIT", False),
        ("MPL-2.0 AND MIT", True),
        ("Apache-2.0 OR GPL-2.0-only", False),
        ("LGPL-3.0-only", True),
        ("AGPL-3.0", True),
        ("CC-BY-NC-4.0", True),
        ("CC-BY-4.0", False),
    ],
)
def test_copyleft_is_seen(licence, limits):
    assert is_copyleft(licence) is limits and bool(COPYLEFT.search("GPL"))


def test_new_package_of_unknown_licence_is_found():
    found = packages()
    found |= {"mystery": (UNKNOWN, ["openai"]), "copyleft": ("GPL-3.0", ["base", "dev"]), "tool": ("GPL-3.0", ["dev"])}
    assert in_need_of_a_reason(found) - set(REASONS) == {"mystery", "copyleft"}
