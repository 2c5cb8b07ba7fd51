"""JSON-RPC 2.0 over HTTP: frames requests, posts them, matches answers to requests. Knows nothing of Ethereum.

Not web3's provider: its session manager takes a thread's lock inside an await, so that one cancelled request (every
deadline is one) blocks all later ones for ever. An aiohttp session with a deadline per request needs no lock.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import count

import aiohttp
import msgspec

from ledger.errors import RpcDenied, RpcUnavailable
from ledger.json_rpc import Json

_DROPPED = (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError)
_HEADERS = {"Content-Type": "application/json", "User-Agent": "syntience"}

Answer = Mapping[str, Json]
"""One response object, with a ``result`` or an ``error``."""


class JsonRpcClient:
    """Talks to one URL; `shown_url` stands for it in messages."""

    def __init__(self, url: str, shown_url: str, *, timeout_s: float) -> None:
        self._url = url
        self._shown = shown_url
        self._ids = count(1)
        self._takes_batches = True
        self._session = aiohttp.ClientSession(
            headers=_HEADERS,
            timeout=aiohttp.ClientTimeout(total=timeout_s),
            connector=aiohttp.TCPConnector(limit=8),
        )

    async def aclose(self) -> None:
        """Closes the sockets."""
        await self._session.close()

    async def single(self, method: str, parameters: Sequence[Json]) -> Answer:
        """One request."""
        frame = self._frame(method, parameters)
        answer = await self._post(frame)
        if not isinstance(answer, Mapping):
            raise self._nonsense()
        return answer

    async def batch(self, calls: Sequence[tuple[str, Sequence[Json]]]) -> list[Answer]:
        """Several requests in one, answers in their order; one by one if the node takes no batches."""
        if not self._takes_batches:
            return [await self.single(method, parameters) for method, parameters in calls]
        frames = [self._frame(method, parameters) for method, parameters in calls]
        answers = await self._post(frames)
        if isinstance(answers, Mapping) and "error" in answers:
            self._takes_batches = False
            return await self.batch(calls)
        if not isinstance(answers, list):
            raise self._nonsense()
        by_id = {item.get("id"): item for item in answers if isinstance(item, Mapping)}
        if len(answers) != len(frames) or any(frame["id"] not in by_id for frame in frames):
            raise self._nonsense()
        return [by_id[frame["id"]] for frame in frames]

    def _frame(self, method: str, parameters: Sequence[Json]) -> dict[str, Json]:
        return {"jsonrpc": "2.0", "id": next(self._ids), "method": method, "params": parameters}

    async def _post(self, body: Json) -> Json:
        data = msgspec.json.encode(body)
        try:
            try:
                raw = await self._exchange(data)
            except _DROPPED:
                # The node closed an idle connection just as we used it. All methods that we use may be repeated.
                raw = await self._exchange(data)
        except TimeoutError as error:
            raise RpcUnavailable(f"{self._shown} did not answer in time") from error
        except (aiohttp.ClientError, OSError) as error:
            raise RpcUnavailable(f"{self._shown}: {error}") from error
        try:
            answer: Json = msgspec.json.decode(raw)
        except (msgspec.DecodeError, RecursionError) as error:
            raise self._nonsense() from error
        return answer

    async def _exchange(self, data: bytes) -> bytes:
        async with self._session.post(self._url, data=data) as response:
            if response.status in (401, 403, 404):
                raise RpcDenied(
                    f"{self._shown} answers with HTTP {response.status}",
                    "check the path and the API key in --rpc",
                )
            raw = await response.read()
            if response.status >= 300 and not raw.lstrip().startswith((b"{", b"[")):
                raise RpcUnavailable(f"{self._shown} answers with HTTP {response.status}")
            return raw

    def _nonsense(self) -> RpcUnavailable:
        return RpcUnavailable(f"{self._shown} answers with something that is no JSON-RPC")
