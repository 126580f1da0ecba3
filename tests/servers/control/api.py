# SPDX-License-Identifier: Apache-2.0
"""The control plane's calls about sandboxes and snapshots: /sandboxes, /v2/sandboxes, /snapshots."""
import time

from base import wire
from base.service import Problem
from control import listing
from control.sandboxes import CLIENT_ID, ENVD_VERSION, Sandboxes, rfc3339

LONGEST = 24 * 3600


def positive(value, name, default):
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, int):
        raise Problem(400, f"validation error: {name} must be an integer")
    return value


def public(sandbox):
    """The object "Sandbox"."""
    value = {"sandboxID": sandbox.id, "templateID": sandbox.template.id, "clientID": CLIENT_ID, "envdVersion": ENVD_VERSION,
             "domain": None}
    if sandbox.template.names:
        value["alias"] = sandbox.template.names[0]
    if sandbox.token:
        value["envdAccessToken"] = sandbox.token
    if sandbox.traffic_token:
        value["trafficAccessToken"] = sandbox.traffic_token
    return value


def listed(sandbox):
    template, build = sandbox.template, sandbox.build
    value = {"sandboxID": sandbox.id, "templateID": template.id, "clientID": CLIENT_ID, "envdVersion": ENVD_VERSION,
             "startedAt": rfc3339(sandbox.started), "endAt": rfc3339(sandbox.end), "cpuCount": build.cpu,
             "memoryMB": build.memory, "diskSizeMB": build.disk, "state": listing.state_of(sandbox)}
    if template.names:
        value["alias"] = template.names[0]
    if sandbox.metadata:
        value["metadata"] = sandbox.metadata
    if sandbox.options.get("volumeMounts"):
        value["volumeMounts"] = sandbox.options["volumeMounts"]
    return value


def detail(sandbox):
    options = sandbox.options
    value = listed(sandbox) | {"domain": None, "lifecycle": {
        "autoResume": bool((options.get("autoResume") or {}).get("enabled")),
        "onTimeout": "pause" if options.get("autoPause") else "kill"}}
    if sandbox.token:
        value["envdAccessToken"] = sandbox.token
    if "allow_internet_access" in options:
        value["allowInternetAccess"] = options["allow_internet_access"]
    if sandbox.network:
        value["network"] = {key: {name: one for name, one in item.items() if name != "password"} if key == "egressProxy" and item
                            else item for key, item in sandbox.network.items()}
    return value


