# SPDX-License-Identifier: Apache-2.0
"""OpenSandbox's lifecycle calls: /v1/sandboxes and /v1/snapshots."""
import datetime
import math
import urllib.parse

from base import wire
from base.service import Problem
from control.sandboxes import rfc3339
from control.templates import Build, Template, new_uuid

STATES = {"Pending", "Running", "Pausing", "Paused", "Resuming", "Stopping", "Terminated", "Failed"}
FOREVER = 10 * 365 * 86400
MOVES = {"pausing": "Pausing", "resuming": "Resuming", "killing": "Stopping"}


def bad(message):
    return Problem(400, message, error="SANDBOX::INVALID_PARAMETER")


def when(text):
    """Seconds since the epoch of an RFC 3339 text."""
    try:
        moment = datetime.datetime.fromisoformat(text.replace("Z", "+00:00"))
    except (ValueError, AttributeError):
        raise bad(f"no time: {text}") from None
    if moment.tzinfo is None:
        raise bad(f"a time without its zone: {text}")
    return moment.timestamp()


def state_of(sandbox):
    return MOVES.get(sandbox.move) or {"starting": "Pending", "running": "Running", "paused": "Paused"}[sandbox.state]


def public(sandbox):
    options = sandbox.options
    value = {"id": sandbox.id, "status": {"state": state_of(sandbox), "lastTransitionAt": rfc3339(sandbox.started)},
             "metadata": sandbox.metadata, "createdAt": rfc3339(sandbox.started), "entrypoint": options.get("entrypoint") or []}
    if options["expires"]:
        value["expiresAt"] = rfc3339(sandbox.end)
    return value


def described(sandbox):
    image = {"image": sandbox.options["image"]} if sandbox.options.get("image") else {"snapshotId": sandbox.template.id}
    return public(sandbox) | image


def snapshot_info(template):
    value = {"id": template.id, "sandboxId": template.source, "createdAt": rfc3339(template.started),
             "status": {"state": "Ready", "lastTransitionAt": rfc3339(template.started)}}
    return value | ({"name": template.names[0]} if template.names else {})


def paged(items, query):
    page, size = int(query.get("page", 1)), int(query.get("pageSize", 20))
    if page < 1 or not 1 <= size <= 200:
        raise bad("page and pageSize begin at 1")
    total = math.ceil(len(items) / size)
    return items[(page - 1) * size:page * size], {"page": page, "pageSize": size, "totalItems": len(items), "totalPages": total,
                                                  "hasNextPage": page < total}


