# SPDX-License-Identifier: Apache-2.0
"""The whole of E2B behind one address: the control plane with its keys, and the boxes' gate."""
from base import service, wire
from base.service import Problem
from control.api import Api
from control.builds import Builds
from control.gate import Gate, is_ours
from control.sandboxes import Clock, Sandboxes
from control.templates import Templates
from control.volumes import Volumes


class Service(service.Service):
    API, GATE = Api, Gate
    SECRET = {"x-api-key", "x-access-token", "authorization", "e2b-traffic-access-token"}

    def __init__(self, service_boxes, key, limit, watcher=None):
        clock = Clock()
        super().__init__(Sandboxes(service_boxes, clock, limit), clock, watcher)
        self.key, self.templates = key, Templates(service_boxes, self.sandboxes, clock)
        self.gate = self.GATE(self.sandboxes, watcher.tap if watcher else None)
        builds = Builds(self.sandboxes, self.templates, clock)
        self.volumes = Volumes(service_boxes, self.sandboxes)
        self.api = self.API(self.sandboxes, self.templates, self.volumes, clock)
        self.routes = service.compile_routes([
            *self.api.routes(), *builds.routes(), *self.volumes.routes(),
            ("GET", "/health", self.health)])
        self.uploads = service.compile_routes([("PUT", "/_upload/{}", builds.upload)])

    async def answer(self, request):
        if is_ours(request):
            return await self.gate.serve(request)
        if request.path.startswith("/_upload/"):
            return await self.route(self.uploads, request)
        if request.path != "/health" and not self.allowed(request):
            return self.refusal(Problem(401, "Invalid API key" if "x-api-key" in request.headers else "missing API key"))
        answer = await self.route(self.routes, request)
        if self.watcher:
            await self.watcher.control(request, answer)
        return answer

    def allowed(self, request):
        return request.headers.get("x-api-key") == self.key

    @staticmethod
    def refusal(problem):
        return wire.json_answer(problem.status, {"code": problem.status, "message": problem.message} | problem.more)

    async def clear(self):
        await super().clear()
        for volume in self.volumes.all.values():
            await self.sandboxes.boxes.ask("remove", root=volume.root)

    async def health(self, _request):
        return wire.Answer(200, b"Health check successful", None, "text/plain")
