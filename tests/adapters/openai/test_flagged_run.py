"""A whole run against an endpoint that flags about one prompt in thirty by a 403, as xAI does: it finishes."""

from __future__ import annotations

import copy
import json
import zlib
from dataclasses import replace

import pytest

import prejudge
from prejudge.testing import Reply
from prejudge.testing.chaos.behaviours import Behaviour

pytestmark = pytest.mark.usefixtures("no_figures")
FLAG = {
    "code": "The caller does not have permission to execute the specified operation",
    "error": "Content violates usage guidelines. Failed check: SAFETY_CHECK_TYPE_BIO",
}


def is_flagged(call):
    return zlib.crc32(json.dumps(call.body["messages"]).encode()) % 30 == 0


def flagging(call):
    """Flag a prompt by its text, and answer any other with its first option."""
    if is_flagged(call):
        return Reply(403, FLAG)
    body = copy.deepcopy(call.well.body)
    text = json.dumps(call.body["messages"])
    options = [line for line in json.loads(text)[-1]["content"].splitlines() if line[:2].strip("-(*").isalnum()]
    body["choices"][0]["message"]["content"] = options[zlib.crc32(text.encode()) % 3] if len(options) == 3 else "yes"
    return replace(call.well, body=body)


def test_run_finishes_and_its_flagged_prompts_are_filtered(server, tmp_path):
    server.play(Behaviour("xai", "", flagging))
    registry = tmp_path / "registry.toml"
    registry.write_text(
        '[models.flagging]\nadapter = "openai"\n'
        f'settings = {{ model = "tiny", base_url = "{server.url}", api_key_env = "" }}\n'
    )
    settings = prejudge.Settings(
        store=str(tmp_path / "s.db"), runs=str(tmp_path / "runs"), registry=str(registry), accept_unfit=True
    )
    run = prejudge.run("subtle-sai", "flagging", settings, per_cell=20, **{"subtle.resamples": 99})
    flagged = {json.dumps(call.body["messages"]) for call in server.seen if is_flagged(call)}
    counts = dict(run.observations["status"].value_counts().iter_rows())
    assert flagged and counts["filtered"] == len(flagged)
    assert 0.01 < counts["filtered"] / sum(counts.values()) < 0.08
    assert not counts.get("failed")
