# SPDX-License-Identifier: Apache-2.0
"""envd's files over REST: download with ranges and gzip, upload as a form or raw, compose."""
import base64
import email.utils
import errno
import hashlib
import mimetypes
import os
import stat
import time
import urllib.parse
import zlib

from base import forms, rpc, wire
from envd import entry, paths

PIECE = 1 << 20
METADATA_MAX, KEY_MAX = 4096, 246


class Refused(Exception):
    def __init__(self, status, message):
        super().__init__(message)
        self.status, self.message = status, message


def error_answer(status, message):
    return wire.Answer(status, wire.json_answer(status, {"message": message, "code": status}).body,
                       {"X-Content-Type-Options": "nosniff"}, "application/json; charset=utf-8")


def signature(path, operation, user, token, expires):
    text = f"{path}:{operation}:{user}:{token}" + (f":{expires}" if expires else "")
    return "v1_" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode().rstrip("=")


class Files:
    def __init__(self, daemon):
        self.daemon = daemon

    async def serve(self, request):
        try:
            if request.path == "/files/compose":
                return await self.compose(request)
            user = self.authorized(request)
            return await (self.download if request.method in ("GET", "HEAD") else self.upload)(request, user)
        except Refused as refused:
            return error_answer(refused.status, refused.message)
        except rpc.Error as error:
            return error_answer(401 if error.code == "unauthenticated" else 400, error.message)
        except OSError as error:
            return error_answer(507 if error.errno in (errno.ENOSPC, errno.EDQUOT) else 500, str(error))

    def authorized(self, request):
        """Whose files these are; 401 without the token and without a signature that fits."""
        query, token = request.query, self.daemon.token
        if token and request.headers.get("x-access-token") != token:
            if "x-access-token" in request.headers:
                raise Refused(401, "access token present in header but does not match")
            operation = "read" if request.method in ("GET", "HEAD") else "write"
            expires = query.get("signature_expiration", "")
            if not query.get("signature"):
                raise Refused(401, "missing signature query parameter")
            wanted = signature(query.get("path", ""), operation, query.get("username", ""), token, expires)
            if query["signature"] != wanted:
                raise Refused(401, "invalid signature")
            if expires and (not expires.lstrip("-").isdigit() or int(expires) < time.time() + self.daemon.skew):
                raise Refused(401, "signature is already expired")
        return paths.find_user(query.get("username") or self.daemon.user)

    # ---- download ----

    async def download(self, request, user):
        path = paths.resolve(request.query.get("path", ""), user, self.daemon.workdir)
        try:
            at = os.stat(path)
        except OSError as error:
            raise Refused(404 if error.errno in (errno.ENOENT, errno.ENOTDIR) else 500, f"path '{path}' does not exist") from None
        if not stat.S_ISREG(at.st_mode):
            raise Refused(400, f"path '{path}' is a directory" if stat.S_ISDIR(at.st_mode) else f"path '{path}' is no file")
        name = os.path.basename(path)
        headers = {"Content-Disposition": f"inline; filename={urllib.parse.quote(name)}", "Vary": "Accept-Encoding",
                   "Last-Modified": email.utils.formatdate(at.st_mtime, usegmt=True)}
        kind = mimetypes.guess_type(name)[0] or "application/octet-stream"
        wants, ranged = request.headers.get("accept-encoding", ""), request.headers.get("range")
        if "identity;q=0" in wants.replace(" ", "") and ranged:
            raise Refused(406, "no acceptable encoding found")
        if "gzip" in wants and not ranged and not any(name.startswith("if-") for name in request.headers):
            return wire.Answer(200, packed(path), headers | {"Content-Encoding": "gzip"}, kind)
        headers["Accept-Ranges"] = "bytes"
        if self.unchanged(request, at):
            return wire.Answer(304, b"", headers)
        if ranged and request.headers.get("if-range") in (None, headers["Last-Modified"]):
            return part(path, at.st_size, ranged, headers, kind)
        return wire.Answer(200, pieces(path, 0, at.st_size), headers | {"Content-Length": str(at.st_size)}, kind)

    @staticmethod
    def unchanged(request, at):
        since = email.utils.parsedate_to_datetime(request.headers["if-modified-since"]) \
            if "if-modified-since" in request.headers else None
        return since is not None and int(at.st_mtime) <= since.timestamp()

    # ---- upload ----

    async def upload(self, request, user):
        metadata = metadata_of(request.headers)
        encoding = request.headers.get("content-encoding", "identity").lower()
        if encoding not in ("identity", "gzip"):
            raise Refused(400, f"unsupported Content-Encoding: {encoding}")
        chunks = request.chunks() if encoding == "identity" else unpacked(request.chunks())
        kind = rpc.content_type(request.headers)
        if kind == "application/octet-stream":
            if not request.query.get("path"):
                raise Refused(400, "path is required")
            written = [await self.write(request.query["path"], user, chunks, metadata)]
        elif kind == "multipart/form-data":
            written = await self.write_form(request, user, chunks, metadata)
        else:
            raise Refused(400, f"unsupported Content-Type: {kind}")
        return wire.Answer(200, wire.json_answer(200, written).body, None, "text/plain; charset=utf-8")

    async def write_form(self, request, user, chunks, metadata):
        written = []
        try:
            async for headers, data in forms.parts(chunks, request.headers.get("content-type", "")):
                name, filename = forms.names(headers)
                if name != "file":
                    async for _ in data:
                        pass
                    continue
                target = request.query.get("path") or filename
                if any(paths.resolve(target, user, self.daemon.workdir) == one["path"] for one in written):
                    raise Refused(400, f"you cannot upload multiple files to the same path '{target}'")
                written.append(await self.write(target, user, data, metadata))
        except forms.Bad as bad:
            raise Refused(400, f"error parsing multipart form: {bad}") from None
        return written

    async def write(self, path, user, chunks, metadata):
        path = paths.resolve(path, user, self.daemon.workdir)
        if os.path.isdir(path):
            raise Refused(400, f"path is a directory: {path}")
        paths.make_parents(os.path.dirname(path), user)
        with open(path, "wb") as file:
            paths.own(path, user)
            set_metadata(path, metadata)
            async for data in chunks:
                file.write(data)
        return {"path": path, "name": os.path.basename(path), "type": "file"} | ({"metadata": metadata} if metadata else {})

    async def compose(self, request):
        if request.method != "POST":
            raise Refused(405, "method not allowed")
        asked = await request.json()
        user = paths.find_user(asked.get("username") or self.daemon.user)
        sources = [paths.resolve(path, user, self.daemon.workdir) for path in asked.get("source_paths", [])]
        to = paths.resolve(asked.get("destination", ""), user, self.daemon.workdir)
        if not sources or to in sources:
            raise Refused(400, "source_paths is empty" if not sources else "the destination is among the sources")
        for path in sources:
            if not os.path.exists(path):
                raise Refused(404, f"source file not found: {path}")
            if not os.path.isfile(path):
                raise Refused(400, f"source is not a regular file: {path}")
        paths.make_parents(os.path.dirname(to), user)
        join(sources, to, user)
        return wire.json_answer(200, {"path": to, "name": os.path.basename(to), "type": "file"})


