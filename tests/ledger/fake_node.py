"""A node that answers as a test wants, over real HTTP."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

Answer = Callable[[str, list[Any]], Any]


class RpcFault(Exception):
    """The JSON-RPC error that the node answers with."""

    def __init__(self, code: int, message: str, data: object = None) -> None:
        super().__init__(message)
        self.body = {"code": code, "message": message, "data": data}


@dataclass(slots=True)
class FakeNode:
    """`answer` is asked for each request; `raw` replaces everything by one HTTP response."""

    url: str = ""
    answer: Answer = lambda method, params: "0x1"
    raw: Callable[[], web.StreamResponse] | None = None
    asked: list[str] = field(default_factory=list)
    drop_next: bool = False
    takes_batches: bool = True

    async def handle(self, request: web.Request) -> web.StreamResponse:
        body = json.loads(await request.read())
        self.asked += [item["method"] for item in (body if isinstance(body, list) else [body])]
        if self.drop_next:
            self.drop_next = False
            assert request.transport is not None
            request.transport.close()
            return web.Response()
        if self.raw is not None:
            return self.raw()
        if isinstance(body, list) and not self.takes_batches:
            fault = {"code": -32600, "message": "no batches"}
            return web.json_response({"jsonrpc": "2.0", "id": None, "error": fault})
        answers = [self._one(item) for item in (body if isinstance(body, list) else [body])]
        return web.json_response(answers if isinstance(body, list) else answers[0])

    def _one(self, item: dict[str, Any]) -> dict[str, Any]:
        head = {"jsonrpc": "2.0", "id": item["id"]}
        try:
            return {**head, "result": self.answer(item["method"], item["params"])}
        except RpcFault as fault:
            return {**head, "error": fault.body}


@asynccontextmanager
async def fake_node(answer: Answer | None = None) -> AsyncIterator[FakeNode]:
    """Serves on a free port."""
    node = FakeNode()
    if answer is not None:
        node.answer = answer
    app = web.Application()
    app.router.add_post("/{path:.*}", node.handle)
    runner = web.AppRunner(app, shutdown_timeout=0)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    node.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield node
    finally:
        await runner.cleanup()
