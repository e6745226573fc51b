"""What must hold of every command before a server that misbehaves: `broken_rules` names what does not."""

from __future__ import annotations

import base64
import json
import os
import re
import sqlite3
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from urllib.parse import quote

from prejudge.testing import BEHAVIOURS, ChaosServer
from prejudge.testing.chaos import Call, Seen
from prejudge.testing.chaos.http import Json

from .processes import Commands, Ended

KEY = "sk-test-Zq9/very+secret=key~0123456789"
KEYS = [form.encode() for form in (KEY, quote(KEY, safe=""), json.dumps(KEY)[1:-1])]
KEYS.append(base64.b64encode(KEY.encode()).rstrip(b"="))
CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
STEERING = ("\x1b]0;", "\x1b[2J", "\x1b[31mred", "\x9b", "\x07", "\x08", "\u202e", "\u2066", "\x85")
"""What of `ATTACK` never reaches a terminal; colours and the bars' own movements do."""
SLACK_SECONDS = 12.0
"""What a busy machine may add to a wait."""
CODES = {0, 1, 2, 3}
"""Exit codes of `run` and `resume`; 1 where no answer could be read."""
KEPT = {"answer": "ok", "refused": "refused", "filtered": "filtered"}
ENOUGH, TRIALS = "per_cell=1", 30
WAIT = 2.0


def answer_option(path: str, body: Json) -> Json:
    """Answer with one of the options of a question, always the same one."""
    text = body["messages"][-1]["content"]
    options = re.findall(r"^Option \d: (.*)$", text, re.M)
    said = options[sum(text.encode()) % len(options)] if options else text.upper()
    message = {"role": "assistant", "content": said}
    usage = {"prompt_tokens": len(text) // 4, "completion_tokens": 4}
    return {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}], "usage": usage}


def write_registry(folder: Path, url: str, study: str = "tiny", **settings: object) -> None:
    """Write a registry with the model `mine` behind the server and a study without metrics."""
    known = {
        "model": "m",
        "base_url": url,
        "api_key_env": "LAB_KEY",
        "timeout_seconds": 3,
        "concurrency": 8,
        **settings,
    }
    lines = "\n".join(f"{name} = {json.dumps(value)}" for name, value in known.items())
    text = f'[models.mine]\nadapter = "openai"\nprices = {{ input = 1, output = 1 }}\n[models.mine.settings]\n{lines}\n'
    text += f'[studies.{study}]\nprobe = "subtle"\noptions = {{ direction = "sai" }}\nmetrics = {{}}\n'
    (folder / "mine.toml").write_text(text)


def deal(server: ChaosServer, names: Sequence[str]) -> None:
    """Play one behaviour at the first call of each prompt: each of them in turn."""
    dealt: dict[str, str] = {}

    def is_turn(call: Call, name: str) -> bool:
        return dealt.setdefault(call.text, names[len(dealt) % len(names)]) == name

    for name in names:
        server.play(name, first=1, per_body=True, where=partial(is_turn, name=name))


def heal(lab: Lab) -> None:
    """Let the server answer well from now on, resume and verify."""
    lab.server.stop_playing()
    assert (done := lab.call("resume")).code in (0, 1), done.said
    assert (done := lab.call("cache", "verify")).code == 0, done.said


