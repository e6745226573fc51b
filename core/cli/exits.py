"""Exit codes of the commands. They are part of the interface: a changed code is a breaking change.

docs/reference/exit-codes.md and the exit codes in docs/reference/commands.md are written from here.
"""

from __future__ import annotations

from typing import NamedTuple


class Exit(NamedTuple):
    """An exit code."""

    code: int
    meaning: str
    commands: dict[str, str] = {}
    """What it says of each command that can end so, by the command; empty: of every command."""


NONE_READ = "no answer of a run could be read"
EXITS = (
    Exit(0, "done"),
    Exit(
        1,
        "a check failed, or there is no value",
        {
            "run": f"{NONE_READ}; with `--until decided`, a rule fails",
            "resume": NONE_READ,
            "score": NONE_READ,
            "import": NONE_READ,
            "measure": NONE_READ,
            "study demo": NONE_READ,
            "compare": "no difference of the runs has a value",
            "lab converge": "no method of the construct has a value",
            "gate": "a rule fails",
            "cache verify": "the store is damaged, or has no run with a given head",
            "cache repair": "something is still damaged",
            "study replicate": "a published value was not reproduced",
            "study validate": "the study file has errors",
            "lab recheck": "the model's answers have changed",
            "doctor": "a question has a wrong answer, or the installation has a fault",
        },
    ),
    Exit(
        2,
        "an error that you can fix: one line states the error, the value and the fix; also Ctrl-C, SIGTERM, a closed "
        "terminal, and lines that a full disk did not take. A reader of a pipe that goes away changes no exit code. "
        "`prejudge --debug COMMAND` shows the traceback and the [code](../errors.md) of the error",
    ),
    Exit(
        3,
        "a budget was spent (`--max-requests`, `--max-tokens`, `--max-cost`)",
        {
            "run": "the budget is spent; `prejudge resume` continues the run",
            "resume": "the budget is spent again",
            "lab converge": "the budget is spent; the same command continues",
            "lab multiverse": "with `--ask`, the budget is spent; the same command continues",
        },
    ),
    Exit(
        4,
        "the run was left while its [batches](../guides/batch.md) are with the provider (`--no-wait`)",
        dict.fromkeys(("run", "resume"), "batches are with the provider; `prejudge resume` collects them"),
    ),
    Exit(
        5,
        "no rule of a [gate](../gate.md) fails, but for one the data are too few to tell; or the run was stopped, as "
        "the model cannot do its task",
        {
            "gate": "no rule fails, but for one the data are too few",
            "run": "the model cannot do the task (`--accept-unfit` asks on); with `--until decided`, all was asked, "
            "and the data are too few for a rule",
            "resume": "the model cannot do the task",
        },
    ),
)


def exits_of(command: str) -> dict[int, str]:
    """Return the exit codes of a command (`run`, `cache verify`) besides 0 and 2, with what they say of it."""
    return {one.code: one.commands[command] for one in EXITS if command in one.commands}
