# SPDX-License-Identifier: Apache-2.0
"""execd's files and directories."""
import fnmatch
import grp
import json
import os
import pwd
import shutil
import stat

from base import forms, wire
from envd import entry
from envd.files import part, pieces
from execd.commands import Refused

KINDS = ((stat.S_ISREG, "file"), (stat.S_ISDIR, "directory"), (stat.S_ISLNK, "symlink"))


def info(path):
    at = os.lstat(path)
    return {"path": path, "type": next((name for test, name in KINDS if test(at.st_mode)), "other"), "size": at.st_size,
            "modified_at": entry.rfc3339(at.st_mtime_ns), "created_at": entry.rfc3339(at.st_ctime_ns),
            "owner": entry.name_of(pwd.getpwuid, at.st_uid), "group": entry.name_of(grp.getgrgid, at.st_gid),
            "mode": int(f"{at.st_mode & 0o777:o}")}


def missing(path):
    return Refused(404, "FILE_NOT_FOUND", f"file not found: {path}")


def set_owner(path, wanted):
    """mode is a number whose digits are octal ones; owner and group are names or numbers."""
    if wanted.get("mode"):
        os.chmod(path, int(str(wanted["mode"]), 8))
    ids = []
    for key, look_up in (("owner", lambda name: pwd.getpwnam(name).pw_uid), ("group", lambda name: grp.getgrnam(name).gr_gid)):
        name = str(wanted.get(key) or "")
        ids.append(-1 if not name else int(name) if name.isdigit() else look_up(name))
    if ids != [-1, -1]:
        os.chown(path, *ids)


class Files:
    def __init__(self, daemon):
        self.daemon = daemon

    def routes(self):
        return [("GET", "/files/info", self.infos), ("DELETE", "/files", self.delete), ("POST", "/files/permissions", self.permit),
                ("POST", "/files/mv", self.move), ("GET", "/files/search", self.search), ("POST", "/files/replace", self.replace),
                ("POST", "/files/upload", self.upload), ("GET", "/files/download", self.download),
                ("GET", "/directories/list", self.list), ("POST", "/directories", self.make),
                ("DELETE", "/directories", self.delete_directories)]

    def path(self, text):
        return os.path.normpath(os.path.join(self.daemon.workdir, os.path.expanduser(text)))

    def given(self, request):
        found = [self.path(value) for name, value in request.pairs if name == "path"]
        if not found:
            raise Refused(400, "MISSING_QUERY", "missing query parameter 'path'")
        return found

    async def infos(self, request):
        values = {}
        for path in self.given(request):
            if not os.path.lexists(path):
                raise missing(path)
            values[path] = info(path)
        return wire.json_answer(200, values)

    async def delete(self, request):
        for path in self.given(request):
            if os.path.isdir(path) and not os.path.islink(path):
                raise Refused(500, "RUNTIME_ERROR", f"{path} is a directory")
            if os.path.lexists(path):
                os.unlink(path)
        return wire.Answer(200)

    async def permit(self, request):
        for path, wanted in (await request.json()).items():
            if not os.path.lexists(self.path(path)):
                raise missing(path)
            set_owner(self.path(path), wanted)
        return wire.Answer(200)

    async def move(self, request):
        for one in await request.json():
            source, to = self.path(one["src"]), self.path(one["dest"])
            if not os.path.lexists(source):
                raise missing(source)
            if os.path.lexists(to):
                raise Refused(500, "RUNTIME_ERROR", f"destination already exists: {to}")
            os.makedirs(os.path.dirname(to), exist_ok=True)
            os.rename(source, to)
        return wire.Answer(200)

    async def search(self, request):
        top, pattern = self.given(request)[0], request.query.get("pattern") or "**"
        if not os.path.isdir(top):
            raise missing(top)
        found = []
        for where, _, names in os.walk(top):
            for name in sorted(names):
                path = os.path.join(where, name)
                if fnmatch.fnmatch(os.path.relpath(path, top), pattern) or fnmatch.fnmatch(name, pattern):
                    found.append(info(path))
        return wire.json_answer(200, found)

    async def replace(self, request):
        counts = {}
        for path, one in (await request.json()).items():
            at = self.path(path)
            if not os.path.isfile(at):
                raise missing(path)
            with open(at, encoding="utf-8", errors="surrogateescape", newline="") as file:
                text = file.read()
            counts[path] = {"replacedCount": text.count(one["old"])}
            with open(at, "w", encoding="utf-8", errors="surrogateescape", newline="") as file:
                file.write(text.replace(one["old"], one["new"]))
        return wire.json_answer(200, counts) if request.query.get("verbose") == "true" else wire.Answer(200)

    async def upload(self, request):
        """Pairs of parts: what a file is, then its bytes."""
        wanted = None
        try:
            async for headers, data in forms.parts(request.chunks(), request.headers.get("content-type", "")):
                name, filename = forms.names(headers)
                if name == "metadata":
                    if not filename:
                        raise Refused(400, "INVALID_FILE_METADATA", "the part metadata has no filename")
                    wanted = json.loads(b"".join([piece async for piece in data]))
                elif name == "file":
                    if not isinstance(wanted, dict) or not wanted.get("path"):
                        raise Refused(400, "INVALID_FILE_METADATA", "a file without its metadata before it")
                    await self.write(self.path(wanted["path"]), wanted, data)
                    wanted = None
                else:
                    raise Refused(400, "INVALID_FILE", f"a part named {name}")
        except (forms.Bad, ValueError) as bad:
            raise Refused(400, "INVALID_FILE", str(bad)) from None
        if wanted is not None:
            raise Refused(400, "INVALID_FILE", "metadata without a file behind it")
        return wire.Answer(200)

    @staticmethod
    async def write(path, wanted, data):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            async for piece in data:
                file.write(piece)
        set_owner(path, wanted)

    async def download(self, request):
        path, query = self.given(request)[0], request.query
        if not os.path.isfile(path):
            raise missing(path)
        size, kind = os.path.getsize(path), "application/octet-stream"
        if "offset" in query or "limit" in query:
            first, count = int(query.get("offset", 0)), int(query.get("limit", 1 << 62))
            with open(path, "rb") as file:
                lines = [line for i, line in enumerate(file) if first <= i < first + count]
            return wire.Answer(200, b"".join(lines), None, "text/plain; charset=utf-8")
        headers = {"Content-Disposition": f"attachment; filename={os.path.basename(path)}"}
        if "range" in request.headers:
            return part(path, size, request.headers["range"], headers, kind)
        return wire.Answer(200, pieces(path, 0, size), headers | {"Content-Length": str(size)}, kind)

    async def list(self, request):
        top, depth = self.given(request)[0], int(request.query.get("depth", 1))
        if not os.path.lexists(top):
            raise missing(top)
        if os.path.islink(top) or not os.path.isdir(top):
            raise Refused(400, "INVALID_FILE", f"{top} is no directory")

        def walk(path, left):
            for name in sorted(os.listdir(path)):
                one = os.path.join(path, name)
                yield info(one)
                if left > 1 and os.path.isdir(one) and not os.path.islink(one):
                    yield from walk(one, left - 1)

        return wire.json_answer(200, list(walk(top, depth)))

    async def make(self, request):
        for path, wanted in (await request.json()).items():
            os.makedirs(self.path(path), exist_ok=True)
            set_owner(self.path(path), wanted or {})
        return wire.Answer(200)

    async def delete_directories(self, request):
        for path in self.given(request):
            if os.path.isdir(path) and not os.path.islink(path):
                shutil.rmtree(path)
        return wire.Answer(200)
