"""Who may ask the reading room: a browser on this machine that opened the start link, and no page of another site.

Every request needs the address it is served at as its Host (a name that was rebound to this machine is another), no
Origin but its own, and the cookie that the start link was exchanged for. The link works once, and its token is in no
url after it.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Callable, Iterable
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qs

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from .opening import leading_to

START = "/start"
POLICY = (
    "default-src 'none'; img-src 'self'; style-src 'self'; script-src 'self'; connect-src 'self'; frame-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    # Not `no-referrer`: a browser then sends forms with the Origin `null`.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}
ELSEWHERE = ("cross-site", "same-site")
MOST_BODY, MOST_FIELDS = 1 << 20, 1_000
"""Bytes and fields of a form."""


class Guard:
    """An application behind the checks of this module."""

    def __init__(self, app: ASGIApp, port: int, landing: str = "/") -> None:
        self._app, self._landing = app, landing
        self._token: str | None = secrets.token_urlsafe(32)
        self._secret = secrets.token_urlsafe(32)
        self._hosts = {f"{host}:{port}" for host in ("127.0.0.1", "localhost")}
        # Cookies are shared by all ports of a machine.
        self._cookie = f"prejudge-view-{port}"
        self.link = f"http://127.0.0.1:{port}{START}?token={self._token}"
        self.on_start: Callable[[], None] = lambda: None
        """Is called when the start link was used."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            return  # no sockets

        async def sent(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        answer = self._answer(scope)
        await (answer or self._app)(scope, receive, sent)

    def _answer(self, scope: Scope) -> Response | None:
        """Return the refusal of a request or the answer to the start link; None: it may pass."""
        headers, method = Headers(scope=scope), scope["method"]
        if headers.getlist("host") not in [[host] for host in self._hosts]:
            return _refused(421, "This address is not served here.")
        own = f"http://{headers['host']}"
        origin = headers.getlist("origin")
        if origin and origin != [own]:
            return _refused(403, "A page of another site may not ask here.")
        if method not in ("GET", "HEAD", "POST"):
            return _refused(405, "Only GET and POST.")
        if method == "POST" and (not origin or int(headers.get("content-length") or MOST_BODY + 1) > MOST_BODY):
            return _refused(403, "A form needs its Origin, and at most a megabyte.")
        if scope["path"] == START and method == "GET":
            return self._started(scope)
        if headers.get("sec-fetch-site") in ELSEWHERE:
            return _refused(403, "A page of another site may not ask here.")
        if not any(hmac.compare_digest(given.encode(), self._secret.encode()) for given in self._given(headers)):
            return _refused(403, "Open the link that `prejudge view` printed. It works once: start anew for another.")
        return None

    def _started(self, scope: Scope) -> Response:
        try:
            query = parse_qs(scope["query_string"].decode("latin-1"), max_num_fields=MOST_FIELDS)
        except ValueError:
            query = {}
        given = query.get("token", [""])[0]
        if self._token is None or not hmac.compare_digest(given.encode(), self._token.encode()):
            return _refused(403, "This start link was used, or is of another start. Run `prejudge view` again.")
        self._token = None
        self.on_start()
        # A redirect would count as the page's that named the link, and the browser would leave out the cookie.
        response = HTMLResponse(leading_to(self._landing))
        response.set_cookie(self._cookie, self._secret, httponly=True, samesite="strict", path="/")
        return response

    def _given(self, headers: Headers) -> Iterable[str]:
        for line in headers.getlist("cookie"):
            try:
                found = SimpleCookie(line)
            except CookieError:
                continue
            if self._cookie in found:
                yield found[self._cookie].value


def _refused(status: int, why: str) -> Response:
    return PlainTextResponse(f"{why}\n", status_code=status)
