# SPDX-License-Identifier: Apache-2.0
"""The sandboxes of the service: what they are, and the moves from one state to another."""
import asyncio
import os
import secrets
import string
import time

from base import boxes, wire
from base.service import Problem

CLIENT_ID, ENVD_VERSION = "6532622b", "0.6.13"
SOCKETS = ("sock", "ports")
ALPHABET = string.ascii_lowercase + string.digits


def new_id(prefix="i", size=20):
    return prefix + "".join(secrets.choice(ALPHABET) for _ in range(size))


class Clock:
    """The service's; a test may have it differ."""

    def __init__(self):
        self.skew = 0.0

    def now(self):
        return time.time() + self.skew


def rfc3339(at):
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(at)) + f".{int(at * 1000) % 1000:03d}Z"


class Sandbox:
    """state: running or paused; move: what is under way (pausing, resuming, snapshotting, killing), or None."""

    def __init__(self, template, build, options, now):
        self.id, self.template, self.build, self.options = new_id(), template, build, options
        self.started, self.end, self.state, self.move = now, now + options["timeout"], "starting", None
        self.token = secrets.token_hex(32) if options["secure"] else None
        self.traffic_token = secrets.token_hex(16) if options.get("network", {}).get("allowPublicTraffic") is False else None
        self.metadata, self.pid, self.frozen, self.logs = options.get("metadata") or {}, None, False, []
        self.network, self.connections, self.timer, self.dying = options.get("network"), set(), None, None

    def log(self, now, message, **fields):
        self.logs.append({"at": now, "level": "info", "message": message, "fields": fields})


