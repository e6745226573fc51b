"""A real Chromium, driven over its DevTools pipe: no driver program, no package, no port."""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

RUN = "window.OWNED=1;alert(1)"
HOSTILE = [
    f"<script>{RUN}</script>",
    f"</script><script>{RUN}</script>",
    f"</style></title></textarea></noscript></template><script>{RUN}</script>",
    f"<img src=x onerror='{RUN}'>",
    f"<svg onload='{RUN}'><animate onbegin='{RUN}' attributeName=x dur=1s>",
    f'" onmouseover="{RUN}" onfocus="{RUN}" autofocus tabindex=0 x="',
    f"' onclick='{RUN}' style='position:fixed;inset:0' x='",
    f"` onmouseover=`{RUN}` ${{{RUN}}}",
    f"javascript:{RUN}",
    f"data:text/html,<script>{RUN}</script>",
    f"--><!-- <iframe srcdoc='<script>parent.{RUN}</script>'> ]]><![CDATA[",
    f"{{{{ {RUN} }}}}{{% raw %}}",
    '{"__proto__": {"OWNED": 1}}',
    f"\u2028{RUN}\u2029//",
    f"\u202e{RUN}\u2066",
    f"a\x00<scr\x00ipt>{RUN}</script>\x1b]0;x\x07\x1b[31m",
    "<base href='http://127.0.0.1:9/'><link rel=stylesheet href='//127.0.0.1:9/x.css'><img src='http://127.0.0.1:9/'>",
    "<meta http-equiv=refresh content='0;url=http://127.0.0.1:9/'><form action='http://127.0.0.1:9/'><button>",
    "\U0001f600" * 50 + "x" * 5000,
    "\ud800<i>\udfff",
]
"""What a model may say to take over a page that shows it."""
NAMES = ("chromium", "chromium-browser", "google-chrome")
FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --disable-extensions --hide-scrollbars --remote-debugging-pipe"
)
# The pipes must be numbers 3 and 4 in the browser.
EXEC = (
    "import os, sys; a, b = map(int, sys.argv[1:3]); os.dup2(a, 3); os.dup2(b, 4); os.execv(sys.argv[3], sys.argv[3:])"
)
KEYS = {"Tab": (9, ""), "Enter": (13, "\r"), "Space": (32, " "), "Backspace": (8, "")}


def missing() -> str | None:
    """Return why there is no browser, or None."""
    return None if _program() else "no Chromium on the PATH: the page is not tried in a browser"


def _program() -> str | None:
    return next(filter(None, map(shutil.which, NAMES)), None)


class Browser:
    """One browser with one tab."""

    def __init__(self, profile: Path) -> None:
        theirs_in, self._out = _pair(reverse=False)
        theirs_out, self._in = _pair(reverse=True)
        command = [sys.executable, "-c", EXEC, str(theirs_in), str(theirs_out), str(_program()), *FLAGS.split()]
        self._process = subprocess.Popen(
            [*command, f"--user-data-dir={profile}", "about:blank"],
            pass_fds=(theirs_in, theirs_out),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(theirs_in)
        os.close(theirs_out)
        self._number, self._buffer, self._session = 0, b"", None
        self.events: list[dict[str, Any]] = []
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.send(f"{domain}.enable")

    def close(self) -> None:
        """End the browser."""
        os.close(self._out)
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._in)

    def send(self, method: str, **params: Any) -> dict[str, Any]:
        """Call a method of the protocol and return its result; what happens meanwhile goes to `events`."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while (heard := self._hear()).get("id") != self._number:
            self._note(heard)
        if "error" in heard:
            raise RuntimeError(f"{method}: {heard['error']}")
        result: dict[str, Any] = heard["result"]
        return result

    def open(
        self, page: Path, *, width: int = 1200, height: int = 900, dark: bool = False, print_: bool = False
    ) -> float:
        """Load a file and return the seconds until it was loaded and laid out."""
        self.send("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.send("Emulation.setEmulatedMedia", media="print" if print_ else "", features=[scheme])
        self.events.clear()
        began = time.perf_counter()
        self.send("Page.navigate", url=page.as_uri())
        self._until("Page.loadEventFired")
        self.js("new Promise(done => requestAnimationFrame(() => setTimeout(done, 0)))")
        return time.perf_counter() - began

    def js(self, expression: str) -> Any:
        """Evaluate an expression in the page, whatever its policy, and return the value."""
        done = self.send("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in done:
            raise RuntimeError(f"{expression}: {done['exceptionDetails']}")
        return done["result"].get("value")

    def press(self, *keys: str, shift: bool = False) -> None:
        """Press keys, one after the other, as a person would."""
        for key in keys:
            code, text = KEYS[key]
            name = " " if key == "Space" else key
            fields = {"key": name, "code": key, "windowsVirtualKeyCode": code, "modifiers": 8 * shift}
            self.send("Input.dispatchKeyEvent", type="keyDown" if text else "rawKeyDown", text=text, **fields)
            self.send("Input.dispatchKeyEvent", type="keyUp", **fields)
        self.js("new Promise(done => setTimeout(done, 50))")

    def type(self, text: str) -> None:
        """Type a text where the focus is."""
        self.send("Input.insertText", text=text)
        self.js("new Promise(done => setTimeout(done, 0))")

    def tab_to(self, selector: str, most: int = 400) -> None:
        """Press Tab until the focus is on what the selector names."""
        for _ in range(most):
            if self.js(f"document.activeElement.matches({json.dumps(selector)})"):
                return
            self.press("Tab")
        raise AssertionError(f"{selector} cannot be reached by keyboard")

    def shot(self, path: Path, *, whole: bool = False) -> None:
        """Save what is seen as PNG."""
        done = self.send("Page.captureScreenshot", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(done["data"]))

    def pdf(self) -> bytes:
        """Return the page as it prints."""
        return base64.b64decode(self.send("Page.printToPDF", printBackground=True)["data"])

    def said(self, method: str) -> list[dict[str, Any]]:
        """Return the parameters of the events of a kind since the page was opened."""
        return [event["params"] for event in self.events if event["method"] == method]

    def _until(self, method: str) -> None:
        while not self.said(method):
            self._note(self._hear())

    def _note(self, event: dict[str, Any]) -> None:
        if "method" in event:
            self.events.append(event)
        if event.get("method") == "Page.javascriptDialogOpening":
            # An open dialog would hold the page for ever; that it opened stays in `events`.
            self.send("Page.handleJavaScriptDialog", accept=True)

    def _hear(self, seconds: float = 60) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            if not select.select([self._in], [], [], seconds)[0]:
                raise TimeoutError(f"the browser said nothing for {seconds} s")
            if not (data := os.read(self._in, 1 << 20)):
                raise RuntimeError("the browser ended")
            self._buffer += data
        first, _, self._buffer = self._buffer.partition(b"\0")
        heard: dict[str, Any] = json.loads(first)
        return heard


def _pair(*, reverse: bool) -> tuple[int, int]:
    """Return the browser's end and ours of a pipe; the browser's end is none of the numbers it is moved to."""
    reading, writing = os.pipe()
    theirs, ours = (writing, reading) if reverse else (reading, writing)
    high = os.dup(theirs)
    while high < 5:
        high = os.dup(theirs)
    os.close(theirs)
    return high, ours
