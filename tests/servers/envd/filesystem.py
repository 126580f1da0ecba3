# SPDX-License-Identifier: Apache-2.0
"""filesystem.Filesystem but for its watches (watch.py)."""
import errno
import os
import shutil
import stat

from base import rpc
from envd import entry, paths


class Filesystem:
    def __init__(self, daemon):
        self.daemon = daemon

    def methods(self):
        return {f"filesystem.Filesystem/{name}": getattr(self, name) for name in ("Stat", "ListDir", "MakeDir", "Move", "Remove")}

    def path(self, call, text):
        return paths.resolve(text, self.daemon.user_of(call.headers), self.daemon.workdir)

    async def Stat(self, call, message):
        return {"entry": found(self.path(call, message.get("path", "")))}

    async def ListDir(self, call, message):
        top = self.path(call, message.get("path", ""))
        try:
            mode = os.stat(top).st_mode
        except OSError as error:
            raise translated(error, top) from None
        if not stat.S_ISDIR(mode):
            raise rpc.Error("invalid_argument", f"path is not a directory: {top}")
        return {"entries": list(walk(top, int(message.get("depth", 0)) or 1))}

    async def MakeDir(self, call, message):
        path, user = self.path(call, message.get("path", "")), self.daemon.user_of(call.headers)
        if os.path.isdir(path):
            raise rpc.Error("already_exists", f"directory already exists: {path}")
        if os.path.lexists(path):
            raise rpc.Error("invalid_argument", f"path already exists but it is not a directory: {path}")
        paths.make_parents(path, user)
        return {"entry": found(path)}

    async def Move(self, call, message):
        source, to = (self.path(call, message.get(key, "")) for key in ("source", "destination"))
        if not os.path.lexists(source):
            raise rpc.Error("not_found", f"source file not found: {source}")
        paths.make_parents(os.path.dirname(to), self.daemon.user_of(call.headers))
        os.rename(source, to)
        return {"entry": found(to)}

    async def Remove(self, call, message):
        path = self.path(call, message.get("path", ""))
        if os.path.isdir(path) and not os.path.islink(path):
            shutil.rmtree(path)
        elif os.path.lexists(path):
            os.unlink(path)
        return {}


def found(path):
    try:
        return entry.info(path)
    except OSError as error:
        raise translated(error, path) from None


def translated(error, path):
    code = {errno.ENOENT: "not_found", errno.ENOTDIR: "not_found", errno.ELOOP: "failed_precondition"}.get(error.errno, "internal")
    return rpc.Error(code, f"{'path not found' if code == 'not_found' else error.strerror}: {path}")


def walk(top, depth):
    """Entries below a directory, depth first, by name; what goes meanwhile is left out."""
    for name in sorted(os.listdir(top)):
        path = os.path.join(top, name)
        try:
            yield entry.info(path)
            if depth > 1 and not os.path.islink(path) and os.path.isdir(path):
                yield from walk(path, depth - 1)
        except FileNotFoundError:
            continue
