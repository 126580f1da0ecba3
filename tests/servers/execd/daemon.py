# SPDX-License-Identifier: Apache-2.0
"""execd: OpenSandbox's daemon, PID 1 of a box. serve() is given listening sockets and what the box is."""
import asyncio
import os
import subprocess
import time

from base import guest, reaper, service, wire
from envd import ports
from execd.commands import Commands, Refused
from execd.files import Files


class Daemon:
    def __init__(self, box):
        self.token, self.workdir, self.reaper = box.get("token"), box.get("workdir") or "/workspace", reaper.Reaper()
        os.environ.update({"HOME": "/root", "USER": "root"} | box.get("envs", {}))
        self.routes = service.compile_routes([
            *Commands(self).routes(), *Files(self).routes(), ("GET", "/ping", self.ping), ("GET", "/metrics", self.metrics),
            ("GET", "/metrics/watch", self.watch), ("POST", "/code", self.code), ("POST", "/code/context", self.code)])
        self.inside = service.compile_routes([
            ("GET", "/health", self.ping), ("POST", "/freeze", guest.freeze), ("POST", "/unfreeze", guest.unfreeze)])
        if box.get("entrypoint"):
            subprocess.Popen(box["entrypoint"], cwd="/", stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                             stderr=subprocess.DEVNULL, start_new_session=True).returncode = 0

    async def serve(self, request):
        """What the server itself asks for has a header that none from outside has (lifecycle/service.py)."""
        if "x-inside" in request.headers:
            return await self.route(self.inside, request)
        if self.token and request.path != "/ping" and request.headers.get("x-execd-access-token") != self.token:
            return wire.json_answer(401, {"error": "Unauthorized: invalid or missing access token"})
        return await self.route(self.routes, request)

    @staticmethod
    async def route(routes, request):
        for method, pattern, function in routes:
            found = pattern.fullmatch(request.path)
            if found and method == request.method:
                try:
                    return await function(request, *found.groups())
                except Refused as refused:
                    return refused.answer()
                except (ValueError, AttributeError, TypeError, KeyError) as error:
                    return Refused(400, "INVALID_REQUEST_BODY", f"error parsing request: {error}").answer()
                except OSError as error:
                    return Refused(500, "RUNTIME_ERROR", str(error)).answer()
        return wire.Answer(404, b"404 page not found", None, "text/plain")

    async def ping(self, _request):
        return wire.Answer(200)

    async def code(self, _request):
        raise Refused(500, "NOT_SUPPORTED", "there is no code interpreter in this image")

    @staticmethod
    def measure():
        memory = guest.memory()
        return {"cpu_count": os.cpu_count(), "cpu_used_pct": min(100.0, round(os.getloadavg()[0] * 100 / os.cpu_count(), 2)),
                "mem_total_mib": memory["MemTotal"] / 2**20, "mem_used_mib": memory["Used"] / 2**20,
                "timestamp": int(time.time() * 1000)}

    async def metrics(self, _request):
        return wire.json_answer(200, self.measure())

    async def watch(self, _request):
        async def each_second():
            while True:
                yield wire.json.dumps(self.measure()).encode() + b"\n\n"
                await asyncio.sleep(1)

        return wire.Answer(200, each_second(), {"Cache-Control": "no-cache"}, "text/event-stream")


def serve(socks, box):
    async def main():
        daemon = Daemon(box)
        await asyncio.start_unix_server(ports.serve, sock=socks[1])
        server = await wire.listen(daemon.serve, socks[0])
        await server.serve_forever()

    asyncio.run(main())
