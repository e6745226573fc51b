"""Files that take the place of others whole, and what the error says where they cannot be written."""

from __future__ import annotations

import pytest

from prejudge.core.contracts.errors import UsageError
from prejudge.core.contracts.files import replaced_whole
from prejudge.testing import raises_code


def test_file_is_replaced_whole(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("old")
    with pytest.raises(ValueError, match="stopped"), replaced_whole(path) as new:
        new.write_text("half")
        raise ValueError("stopped")
    assert path.read_text() == "old"
    with replaced_whole(path) as new:
        new.write_text("new")
    assert [(one.name, one.read_text()) for one in tmp_path.iterdir()] == [("a.txt", "new")]


@pytest.mark.parametrize(
    ("error", "reason"), [(OSError(28, "No space left on device"), "No space left"), (OSError("odd"), "odd")]
)
def test_error_says_why_and_how_to_mend_it(tmp_path, error, reason):
    with raises_code(UsageError, "file.unwritable") as raised, replaced_whole(tmp_path / "a.txt", "Choose another."):
        raise error
    assert reason in str(raised.value) and "None" not in str(raised.value) and "Choose another." in str(raised.value)
    assert not [*tmp_path.iterdir()]
