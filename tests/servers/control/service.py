# SPDX-License-Identifier: Apache-2.0
"""The whole service behind one address: the control plane with its keys, the boxes' gate, and the test's own door, /_test/."""
import re
import urllib.parse

from base import boxes, faults, wire
from control.api import Api
from control.builds import Builds
from control.gate import Gate, is_ours
from control.sandboxes import Clock, Problem, Sandboxes
from control.templates import Templates

SECRET = {"x-api-key", "x-access-token", "authorization", "e2b-traffic-access-token"}


class Service:
    def __init__(self, service_boxes, key, limit, watcher=None):
        self.key, self.clock, self.faults, self.watcher, self.seen = key, Clock(), faults.Faults(), watcher, []
        self.sandboxes = Sandboxes(service_boxes, self.clock, limit)
        self.templates = Templates(service_boxes, self.sandboxes, self.clock)
        self.gate = Gate(self.sandboxes, watcher.tap if watcher else None)
        builds = Builds(self.sandboxes, self.templates, self.clock)
        self.routes = compile_routes([*Api(self.sandboxes, self.templates, self.clock).routes(), *builds.routes(),
                                      ("GET", "/health", self.health)])
        self.own = compile_routes([
            ("PUT", "/_upload/{}", builds.upload), ("PUT", "/_test/faults", self.set_faults), ("GET", "/_test/requests", self.get_requests),
            ("DELETE", "/_test/requests", self.forget_requests), ("PUT", "/_test/skew", self.set_skew),
            ("GET", "/_test/violations", self.get_violations),
            ("DELETE", "/_test/violations", self.forget_violations), ("DELETE", "/_test/sandboxes/{}", self.lose_sandbox)])

    async def serve(self, request):
        if request.path.startswith(("/_test/", "/_upload/")):
            return await self.route(self.own, request)
        self.note(request)
        return await faults.handle(self.answer, request)

    def note(self, request):
        headers = {name: value for name, value in request.headers.items() if name not in SECRET}
        self.seen.append({"method": request.method, "target": request.target, "headers": headers})

    async def answer(self, request):
        if is_ours(request):
            return await self.gate.serve(request)
        if request.path != "/health" and not self.allowed(request):
            return Problem(401, "Invalid API key" if "x-api-key" in request.headers else "missing API key").answer()
        answer = await self.route(self.routes, request)
        if self.watcher:
            await self.watcher.control(request, answer)
        return answer

    def allowed(self, request):
        return request.headers.get("x-api-key") == self.key

    async def route(self, routes, request):
        known = False
        try:
            for method, pattern, function in routes:
                found = pattern.fullmatch(request.raw_path)
                if found:
                    known = True
                    if method == request.method:
                        return await function(request, *(urllib.parse.unquote(word) for word in found.groups()))
            raise Problem(405 if known else 404, "method not allowed" if known else f"no such path: {request.path}")
        except Problem as problem:
            return problem.answer()
        except (ValueError, AttributeError, TypeError) as error:
            return Problem(400, f"validation error: {error}").answer()
        except boxes.Failed as error:
            return Problem(500, str(error), error_code="internal_server_error").answer()

    async def health(self, _request):
        return wire.Answer(200, b"Health check successful", None, "text/plain")

    # ---- what only tests ask for ----

    async def set_faults(self, request):
        self.faults.set(await request.json())
        return wire.Answer(204)

    async def set_skew(self, request):
        self.clock.skew = float((await request.json())["seconds"])
        for sandbox in self.sandboxes.running():
            self.sandboxes.arm(sandbox)
        return wire.Answer(204)

    async def get_requests(self, _request):
        return wire.json_answer(200, self.seen)

    async def forget_requests(self, _request):
        self.seen.clear()
        return wire.Answer(204)

    async def get_violations(self, _request):
        if self.watcher is None:
            raise Problem(409, "the server was not started with --check")
        return wire.json_answer(200, {"looked": self.watcher.looked, "violations": self.watcher.violations})

    async def forget_violations(self, _request):
        if self.watcher:
            self.watcher.violations.clear()
        return wire.Answer(204)

    async def lose_sandbox(self, _request, name):
        """As if its time were over."""
        await self.sandboxes.expire(self.sandboxes.get(name))
        return wire.Answer(204)


def compile_routes(routes):
    return [(method, re.compile(path.replace("{}", "([^/]+)")), function) for method, path, function in routes]
