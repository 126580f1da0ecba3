# SPDX-License-Identifier: Apache-2.0
"""A process and those who read its output."""
import asyncio
import base64
import fcntl
import os
import signal
import struct
import subprocess
import termios

from base import rpc
from envd import paths

PIECE, PTY_PIECE, QUEUED = 32 << 10, 16 << 10, 64
OVER = "over"  # the event that is the last


class Reader:
    """One who is told events: a bounded queue, so that a slow one holds the process back. OVER is the end."""

    def __init__(self):
        self._queue, self.closed = asyncio.Queue(QUEUED), False

    async def get(self):
        return await self._queue.get()

    async def put(self, event):
        if not self.closed:
            await self._queue.put(event)

    def close(self):
        self.closed = True
        while not self._queue.empty():
            self._queue.get_nowait()


async def ready(fd, side, future=None):
    """Until @fd can be read (side "reader") or written ("writer"), or somebody sets @future."""
    loop = asyncio.get_running_loop()
    future = future or loop.create_future()
    getattr(loop, f"add_{side}")(fd, lambda: future.done() or future.set_result(None))
    try:
        await future
    finally:
        getattr(loop, f"remove_{side}")(fd)


class Running:
    """Starts at once. OSError: it cannot be started. run() once, exited() by who reaps."""

    def __init__(self, words, cwd, env, user, size, stdin):
        self.pty, self.status, self.end = size is not None, None, None
        self._readers, self._exited, self._writing, self._blocked = set(), asyncio.Event(), asyncio.Lock(), None
        if self.pty:
            self._open_pty(size)
        else:
            self._open_pipes(stdin)
        who = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []} if paths.mapped(user.pw_uid) else {}
        terminal = (lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0)) if self.pty else None
        try:
            popen = subprocess.Popen(words, cwd=cwd, env=env, stdin=self._theirs[0], stdout=self._theirs[1],
                                     stderr=self._theirs[2], start_new_session=True, preexec_fn=terminal, umask=0o022, **who)
        except BaseException:
            for fd in {self.stdin, *self._outputs}:
                if fd is not None:
                    os.close(fd)
            raise
        finally:
            for fd in set(self._theirs):
                os.close(fd)
        self.pid = popen.pid
        popen.returncode = 0  # it is reaped elsewhere

    def _open_pty(self, size):
        master, slave = os.openpty()
        self.stdin, self._theirs, self._outputs = master, (slave, slave, slave), {master: "pty"}
        self.resize(size)
        os.set_blocking(master, False)

    def _open_pipes(self, stdin):
        out, err = os.pipe(), os.pipe()
        self._outputs, self.stdin = {out[0]: "stdout", err[0]: "stderr"}, None
        if stdin:
            theirs, self.stdin = os.pipe()
            os.set_blocking(self.stdin, False)
        else:
            theirs = os.open("/dev/null", os.O_RDONLY)
        self._theirs = (theirs, out[1], err[1])
        for fd in self._outputs:
            os.set_blocking(fd, False)

    def resize(self, size):
        fcntl.ioctl(self.stdin, termios.TIOCSWINSZ, struct.pack("HHHH", size.get("rows", 0), size.get("cols", 0), 0, 0))

    # ---- output ----

    def subscribe(self):
        reader = Reader()
        self._readers.add(reader)
        if self.end:
            for event in ({"end": self.end}, OVER):
                reader._queue.put_nowait(event)
        return reader

    def unsubscribe(self, reader):
        self._readers.discard(reader)
        reader.close()

    async def tell(self, event):
        for reader in list(self._readers):
            await reader.put(event)

    async def pump(self, fd, name):
        while True:
            try:
                data = os.read(fd, PTY_PIECE if self.pty else PIECE)
            except BlockingIOError:
                await ready(fd, "reader")
                continue
            except OSError:  # a terminal that nobody has open any more
                return
            if not data:
                return
            await self.tell({"data": {name: base64.b64encode(data).decode()}})

    async def run(self):
        """Tells what it says, then how it ended."""
        await asyncio.gather(*(self.pump(fd, name) for fd, name in self._outputs.items()))
        await self._exited.wait()
        self.close_stdin()
        for fd in self._outputs:
            if not self.pty:
                os.close(fd)
        self.end = self.describe()
        await self.tell({"end": self.end})
        await self.tell(OVER)

    def exited(self, status):
        self.status = status
        self._exited.set()

    def describe(self):
        code = os.waitstatus_to_exitcode(self.status)
        if code < 0:
            text = f"signal: {signal.strsignal(-code).lower()}"
            return {"exitCode": -1, "status": text, "error": text}
        text = f"exit status {code}"
        return {"exitCode": code, "exited": True, "status": text, "error": text} if code else {"exited": True, "status": text}

    # ---- input ----

    async def write(self, data):
        """All of it, as far as the process takes it: waits for that, until stdin is closed."""
        async with self._writing:
            while data:
                if self.stdin is None:
                    raise rpc.Error("internal", "error writing to stdin: it is closed")
                try:
                    data = data[os.write(self.stdin, data):]
                except BlockingIOError:
                    await self._room()
                except OSError as error:
                    raise rpc.Error("internal", f"error writing to stdin: {error}") from None

    async def _room(self):
        self._blocked = asyncio.get_running_loop().create_future()
        fd = self.stdin
        try:
            await ready(fd, "writer", self._blocked)
        finally:
            self._blocked = None
            if self.stdin is None:  # closed meanwhile: the descriptor was left to who waits on it
                os.close(fd)

    def close_stdin(self):
        fd, self.stdin = self.stdin, None
        if self._blocked:
            if not self._blocked.done():
                self._blocked.set_result(None)
        elif fd is not None:
            os.close(fd)

    def signal(self, number):
        if self.status is None:
            os.kill(self.pid, number)
