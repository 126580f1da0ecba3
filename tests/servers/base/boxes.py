# SPDX-License-Identifier: Apache-2.0
"""Boxes: what the servers here have for sandboxes. Real processes in namespaces, over a directory of their own.

A helper process, forked before the server has threads or an event loop, makes them: it has all that a box's daemon needs
already in memory, so that a box costs a fork. A box's first process (PID 1 inside) is the daemon: serve(sockets, box),
at Unix sockets that the server connects to. All of it ends with the server.

What a box is not: a virtual machine. Its memory cannot be written down, so a copy of it has its files alone; there is no
way out of its network.
"""
import asyncio
import encodings.ascii  # noqa: F401 - else it is looked for in a box first, where the host's may not be read
import json
import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import traceback

from base import world

USER = 1000
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
FLAGS = world.NEWUSER | world.NEWNS | world.NEWPID | world.NEWNET | world.NEWUTS | world.NEWIPC


# ---- the helper's side ----

def id_ranges():
    """Lines of uid_map for what this user may have: [inside, outside, count]. Root: a range that no file of the host has."""
    if os.getuid() == 0:
        return [[0, 100000, 65536]]
    lines = [[0, os.getuid(), 1]]
    name = pwd.getpwuid(os.getuid()).pw_name
    try:
        with open("/etc/subuid", encoding="ascii") as file:
            for line in file:
                who, start, count = line.strip().split(":")
                if who in (name, str(os.getuid())):
                    return lines + [[1, int(start), int(count)]]
    except (OSError, ValueError):
        pass
    return lines


def write_maps(pid, ranges):
    if os.getuid() == 0:
        for kind in ("uid", "gid"):
            with open(f"/proc/{pid}/{kind}_map", "w", encoding="ascii") as file:
                file.write("".join(f"{a} {b} {n}\n" for a, b, n in ranges))
        return
    words = [str(number) for line in ranges for number in line]
    if len(ranges) == 1:
        for name, text in (("setgroups", "deny"), ("uid_map", " ".join(words)), ("gid_map", f"0 {os.getgid()} 1")):
            with open(f"/proc/{pid}/{name}", "w", encoding="ascii") as file:
                file.write(text)
        return
    groups = list(words)
    groups[1] = str(os.getgid())
    subprocess.run(["newuidmap", str(pid), *words], check=True)
    subprocess.run(["newgidmap", str(pid), *groups], check=True)


def own(path):
    try:
        os.chown(path, USER, USER)
    except OSError:  # an ordinary user without a range: root is the only one inside
        pass


def in_namespaces(ranges, then):
    """A child in fresh namespaces that runs then(), as their uid 0. Returns its pid."""
    ready, mapped = os.pipe(), os.pipe()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            for number in SIGNALS:
                signal.signal(number, signal.SIG_DFL)
            os.close(mapped[1])
            world.call("unshare", FLAGS)
            os.write(ready[1], b"x")
            if os.read(mapped[0], 1) == b"x":
                os.setresgid(0, 0, 0)
                os.setresuid(0, 0, 0)
                world.die_with_parent()
                code = then()
        except BaseException:
            traceback.print_exc()
        os._exit(code)
    os.close(ready[1])
    os.close(mapped[0])
    try:
        if os.read(ready[0], 1) == b"x":
            write_maps(pid, ranges)
            os.write(mapped[1], b"x")
    finally:
        os.close(ready[0])
        os.close(mapped[1])
    return pid


def first_process(root, socks, box, serve):
    """The fork that is PID 1 inside; its parent waits for it. Returns its exit code."""
    pid = os.fork()
    if pid:
        signal.signal(signal.SIGTERM, lambda *_: os.kill(pid, signal.SIGKILL))
        for sock in socks:
            sock.close()
        return os.waitpid(pid, 0)[1]
    try:
        world.die_with_parent()
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        world.enter(root, box.get("mounts", []))
        os.umask(0o022)
        os.setsid()
        serve(socks, box)
    except BaseException:
        traceback.print_exc()
    os._exit(0)


