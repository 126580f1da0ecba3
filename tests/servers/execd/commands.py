# SPDX-License-Identifier: Apache-2.0
"""execd's commands and sessions: streams of lines while one waits, a file and a cursor for what runs behind."""
import asyncio
import json
import os
import shlex
import signal
import subprocess
import time
import uuid

from base import wire
from envd.entry import rfc3339

PING, GRACE, LINE_MAX = 3, 2, 1 << 20
STATE = "/tmp/.session"


class Refused(Exception):
    def __init__(self, status, code, message):
        super().__init__(message)
        self.status, self.code, self.message = status, code, message

    def answer(self):
        return wire.json_answer(self.status, {"code": self.code, "message": self.message})


def now_ms():
    return int(time.time() * 1000)


def event(kind, **more):
    return json.dumps({"type": kind, "timestamp": now_ms()} | more).encode() + b"\n\n"


class Command:
    """Starts at once; OSError where it cannot. @behind: both outputs in one file, else lines of pipes."""

    def __init__(self, reaper, text, cwd, envs, ids, behind, merged=False):
        self.id, self.text, self.began, self.ended, self.code = uuid.uuid4().hex, text, time.time_ns(), None, None
        self.behind, self.over, self.lines = behind, asyncio.Event(), asyncio.Queue(64)
        who = {} if ids[0] is None else {"user": ids[0], "group": ids[1] if ids[1] is not None else ids[0], "extra_groups": []}
        if behind:
            self.file = f"/tmp/.command-{self.id}"
            out = err = os.open(self.file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        else:
            self.pipes = [os.pipe()] if merged else [os.pipe(), os.pipe()]
            out, err = self.pipes[0][1], self.pipes[-1][1]
        try:
            self.popen = subprocess.Popen(["/bin/bash", "-c", text], cwd=cwd, env=os.environ | envs, stdin=subprocess.DEVNULL,
                                          stdout=out, stderr=err, start_new_session=True, **who)
        finally:
            for fd in {out, err}:
                os.close(fd)
        self.popen.returncode = 0  # it is reaped elsewhere
        reaper.wait(self.popen.pid, self.exited)
        if not behind:
            self.readers = [asyncio.ensure_future(self.read(pipe[0], name)) for pipe, name in zip(self.pipes, ("stdout", "stderr"))]

    def exited(self, status):
        code = os.waitstatus_to_exitcode(status)
        self.code, self.ended = code if code >= 0 else -1, time.time_ns()
        self.over.set()

    def signal(self, number):
        try:
            os.killpg(self.popen.pid, number)
        except ProcessLookupError:
            pass

    async def stop(self):
        """Its group is asked to end, then made to."""
        self.signal(signal.SIGTERM)
        try:
            await asyncio.wait_for(self.over.wait(), GRACE)
        except asyncio.TimeoutError:
            self.signal(signal.SIGKILL)

    async def read(self, fd, name):
        reader = asyncio.StreamReader(limit=LINE_MAX)
        transport, _ = await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(fd, "rb"))
        try:
            while True:
                try:
                    line = await reader.readuntil(b"\n")
                except asyncio.IncompleteReadError as end:
                    line = end.partial
                except asyncio.LimitOverrunError as long:
                    line = await reader.readexactly(long.consumed)
                if not line:
                    return
                text = line.decode(errors="replace").rstrip("\n") or "\n"
                await self.lines.put((name, text))
        finally:
            transport.close()

    async def events(self, timeout):
        """To the end, which the timeout may bring about; who goes before it interrupts the command."""
        deadline = time.monotonic() + timeout if timeout else None
        try:
            yield event("init", text=self.id)
            last = asyncio.ensure_future(self.all_read())
            while not (last.done() and self.lines.empty()):
                left = max(0, deadline - time.monotonic()) if deadline else PING
                try:
                    name, text = await asyncio.wait_for(self.lines.get(), min(PING, left))
                except asyncio.TimeoutError:
                    if deadline and time.monotonic() >= deadline:
                        self.signal(signal.SIGKILL)
                        deadline = None
                    else:
                        yield event("ping", text="pong")
                    continue
                if name:
                    yield event(name, text=text)
            if self.code == 0:
                yield event("execution_complete", execution_time=(self.ended - self.began) // 10**6)
            else:
                error = {"ename": "CommandExecError", "evalue": str(self.code), "traceback": [f"exit status {self.code}"]}
                yield event("error", error=error)
        finally:
            if not self.over.is_set():
                await self.stop()

    async def all_read(self):
        await asyncio.gather(*self.readers)
        await self.over.wait()
        await self.lines.put((None, None))

    def status(self):
        value = {"id": self.id, "content": self.text, "running": self.code is None, "exit_code": self.code,
                 "started_at": rfc3339(self.began)}
        if self.ended:
            value["finished_at"] = rfc3339(self.ended)
        return value


class Commands:
    def __init__(self, daemon):
        self.daemon, self.known, self.sessions = daemon, {}, {}

    def routes(self):
        return [("POST", "/command", self.start), ("DELETE", "/command", self.interrupt),
                ("GET", "/command/status/{}", self.status), ("GET", "/command/{}/logs", self.logs),
                ("POST", "/session", self.open), ("POST", "/session/{}/run", self.run_in), ("DELETE", "/session/{}", self.close)]

    def begin(self, asked, text, cwd, behind, merged=False):
        if not isinstance(text, str) or not text:
            raise Refused(400, "INVALID_REQUEST_BODY", "command is required")
        timeout = asked.get("timeout")
        if timeout is not None and (not isinstance(timeout, int) or timeout < 1):
            raise Refused(400, "INVALID_REQUEST_BODY", "timeout must be 1 or more")
        ids = (asked.get("uid"), asked.get("gid"))
        if ids[0] is None and ids[1] is not None:
            raise Refused(400, "INVALID_REQUEST_BODY", "gid needs uid")
        try:
            command = Command(self.daemon.reaper, text, cwd or self.daemon.workdir, asked.get("envs") or {}, ids, behind, merged)
        except (OSError, ValueError, TypeError, subprocess.SubprocessError) as error:
            raise Refused(500, "RUNTIME_ERROR", f"cannot start the command: {error}") from None
        self.known[command.id] = command
        return command, timeout / 1000 if timeout else None

    @staticmethod
    def stream(body):
        return wire.Answer(200, body, {"Cache-Control": "no-cache"}, "text/event-stream")

    async def start(self, request):
        asked = await request.json()
        command, timeout = self.begin(asked, asked.get("command"), asked.get("cwd"), bool(asked.get("background")))
        if not command.behind:
            return self.stream(command.events(timeout))
        if timeout:
            asyncio.get_running_loop().call_later(timeout, lambda: command.code is None and command.signal(signal.SIGKILL))

        async def told():
            yield event("init", text=command.id)
            yield event("execution_complete", execution_time=0)

        return self.stream(told())

    def find(self, name):
        command = self.known.get(name)
        if command is None:
            raise Refused(404, "RUNTIME_ERROR", f"command {name} not found")
        return command

    async def interrupt(self, request):
        if not request.query.get("id"):
            raise Refused(400, "MISSING_QUERY", "missing query parameter 'id'")
        command = self.known.get(request.query["id"])
        if command is None or command.code is not None:
            raise Refused(500, "RUNTIME_ERROR", "the command is not running")
        await command.stop()
        return wire.Answer(200)

    async def status(self, _request, name):
        return wire.json_answer(200, self.find(name).status())

    async def logs(self, request, name):
        command, cursor = self.find(name), request.query.get("cursor", "0")
        if not command.behind or not cursor.isdigit():
            raise Refused(400, "INVALID_REQUEST_BODY", "the command does not run in the background, or the cursor is no number")
        with open(command.file, "rb") as file:
            file.seek(int(cursor))
            data = file.read()
        headers = {"EXECD-COMMANDS-TAIL-CURSOR": str(int(cursor) + len(data))}
        return wire.Answer(200, data, headers, "text/plain; charset=utf-8")

    # ---- sessions ----

    async def open(self, request):
        name, cwd = uuid.uuid4().hex, (await request.json()).get("cwd") or self.daemon.workdir
        self.sessions[name] = asyncio.Lock()
        os.makedirs(STATE, 0o700, exist_ok=True)
        with open(f"{STATE}/{name}.cwd", "w", encoding="utf-8") as file:
            file.write(cwd)
        return wire.json_answer(200, {"session_id": name})

    async def run_in(self, request, name):
        """A shell that begins where the last one of the session ended."""
        lock, asked = self.sessions.get(name), await request.json()
        if lock is None:  # the contract has no 404 here
            raise Refused(400, "CONTEXT_NOT_FOUND", f"session {name} not found")
        at, text = f"{STATE}/{name}", asked.get("command")
        if not isinstance(text, str) or not text:
            raise Refused(400, "INVALID_REQUEST_BODY", "command is required")
        cwd = f"cd -- {shlex.quote(asked['cwd'])}" if asked.get("cwd") else f"cd -- \"$(cat {at}.cwd)\""
        text = f"""{cwd} || exit; [ ! -e {at}.env ] || . {at}.env
            trap 'code=$?; export -p > {at}.env; pwd > {at}.cwd; exit $code' EXIT
            eval {shlex.quote(text)}"""
        await lock.acquire()
        try:
            command, timeout = self.begin(asked, text, "/", False, True)
        except BaseException:
            lock.release()
            raise

        async def events():
            try:
                async for one in command.events(timeout):
                    yield one
            finally:
                lock.release()

        return self.stream(events())

    async def close(self, _request, name):
        if self.sessions.pop(name, None) is None:
            raise Refused(404, "CONTEXT_NOT_FOUND", f"session {name} not found")
        for kind in ("cwd", "env"):
            if os.path.exists(f"{STATE}/{name}.{kind}"):
                os.unlink(f"{STATE}/{name}.{kind}")
        return wire.Answer(200)
