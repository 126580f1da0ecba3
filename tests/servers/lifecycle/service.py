# SPDX-License-Identifier: Apache-2.0
"""The whole of OpenSandbox: the lifecycle server with its own proxy to sandboxes, and an address for each port that is asked for."""
import re
import socket
import uuid

from base import faults, service, wire
from base.service import Problem
from control.gate import Gate
from control.sandboxes import Clock, Sandboxes
from control.templates import Templates
from lifecycle.api import Api

EXECD_PORT = 44772
PROXY = re.compile(r"(?:/v1)?/sandboxes/([^/]+)/proxy/(\d+)(/.*)?")
CODES = {400: "SANDBOX::INVALID_PARAMETER", 404: "NOT_FOUND", 405: "METHOD_NOT_ALLOWED", 409: "SANDBOX::INVALID_STATE"}


class Service(service.Service):
    SECRET = {"open-sandbox-api-key", "x-execd-access-token", "authorization"}

    def __init__(self, service_boxes, key, limit, watcher=None):
        clock = Clock()
        super().__init__(Sandboxes(service_boxes, clock, limit), clock, watcher)
        self.key, self.templates, self.doors = key, Templates(service_boxes, self.sandboxes, clock), {}
        self.gate = Gate(self.sandboxes, watcher.tap if watcher else None, EXECD_PORT)
        self.routes = service.compile_routes(Api(self.sandboxes, self.templates, clock, self.endpoint).routes())

    async def answer(self, request):
        answer = await self.answered(request)
        answer.headers["X-Request-ID"] = uuid.uuid4().hex
        return answer

    async def answered(self, request):
        if request.path == "/health":
            return wire.json_answer(200, {"status": "healthy"})
        proxied = PROXY.fullmatch(request.raw_path)
        if proxied:
            sandbox = self.sandboxes.all.get(proxied[1])
            request.target = (proxied[3] or "/") + request.target[len(request.raw_path):]
            request.path = proxied[3] or "/"
            return await self.to_port(request, sandbox, int(proxied[2]))
        if self.key and request.headers.get("open-sandbox-api-key") != self.key:
            code = "INVALID_API_KEY" if "open-sandbox-api-key" in request.headers else "MISSING_API_KEY"
            return self.refusal(Problem(401, "Authentication failed: API key is wrong or missing.", error=code))
        path = request.raw_path.removeprefix("/v1")
        answer = await self.route(self.routes, request, path)
        if self.watcher:
            await self.watcher.control(request, answer, path + request.target[len(request.raw_path):])
        return answer

    @staticmethod
    def refusal(problem):
        code = problem.more.get("error") or CODES.get(problem.status, "INTERNAL_ERROR")
        return wire.json_answer(problem.status, {"code": code, "message": problem.message})

    async def to_port(self, request, sandbox, port):
        if sandbox is None or sandbox.state != "running" or sandbox.move == "killing":
            return wire.json_answer(502, {"code": "BAD_GATEWAY", "message": "the sandbox is not there, or does not run"})
        return await self.gate.forward(request, sandbox, port)

    async def endpoint(self, request, sandbox, port, by_server):
        """host[:port][/path]. By the server's own proxy, or an address of this port alone."""
        if by_server:
            return f"{request.headers['host']}/sandboxes/{sandbox.id}/proxy/{port}"
        if (sandbox.id, port) not in self.doors:
            async def handler(asked):
                return await faults.handle(lambda one: self.to_port(one, self.sandboxes.all.get(sandbox.id), port), asked)

            sock = socket.create_server(("127.0.0.1", 0), backlog=512)
            await wire.listen(handler, sock, None, self.faults.outlet)
            self.doors[sandbox.id, port] = sock.getsockname()[1]
        return f"127.0.0.1:{self.doors[sandbox.id, port]}"
