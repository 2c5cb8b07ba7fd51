"""Which endpoints are endpoints, and which addresses are public."""

from __future__ import annotations

import asyncio
import socket
import threading

import pytest

from transport.endpoint import SafeResolver, is_public, parse_endpoint
from transport.errors import BadEndpoint


@pytest.mark.parametrize(
    ("text", "origin"),
    [
        ("http://8.8.8.8:8080", "http://8.8.8.8:8080"),
        ("http://8.8.8.8:8080/", "http://8.8.8.8:8080"),
        ("https://node.example", "https://node.example"),
        ("HTTPS://Node.Example:443/", "https://node.example"),
        ("http://[2001:4860:4860::8888]:80", "http://[2001:4860:4860::8888]"),
    ],
)
def test_parse_endpoint__public_origin__normalised(text: str, origin: str) -> None:
    endpoint = parse_endpoint(text)
    assert endpoint.origin == origin
    assert str(endpoint.url("/v1/records/a?before=1")) == origin + "/v1/records/a?before=1"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "node.example",
        "node.example:80",
        "//node.example",
        "ftp://node.example",
        "file:///etc",
        "javascript:alert(1)",
        "http://",
        "http://:80",
        "http://user@node.example",
        "http://u:p@node.example",
        "http://node.example/path",
        "http://node.example//",
        "http://node.example?q",
        "http://node.example/?q=1",
        "http://node.example#f",
        "http://node.example:0",
        "http://node.example:65536",
        "http://node.example:x",
        "http://node.example\r\nHost: evil",
        "http://node.example\n",
        "http://node.example%00",
        "http://ä.example",
        "http://a b",
        "http://" + "a" * 300,
        "http://[::1",
        "http://[fe80::1%eth0]:80",
        "http://[node]:80",
        "http://127.1:80",
        "http://127.0.0.1.:80",
        "http://2130706433:80",
        "http://1.2.3.256:80",
    ],
)
def test_parse_endpoint__not_an_origin__refused(text: str) -> None:
    with pytest.raises(BadEndpoint):
        parse_endpoint(text)
    with pytest.raises(BadEndpoint):
        parse_endpoint(text, allow_private=True)


PRIVATE = [
    "0.0.0.0",
    "10.1.2.3",
    "100.64.0.1",
    "127.0.0.1",
    "127.255.255.254",
    "169.254.169.254",
    "172.16.0.1",
    "192.0.2.1",
    "192.168.1.1",
    "198.18.0.1",
    "224.0.0.1",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "::ffff:127.0.0.1",
    "::ffff:10.0.0.1",
    "::127.0.0.1",
    "64:ff9b::7f00:1",
    "64:ff9b::a00:1",
    "64:ff9b:1::1",
    "2001:0:4136:e378:8000:63bf:80ff:fffe",  # Teredo of 127.0.0.1
    "2001:db8::1",
    "2002:7f00:1::",
    "2002:c0a8:101::1",
    "fc00::1",
    "fd12:3456::1",
    "fe80::1",
    "fe80::1%eth0",
    "2001:4860:4860::8888%eth0",
    "fec0::1",
    "ff02::1",
]
PUBLIC = [
    "1.1.1.1",
    "8.8.8.8",
    "172.32.0.1",
    "2001:4860:4860::8888",
    "::ffff:8.8.8.8",
    "64:ff9b::808:808",
    "2002:808:808::1",
]


@pytest.mark.parametrize("address", [*PRIVATE, "nonsense", "", "8.8.8", "8.8.8.8.8"])
def test_is_public__private__no(address: str) -> None:
    assert not is_public(address)


@pytest.mark.parametrize("address", PUBLIC)
def test_is_public__public__yes(address: str) -> None:
    assert is_public(address)


@pytest.mark.parametrize("address", [address for address in PRIVATE if "%" not in address])
def test_parse_endpoint__private_literal__refused_unless_allowed(address: str) -> None:
    host = f"[{address}]" if ":" in address else address
    with pytest.raises(BadEndpoint):
        parse_endpoint(f"http://{host}:8080")
    parse_endpoint(f"http://{host}:8080", allow_private=True)


def resolves_to(monkeypatch: pytest.MonkeyPatch, *addresses: str) -> None:
    def answer(host: str, port: int, **options: object) -> list[object]:
        kinds = [socket.AF_INET6 if ":" in each else socket.AF_INET for each in addresses]
        return [
            (kind, socket.SOCK_STREAM, 6, "", (each, port))
            for kind, each in zip(kinds, addresses, strict=True)
        ]

    monkeypatch.setattr(socket, "getaddrinfo", answer)


async def test_resolver__only_public__passed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    resolves_to(monkeypatch, "1.1.1.1", "2001:4860:4860::8888")
    resolver = SafeResolver(timeout_s=1)
    found = await resolver.resolve("node.example", 80)
    assert [(each["host"], each["port"], each["family"]) for each in found] == [
        ("1.1.1.1", 80, socket.AF_INET),
        ("2001:4860:4860::8888", 80, socket.AF_INET6),
    ]
    await resolver.close()


@pytest.mark.parametrize("private", PRIVATE)
async def test_resolver__any_private__refused_unless_allowed(
    private: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    resolves_to(monkeypatch, "8.8.8.8", private)
    with pytest.raises(BadEndpoint):
        await SafeResolver(timeout_s=1).resolve("node.example")
    found = await SafeResolver(timeout_s=1, allow_private=True).resolve("node.example")
    assert [each["host"] for each in found] == ["8.8.8.8", private]


async def test_resolver__slow_names__given_up_and_disk_threads_left_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    release = threading.Event()

    def never(host: str, port: int, **options: object) -> list[object]:
        release.wait(10)
        return []

    monkeypatch.setattr(socket, "getaddrinfo", never)
    resolver = SafeResolver(timeout_s=0.05)
    try:
        answers = await asyncio.gather(
            *(resolver.resolve(f"slow{number}.example") for number in range(40)),
            return_exceptions=True,
        )
        assert all(isinstance(answer, OSError) for answer in answers)
        assert await asyncio.to_thread(lambda: "free") == "free"
    finally:
        release.set()
        await resolver.close()
