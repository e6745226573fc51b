"""Imitations of providers' batch APIs, for a `ChaosServer`: they end batches as they are told, and keep the bill.

    desk = OpenAIBatches(chaos_server)
    desk.ends = ["expired"]          # the first batch; later ones complete
    desk.fate = lambda body, tried: problem("rate_limit_exceeded") if tried == 0 else None

Written from the providers' documentation. Results come in random order.
"""

from __future__ import annotations

import json
import random
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import ClassVar

from .behaviours import Behaviour
from .http import Call, Json, Reply
from .server import ChaosServer
from .tiny import problem

Fate = Callable[[Json, int], "Json | str | None"]


@dataclass
class Batch:
    """A batch at the provider."""

    id: str
    lines: list[Json]
    end: str
    asked: Json
    polls: int = 0
    cancelled: bool = False
    seconds: float = field(default_factory=time.time)


class Desk:
    """What the imitations share."""

    MOST_BYTES: ClassVar[int]
    """Bytes of a batch by the provider's documentation."""

    def __init__(self, server: ChaosServer, prefixes: tuple[str, ...]) -> None:
        self.server = server
        self.batches: dict[str, Batch] = {}
        self.paid: Counter[str] = Counter()
        """How often an answer to each custom id is on the bill."""
        self.ends: list[str] = []
        """How the next batches end: `completed`, `expired`, `cancelled`, or what makes one fail; then all complete."""
        self.polls = 1
        """Looks at a batch until it has ended."""
        self.most_bytes = self.MOST_BYTES
        """Bytes that one batch may have; a larger one is refused."""
        self.sizes: list[int] = []
        """Bytes of each batch that was handed in."""
        self.share = 0.5
        """Share of the requests that were answered when a batch expired or was cancelled."""
        self.fate: Fate = lambda body, tried: None
        """What becomes of a request, by its body and how often it was tried: a body of an error, `nothing`, or None."""
        self.twist: Callable[[list[Json]], list[Json]] = lambda lines: lines
        """Changes the lines of results."""
        self.lost: set[str] = set()
        """Batches that the provider no longer knows."""
        self._tried: Counter[str] = Counter()
        self._results: dict[str, list[Json]] = {}
        self._answered: dict[str, Reply] = {}
        self._prefixes = prefixes
        server.play(Behaviour("batches", "", self._reply), where=self.concerns)

    def concerns(self, call: Call) -> bool:
        """Return whether a call is about batches."""
        return call.path.startswith(self._prefixes)

    def taken_but(self, reply: Reply) -> Behaviour:
        """Return a way to do what is asked, and to answer as if it had failed; play it before the desk is made."""

        def answer(call: Call) -> Reply:
            self._reply(call)
            return reply

        return Behaviour("taken", "", answer)

    def end_of(self, batch: Batch) -> str:
        """Return how a batch has ended; nothing if it has not."""
        return "cancelled" if batch.cancelled else batch.end if batch.polls >= self.polls else ""

    def results(self, batch: Batch, name_of: str) -> list[Json]:
        """Return, per line of a batch, its name, the answer, an error's body or why there is none, and which it is."""
        if batch.id not in self._results:
            made: list[Json] = []
            early = self.end_of(batch) in ("expired", "cancelled")
            answered = int(len(batch.lines) * self.share) if early else len(batch.lines)
            for place, line in enumerate(batch.lines):
                name, body = line["custom_id"], line[name_of]
                tried, self._tried[name] = self._tried[name], self._tried[name] + 1
                told = self.fate(body, tried)
                if told is None and place >= answered:
                    told = self.end_of(batch)
                if told is None:
                    self.paid[name] += 1
                    told = self.server.model(str(line.get("url", "/messages")).removeprefix("/v1"), body)
                    made.append({"name": name, "answer": told, "ok": True})
                else:
                    made.append({"name": name, "answer": told, "ok": False})
            random.Random(len(made)).shuffle(made)
            self._results[batch.id] = made
        return self._results[batch.id]

    def _reply(self, call: Call) -> Reply:
        raise NotImplementedError