def join(sources, to, user):
    new = f"{to}.compose-{time.monotonic_ns()}"
    with open(new, "wb") as out:
        paths.own(new, user)
        for path in sources:
            with open(path, "rb") as file:
                while data := file.read(PIECE):
                    out.write(data)
    os.rename(new, to)
    for path in set(sources):
        os.unlink(path)


async def pieces(path, first, size):
    with open(path, "rb") as file:
        file.seek(first)
        while size > 0 and (data := file.read(min(PIECE, size))):
            size -= len(data)
            yield data
    if size > 0:
        raise wire.Gone("the file shrank while it was sent")


async def packed(path):
    press = zlib.compressobj(1, wbits=31)
    with open(path, "rb") as file:
        while data := file.read(PIECE):
            yield press.compress(data)
    yield press.flush()


async def unpacked(chunks):
    unpress = zlib.decompressobj(wbits=31)
    try:
        async for data in chunks:
            yield unpress.decompress(data)
    except zlib.error as error:
        raise Refused(400, f"the body is no gzip: {error}") from None
    if not unpress.eof:
        raise Refused(400, "the body's gzip ended early")


def part(path, size, ranged, headers, kind):
    """One range; several at once are answered as the whole, which HTTP allows."""
    unit, _, spec = ranged.partition("=")
    if unit.strip() != "bytes" or "," in spec:
        return wire.Answer(200, pieces(path, 0, size), headers | {"Content-Length": str(size)}, kind)
    first, _, last = spec.strip().partition("-")
    try:
        if first:
            start, stop = int(first), min(int(last) + 1, size) if last else size
        else:
            start, stop = max(0, size - int(last)), size
    except ValueError:
        start, stop = 1, 0
    if start >= stop:
        return wire.Answer(416, b"invalid range\n", headers | {"Content-Range": f"bytes */{size}"}, "text/plain; charset=utf-8")
    headers |= {"Content-Range": f"bytes {start}-{stop - 1}/{size}", "Content-Length": str(stop - start)}
    return wire.Answer(206, pieces(path, start, stop - start), headers, kind)


def metadata_of(headers):
    found = {name[len("x-metadata-"):]: value for name, value in headers.items() if name.startswith("x-metadata-")}
    total = sum(len(entry.PREFIX) + len(key) + len(value) for key, value in found.items())
    printable = all(" " <= letter <= "~" for value in found.values() for letter in value)
    if total > METADATA_MAX or not printable or any(not 0 < len(key) <= KEY_MAX for key in found):
        raise Refused(400, "invalid file metadata")
    return found


def set_metadata(path, metadata):
    for name in os.listxattr(path):
        if name.startswith(entry.PREFIX):
            os.removexattr(path, name)
    for key, value in metadata.items():
        os.setxattr(path, entry.PREFIX + key, value.encode())


