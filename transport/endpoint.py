"""Which endpoints we talk to: registered by strangers, so never one inside our own network.

A registered endpoint is an origin, ``http://host:port`` or ``https://host``, and nothing more. It
must lead to public addresses only: a literal private address is refused when the endpoint is
parsed, and a name is refused when *any* of its addresses is private, at the very resolution whose
result is connected to (so a second answer cannot differ from the checked one). Redirects are not
followed anywhere. A devnet passes ``allow_private``.
"""

from __future__ import annotations

import asyncio
import ipaddress
import re
import socket
from dataclasses import dataclass

from aiohttp.abc import AbstractResolver, ResolveResult
from yarl import URL

from transport.errors import BadEndpoint
from transport.threads import Threads

_MAX_ENDPOINT_CHARS = 256
_RESOLVING_AT_ONCE = 8
_FORM = re.compile(r"https?://[a-z0-9._:\[\]-]+/?", re.ASCII | re.IGNORECASE)
_NUMERIC = re.compile(r"[0-9.]+|.*:.*", re.ASCII)
_UNICAST_6 = ipaddress.IPv6Network("2000::/3")
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
_IpAddress = ipaddress.IPv4Address | ipaddress.IPv6Address


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A parsed endpoint; equal endpoints have equal origins, whatever their spelling was."""

    origin: str

    def url(self, path: str) -> URL:
        """The URL of an absolute, already encoded path at this endpoint."""
        return URL(self.origin + path, encoded=True)


def parse_endpoint(text: str, *, allow_private: bool = False) -> Endpoint:
    """Parses a registered endpoint.

    Raises:
        BadEndpoint: not a bare http(s) origin, or a literal address that is not public.
    """
    if len(text) > _MAX_ENDPOINT_CHARS or not _FORM.fullmatch(text):
        raise BadEndpoint(f"an endpoint is http://host:port or https://host: {text[:80]!r}")
    try:
        url = URL(text)
        host, port = url.host, url.port
    except ValueError as error:
        raise BadEndpoint(f"not an endpoint: {text!r}: {error}") from error
    if not host or not port:
        raise BadEndpoint(f"an endpoint without host or port: {text!r}")
    if _NUMERIC.fullmatch(host) and not _is_ip(host):
        # 127.1 or 2130706433: the system would read an address where we see a name.
        raise BadEndpoint(f"an address in a form that is not its own: {text!r}")
    if not allow_private and _is_ip(host) and not is_public(host):
        raise BadEndpoint(f"endpoint {host} is not a public address")
    return Endpoint(str(url.origin()))


def is_public(address: str) -> bool:
    """Whether an IP address (text) is routable on the public internet.

    Looks through the IPv6 forms that carry an IPv4 address: mapped, 6to4, NAT64. A scoped address
    (``%eth0``) never is.
    """
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return False
    if "%" in address:
        return False
    inner = _embedded(parsed)
    if inner is not None:
        return is_public(str(inner))
    if isinstance(parsed, ipaddress.IPv6Address) and parsed not in _UNICAST_6:
        return False
    return parsed.is_global and not parsed.is_multicast and not parsed.is_reserved


def _embedded(address: _IpAddress) -> ipaddress.IPv4Address | None:
    if isinstance(address, ipaddress.IPv4Address):
        return None
    if address in _NAT64:
        return ipaddress.IPv4Address(int(address) & 0xFFFF_FFFF)
    return address.ipv4_mapped or address.sixtofour


def _is_ip(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


class SafeResolver(AbstractResolver):
    """Resolves names in threads of its own, and refuses those that lead to a private address.

    Args:
        timeout_s: for one name; a slower one counts as unreachable.
        allow_private: pass private addresses on.
    """

    def __init__(self, *, timeout_s: float, allow_private: bool = False) -> None:
        self._timeout_s = timeout_s
        self._allow_private = allow_private
        self._threads = Threads("resolve", _RESOLVING_AT_ONCE)

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        """All addresses of a name; raises `BadEndpoint` if any of them is private."""
        try:
            async with asyncio.timeout(self._timeout_s):
                found = await self._threads.run(
                    socket.getaddrinfo,
                    host,
                    port,
                    family=family,
                    type=socket.SOCK_STREAM,
                    flags=socket.AI_ADDRCONFIG,
                )
        except TimeoutError as error:
            raise OSError(f"resolving {host} took more than {self._timeout_s:g} s") from error
        results: list[ResolveResult] = []
        for kind, _, protocol, _, target in found:
            address = str(target[0])
            if not (self._allow_private or is_public(address)):
                raise BadEndpoint(f"{host} leads to {address}, which is not public")
            results.append(
                ResolveResult(
                    hostname=host,
                    host=address,
                    port=port,
                    family=kind,
                    proto=protocol,
                    flags=socket.AI_NUMERICHOST | socket.AI_NUMERICSERV,
                )
            )
        return results

    async def close(self) -> None:
        """Ends the threads."""
        self._threads.close()