class Lab:
    """A folder, a server and commands."""

    def __init__(self, folder: Path, server: ChaosServer, commands: Commands) -> None:
        self.folder, self.server, self.commands = folder, server, commands
        self.ended: list[Ended] = []
        self.wait = WAIT
        """Longest wait of the commands."""

    def call(self, *words: str, figures: bool = False) -> Ended:
        """Run a command; those that ask a model get the registry and the longest wait."""
        done = self.commands.run(self.folder, *self.words(*words), env={"LAB_KEY": KEY}, figures=figures)
        self.ended.append(done)
        return done

    def words(self, *words: str) -> list[str]:
        """Return a command with the options that it needs."""
        # What is under test is the transport: a run that stops for unreadable answers would ask too little of it.
        asks = ["--max-wait", str(self.wait), "--accept-unfit"] if words[0] in ("run", "resume") else []
        asks += ["--progress", "plain"] if asks and "--progress" not in words else []
        own = ["--registry", "mine.toml"] if words[0] in ("run", "resume", "score") else []
        return [*words, *asks, *own]

    def run(self, study: str = "tiny", *more: str, size: str = ENOUGH) -> Ended:
        """Run the study."""
        return self.call("run", study, "--model", "mine", "--set", size, *more)

    def run_on_terminal(self) -> tuple[int, str]:
        """Run the study in a process of its own, on a terminal, with figures; return the code and what it showed."""
        words = self.words("run", "tiny", "--model", "mine", "--set", ENOUGH, "--progress", "bar")
        ours, theirs = os.openpty()
        process = subprocess.Popen(
            [sys.executable, "-m", "prejudge.core.cli", *words],
            cwd=self.folder,
            env={**os.environ, "LAB_KEY": KEY, "TERM": "xterm-256color"},
            stdin=subprocess.DEVNULL,
            stdout=theirs,
            stderr=theirs,
        )
        os.close(theirs)
        shown = b"".join(iter(partial(_read, ours), b""))
        os.close(ours)
        return process.wait(240), shown.decode("utf-8", "replace")

    def table(self, question: str) -> list[tuple[object, ...]]:
        """Ask the store."""
        path = self.folder / "prejudge.db"
        if not path.exists():
            return []
        connection = sqlite3.connect(path)
        try:
            return connection.execute(question).fetchall()
        finally:
            connection.close()

    def kept(self) -> dict[str, list[tuple[str, str]]]:
        """Return the answers in the store by prompt, with their status."""
        found: dict[str, list[tuple[str, str]]] = {}
        for request, response, status in self.table("SELECT request, response, status FROM exchange"):
            text = json.loads(str(request))["messages"][-1]["parts"][0]["text"]
            found.setdefault(text, []).append((json.loads(str(response)).get("text", ""), str(status)))
        return found

    def broken_rules(self) -> list[str]:
        """Return what does not hold."""
        return [*self._of_the_terminal(), *self._of_the_store(), *self._of_the_files(), *self._of_the_waits()]

    def _of_the_terminal(self) -> Iterator[str]:
        for done in self.ended:
            shown = done.said.decode("utf-8", "replace")
            if "Traceback" in shown:
                yield f"a traceback: {shown[-600:]}"
            if found := CONTROLS.findall(shown):
                yield f"control characters on the terminal: {sorted(set(found))}"
            if any(key in done.said for key in KEYS):
                yield "the key on the terminal"
            if done.code not in CODES:
                yield f"exit code {done.code}: {shown[-600:]}"

    def _of_the_store(self) -> Iterator[str]:
        kept, sent = self.kept(), self.sent()
        for prompt, answers in kept.items():
            if len(answers) > 1:
                yield f"{len(answers)} answers to one prompt"
            for answer in answers:
                if answer not in sent.get(prompt, []):
                    yield f"kept what was not sent: {answer!r:.100}, but {sent.get(prompt)!r:.200}"
        if lost := [prompt for prompt in self.sent(whole=True) if prompt not in kept]:
            yield f"{len(lost)} answers that were sent are not in the store: {sent[lost[0]]!r:.100}"

    def _of_the_files(self) -> Iterator[str]:
        for path in self.folder.rglob("*"):
            if path.is_file() and any(key in path.read_bytes() for key in KEYS):
                yield f"the key in {path.name}"

    def _of_the_waits(self) -> Iterator[str]:
        times = [seen.at for seen in self.server.seen]
        longest = max((b - a for a, b in zip(times, times[1:], strict=False)), default=0.0)
        if longest > self.wait + SLACK_SECONDS:
            yield f"waited {longest:.0f} s"

    def sent(self, *, whole: bool = False) -> dict[str, list[tuple[str, str]]]:
        """Return the answers that the server sent, by prompt, with the status that each is to be kept with.

        With `whole`, without those that may have been lost on their way.
        """
        found: dict[str, list[tuple[str, str]]] = {}
        for seen in self.server.seen:
            if seen.sent >= whole and (status := self._status(seen)) is not None:
                found.setdefault(seen.body["messages"][-1]["content"], []).append((_said(seen), status))
        return found

    def _status(self, seen: Seen) -> str | None:
        if not seen.behaviour:
            return "ok"
        if seen.behaviour == "empty-no-tokens":
            times = Counter(str(one.body) for one in self.server.seen if one.behaviour == seen.behaviour)
            return "ok" if times[str(seen.body)] > 1 else None
        return KEPT.get(BEHAVIOURS[seen.behaviour].taken)


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 1 << 16)
    except OSError:  # the other end is closed
        return b""


def _said(seen: Seen) -> str:
    """Return the text of an answer as the server sent it, read in another way than the adapter does."""
    if seen.reply.status >= 300:
        return ""
    choices = json.loads(seen.reply.raw.decode("utf-8", "replace"))["choices"]
    message = next(choice for choice in choices if choice.get("index", 0) == 0)["message"]
    said = message["content"]
    if isinstance(said, list):
        return "".join(part.get("text", part.get("refusal", "")) for part in said)
    return re.sub("[\ud800-\udfff]", "\N{REPLACEMENT CHARACTER}", said or message.get("refusal") or "")
