# SPDX-License-Identifier: Apache-2.0
"""process.Process: commands and terminals of a box."""
import asyncio
import base64
import os
import signal

from base import rpc
from envd import paths
from envd.running import OVER, Running

KEPT = 30  # seconds that an ended process can be connected to
SIGNALS = {"SIGNAL_SIGTERM": signal.SIGTERM, "SIGNAL_SIGKILL": signal.SIGKILL, 15: signal.SIGTERM, 9: signal.SIGKILL}


class Processes:
    def __init__(self, daemon):
        self.daemon, self.known = daemon, {}

    def methods(self):
        names = ("List", "Start", "Connect", "Update", "SendInput", "StreamInput", "SendSignal", "CloseStdin")
        return {f"process.Process/{name}": getattr(self, name) for name in names}

    def find(self, selector):
        """A process that runs or ended a moment ago."""
        if "pid" in selector:
            process = self.known.get(int(selector["pid"]))
        else:
            tag = selector.get("tag")
            process = next((one for one in self.known.values() if tag is not None and one.tag == tag), None)
        if process is None:
            raise rpc.Error("not_found", f"process with {selector} not found")
        return process

    def find_running(self, message):
        process = self.find(message.get("process", {}))
        if process.status is not None:
            raise rpc.Error("not_found", f"process with pid {process.pid} not found")
        return process

    async def List(self, _call, _message):
        return {"processes": [
            {"config": one.config, "pid": one.pid} | ({"tag": one.tag} if one.tag is not None else {})
            for one in self.known.values() if one.status is None]}

    def command(self, call, message):
        """Words, directory and environment of what a Start asks for, and as whom."""
        config, user = message.get("process", {}), self.daemon.user_of(call.headers)
        cwd = paths.resolve(config.get("cwd", ""), user, self.daemon.workdir)
        if not os.path.isdir(cwd):
            raise rpc.Error("invalid_argument", f"cwd '{cwd}' does not exist")
        env = {"PATH": os.environ.get("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"),
               "HOME": user.pw_dir, "USER": user.pw_name, "LOGNAME": user.pw_name}
        env |= self.daemon.envs | config.get("envs", {})
        return [config.get("cmd", ""), *config.get("args", [])], cwd, env, user

    def begin(self, call, message):
        """A process that is followed to its end, and one who reads it from its first byte."""
        words, cwd, env, user = self.command(call, message)
        size = message.get("pty", {}).get("size", {}) if "pty" in message else None
        try:
            process = Running(words, cwd, env, user, size, message.get("stdin", True))
        except (OSError, ValueError) as error:
            raise rpc.Error("invalid_argument", f"error starting process '{words[0]}': {error}") from None
        process.config, process.tag = message.get("process", {}), message.get("tag")
        self.known[process.pid] = process
        self.daemon.reaper.wait(process.pid, process.exited)
        self.daemon.log("Process started", pid=process.pid, cmd=words[0])
        reader = process.subscribe()
        process.following = asyncio.ensure_future(self.follow(process, call.timeout))
        return process, reader

    async def Start(self, call, message):
        return self.events(*self.begin(call, message), call)

    async def launch(self, text):
        """Runs on by itself."""
        process, reader = self.begin(rpc.Call({}, None), {"process": {"cmd": "/bin/bash", "args": ["-l", "-c", text]}, "stdin": False})
        process.unsubscribe(reader)

    async def follow(self, process, timeout):
        """To the end: what lives for too long is killed; what has ended is known for a while."""
        ending = asyncio.ensure_future(process.run())
        if timeout and not (await asyncio.wait({ending}, timeout=timeout))[0]:
            process.signal(signal.SIGKILL)
        await ending
        self.daemon.log("Process ended", pid=process.pid, status=process.end["status"])
        await asyncio.sleep(KEPT)
        if self.known.get(process.pid) is process:
            del self.known[process.pid]

    @staticmethod
    async def events(process, reader, call):
        try:
            yield {"event": {"start": {"pid": process.pid}}}
            while (event := await call.next(reader.get)) != OVER:
                yield {"event": event or {"keepalive": {}}}
        finally:
            process.unsubscribe(reader)

    async def Connect(self, call, message):
        process = self.find(message.get("process", {}))
        return self.events(process, process.subscribe(), call)

    async def Update(self, _call, message):
        process = self.find_running(message)
        if "pty" in message:
            if not process.pty:
                raise rpc.Error("internal", "error resizing tty: tty not assigned to process")
            process.resize(message["pty"].get("size", {}))
        return {}

    async def give(self, process, message):
        kind, data = next(iter(message.get("input", {}).items()), (None, None))
        if kind is None:
            raise rpc.Error("unimplemented", "invalid input type")
        if (kind == "pty") != process.pty:
            raise rpc.Error("internal", f"error writing to {kind}: the process has none")
        await process.write(base64.b64decode(data))

    async def SendInput(self, _call, message):
        await self.give(self.find_running(message), message)
        return {}

    async def StreamInput(self, _call, messages):
        process = None
        async for message in messages:
            if "start" in message:
                process = self.find_running(message["start"])
            elif "data" in message:
                if process is None:
                    raise rpc.Error("invalid_argument", "no start event received")
                await self.give(process, message["data"])
        return {}

    async def SendSignal(self, _call, message):
        number = SIGNALS.get(message.get("signal"))
        if number is None:
            raise rpc.Error("unimplemented", f"invalid signal: {message.get('signal', 'SIGNAL_UNSPECIFIED')}")
        self.find_running(message).signal(number)
        return {}

    async def CloseStdin(self, _call, message):
        process = self.find_running(message)
        if process.pty:
            raise rpc.Error("failed_precondition", "cannot close stdin for a process with a terminal: send Ctrl+D instead")
        process.close_stdin()
        return {}
