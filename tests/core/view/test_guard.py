"""Who may ask, by raw HTTP: what a page of another site, a rebound name, or a second use of the start link gets."""

from __future__ import annotations

import http.client
import logging
import socket
import time

import pytest

from prejudge.core.view.guard import MOST_FIELDS

OPEN = 200


def ask(port, path, method="GET", **headers):
    """Return status, headers and body; a name with `_` becomes one with `-`."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    connection.putrequest(method, path, skip_host="host" in headers)
    for name, value in headers.items():
        for one in value if isinstance(value, list) else [value]:
            connection.putheader(name.replace("_", "-"), one)
    connection.endheaders()
    answer = connection.getresponse()
    read = answer.status, dict(answer.getheaders()), answer.read().decode()
    connection.close()
    return read


@pytest.fixture
def cookie(served):
    status, headers, body = ask(served.port, served.link.removeprefix(served.base))
    assert status == OPEN and 'content="0; url=/"' in body
    held, *attributes = headers["set-cookie"].split("; ")
    assert {"HttpOnly", "SameSite=strict", "Path=/"} <= set(attributes)
    assert held.split("=")[1] not in served.link
    return held


def test_only_the_opened_browser_may_ask(served, answered, cookie):
    run, port, base = answered(n=4), served.port, served.base
    other = f"prejudge-view-{port}=x"
    refused = {
        "no cookie": {},
        "a wrong cookie": {"cookie": other},
        "a name rebound to this machine": {"cookie": cookie, "host": f"evil.example:{port}"},
        "another port": {"cookie": cookie, "host": "127.0.0.1:1"},
        "two hosts": {"cookie": cookie, "host": [f"127.0.0.1:{port}", "evil.example"]},
        "another origin": {"cookie": cookie, "origin": "http://evil.example"},
        "an origin without a name": {"cookie": cookie, "origin": "null"},
        "the origin of another port": {"cookie": cookie, "origin": "http://127.0.0.1:1"},
        "a link on another site": {"cookie": cookie, "sec_fetch_site": "cross-site"},
    }
    for path in ("/", f"/run/{run.name}", "/style.css", f"/image/{'0' * 64}", "/nowhere"):
        for why, headers in refused.items():
            status, _, body = ask(port, path, **headers)
            assert status in (400, 403, 421), (path, why)
            assert "Runs" not in body
    assert ask(port, "/", cookie=cookie, origin=base)[0] == OPEN
    # Cookies are shared by all ports: under the name of another port, this one's secret opens nothing.
    assert ask(port, "/", cookie=f"prejudge-view-{port + 1}={cookie.split('=')[1]}")[0] == 403
    assert ask(port, "/", cookie=f"{other}; a=b", host=f"localhost:{port}")[0] == 403
    assert ask(port, "/", cookie=cookie, host=f"localhost:{port}")[0] == OPEN


def test_start_link_works_once_and_its_token_stays_nowhere(served, answered, cookie):
    answered(n=4)
    token = served.link.partition("token=")[2]
    status, headers, body = ask(served.port, f"/start?token={token}")
    assert status == 403 and "set-cookie" not in headers
    status, headers, body = ask(served.port, "/", cookie=cookie)
    assert token not in body and cookie.partition("=")[2] not in body
    assert ask(served.port, f"/start?token={token}", cookie=cookie)[0] == 403
    assert ask(served.port, "/start", cookie=cookie)[0] == 403


def test_nothing_is_changed_by_other_methods(served, answered, cookie):
    answered(n=4)
    for method in ("PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"):
        assert ask(served.port, "/", method, cookie=cookie)[0] in (400, 405)
    # A form of another site has an Origin; one without any is none of a browser.
    assert ask(served.port, "/samples", "POST", cookie=cookie, content_length="0")[0] == 403
    assert ask(served.port, "/", "POST", cookie=cookie, origin=served.base, content_length="0")[0] in (404, 405)


@pytest.fixture
def server_log():
    """Return what the server logs, such as tracebacks."""
    records, logger = [], logging.getLogger("uvicorn.error")
    handler = logging.Handler()
    handler.emit = records.append
    logger.addHandler(handler)
    yield records
    logger.removeHandler(handler)


def test_client_that_goes_away_is_no_fault_of_the_server(served, cookie, server_log):
    head = f"POST /label/x HTTP/1.1\r\nHost: 127.0.0.1:{served.port}\r\nOrigin: {served.base}\r\nCookie: {cookie}\r\n"
    with socket.create_connection(("127.0.0.1", served.port)) as client:
        client.sendall(f"{head}Content-Length: 1000\r\n\r\nlabel=".encode())
    time.sleep(0.5)
    assert ask(served.port, "/", cookie=cookie)[0] == OPEN
    assert server_log == []


def test_form_of_too_many_fields_is_refused(served, cookie, server_log):
    connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=30)
    headers = {"Cookie": cookie, "Origin": served.base}
    for fields, status in ((MOST_FIELDS, 404), (MOST_FIELDS + 1, 413)):
        connection.request("POST", "/label/x", "&".join(["a=1"] * fields), headers)
        answer = connection.getresponse()
        assert (answer.status, b"view.form" in answer.read()) == (status, status == 413)
    connection.close()
    query = "&".join(["token=x"] * (MOST_FIELDS + 1))
    assert ask(served.port, f"/start?{query}")[0] == 403
    assert server_log == []


def test_answers_carry_the_policy(served, answered, cookie):
    run = answered(n=4)
    for path in ("/", f"/run/{run.name}/trial/0", "/nowhere"):
        _, headers, _ = ask(served.port, path, cookie=cookie)
        assert headers["content-security-policy"].startswith("default-src 'none'")
        assert "unsafe" not in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["cache-control"] == "no-store"


def test_only_this_machine_is_listened_to(served):
    own = {info[4][0] for info in socket.getaddrinfo(socket.gethostname(), None, socket.AF_INET)} - {"127.0.0.1"}
    for address in [one for one in own if not one.startswith("127.")]:
        with pytest.raises(OSError), socket.create_connection((address, served.port), timeout=2):
            pass
