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
import socket
from dataclasses import dataclass

from aiohttp import ThreadedResolver
from aiohttp.abc import AbstractResolver, ResolveResult
from yarl import URL

from transport.errors import BadEndpoint

_MAX_ENDPOINT_CHARS = 256
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
    if not 0 < len(text) <= _MAX_ENDPOINT_CHARS or not text.isascii() or not text.isprintable():
        raise BadEndpoint(f"not an endpoint: {text[:80]!r}")
    try:
        url = URL(text)
        host, port = url.host, url.port
    except ValueError as error:
        raise BadEndpoint(f"not an endpoint: {text!r}: {error}") from error
    if url.scheme not in ("http", "https") or not host or not port:
        raise BadEndpoint(f"an endpoint is http://host:port or https://host:port, not {text!r}")
    if url.user is not None or url.password is not None or url.path not in ("", "/"):
        raise BadEndpoint(f"an endpoint has no user, path or query: {text!r}")
    if url.query_string or url.fragment or "?" in text or "#" in text:
        raise BadEndpoint(f"an endpoint has no user, path or query: {text!r}")
    if not allow_private:
        _check_literal(host)
    return Endpoint(str(url.origin()))


def is_public(address: str) -> bool:
    """Whether an IP address (text) is routable on the public internet.

    Looks through the IPv6 forms that carry an IPv4 address: mapped, 6to4, Teredo, NAT64.
    """
    try:
        parsed: _IpAddress = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return False
    if "%" in address or not parsed.is_global or parsed.is_multicast or parsed.is_reserved:
        # Mapped and NAT64 addresses are reserved as such; what counts is what they carry.
        inner = _embedded(parsed)
        return "%" not in address and inner is not None and is_public(str(inner))
    inner = _embedded(parsed)
    return inner is None or is_public(str(inner))


def _embedded(address: _IpAddress) -> ipaddress.IPv4Address | None:
    if isinstance(address, ipaddress.IPv4Address):
        return None
    if address in _NAT64:
        return ipaddress.IPv4Address(int(address) & 0xFFFF_FFFF)
    if address.teredo is not None:
        return address.teredo[1]
    return address.ipv4_mapped or address.sixtofour


def _check_literal(host: str) -> None:
    try:
        ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return  # a name: the resolver checks what it leads to
    if not is_public(host):
        raise BadEndpoint(f"endpoint {host} is not a public address")


class PublicResolver(AbstractResolver):
    """Resolves names, and refuses those that lead to any address which is not public."""

    def __init__(self, *, timeout_s: float, inner: AbstractResolver | None = None) -> None:
        self._timeout_s = timeout_s
        self._inner = inner or ThreadedResolver()

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        """As the inner resolver, within the time limit; raises `BadEndpoint`."""
        try:
            async with asyncio.timeout(self._timeout_s):
                found = await self._inner.resolve(host, port, family)
        except TimeoutError as error:
            raise OSError(f"resolving {host} took more than {self._timeout_s:g} s") from error
        for result in found:
            if not is_public(result["host"]):
                raise BadEndpoint(f"{host} leads to {result['host']}, which is not public")
        return found

    async def close(self) -> None:
        """Closes the inner resolver."""
        await self._inner.close()