class OpenAIBatches(Desk):
    """OpenAI's Files and Batches."""

    MOST_BYTES = 200_000_000

    def __init__(self, server: ChaosServer) -> None:
        self.files: dict[str, bytes] = {}
        super().__init__(server, ("/files", "/batches"))

    def _reply(self, call: Call) -> Reply:
        parts = call.path.strip("/").split("/")
        match parts:
            case ["files"]:
                return self._upload(call)
            case ["files", name, "content"]:
                return Reply(body=self.files[name], content_type="application/octet-stream")
            case ["batches"] if call.body:
                return self._create(call.body)
            case ["batches"]:
                found = [self._told(batch) for batch in reversed(self.batches.values()) if batch.id not in self.lost]
                return Reply(body={"object": "list", "data": found, "has_more": False})
            case ["batches", name, *more] if name in self.batches and name not in self.lost:
                batch = self.batches[name]
                if more == ["cancel"]:
                    batch.cancelled = True
                else:
                    batch.polls += 1
                return Reply(body=self._told(batch))
        return Reply(404, problem(None, f"no such object: {call.path}"))

    def _upload(self, call: Call) -> Reply:
        assert b'name="purpose"\r\n\r\nbatch\r\n' in call.raw
        head, _, rest = call.raw.partition(b"application/jsonl\r\n\r\n")
        name, content = f"file-{len(self.files)}", rest[: rest.rindex(b"\r\n--")]
        self.sizes.append(len(content))
        if len(content) > self.most_bytes:
            return Reply(400, problem(None, "File is too large."))
        self.files[name] = content
        return Reply(body={"id": name, "object": "file", "purpose": "batch", "bytes": len(self.files[name])})

    def _create(self, body: Json) -> Reply:
        end = self.ends.pop(0) if self.ends else "completed"
        if end == "queue":
            return Reply(400, problem("token_limit_exceeded", "token_limit_exceeded: too many enqueued tokens"))
        lines = [json.loads(line) for line in self.files[body["input_file_id"]].splitlines() if line]
        batch = Batch(f"batch_{len(self.batches)}", lines, end, body)
        self.batches[batch.id] = batch
        return Reply(body=self._told(batch))

    def _told(self, batch: Batch) -> Json:
        end, made = self.end_of(batch), self._write(batch)
        told: Json = {
            "id": batch.id,
            "object": "batch",
            "endpoint": batch.asked["endpoint"],
            "status": end or "in_progress",
            "input_file_id": batch.asked["input_file_id"],
            "metadata": batch.asked["metadata"],
            "created_at": int(batch.seconds),
            "request_counts": {"total": len(batch.lines), "completed": 0, "failed": 0},
            **made,
        }
        if end in ("invalid", "token_limit_exceeded"):
            told["status"] = "failed"
            told["errors"] = {"object": "list", "data": [{"code": end, "message": f"{end} here", "line": 1}]}
        return told

    def _write(self, batch: Batch) -> Json:
        """Write the files of a batch that has ended."""
        if self.end_of(batch) not in ("completed", "expired", "cancelled"):
            return {}
        output, errors = [], []
        for found in self.results(batch, "body"):
            name, answer = found["name"], found["answer"]
            if found["ok"]:
                response = {"status_code": 200, "request_id": "r", "body": answer}
                output.append({"id": "l", "custom_id": name, "response": response, "error": None})
            elif isinstance(answer, str) and answer != "nothing":
                error = {"code": f"batch_{answer}", "message": "not executed"}
                errors.append({"id": "l", "custom_id": name, "response": None, "error": error})
            elif isinstance(answer, dict):
                response = {"status_code": answer.pop("status", 400), "request_id": "r", "body": answer}
                errors.append({"id": "l", "custom_id": name, "response": response, "error": None})
                answer["status"] = response["status_code"]
        made: Json = {"request_counts": {"total": len(batch.lines), "completed": len(output), "failed": len(errors)}}
        for field_name, lines in (("output_file_id", output), ("error_file_id", errors)):
            if lines:
                name = f"{field_name}-{batch.id}"
                self.files[name] = b"\n".join(json.dumps(line).encode() for line in self.twist(lines)) + b"\n"
                made[field_name] = name
        return made


class AnthropicBatches(Desk):
    """Anthropic's Message Batches, which keep no marks. The path of the base url is not `/v1`, but empty."""

    MOST_BYTES = 256_000_000

    def __init__(self, server: ChaosServer) -> None:
        super().__init__(server, ("/messages/batches",))

    def _reply(self, call: Call) -> Reply:
        match call.path.strip("/").split("/")[2:]:
            case [] if call.body:
                self.sizes.append(len(call.raw))
                if len(call.raw) > self.most_bytes:
                    error = {"type": "request_too_large", "message": "Request exceeds the maximum size"}
                    return Reply(413, {"type": "error", "error": error})
                end = self.ends.pop(0) if self.ends else "completed"
                batch = Batch(f"msgbatch_{len(self.batches)}", call.body["requests"], end, call.body)
                self.batches[batch.id] = batch
                return Reply(body=self._told(batch))
            case []:
                found = [self._told(batch) for batch in reversed(self.batches.values()) if batch.id not in self.lost]
                return Reply(body={"data": found, "has_more": False})
            case [name, *more] if name in self.batches and name not in self.lost:
                batch = self.batches[name]
                if more == ["results"]:
                    lines = self.twist([self._line(found) for found in self.results(batch, "params")])
                    return Reply(
                        body=b"".join(json.dumps(line).encode() + b"\n" for line in lines if line),
                        content_type="application/x-jsonl",
                    )
                batch.cancelled = batch.cancelled or more == ["cancel"]
                batch.polls += not more
                return Reply(body=self._told(batch))
        return Reply(404, {"type": "error", "error": {"type": "not_found_error", "message": call.path}})

    def _line(self, found: Json) -> Json:
        answer, name = found["answer"], found["name"]
        if found["ok"]:
            return {"custom_id": name, "result": {"type": "succeeded", "message": answer}}
        if answer == "nothing":
            return {}
        if isinstance(answer, str):
            kind = {"cancelled": "canceled"}.get(answer, answer)
            return {"custom_id": name, "result": {"type": kind}}
        return {"custom_id": name, "result": {"type": "errored", "error": answer}}

    def _told(self, batch: Batch) -> Json:
        end = self.end_of(batch)
        counts = dict.fromkeys(("processing", "succeeded", "errored", "canceled", "expired"), 0)
        counts["processing"] = len(batch.lines)
        if end:
            kinds = Counter(
                line["result"]["type"] for found in self.results(batch, "params") if (line := self._line(found))
            )
            counts |= {"processing": 0, **kinds}
        moment = datetime.fromtimestamp(batch.seconds, UTC).isoformat()
        return {
            "id": batch.id,
            "type": "message_batch",
            "processing_status": "ended" if end else "in_progress",
            "request_counts": counts,
            "created_at": moment,
            "ended_at": moment if end else None,
            "cancel_initiated_at": moment if batch.cancelled else None,
            "results_url": f"http://127.0.0.1/v1/messages/batches/{batch.id}/results" if end else None,
        }
