"""`prejudge doctor MODEL` as a user sees it: a text model behind an endpoint, a base model, and what it waits for."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import msgspec
import pytest
from click.testing import CliRunner

from prejudge.core.catalogue.study import Catalogue
from prejudge.core.cli.main import cli
from prejudge.core.cli.steps import StepLines, StepStatus
from prejudge.core.contracts import steps
from prejudge.core.contracts.steps import hashing, listens, size_words, step

REFUSALS = {
    "vllm": (400, {"error": {"message": "tiny is not a multimodal model", "type": "BadRequestError", "code": 400}}),
    "llama.cpp": (500, {"error": {"message": "image input is not supported", "type": "server_error", "code": 500}}),
    "drops": (200, None),
}
"""What servers of text models answer to an image: status and body; none: they leave it out."""


class TextServer(BaseHTTPRequestHandler):
    """An OpenAI-compatible server of a text model."""

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        about_image = "image_url" in json.dumps(asked["messages"])
        status, body = self.server.refusal if about_image else (200, None)
        text = "I cannot see it." if about_image else f"blue {asked.get('seed')}"
        body = body or {
            "id": "1",
            "object": "chat.completion",
            "model": "tiny",
            "choices": [{"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 9, "completion_tokens": 4, "total_tokens": 13},
        }
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_):
        pass


@pytest.fixture
def tiny(tmp_path, monkeypatch):
    """Return `tiny(kind)`, which runs a server of this kind and names a registry with its model."""
    pytest.importorskip("aiohttp")
    monkeypatch.chdir(tmp_path)
    servers = []

    def start(kind):
        server = ThreadingHTTPServer(("127.0.0.1", 0), TextServer)
        server.refusal = REFUSALS[kind]
        threading.Thread(target=server.serve_forever, daemon=True).start()
        servers.append(server)
        settings = f'model = "tiny", base_url = "http://127.0.0.1:{server.server_port}/v1", api_key_env = ""'
        (tmp_path / "mine.toml").write_text(f'[models.tiny]\nadapter = "openai"\nsettings = {{ {settings} }}\n')
        return str(tmp_path / "mine.toml")

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


@pytest.fixture(autouse=True)
def few_studies(monkeypatch):
    """Let catalogues have three studies: the table of all takes seconds."""

    def load(registry=None):
        catalogue = whole(registry)
        studies = {name: catalogue.registry.studies[name] for name in ("bistereo-nli", "dora-i2t", "subtle-sai")}
        return Catalogue(msgspec.structs.replace(catalogue.registry, studies=studies), catalogue.plugins)

    whole = Catalogue.load
    monkeypatch.setattr(Catalogue, "load", load)


def command(*words):
    return CliRunner().invoke(cli, list(words), standalone_mode=False)


def rows_of(output):
    """Return the rows of tables by their first cell."""
    lines = [line.strip("│").split("│") for line in output.splitlines() if line.startswith("│")]
    return {cells[0].strip(): [cell.strip() for cell in cells[1:]] for cells in lines if cells[0].strip()}


@pytest.mark.parametrize("kind", REFUSALS)
def test_text_model_passes_and_answers_no_study_about_images(tiny, kind):
    done = command("doctor", "tiny", "--registry", tiny(kind))
    rows = rows_of(done.stdout)
    assert done.return_value == 0
    assert rows["generate: the model uses an image"][0] == "-"
    assert rows["dora-i2t"][0] == "no"
    assert rows["subtle-sai"][0] == "yes" and "about" in rows["subtle-sai"][2]


def test_base_model_is_told_to_be_asked_by_likelihood(tmp_path, monkeypatch):
    pytest.importorskip("llama_cpp")
    pytest.importorskip("gguf")
    from ...adapters.gguf_files import write_pair

    monkeypatch.chdir(tmp_path)
    base, _ = write_pair(tmp_path, template=None)
    rows = rows_of(command("doctor", str(base)).stdout)
    assert rows["bistereo-nli"][0] == "yes" and "--set asking=likelihood" in rows["bistereo-nli"][1]
    assert rows["subtle-sai"][0] == "yes" and "--set asking=likelihood" in rows["subtle-sai"][1]


def test_every_step_is_one_line_in_a_pipe():
    done = command("doctor", "simulated-fair", "--operation", "generate")
    lines = [line for line in done.stderr.splitlines() if line.endswith(" ...")]
    assert lines[0].startswith("Read the files of simulated-fair") and len(lines) == len(set(lines)) == 4


def test_hashed_folder_is_named_with_its_size(tmp_path, monkeypatch):
    monkeypatch.setattr(steps, "SMALL", 3)
    files = [tmp_path / name for name in ("a.bin", "b.bin")]
    for file in files:
        file.write_bytes(b"12")
    words = []
    with listens(lambda text: words.append(text) or (lambda: words.append("end"))):
        with hashing(files):
            pass
        with hashing(files[:1]):
            pass
    assert words == [f"hash 2 files in {tmp_path.name} (4 bytes)", "end"]
    assert size_words(3 * 2**30) == "3.0 GiB" and size_words(14 * 2**20) == "14 MiB"


def test_run_names_a_step_only_where_it_is_slow(capsys):
    lines = StepLines(0.5)
    with listens(lines), step("hash quick"):
        pass
    with listens(lines), step("hash slow"):
        threading.Event().wait(1.5)
    assert capsys.readouterr().err == "Hash slow ...\n"


def test_terminal_shows_the_step_that_is_not_ended():
    shown = []
    with listens(StepStatus(shown.append)), step("check words"):
        with step("load the weights"):
            pass
    assert shown == ["check words", "load the weights", "check words", ""]


def test_nobody_listens_after_the_command():
    with pytest.raises(ZeroDivisionError), listens(lambda text: 1 / 0), step("x"):
        pass
    with step("y"):
        pass
