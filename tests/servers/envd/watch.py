# SPDX-License-Identifier: Apache-2.0
"""Watches of filesystem.Filesystem, on inotify."""
import asyncio
import ctypes
import os
import secrets
import struct

from base import rpc, world
from envd import entry, paths

IN_ATTRIB, IN_MODIFY, IN_MOVED_FROM, IN_MOVED_TO, IN_CREATE, IN_DELETE, IN_ISDIR = 4, 2, 0x40, 0x80, 0x100, 0x200, 0x40000000
MASK = IN_ATTRIB | IN_MODIFY | IN_MOVED_FROM | IN_MOVED_TO | IN_CREATE | IN_DELETE
KINDS = ((IN_CREATE | IN_MOVED_TO, "CREATE"), (IN_MOVED_FROM, "RENAME"), (IN_ATTRIB, "CHMOD"), (IN_MODIFY, "WRITE"),
         (IN_DELETE, "REMOVE"))
WITH_ENTRY = {"CREATE", "WRITE", "CHMOD"}
NETWORK = {"nfs", "nfs4", "cifs", "smb3", "fuse", "fuseblk", "9p"}


class Watch:
    def __init__(self, top, recursive, with_entry):
        self.top, self.recursive, self.with_entry, self.events = top, recursive, with_entry, asyncio.Queue()
        self.fd = world.LIBC.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        self._names = {}
        self._add("")
        asyncio.get_running_loop().add_reader(self.fd, self._read)

    def close(self):
        asyncio.get_running_loop().remove_reader(self.fd)
        os.close(self.fd)

    def _add(self, name):
        path = os.path.join(self.top, name)
        number = world.LIBC.inotify_add_watch(self.fd, os.fsencode(path), ctypes.c_uint32(MASK))
        if number < 0:
            return
        self._names[number] = name
        if self.recursive:
            for item in os.scandir(path):
                if item.is_dir(follow_symlinks=False):
                    self._add(os.path.join(name, item.name))

    def _read(self):
        data, i = os.read(self.fd, 64 << 10), 0
        while i < len(data):
            number, mask, _, size = struct.unpack_from("iIII", data, i)
            name = os.fsdecode(data[i + 16:i + 16 + size].rstrip(b"\0"))
            i += 16 + size
            if name and number in self._names:
                self._tell(os.path.join(self._names[number], name), mask)

    def _tell(self, name, mask):
        path = os.path.join(self.top, name)
        if self.recursive and mask & IN_ISDIR and mask & (IN_CREATE | IN_MOVED_TO):
            self._add(name)
        for bits, kind in KINDS:
            if mask & bits:
                event = {"name": name, "type": f"EVENT_TYPE_{kind}"}
                if self.with_entry and kind in WITH_ENTRY:
                    try:
                        event["entry"] = entry.info(path)
                    except OSError:
                        pass
                self.events.put_nowait(event)


class Watches:
    def __init__(self, daemon):
        self.daemon, self.known = daemon, {}

    def methods(self):
        names = ("WatchDir", "CreateWatcher", "GetWatcherEvents", "RemoveWatcher")
        return {f"filesystem.Filesystem/{name}": getattr(self, name) for name in names}

    def open(self, call, message):
        path = paths.resolve(message.get("path", ""), self.daemon.user_of(call.headers), self.daemon.workdir)
        if not os.path.lexists(path):
            raise rpc.Error("not_found", f"path {path} not found")
        path = os.path.realpath(path)
        if not os.path.isdir(path):
            raise rpc.Error("invalid_argument", f"path {path} not a directory")
        if not message.get("allowNetworkMounts") and kind_of_mount(path) in NETWORK:
            raise rpc.Error("invalid_argument", f"cannot watch path on network filesystem: {path}")
        return Watch(path, message.get("recursive", False), message.get("includeEntry", False))

    async def WatchDir(self, call, message):
        return self.stream(self.open(call, message), call)

    @staticmethod
    async def stream(watch, call):
        try:
            yield {"start": {}}
            while True:
                event = await call.next(watch.events.get)
                yield {"filesystem": event} if event else {"keepalive": {}}
        finally:
            watch.close()

    async def CreateWatcher(self, call, message):
        name = "w" + secrets.token_hex(10)
        self.known[name] = self.open(call, message)
        return {"watcherId": name}

    def find(self, message):
        watch = self.known.get(message.get("watcherId", ""))
        if watch is None:
            raise rpc.Error("not_found", f"watcher with id {message.get('watcherId', '')} not found")
        return watch

    async def GetWatcherEvents(self, _call, message):
        events = self.find(message).events
        found = [events.get_nowait() for _ in range(events.qsize())]
        return {"events": found} if found else {}

    async def RemoveWatcher(self, _call, message):
        self.find(message).close()
        del self.known[message["watcherId"]]
        return {}


def kind_of_mount(path):
    """The type of the file system that a resolved path is on."""
    best, kind = "", ""
    with open("/proc/self/mounts", encoding="utf-8") as mounts:
        for line in mounts:
            _, where, what, *_ = line.split(" ")
            if (path + "/").startswith(where.rstrip("/") + "/") and len(where) >= len(best):
                best, kind = where, what.split(".")[0]
    return kind
