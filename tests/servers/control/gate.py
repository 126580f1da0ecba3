# SPDX-License-Identifier: Apache-2.0
"""The proxy in front of the boxes: which sandbox and port a request is for, and what it is told where there is none."""
import asyncio
import ipaddress
import posixpath
import re

from base import relay, wire

ENVD_PORT = 49983
RESERVED = {"/init", "/freeze", "/unfreeze", "/collapse", "/fsfreeze", "/fsthaw", "/upgrade", "/logs"}


def text_answer(status, text):
    return wire.Answer(status, text.encode(), None, "text/plain; charset=utf-8")


def refusal(status, sandbox_id, message, **more):
    return wire.json_answer(status, {"sandboxId": sandbox_id, "message": message} | more | {"code": status})


def takes_headers(host):
    if host == "localhost" or host.startswith("sandbox."):
        return True
    try:
        ipaddress.ip_address(host.strip("[]"))
        return True
    except ValueError:
        return False


def is_ours(request):
    """Whether a request is for a sandbox; else it is for the control plane."""
    host = request.headers.get("host", "").rsplit(":", 1)[0]
    named = any(name in request.headers for name in ("e2b-sandbox-id", "e2b-sandbox-port"))
    return named if takes_headers(host) else bool(re.match(r"\d+-[a-z0-9]", host))


def target(request):
    """(sandbox id, port) or an answer."""
    host = request.headers.get("host", "").rsplit(":", 1)[0]
    if takes_headers(host):
        name, port = request.headers.get("e2b-sandbox-id"), request.headers.get("e2b-sandbox-port")
        if name is None or port is None:
            return None, text_answer(400, "missing header")
    else:
        label, dot, _ = host.partition(".")
        parts = label.split("-")
        if not dot or len(parts) < 2:
            return None, text_answer(400, "Invalid host")
        port, name = parts[:2]
    if not port.isdigit() or not 0 < int(port) < 65536:
        return None, text_answer(400, "invalid sandbox port")
    if not re.fullmatch("[a-z0-9]+", name):
        return None, text_answer(400, "invalid sandbox ID")
    return (name, int(port)), None


class Gate:
    """@tap(request, sandbox, port): who looks at what passes, or None."""

    def __init__(self, sandboxes, tap=None, daemon_port=ENVD_PORT):
        self.sandboxes, self.tap, self.daemon_port = sandboxes, tap, daemon_port

    async def serve(self, request):
        found, answer = target(request)
        if answer:
            return answer
        name, port = found
        sandbox = self.sandboxes.all.get(name)
        if sandbox and sandbox.move in ("pausing", "resuming", "snapshotting"):
            await self.wait(sandbox)
        if sandbox and sandbox.state == "paused" and (sandbox.options.get("autoResume") or {}).get("enabled") and sandbox.frozen:
            await self.sandboxes.resume(sandbox, max(300, sandbox.options["timeout"]))
        if sandbox is None or sandbox.state != "running" or sandbox.move == "killing":
            return refusal(502, name, "The sandbox was not found")
        if port == ENVD_PORT:
            if posixpath.normpath("/" + request.path.lstrip("/")) in RESERVED:
                return wire.json_answer(404, {"message": "not found", "path": request.path, "code": 404})
        elif sandbox.traffic_token and request.headers.get("e2b-traffic-access-token") != sandbox.traffic_token:
            return refusal(403, name, "Sandbox is secured with traffic access token")
        return await self.forward(request, sandbox, port)

    @staticmethod
    async def wait(sandbox):
        for _ in range(100):
            if not sandbox.move:
                return
            await asyncio.sleep(0.02)

    async def forward(self, request, sandbox, port):
        try:
            streams = await self.open(sandbox, port)
        except (OSError, asyncio.IncompleteReadError):
            return refusal(502, sandbox.id, "The sandbox is running but port is not open", port=port)
        sandbox.connections |= {streams[1], request.writer}
        try:
            answer = await relay.forward(request, streams, self.tap(request, sandbox, port) if self.tap else None)
        except BaseException:
            sandbox.connections -= {streams[1], request.writer}
            raise
        answer.body = self.until_over(answer.body, sandbox, {streams[1], request.writer})
        return answer

    @staticmethod
    async def until_over(body, sandbox, writers):
        try:
            async for data in body:
                yield data
        finally:
            await body.aclose()
            sandbox.connections -= writers

    async def open(self, sandbox, port):
        if port == self.daemon_port:
            return await self.sandboxes.connect(sandbox)
        reader, writer = await self.sandboxes.connect(sandbox, "ports")
        writer.write(f"{port}\n".encode())
        if await reader.readline() != b"open\n":
            writer.close()
            raise ConnectionRefusedError(port)
        return reader, writer