class Sandboxes:
    def __init__(self, service_boxes, clock, limit):
        self.boxes, self.clock, self.limit, self.all = service_boxes, clock, limit, {}
        os.makedirs(f"{self.boxes.top}/boxes", exist_ok=True)

    def path(self, sandbox, name):
        return f"{self.boxes.top}/boxes/{sandbox.id}.{name}"

    def get(self, text):
        """By id, with or without a suffix as old ones had."""
        name, *rest = text.split("-")
        if len(rest) > 1 or not name or set(name) - set(ALPHABET):
            raise Problem(400, f"Invalid sandbox ID: {text}")
        sandbox = self.all.get(name)
        if sandbox is None or sandbox.move == "killing" or sandbox.state == "starting":
            raise Problem(404, f"sandbox \"{name}\" doesn't exist or you don't have access to it")
        return sandbox

    def running(self):
        return [one for one in self.all.values() if one.state in ("running", "starting") and one.move != "killing"]

    # ---- making and ending ----

    async def create(self, template, build, options):
        if len(self.running()) >= self.limit:
            raise Problem(429, f"you have reached the maximum number of concurrent sandboxes ({self.limit})")
        sandbox = Sandbox(template, build, options, self.clock.now())
        self.all[sandbox.id] = sandbox
        try:
            await self.boxes.ask("make", root=self.path(sandbox, "root"), copy=build.root)
            await self.start(sandbox)
        except (boxes.Failed, OSError) as error:
            del self.all[sandbox.id]
            raise Problem(500, f"sandbox cannot be made: {error}", error_code="sandbox_create_failed") from None
        sandbox.log(self.clock.now(), "Sandbox created", sandboxID=sandbox.id)
        return sandbox

    async def start(self, sandbox):
        await self.start_box(sandbox)
        sandbox.state = "running"
        self.arm(sandbox)

    async def start_box(self, sandbox):
        build = sandbox.build
        box = {"envs": build.envs | (sandbox.options.get("envVars") or {}), "token": sandbox.token, "skew": self.clock.skew,
               "user": build.user, "workdir": build.workdir, "entrypoint": sandbox.options.get("entrypoint"),
               "mounts": sandbox.options.get("mounts", [])}
        sockets = [self.path(sandbox, name) for name in SOCKETS]
        answer = await self.boxes.ask("start", root=self.path(sandbox, "root"), sockets=sockets, box=box)
        sandbox.pid, sandbox.frozen = answer["pid"], False
        await self.tell(sandbox, "GET", "/health")
        if build.start and build.status == "ready":
            await self.tell(sandbox, "POST", "/init", {"startCommand": build.start})

    async def stop(self, sandbox):
        self.disarm(sandbox)
        self.cut(sandbox)
        if sandbox.pid is not None:
            pid, sandbox.pid = sandbox.pid, None
            await self.boxes.ask("kill", pid=pid)

    async def kill(self, sandbox):
        """Whoever else kills it waits for the same."""
        if sandbox.dying is None:
            sandbox.move, sandbox.dying = "killing", asyncio.ensure_future(self._kill(sandbox))
        await asyncio.shield(sandbox.dying)

    async def _kill(self, sandbox):
        await self.stop(sandbox)
        await self.boxes.ask("remove", root=self.path(sandbox, "root"))
        self.remove_sockets(sandbox)
        self.all.pop(sandbox.id, None)

    def remove_sockets(self, sandbox):
        for name in SOCKETS:
            if os.path.exists(self.path(sandbox, name)):
                os.unlink(self.path(sandbox, name))

    def begin(self, sandbox, move):
        """Takes the sandbox for a move; 409 while there is another."""
        if sandbox.move:
            raise Problem(409, f"sandbox {sandbox.id} is {sandbox.move}")
        sandbox.move = move

    @staticmethod
    def done(sandbox, move):
        """The end of a move, unless a killing took its place."""
        if sandbox.move == move:
            sandbox.move = None

    # ---- time ----

    def arm(self, sandbox):
        self.disarm(sandbox)
        left = max(0.0, sandbox.end - self.clock.now())
        sandbox.timer = asyncio.get_running_loop().call_later(left, lambda: asyncio.ensure_future(self.expire(sandbox)))

    def extend(self, sandbox, seconds):
        """So long yet, if its end is not later."""
        sandbox.end = max(sandbox.end, self.clock.now() + seconds)
        self.arm(sandbox)

    @staticmethod
    def disarm(sandbox):
        if sandbox.timer:
            sandbox.timer.cancel()
            sandbox.timer = None

    async def expire(self, sandbox):
        """The end of its time: paused or killed, as was asked for at its creation."""
        while sandbox.move and sandbox.move != "killing":
            await asyncio.sleep(0.05)
        if sandbox.state != "running" or sandbox.move:
            return
        if sandbox.options.get("autoPause"):
            await self.pause(sandbox, sandbox.options.get("autoPauseMemory", True))
        else:
            await self.kill(sandbox)

    # ---- pausing ----

    async def pause(self, sandbox, memory, end=None):
        """@end: of its time, where that goes on; else it is the pause's."""
        if sandbox.state != "running":
            raise Problem(409, f"sandbox {sandbox.id} is already paused")
        self.begin(sandbox, "pausing")
        try:
            self.disarm(sandbox)
            self.cut(sandbox)
            if memory:
                await self.tell(sandbox, "POST", "/freeze")
                sandbox.frozen = True
            else:
                await self.stop(sandbox)
            sandbox.state, sandbox.end = "paused", end or self.clock.now()
        finally:
            self.done(sandbox, "pausing")

    async def resume(self, sandbox, timeout, memory=True):
        self.begin(sandbox, "resuming")
        try:
            sandbox.end = self.clock.now() + timeout
            if sandbox.frozen and not memory:
                await self.stop(sandbox)
            if sandbox.frozen and sandbox.pid is not None:
                await self.tell(sandbox, "POST", "/unfreeze")
                sandbox.state, sandbox.frozen = "running", False
                self.arm(sandbox)
            else:
                await self.start(sandbox)
        finally:
            self.done(sandbox, "resuming")

    async def copy_files(self, sandbox, root):
        """Its files as they are at one moment, in a new directory."""
        self.begin(sandbox, "snapshotting")
        try:
            if sandbox.state == "running":
                await self.tell(sandbox, "POST", "/freeze")
            await self.boxes.ask("make", root=root, copy=self.path(sandbox, "root"))
            if sandbox.state == "running":
                await self.tell(sandbox, "POST", "/unfreeze")
        finally:
            self.done(sandbox, "snapshotting")

    # ---- its daemon ----

    async def connect(self, sandbox, name="sock"):
        return await asyncio.open_unix_connection(self.path(sandbox, name), limit=wire.AHEAD)

    async def tell(self, sandbox, method, path, value=None):
        """A request of the service's own to a box's daemon; its answer's body."""
        reader, writer = await self.connect(sandbox)
        body = wire.json_answer(200, value).body if value is not None else b""
        # The header tells a daemon that it is the service: none from outside gets through with it (base/relay.py).
        token = "X-Inside: 1\r\n" + (f"X-Access-Token: {sandbox.token}\r\n" if sandbox.token else "")
        writer.write(f"{method} {path} HTTP/1.1\r\n{token}Content-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode() + body)
        try:
            head = await wire.read_head(reader)
            if head is None:
                raise Problem(500, f"envd of {sandbox.id} does not answer")
            return await wire.Body(head[1], reader).body()
        finally:
            writer.close()

    def cut(self, sandbox):
        """Ends every connection that there is to it."""
        for writer in list(sandbox.connections):
            writer.transport.abort()
        sandbox.connections.clear()
