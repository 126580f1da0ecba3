# SPDX-License-Identifier: Apache-2.0
"""What is known or assumed of CubePod besides its E2B face. NOT the real service: a placeholder, whose paths and names are
assumptions of ours, all of them in this file.

Known: one address, `Authorization: Bearer`, /workspace apart from the root file system, time-outs of idleness that pause and
never kill, leases, a reset of the root file system, forks of both parts. Assumed: the paths and most names in JSON.
"""
import os

from base import service, wire
from base.service import Problem
from control import api, service as e2b
from control.gate import ENVD_PORT, Gate

WORKSPACE = "/workspace"


def info(sandbox):
    """A sandbox as the native calls show it."""
    return api.public(sandbox) | {"state": sandbox.state, "envdPort": ENVD_PORT, "metadata": sandbox.metadata,
                                  "rootfsGeneration": sandbox.options["generation"]}


class IdleGate(Gate):
    """Whoever uses a sandbox keeps it from being idle."""

    async def forward(self, request, sandbox, port):
        self.sandboxes.extend(sandbox, sandbox.options["timeout"])
        return await super().forward(request, sandbox, port)


class Api(api.Api):
    def __init__(self, sandboxes, templates, volumes, clock):
        super().__init__(sandboxes, templates, volumes, clock)
        self.keyed = {}  # directories of /workspace by volume key

    def routes(self):
        one = "/sandboxes/{}"
        own = [("POST", one + "/fork", self.fork), ("POST", one + "/lease", self.lease), ("POST", one + "/reset-rootfs", self.reset)]
        return own + [route for route in super().routes() if route[:2] not in {mine[:2] for mine in own}]

    async def workspace(self, key, copy=None):
        """The directory of a volume key, made at its first use."""
        if key not in self.keyed:
            self.keyed[key] = f"{self.volumes.boxes.top}/volumes/{service.fresh_name()}"
            await self.volumes.boxes.ask("make", root=self.keyed[key], bare=True, copy=copy)
        return self.keyed[key]

    async def made(self, asked, default_timeout, source=None):
        """A sandbox; of the files of another one, if @source says so."""
        key = (asked.get("extension") or {}).get("volumeKey")
        options = self.options(asked, default_timeout) | {"autoPause": True, "autoResume": {"enabled": True}, "generation": 1}
        copy = next((root for root, path in source.options["mounts"] if path == WORKSPACE), None) if source else None
        root = await self.workspace(key or service.fresh_name(), copy)
        options["mounts"] = [*options["mounts"], [root, WORKSPACE]]
        if source:
            template = await self.templates.snapshot(source, None)
            return await self.sandboxes.create(template, template.build, options)
        return await self.sandboxes.create(*self.templates.to_start(asked["templateID"]), options)

    async def create(self, asked, default_timeout):
        if not isinstance(asked.get("templateID"), str):
            raise Problem(400, "validation error: templateID is required")
        return wire.json_answer(201, info(await self.made(asked, default_timeout)))

    async def fork(self, request, name):
        sandbox, asked = self.sandboxes.get(name), await request.json()
        self.must_run(sandbox)
        wanted = {"templateID": sandbox.template.id, "metadata": asked.get("metadata") or sandbox.metadata,
                  "timeout": sandbox.options["timeout"], "secure": sandbox.options["secure"],
                  "extension": {"volumeKey": asked.get("volumeKey")}}
        if asked.get("volumeKey") in self.keyed:
            raise Problem(409, f"volume key '{asked['volumeKey']}' is in use")
        return wire.json_answer(201, info(await self.made(wanted, 300, sandbox)))

    async def lease(self, request, name):
        sandbox, seconds = self.sandboxes.get(name), (await request.json()).get("leaseSeconds")
        self.must_run(sandbox)
        if isinstance(seconds, bool) or not isinstance(seconds, int) or seconds <= 0:
            raise Problem(400, "validation error: leaseSeconds must be a positive number")
        self.sandboxes.extend(sandbox, seconds)
        return wire.Answer(204)

    async def reset(self, _request, name):
        """The root file system as at the beginning; /workspace stays."""
        sandbox = self.sandboxes.get(name)
        self.must_run(sandbox)
        self.sandboxes.begin(sandbox, "snapshotting")
        try:
            await self.sandboxes.stop(sandbox)
            root = self.sandboxes.path(sandbox, "root")
            await self.sandboxes.boxes.ask("remove", root=root)
            await self.sandboxes.boxes.ask("make", root=root, copy=sandbox.build.root)
            sandbox.options["generation"] += 1
            await self.sandboxes.start(sandbox)
        finally:
            self.sandboxes.done(sandbox, "snapshotting")
        return wire.json_answer(200, info(sandbox))


class Service(e2b.Service):
    API, GATE = Api, IdleGate

    def allowed(self, request):
        return super().allowed(request) or request.headers.get("authorization") == f"Bearer {self.key}"

    async def clear(self):
        await super().clear()
        for root in self.api.keyed.values():
            if os.path.exists(root):
                await self.sandboxes.boxes.ask("remove", root=root)
