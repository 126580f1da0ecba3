# SPDX-License-Identifier: Apache-2.0
"""envd: the daemon that is PID 1 of a box. serve() is given listening sockets and what the box is."""
import asyncio
import base64
import binascii
import os
import time

from base import guest, proto, reaper, rpc, wire
from envd import files, paths, ports
from envd.filesystem import Filesystem
from envd.process import Processes
from envd.watch import Watches

PUBLIC = {("GET", "/health"), ("GET", "/files"), ("POST", "/files"), ("POST", "/init"), ("HEAD", "/files")}
HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def contract(name):
    with open(f"{HERE}/contracts/e2b/{name}.proto", encoding="utf-8") as file:
        return proto.load(file.read())


class Daemon:
    def __init__(self, box, schemas):
        self.envs, self.token, self.skew = dict(box.get("envs", {})), box.get("token"), box.get("skew", 0)
        self.user, self.workdir, self.logs = box.get("user", "user"), box.get("workdir", ""), []
        self.reaper, self.files = reaper.Reaper(), files.Files(self)
        filesystem, watches, self.processes = Filesystem(self), Watches(self), Processes(self)
        self.services = (rpc.Service(schemas[0], self.processes.methods()),
                         rpc.Service(schemas[1], filesystem.methods() | watches.methods()))
        self.routes = {("GET", "/health"): self.health, ("GET", "/envs"): self.get_envs, ("GET", "/metrics"): self.metrics,
                       ("POST", "/init"): self.init, ("POST", "/freeze"): guest.freeze, ("POST", "/unfreeze"): guest.unfreeze,
                       ("GET", "/logs"): self.get_logs}

    def log(self, message, **fields):
        self.logs.append({"at": time.time(), "message": message, "fields": {key: str(value) for key, value in fields.items()}})
        del self.logs[:-1000]

    def user_of(self, headers):
        """Whom `Authorization: Basic` names."""
        name, authorization = self.user, headers.get("authorization", "")
        if authorization.lower().startswith("basic "):
            try:
                name = base64.b64decode(authorization[6:], validate=True).decode().partition(":")[0]
            except (binascii.Error, ValueError):
                raise rpc.Error("unauthenticated", "no user specified") from None
        return paths.find_user(name)

    async def serve(self, request):
        path = os.path.normpath(request.path)
        if self.token and (request.method, path) not in PUBLIC and request.headers.get("x-access-token") != self.token:
            return files.error_answer(401, "unauthorized access, please provide a valid access token or method signing if supported")
        for service in self.services:
            if service.has(path):
                return await service.serve(request)
        if path in ("/files", "/files/compose"):
            return await self.files.serve(request)
        route = self.routes.get((request.method, path))
        return await route(request) if route else wire.Answer(404, b"404 page not found\n", None, "text/plain; charset=utf-8")

    async def health(self, _request):
        return wire.Answer(204)

    async def get_envs(self, _request):
        return wire.json_answer(200, self.envs)

    async def get_logs(self, _request):
        """No part of envd's interface: the server asks, for the box's logs."""
        return wire.json_answer(200, self.logs)

    async def metrics(self, _request):
        memory, disk = guest.memory(), os.statvfs("/")
        return wire.json_answer(200, {
            "ts": int(time.time()), "cpu_count": os.cpu_count(), "cpu_used_pct": min(100.0, round(os.getloadavg()[0] * 100, 2)),
            "mem_total": memory["MemTotal"], "mem_used": memory["Used"], "mem_cache": memory["Cached"],
            "mem_total_mib": memory["MemTotal"] >> 20, "mem_used_mib": memory["Used"] >> 20,
            "disk_used": (disk.f_blocks - disk.f_bfree) * disk.f_frsize, "disk_total": disk.f_blocks * disk.f_frsize})

    async def init(self, request):
        asked = await request.json()
        self.envs |= asked.get("envVars") or {}
        self.token = asked.get("accessToken", self.token)
        self.user, self.workdir = asked.get("defaultUser") or self.user, asked.get("defaultWorkdir") or self.workdir
        if asked.get("startCommand"):  # no part of envd's interface: of a template, whose memory a box does not begin with
            await self.processes.launch(asked["startCommand"])
        return wire.Answer(204)


def serve(socks, box):
    """@socks: where envd is, and where the box's ports are."""
    async def main():
        daemon = Daemon(box, SCHEMAS)
        await asyncio.start_unix_server(ports.serve, sock=socks[1])
        server = await wire.listen(daemon.serve, socks[0])
        await server.serve_forever()

    asyncio.run(main())


SCHEMAS = (contract("process"), contract("filesystem"))
