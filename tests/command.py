"""Run the command line in this process: another process takes a second to begin, and figures longer than most runs."""

from __future__ import annotations

import io
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple, TextIO, cast

import pytest

from prejudge.core.cli.main import main


class Done(NamedTuple):
    """How a command ended, as `subprocess.run` says it."""

    returncode: int
    stdout: str
    stderr: str


def blank_figure(figure: Any, file: Any, **_: Any) -> None:
    """Write a picture of nothing."""
    Path(file).write_bytes(b"<svg/>") if isinstance(file, str | Path) else file.write(b"<svg/>")


def call(folder: Path, *words: str, input: str = "", encoding: str | None = None) -> Done:
    """Run `prejudge WORDS` in a folder, without drawing its figures; `input` is what a person types.

    With an encoding, the standard streams are files of that encoding, which refuse what it lacks.
    """
    out, err = (_stream(encoding) for _ in range(2))
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
        patch.chdir(folder)
        patch.setattr(sys, "argv", ["prejudge", *words])
        patch.setattr(sys, "stdin", io.StringIO(input))
        patch.setattr(sys, "excepthook", sys.excepthook)
        patch.setenv("PYTHONSAFEPATH", "1")  # which the command sets, and tests after it do not have
        patch.setattr("matplotlib.figure.Figure.savefig", blank_figure)
        code = _code()
    return Done(code, _written(out), _written(err))


def _stream(encoding: str | None) -> TextIO:
    return io.StringIO() if encoding is None else io.TextIOWrapper(io.BytesIO(), encoding, newline="\n")


def _written(stream: TextIO) -> str:
    if isinstance(stream, io.StringIO):
        return stream.getvalue()
    stream.flush()
    return cast("io.BytesIO", stream.buffer).getvalue().decode(stream.encoding)


def _code() -> int:
    """Return the exit code that the interpreter would give."""
    try:
        main()
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except Exception:
        sys.excepthook(*sys.exc_info())  # type: ignore[arg-type]
        return 1
    return 0
