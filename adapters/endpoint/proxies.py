"""The proxy that the environment names for an address, by the rules that curl documents (its manual, "Environment").

`HTTP_PROXY`, `HTTPS_PROXY` and, where there is none of the address's scheme, `ALL_PROXY`, in small letters first.
`NO_PROXY` lists hosts with their subdomains, addresses, networks (`10.0.0.0/8`), patterns (`192.168.*`), each with a
port if it has one, or `*`. Names are not resolved. Without such variables, the settings of the system hold (Windows,
macOS).
"""

from __future__ import annotations

import contextlib
import ipaddress
import re
from fnmatch import fnmatchcase
from urllib.parse import urlsplit
from urllib.request import getproxies, getproxies_environment, proxy_bypass

import msgspec

from ...core.contracts.errors import UsageError

_PORTS = {"http": 80, "https": 443}


class Proxy(msgspec.Struct, frozen=True):
    """A proxy; shown without user and password."""

    url: str

    @property
    def where(self) -> str:
        """Return its host and port."""
        return urlsplit(self.url).netloc.rpartition("@")[2]

    def __repr__(self) -> str:
        """Show no password."""
        return f"Proxy({self.where!r})"


def find_proxy(address: str, setting: str | None = None) -> Proxy | None:
    """Return the proxy for an address; None: it is reached directly.

    Args:
        address: what is asked.
        setting: the proxy of the settings, whatever the environment says; empty: none; None: the environment decides.

    Raises:
        UsageError: it is a proxy of a kind that is not supported, such as SOCKS, or a setting with a password.
    """
    if setting is not None:
        return _set_proxy(setting.strip(), urlsplit(address).netloc)
    parts, named = urlsplit(address), getproxies_environment()
    given = named or getproxies()
    url = given.get(parts.scheme) or given.get("all")
    if url is None or parts.hostname is None:
        return None
    host = parts.hostname
    own = is_exempt(host, parts.port or _PORTS.get(parts.scheme, 0), named.get("no", ""))
    if own if named else proxy_bypass(parts.netloc):
        return None
    mend = "Name such a one in HTTPS_PROXY, HTTP_PROXY or ALL_PROXY, or exempt the host with NO_PROXY."
    return _checked(url, parts.netloc, mend)


def _set_proxy(setting: str, host: str) -> Proxy | None:
    if not setting:
        return None
    if "@" in setting:
        raise UsageError(
            "the setting proxy must not contain a user or a password. Name the proxy with them in HTTPS_PROXY, "
            "HTTP_PROXY or ALL_PROXY, and leave the setting out.",
            code="options.secret",
        )
    return _checked(setting, host, "Set proxy to such a one.")


def _checked(url: str, host: str, mend: str) -> Proxy:
    proxy = Proxy(url if "://" in url else f"http://{url}")
    kind = urlsplit(proxy.url).scheme.lower()
    if kind not in _PORTS or not _is_place(proxy.url):
        raise UsageError(
            f"the proxy {kind}://{proxy.where} for {host} cannot be used: proxies are reached over http or "
            f"https, at HOST:PORT. {mend}",
            code="proxy.kind",
            proxy=proxy.where,
        )
    return proxy


def _is_place(url: str) -> bool:
    """Return whether an address has a host, and a port that is one."""
    try:
        parts = urlsplit(url)
        return bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        return False


def is_exempt(host: str, port: int, rules: str) -> bool:
    """Return whether `NO_PROXY` exempts a host."""
    name = host.strip("[]").rstrip(".").lower()
    return any(_fits(name, port, rule.lower()) for rule in re.split(r"[,\s]+", rules) if rule)


def _fits(host: str, port: int, rule: str) -> bool:
    if rule == "*":
        return True
    # Of several colons, an address without brackets has all; a port is the last part of any other rule.
    if found := re.fullmatch(r"(\[.*\]|[^:]*):(\d+)", rule):
        rule = found[1]
        if int(found[2]) != port:
            return False
    rule = re.sub(r"[\[\]]", "", rule).rstrip(".")
    with contextlib.suppress(ValueError):
        network = ipaddress.ip_network(rule, strict=False)
        return _is_in(host, network)
    if "*" in rule and not rule.startswith("*."):
        return fnmatchcase(host, rule)
    domain = rule.removeprefix("*").removeprefix(".")
    return bool(domain) and (host == domain or host.endswith(f".{domain}"))


def _is_in(host: str, network: ipaddress.IPv4Network | ipaddress.IPv6Network) -> bool:
    try:
        return ipaddress.ip_address(host) in network
    except ValueError:
        return False