def do_start(job, ranges, serve):
    socks = [listening(path) for path in job["sockets"]]
    pid = in_namespaces(ranges, lambda: first_process(job["root"], socks, job["box"], serve))
    for sock in socks:
        sock.close()
    return {"pid": pid}


def listening(path):
    if os.path.exists(path):
        os.unlink(path)
    sock = socket.socket(socket.AF_UNIX)
    sock.bind(path)
    sock.listen(512)
    return sock


def do_make(job, ranges, _serve):
    """A new root; of another one's files, if it says so, or bare: empty, and the user's."""
    root = job["root"]
    os.mkdir(root, 0o755)
    if os.getuid() == 0:
        os.chown(root, ranges[0][1], ranges[0][1])

    def fill():
        if job.get("copy"):
            return subprocess.run(["cp", "-a", "--reflink=auto", f"{job['copy']}/.", root], check=False).returncode
        if job.get("bare"):
            own(root)
        else:
            world.make_root(root, own)
        return 0

    return wait_ok(in_namespaces(ranges, fill), f"{root} cannot be filled")


def do_remove(job, ranges, _serve):
    def empty():
        for name in os.listdir(job["root"]):
            path = os.path.join(job["root"], name)
            if os.path.isdir(path) and not os.path.islink(path):
                shutil.rmtree(path, onerror=lambda call, where, info: (os.chmod(os.path.dirname(where), 0o700), call(where)))
            else:
                os.unlink(path)
        return 0

    answer = wait_ok(in_namespaces(ranges, empty), f"{job['root']} cannot be emptied")
    if "error" not in answer:
        os.rmdir(job["root"])
    return answer


def do_kill(job, _ranges, _serve):
    """Returns when every process of the box is gone: the first one's parent ends only then."""
    try:
        os.kill(job["pid"], signal.SIGTERM)
        os.waitpid(job["pid"], 0)
    except (ProcessLookupError, ChildProcessError):
        pass
    return {}


def wait_ok(pid, sentence):
    return {} if os.waitpid(pid, 0)[1] == 0 else {"error": sentence}


JOBS = {"start": do_start, "make": do_make, "remove": do_remove, "kill": do_kill}


def helper(sock, serve):
    ranges = id_ranges()
    for line in sock.makefile("r", encoding="utf-8"):
        job = json.loads(line)
        try:
            answer = JOBS[job["do"]](job, ranges, serve)
        except (OSError, subprocess.SubprocessError) as error:
            answer = {"error": str(error)}
        sock.sendall(json.dumps({"n": job["n"], **answer}).encode() + b"\n")


# ---- the server's side ----

class Failed(Exception):
    """A sentence of the helper's."""


class Boxes:
    """Made before the event loop. Directories are below @top; @serve is the daemon's main function."""

    def __init__(self, top, serve):
        self.top, self._waiting, self._count = top, {}, 0
        here, there = socket.socketpair()
        self.pid = os.fork()
        if self.pid == 0:
            try:
                here.close()
                world.die_with_parent()
                for number in SIGNALS:  # it ends with the server, which has to take the boxes away before
                    signal.signal(number, signal.SIG_IGN)
                helper(there, serve)
            finally:
                os._exit(0)
        there.close()
        self._sock, self._writer = here, None

    async def begin(self):
        reader, self._writer = await asyncio.open_connection(sock=self._sock, limit=1 << 20)
        asyncio.ensure_future(self._answers(reader))

    async def _answers(self, reader):
        while line := await reader.readline():
            answer = json.loads(line)
            self._waiting.pop(answer["n"]).set_result(answer)
        print("the helper that makes boxes ended", file=sys.stderr, flush=True)
        os._exit(1)

    async def ask(self, do, **job):
        self._count += 1
        self._waiting[self._count] = future = asyncio.get_running_loop().create_future()
        self._writer.write(json.dumps({"do": do, "n": self._count, **job}).encode() + b"\n")
        answer = await asyncio.shield(future)
        if "error" in answer:
            raise Failed(answer["error"])
        return answer