class Api:
    def __init__(self, sandboxes: Sandboxes, templates, volumes, clock):
        self.sandboxes, self.templates, self.volumes, self.clock = sandboxes, templates, volumes, clock

    def routes(self):
        """(method, path with {} for an id, function)."""
        one = "/sandboxes/{}"
        return [
            ("POST", "/sandboxes", self.create_v1), ("POST", "/v2/sandboxes", self.create_v2),
            ("GET", "/sandboxes", self.list_v1), ("GET", "/v2/sandboxes", self.list_v2),
            ("GET", "/sandboxes/metrics", self.metrics_of_all),
            ("GET", one, self.get), ("DELETE", one, self.kill), ("POST", one + "/timeout", self.timeout),
            ("POST", one + "/refreshes", self.refresh), ("POST", one + "/pause", self.pause),
            ("POST", one + "/connect", self.connect_v1), ("POST", "/v2" + one + "/connect", self.connect_v2),
            ("POST", one + "/resume", self.resume), ("POST", one + "/fork", self.fork),
            ("POST", one + "/snapshots", self.snapshot), ("GET", "/snapshots", self.snapshots),
            ("GET", "/v2" + one + "/logs", self.logs_v2), ("GET", one + "/logs", self.logs_v1),
            ("GET", one + "/metrics", self.metrics), ("PUT", one + "/network", self.network),
        ]

    # ---- making ----

    def options(self, asked, default_timeout):
        timeout = positive(asked.get("timeout"), "timeout", default_timeout)
        if timeout <= 0 or timeout > LONGEST:
            raise Problem(400, f"Timeout must be from 1 s to {LONGEST // 3600} hours")
        if asked.get("autoPauseMemory") is False:
            if not asked.get("autoPause"):
                raise Problem(400, "autoPauseMemory needs autoPause")
            if (asked.get("autoResume") or {}).get("enabled"):
                raise Problem(400, "autoResume needs the memory of the sandbox")
        network = asked.get("network") or {}
        domains = [rule for rule in network.get("allowOut") or [] if any(letter.isalpha() for letter in rule)]
        if domains and "0.0.0.0/0" not in (network.get("denyOut") or []):
            raise Problem(400, "allowOut with domains needs 0.0.0.0/0 in denyOut")
        return asked | {"timeout": timeout, "network": network, "secure": asked.get("secure", False),
                        "mounts": self.volumes.mounts(asked.get("volumeMounts"))}

    async def create(self, asked, default_timeout):
        if not isinstance(asked.get("templateID"), str):
            raise Problem(400, "validation error: templateID is required")
        options = self.options(asked, default_timeout)
        sandbox = await self.sandboxes.create(*self.templates.to_start(asked["templateID"]), options)
        return wire.json_answer(201, public(sandbox))

    async def create_v1(self, request):
        return await self.create(await request.json(), 15)

    async def create_v2(self, request):
        return await self.create(await request.json() | {"secure": True}, 300)

    # ---- looking ----

    async def list_v1(self, request):
        wanted = listing.metadata_filter(request.query.get("metadata", ""))
        found = [one for one in self.sandboxes.all.values() if listing.state_of(one) == "running" and listing.matches(one, wanted)]
        return wire.json_answer(200, [listed(one) for one in found])

    async def list_v2(self, request):
        return listing.list_sandboxes(self.sandboxes.all.values(), request.query, listed)

    async def get(self, _request, name):
        return wire.json_answer(200, detail(self.sandboxes.get(name)))

    # ---- life ----

    async def kill(self, _request, name):
        sandbox = self.sandboxes.get(name)
        await self.sandboxes.kill(sandbox)
        return wire.Answer(204)

    async def timeout(self, request, name):
        sandbox, asked = self.sandboxes.get(name), await request.json()
        self.must_run(sandbox)
        timeout = max(0, positive(asked.get("timeout"), "timeout", 0))
        if self.clock.now() + timeout > sandbox.started + LONGEST:
            raise Problem(400, f"Timeout cannot be greater than {LONGEST // 3600} hours")
        sandbox.end = self.clock.now() + timeout
        self.sandboxes.arm(sandbox)
        return wire.Answer(204)

    async def refresh(self, request, name):
        sandbox, asked = self.sandboxes.get(name), await request.json()
        self.must_run(sandbox)
        duration = positive(asked.get("duration"), "duration", 15)
        if not 0 <= duration <= 3600:
            raise Problem(400, "validation error: duration must be from 0 to 3600")
        self.sandboxes.extend(sandbox, max(15, duration))
        return wire.Answer(204)

    @staticmethod
    def must_run(sandbox):
        if sandbox.state != "running":
            raise Problem(404, f"sandbox {sandbox.id} is not running")
        if sandbox.move:
            raise Problem(409, f"sandbox {sandbox.id} is {sandbox.move}")

    async def pause(self, request, name):
        asked = await request.json()
        await self.sandboxes.pause(self.sandboxes.get(name), asked.get("memory", True))
        return wire.Answer(204)

    async def connect(self, request, name, default):
        sandbox, asked = self.sandboxes.get(name), await request.json()
        if default is None and "timeout" not in asked:
            raise Problem(400, "validation error: timeout is required")
        timeout = positive(asked.get("timeout"), "timeout", default)
        if not 0 <= timeout <= LONGEST:
            raise Problem(400, f"Timeout cannot be greater than {LONGEST // 3600} hours")
        if sandbox.state == "running":
            if sandbox.move:
                raise Problem(409, f"sandbox {sandbox.id} is {sandbox.move}")
            self.sandboxes.extend(sandbox, timeout)
            return wire.json_answer(200, public(sandbox))
        await self.sandboxes.resume(sandbox, timeout, asked.get("memory", True))
        return wire.json_answer(201, public(sandbox))

    async def connect_v1(self, request, name):
        return await self.connect(request, name, None)

    async def connect_v2(self, request, name):
        return await self.connect(request, name, 300)

    async def resume(self, request, name):
        sandbox, asked = self.sandboxes.get(name), await request.json()
        if sandbox.state == "running":
            raise Problem(409, f"sandbox {sandbox.id} is already running")
        await self.sandboxes.resume(sandbox, positive(asked.get("timeout"), "timeout", 15), asked.get("memory", True))
        return wire.json_answer(201, public(sandbox))

    async def network(self, request, name):
        sandbox, asked = self.sandboxes.get(name), await request.json()
        self.must_run(sandbox)
        kept = {key: value for key, value in (sandbox.network or {}).items() if key in ("allowPublicTraffic", "maskRequestHost")}
        sandbox.network = kept | {key: value for key, value in asked.items() if key != "allow_internet_access"}
        sandbox.options.pop("allow_internet_access", None)
        if "allow_internet_access" in asked:
            sandbox.options["allow_internet_access"] = asked["allow_internet_access"]
        return wire.Answer(204)

    # ---- copies ----

    async def fork(self, request, name):
        sandbox, asked = self.sandboxes.get(name), await request.json()
        count = positive(asked.get("count"), "count", 1)
        if not 1 <= count <= 100:
            raise Problem(400, "validation error: count must be from 1 to 100")
        if sandbox.state != "running" or sandbox.move:
            raise Problem(409, f"sandbox {sandbox.id} is {sandbox.move or sandbox.state}")
        template = await self.templates.snapshot(sandbox, None)
        options, results = sandbox.options | {"timeout": positive(asked.get("timeout"), "timeout", 15)}, []
        for _ in range(count):
            try:
                results.append({"sandbox": public(await self.sandboxes.create(template, template.build, options))})
            except Problem as problem:
                results.append({"error": {"code": problem.status, "message": problem.message}})
        return wire.json_answer(201, results)

    async def snapshot(self, request, name):
        sandbox = self.sandboxes.get(name)
        self.must_run(sandbox)
        template = await self.templates.snapshot(sandbox, (await request.json()).get("name"))
        return wire.json_answer(201, snapshot_info(template))

    async def snapshots(self, request):
        query = request.query
        found = [one for one in self.templates.snapshots() if query.get("sandboxID", one.source) == one.source
                 and query.get("name", "") in ("", one.id, *one.names)]
        items, headers = listing.page(found, query)
        return wire.json_answer(200, [snapshot_info(one) for one in items], headers)

    # ---- logs and measures ----

    async def entries(self, sandbox):
        """The platform's lines and those of the daemon inside, by time."""
        logs = list(sandbox.logs)
        if sandbox.state == "running" and not sandbox.move:
            logs += [{"at": line["at"] + self.clock.skew, "level": "info", "message": line["message"], "fields": line["fields"]}
                     for line in await self.inside(sandbox, "/logs")]
        return sorted(logs, key=lambda line: line["at"])

    async def inside(self, sandbox, path):
        return wire.json.loads(await self.sandboxes.tell(sandbox, "GET", path))

    async def logs_v2(self, request, name):
        query = request.query
        limit, order = listing.number(query, "limit", 1000, 0, 1000), query.get("direction", "backward")
        levels = ["debug", "info", "warn", "error"]
        if order not in ("forward", "backward") or query.get("level", "debug") not in levels or len(query.get("search", "")) > 256:
            raise Problem(400, "validation error: direction, level or search has another value")
        least, cursor = levels.index(query.get("level", "debug")), query.get("cursor")
        found = [line for line in await self.entries(self.sandboxes.get(name))
                 if levels.index(line["level"]) >= least and query.get("search", "") in line["message"]]
        if cursor:
            at = int(cursor) / 1000
            found = [line for line in found if (line["at"] >= at if order == "forward" else line["at"] <= at)]
        if order == "backward":
            found.reverse()
        return wire.json_answer(200, {"logs": [
            {"timestamp": rfc3339(line["at"]), "level": line["level"], "message": line["message"], "fields": line["fields"]}
            for line in found[:limit]]})

    async def logs_v1(self, request, name):
        limit = listing.number(request.query, "limit", 1000, 0, 1000)
        start = listing.number(request.query, "start", 0, 0, 1 << 62) / 1000
        found = [line for line in await self.entries(self.sandboxes.get(name)) if line["at"] >= start][:limit]
        return wire.json_answer(200, {
            "logs": [{"timestamp": rfc3339(line["at"]), "line": line["message"]} for line in found],
            "logEntries": [{"timestamp": rfc3339(line["at"]), "level": line["level"], "message": line["message"],
                            "fields": line["fields"]} for line in found]})

    async def measure(self, sandbox):
        found = await self.inside(sandbox, "/metrics")
        now = self.clock.now()
        return {"timestamp": rfc3339(now), "timestampUnix": int(now), "cpuCount": found["cpu_count"],
                "cpuUsedPct": found["cpu_used_pct"], "memUsed": found["mem_used"], "memTotal": found["mem_total"],
                "memCache": found["mem_cache"], "diskUsed": found["disk_used"], "diskTotal": found["disk_total"]}

    async def metrics(self, request, name):
        sandbox = self.sandboxes.get(name)
        start = listing.number(request.query, "start", 0, 0, 1 << 40)
        end = listing.number(request.query, "end", 1 << 40, 0, 1 << 40)
        now = int(time.time() + self.clock.skew)
        if sandbox.state != "running" or not start <= now <= end:
            return wire.json_answer(200, [])
        return wire.json_answer(200, [await self.measure(sandbox)])

    async def metrics_of_all(self, request):
        names = [name for name in request.query.get("sandbox_ids", "").split(",") if name]
        if not names or len(names) > 100 or len(set(names)) != len(names):
            raise Problem(400, "validation error: sandbox_ids must have 1 to 100 ids, each once")
        found = {name: self.sandboxes.all.get(name) for name in names}
        return wire.json_answer(200, {"sandboxes": {
            name: await self.measure(one) for name, one in found.items() if one and one.state == "running" and not one.move}})


def snapshot_info(template):
    return {"snapshotID": template.id, "names": [f"team/{name}:default" for name in template.names] or [template.id]}