class Api:
    """@endpoint(sandbox, port, by_server): where a port can be reached."""

    def __init__(self, sandboxes, templates, clock, endpoint):
        self.sandboxes, self.templates, self.clock, self.endpoint = sandboxes, templates, clock, endpoint

    def routes(self):
        one = "/sandboxes/{}"
        return [
            ("POST", "/sandboxes", self.create), ("GET", "/sandboxes", self.list), ("GET", one, self.get),
            ("DELETE", one, self.kill), ("PATCH", one + "/metadata", self.metadata), ("POST", one + "/pause", self.pause),
            ("POST", one + "/resume", self.resume), ("POST", one + "/renew-expiration", self.renew),
            ("GET", one + "/endpoints/{}", self.endpoints), ("POST", one + "/snapshots", self.snapshot),
            ("GET", "/snapshots", self.snapshots), ("GET", "/snapshots/{}", self.get_snapshot),
            ("DELETE", "/snapshots/{}", self.delete_snapshot), ("POST", "/metrics/events", self.telemetry)]

    def find(self, name):
        sandbox = self.sandboxes.all.get(name)
        if sandbox is None or sandbox.move == "killing":
            raise Problem(404, f"Sandbox {name} not found.", error="DOCKER::SANDBOX_NOT_FOUND")
        return sandbox

    # ---- making ----

    @staticmethod
    def options(asked):
        timeout, pool = asked.get("timeout"), (asked.get("extensions") or {}).get("poolRef")
        if timeout is not None and (isinstance(timeout, bool) or not isinstance(timeout, int) or timeout < 60):
            raise bad("timeout must be at least 60")
        if bool(asked.get("image")) == bool(asked.get("snapshotId")) and not pool:
            raise bad("exactly one of image and snapshotId is needed")
        if asked.get("image") and not asked.get("entrypoint"):
            raise bad("entrypoint is required with image")
        if not pool and not asked.get("resourceLimits"):
            raise bad("resourceLimits is required")
        return {"timeout": timeout or FOREVER, "expires": timeout is not None, "secure": bool(asked.get("secureAccess")),
                "metadata": asked.get("metadata"), "envVars": asked.get("env"), "image": asked.get("image"),
                "entrypoint": asked.get("entrypoint")}

    async def create(self, request):
        asked = await request.json()
        options, source = self.options(asked), asked.get("snapshotId")
        template = self.snapshot_of(source) if source else self.templates.all["base"]
        sandbox = await self.sandboxes.create(template, template.build, options)
        return wire.json_answer(202, public(sandbox), {"Location": f"/v1/sandboxes/{sandbox.id}"})

    # ---- looking ----

    async def list(self, request):
        states = [value for name, value in request.pairs if name == "state"]
        wanted = dict(urllib.parse.parse_qsl(request.query.get("metadata", ""), keep_blank_values=True))
        if set(states) - STATES:
            raise bad(f"no such state: {' '.join(states)}")
        found = [one for one in sorted(self.sandboxes.all.values(), key=lambda one: -one.started)
                 if (not states or state_of(one) in states) and all(one.metadata.get(key) == value for key, value in wanted.items())]
        items, pagination = paged(found, request.query)
        return wire.json_answer(200, {"items": [described(one) for one in items], "pagination": pagination})

    async def get(self, _request, name):
        return wire.json_answer(200, described(self.find(name)))

    # ---- life ----

    async def kill(self, _request, name):
        await self.sandboxes.kill(self.find(name))
        return wire.Answer(204)

    async def metadata(self, request, name):
        sandbox, patch = self.find(name), await request.json()
        if not isinstance(patch, dict) or not all(value is None or isinstance(value, str) for value in patch.values()):
            raise bad("metadata has texts, or null for what goes")
        merged = sandbox.metadata | patch
        sandbox.metadata = {key: value for key, value in merged.items() if value is not None}
        return wire.json_answer(200, described(sandbox))

    async def pause(self, _request, name):
        sandbox = self.find(name)
        if sandbox.state != "running":
            raise Problem(409, f"Sandbox {name} is {state_of(sandbox)}.", error="SANDBOX::INVALID_STATE")
        await self.sandboxes.pause(sandbox, True, sandbox.end)
        return wire.Answer(202)

    async def resume(self, _request, name):
        sandbox = self.find(name)
        if sandbox.state != "paused":
            raise Problem(409, f"Sandbox {name} is {state_of(sandbox)}.", error="SANDBOX::INVALID_STATE")
        await self.sandboxes.resume(sandbox, max(0, sandbox.end - self.clock.now()))
        return wire.Answer(202)

    async def renew(self, request, name):
        sandbox, end = self.find(name), when((await request.json()).get("expiresAt"))
        if end <= self.clock.now() or end <= sandbox.end and sandbox.options["expires"]:
            raise bad("expiresAt must be later than now and than the present one")
        sandbox.end, sandbox.options["expires"] = end, True
        if sandbox.state == "running":
            self.sandboxes.arm(sandbox)
        return wire.json_answer(200, {"expiresAt": rfc3339(end)})

    async def endpoints(self, request, name, port):
        sandbox = self.find(name)
        if not port.isdigit() or not 0 < int(port) < 65536:
            raise bad(f"no port: {port}")
        value = {"endpoint": await self.endpoint(request, sandbox, int(port), request.query.get("use_server_proxy") == "true")}
        if sandbox.token:
            value["headers"] = {"X-EXECD-ACCESS-TOKEN": sandbox.token}
        return wire.json_answer(200, value)

    async def telemetry(self, _request):
        return wire.Answer(204)

    # ---- snapshots ----

    def snapshot_of(self, name):
        template = self.templates.all.get(name)
        if template is None or not template.source:
            raise Problem(404, f"Snapshot {name} not found.", error="SNAPSHOT::NOT_FOUND")
        return template

    async def snapshot(self, request, name):
        sandbox, asked = self.find(name), await request.json()
        if sandbox.move or sandbox.state not in ("running", "paused"):
            raise Problem(409, f"Sandbox {name} is {state_of(sandbox)}.", error="SNAPSHOT::INVALID_SOURCE_STATE")
        build = Build(self.templates.new_root(), self.clock.now())
        await self.sandboxes.copy_files(sandbox, build.root)
        template = Template(new_uuid(), build, self.clock.now(), sandbox.id)
        template.names = [asked["name"]] if asked.get("name") else []
        self.templates.all[template.id] = template
        return wire.json_answer(202, snapshot_info(template), {"Location": f"/v1/snapshots/{template.id}"})

    async def snapshots(self, request):
        query = request.query
        found = [one for one in self.templates.snapshots() if query.get("sandboxId", one.source) == one.source
                 and query.get("state", "Ready") == "Ready"]
        items, pagination = paged(found, query)
        return wire.json_answer(200, {"items": [snapshot_info(one) for one in items], "pagination": pagination})

    async def get_snapshot(self, _request, name):
        return wire.json_answer(200, snapshot_info(self.snapshot_of(name)))

    async def delete_snapshot(self, _request, name):
        template = self.snapshot_of(name)
        del self.templates.all[template.id]
        await self.templates.remove_files(template)
        return wire.Answer(204)
