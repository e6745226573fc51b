"""Signatures by `ssh-keygen -Y`, as git makes and checks them: with the keys, agents and lists of signers people have.

A secret key is read by `ssh-keygen` alone, which also asks for its passphrase.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from ..contracts.errors import StoreError, UsageError

NAMESPACE = "prejudge-run"
"""What is signed; a signature of something else, such as a commit, is none of a run."""
PROGRAM = "ssh-keygen"
SIGN_SECONDS, CHECK_SECONDS = 300, 30
"""Longest waits: for a passphrase or the touch of a hardware key, and for an answer without a person."""


class Signer(NamedTuple):
    """Who signed."""

    name: str
    """As the list of allowed signers has it."""
    key: str
    """Kind and fingerprint of the key."""


def sign(text: str, key: str) -> str:
    """Return the signature of a text, by a secret key or by a public one that an agent has the secret of.

    Raises:
        UsageError: `ssh-keygen` is not installed, or the key cannot sign.
    """
    path = Path(key).expanduser()
    if not path.is_file():
        raise UsageError(
            f"the key {key!r} is not a file. Give the path of an SSH key, such as ~/.ssh/id_ed25519.", code="sign.key"
        )
    with TemporaryDirectory(prefix="prejudge-") as folder:
        signed = Path(folder) / "statement"
        signed.write_text(text, encoding="utf-8", newline="")
        # Standard input stays that of this process, so that the passphrase can be asked for.
        done = _run(["-Y", "sign", "-f", str(path.absolute()), "-n", NAMESPACE, str(signed)], None, SIGN_SECONDS)
        signature = signed.with_name("statement.sig")
        if done.returncode or not signature.is_file():
            raise UsageError(
                f"the key {key!r} cannot sign: {_problem(done)}. Give a secret key, or a public key whose secret the "
                "SSH agent holds (ssh-add).",
                code="sign.key",
            )
        return signature.read_text(encoding="ascii")


def signer(text: str, signature: str, signers: str, when: float) -> Signer:
    """Return who signed a text.

    Args:
        text: what was signed.
        signature: the signature, in SSH's format.
        signers: a file of allowed signers, as git has it (`man ssh-keygen`, ALLOWED SIGNERS).
        when: the time at which the key must have been allowed, if the file limits that.

    Raises:
        UsageError: `ssh-keygen` is not installed, or the file cannot be read.
        StoreError: the signature does not fit the text, or nobody in the file made it.
    """
    allowed = Path(signers).expanduser()
    if not (allowed.is_file() and os.access(allowed, os.R_OK)):
        raise UsageError(
            f"the list of allowed signers {signers!r} is not a file that can be read. Give one as git has it: a name "
            "and a public key in each line.",
            code="sign.signers",
        )
    with TemporaryDirectory(prefix="prejudge-") as folder:
        path = Path(folder) / "statement.sig"
        path.write_text(signature, encoding="utf-8", newline="")
        good = _run(["-Y", "check-novalidate", "-n", NAMESPACE, "-s", str(path)], text)
        if good.returncode:
            raise StoreError(f"the signature does not fit: {_problem(good)}", code="signature.invalid")
        key = good.stdout.partition(" with ")[2].strip()
        options = ["-s", str(path), "-f", str(allowed.absolute()), f"-Overify-time={_moment(when)}"]
        names = _run(["-Y", "find-principals", *options], None)
        for name in names.stdout.splitlines() if not names.returncode else ():
            done = _run(["-Y", "verify", "-n", NAMESPACE, "-I", name, *options], text)
            if not done.returncode:
                return Signer(name, key)
        raise StoreError(f"it was signed with the {key}, which {signers} does not allow", code="signature.other-signer")


def _run(words: list[str], text: str | None, seconds: int = CHECK_SECONDS) -> subprocess.CompletedProcess[str]:
    program = shutil.which(PROGRAM)
    if program is None:
        raise UsageError(
            f"signatures need {PROGRAM}, which is not installed. Install OpenSSH (Debian: openssh-client).",
            code="sign.program",
        )
    try:
        return subprocess.run(
            [program, *words],
            input=text,
            capture_output=True,
            text=True,
            encoding="utf-8",
            errors="replace",
            timeout=seconds,
            env=os.environ | {"LC_ALL": "C"},
            check=False,
        )
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(words, 1, "", f"it took longer than {seconds} s")


def _problem(done: subprocess.CompletedProcess[str]) -> str:
    lines = [line.strip(" .@") for line in (done.stderr or done.stdout).splitlines()]
    return "; ".join(line for line in lines if line)[:500] or f"{PROGRAM} ended with {done.returncode}"


def _moment(seconds: float) -> str:
    return time.strftime("%Y%m%d%H%M%S", time.localtime(seconds))
