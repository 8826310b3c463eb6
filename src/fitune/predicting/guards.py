"""What stands between the network and the model: size, time and token limits, as plain ASGI middleware."""

from __future__ import annotations

import asyncio
import hmac
import json
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

__all__ = ["BodyGuard", "HeaderDeadlineProtocol", "SecurityHeaders", "StatusCount", "TokenGuard"]

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]


async def answer(send: Send, status: int, detail: str, headers: dict[str, str] | None = None) -> None:
    """A small JSON answer; the connection is closed after it, since the request's body may be unread."""
    body = json.dumps({"detail": detail}, ensure_ascii=False).encode()
    fields = {"content-type": "application/json", "content-length": str(len(body)), "connection": "close"}
    fields.update(headers or {})
    raw = [(name.encode(), value.encode()) for name, value in fields.items()]
    await send({"type": "http.response.start", "status": status, "headers": raw})
    await send({"type": "http.response.body", "body": body})


class BodyGuard:
    """Refuses bodies that are too large (413) or that arrive too slowly (408), before they are parsed."""

    def __init__(self, app: App, *, max_bytes: int, seconds: float) -> None:
        self._app, self._max_bytes, self._seconds = app, max_bytes, seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] not in {"POST", "PUT", "PATCH"}:
            await self._app(scope, receive, send)
            return
        declared = dict(scope["headers"]).get(b"content-length", b"0")
        too_large = f"the body is larger than {self._max_bytes} bytes"
        if declared.isdigit() and int(declared) > self._max_bytes:
            await answer(send, 413, too_large)
            return
        chunks: list[bytes] = []
        size = 0
        deadline = asyncio.get_running_loop().time() + self._seconds
        while True:
            try:
                message = await asyncio.wait_for(receive(), max(0.0, deadline - asyncio.get_running_loop().time()))
            except (asyncio.TimeoutError, TimeoutError):
                await answer(send, 408, f"the body did not arrive within {self._seconds:g} s")
                return
            if message["type"] == "http.disconnect":
                return
            chunk: bytes = message.get("body", b"")
            size += len(chunk)
            if size > self._max_bytes:
                await answer(send, 413, too_large)
                return
            chunks.append(chunk)
            if not message.get("more_body", False):
                break
        replayed: list[Message] = [{"type": "http.request", "body": b"".join(chunks), "more_body": False}]

        async def replay() -> Message:
            return replayed.pop() if replayed else await receive()

        await self._app(scope, replay, send)


class TokenGuard:
    """Demands ``Authorization: Bearer TOKEN`` on everything but the page and the health checks."""

    open_paths = frozenset({"/", "/healthz", "/readyz"})

    def __init__(self, app: App, *, token: str) -> None:
        self._app, self._expected = app, f"Bearer {token}".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] in self.open_paths or scope["path"].startswith("/page/"):
            await self._app(scope, receive, send)
            return
        given = dict(scope["headers"]).get(b"authorization", b"")
        # Compared in constant time, so that the answer's delay tells nothing of the token.
        if hmac.compare_digest(given, self._expected):
            await self._app(scope, receive, send)
        else:
            await answer(send, 401, "a valid token is needed", {"www-authenticate": "Bearer"})


class StatusCount:
    """Tells ``count`` the status of every answer to a request for ``path``; 500 where the app failed."""

    def __init__(self, app: App, *, path: str, count: Callable[[int], None]) -> None:
        self._app, self._path, self._count = app, path, count

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] != self._path:
            await self._app(scope, receive, send)
            return
        answered = False

        async def counted(message: Message) -> None:
            nonlocal answered
            if message["type"] == "http.response.start":
                answered = True
                self._count(message["status"])
            await send(message)

        try:
            await self._app(scope, receive, counted)
        except Exception:
            if not answered:
                self._count(500)
            raise


class SecurityHeaders:
    """Tells the browser to load nothing from elsewhere and to keep nothing of the answers."""

    # /docs' script (Swagger UI, served from here) writes inline styles and starts from an inline script.
    _page = "default-src 'self'; img-src 'self' data:; base-uri 'none'; frame-ancestors 'none'; form-action 'none'"
    _docs = _page + "; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'"

    def __init__(self, app: App) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        policy = self._docs if scope["path"] in {"/docs", "/redoc"} else self._page

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [
                    *message.get("headers", []),
                    (b"content-security-policy", policy.encode()),
                    (b"x-content-type-options", b"nosniff"),
                    (b"referrer-policy", b"no-referrer"),
                    (b"cache-control", b"no-store"),
                ]
            await send(message)

        await self._app(scope, receive, with_headers)


class HeaderDeadlineProtocol(H11Protocol):
    """uvicorn's h11 protocol, with a deadline for a connection's first headers (slow-loris)."""

    header_seconds = 10.0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.loop.call_later(self.header_seconds, self._close_if_silent)

    def _close_if_silent(self) -> None:
        # ``cycle`` is the first request that came in whole; without one nobody has asked for anything yet.
        if vars(self)["cycle"] is None and not self.transport.is_closing():
            self.transport.close()
