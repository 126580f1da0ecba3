# SPDX-License-Identifier: Apache-2.0
"""What services have in common: routes, refusals, faults, and the tests' own door, /_test/ (README.md)."""
import os
import re
import urllib.parse

from base import boxes, faults, wire


class Problem(Exception):
    """What is answered instead."""

    def __init__(self, status, message, **more):
        super().__init__(message)
        self.status, self.message, self.more = status, message, more


def fresh_name():
    return os.urandom(10).hex()


def compile_routes(routes):
    """(method, path with {} for a part, function) as they are looked up."""
    return [(method, re.compile(path.replace("{}", "([^/]+)")), function) for method, path, function in routes]


class Service:
    """@sandboxes: control.sandboxes.Sandboxes. A service has templates, answer(request) and refusal(problem), and calls route()."""

    SECRET = {"authorization"}

    def __init__(self, sandboxes, clock, watcher):
        self.sandboxes, self.clock, self.watcher, self.faults, self.seen = sandboxes, clock, watcher, faults.Faults(), []
        self.own = compile_routes([
            ("PUT", "/_test/faults", self.set_faults), ("GET", "/_test/requests", self.get_requests),
            ("DELETE", "/_test/requests", self.forget_requests), ("PUT", "/_test/skew", self.set_skew),
            ("GET", "/_test/violations", self.get_violations), ("DELETE", "/_test/violations", self.forget_violations),
            ("DELETE", "/_test/sandboxes/{}", self.lose_sandbox)])

    async def serve(self, request):
        if request.path.startswith("/_test/"):
            return await self.route(self.own, request)
        headers = {name: value for name, value in request.headers.items() if name not in self.SECRET}
        self.seen.append({"method": request.method, "target": request.target, "headers": headers})
        return await faults.handle(self.answer, request)

    async def route(self, routes, request, path=None):
        known = False
        try:
            for method, pattern, function in routes:
                found = pattern.fullmatch(path or request.raw_path)
                if found:
                    known = True
                    if method == request.method:
                        return await function(request, *(urllib.parse.unquote(word) for word in found.groups()))
            raise Problem(405 if known else 404, "method not allowed" if known else f"no such path: {request.path}")
        except Problem as problem:
            return self.refusal(problem)
        except (ValueError, AttributeError, TypeError, KeyError) as error:
            return self.refusal(Problem(400, f"validation error: {error}"))
        except boxes.Failed as error:
            return self.refusal(Problem(500, str(error), error_code="internal_server_error"))

    async def clear(self):
        """The end: of all that it has."""
        for sandbox in list(self.sandboxes.all.values()):
            await self.sandboxes.kill(sandbox)
        for template in self.templates.all.values():
            await self.templates.remove_files(template)

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
