# SPDX-License-Identifier: Apache-2.0
"""Looks at all that passes, in both directions, and notes what differs from the contracts."""
import gzip
import json
import os

from base import openapi, proto, relay, rpc
from control.gate import ENVD_PORT
from envd import daemon

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
KEPT = 16 << 20
BULK = {"/files", "/files/upload", "/files/download"}  # whose bodies are files


class Watcher:
    """violations: {"side": "request" or "answer", "what": a sentence}, at most a thousand."""

    def __init__(self):
        folder = f"{HERE}/contracts/e2b"
        self.api = openapi.Contract(f"{folder}/openapi.yml", openapi.read(f"{folder}/newer.yml"))
        self.rest = openapi.Contract(f"{folder}/envd.yaml")
        self.methods, self.schemas = {}, {}
        for schema in daemon.SCHEMAS:
            for name, types in schema.methods.items():
                self.methods["/" + name], self.schemas["/" + name] = types, schema
        self.violations, self.looked = [], 0

    def note(self, side, faults):
        self.looked += 1
        self.violations += [{"side": side, "what": fault} for fault in faults]
        del self.violations[1000:]

    async def control(self, request, answer):
        body = await request.body()
        headers = {name.lower(): value for name, value in answer.headers.items()}
        # What was refused may well have been wrong: that is what refusals are for.
        if answer.status < 400:
            self.note("request", self.api.request(request.method, request.target, request.headers, body))
        if request.path != "/health":
            self.note("answer", self.api.answer(request.method, request.target, answer.status, headers, answer.body))

    def tap(self, request, _sandbox, port):
        if port != ENVD_PORT:
            return None
        if request.path in self.methods:
            return RpcTap(self, request)
        return RestTap(self, request)


class RestTap(relay.Silent):
    """envd's files and measures. Bodies of files are not looked at."""

    def __init__(self, watcher, request):
        self.watcher, self.request, self.status, self.headers = watcher, request, None, {}
        self.up, self.down, self.small = bytearray(), bytearray(), request.path not in BULK

    def sent(self, data):
        if self.small:
            self.up += data

    def answered(self, status, headers):
        self.status, self.headers = status, headers

    def received(self, data):
        if self.small or self.request.method == "POST" or self.status >= 400:
            self.down += data

    def over(self, whole):
        request, body = self.request, bytes(self.up) if self.small else None
        if self.status < 400:
            self.watcher.note("request", self.watcher.rest.request(request.method, request.target, request.headers, body))
        if whole and self.status not in (206, 304, 405, 406, 416) and not self.headers.get("content-encoding"):
            # What envd answers to an upload has no type of JSON's; a stream is none, whatever its description says.
            headers = self.headers | ({"content-type": "application/json"} if request.path == "/files" else {})
            down = bytes(self.down) if self.small or request.method == "POST" or self.status >= 400 else None
            self.watcher.note("answer", self.watcher.rest.answer(request.method, request.target, self.status, headers, down))


class RpcTap(relay.Silent):
    """Connect: every message of both sides, and how they are wrapped."""

    def __init__(self, watcher, request):
        self.watcher, self.path, self.headers = watcher, request.path, request.headers
        self.takes, self.gives, client, server = watcher.methods[request.path]
        self.schema, self.streams, self.status, self.ended = watcher.schemas[request.path], client or server, 0, False
        kinds = rpc.STREAM if self.streams else rpc.UNARY
        self.kind, self.up, self.down = kinds.get(rpc.content_type(request.headers)), rpc.Frames(), rpc.Frames()
        self.whole_up, self.whole_down, self.coded, self.messages = bytearray(), bytearray(), "", 0

    def message(self, side, name, data):
        if not data and self.kind == "json":
            return [f"{self.path}: an empty body is no JSON"]
        try:
            value = json.loads(data) if self.kind == "json" else proto.decode(self.schema, name, data)
        except ValueError as error:
            return [f"{self.path}: {side}: {error}"]
        return proto.check(self.schema, name, value)

    def sent(self, data):
        if not self.streams:
            self.whole_up += data
            return
        for flags, payload in self.up.feed(data):
            self.messages += 1
            faults = [f"{self.path}: a frame of a request has the flags {flags}"] if flags & ~rpc.COMPRESSED else []
            payload = gzip.decompress(payload) if flags & rpc.COMPRESSED else payload
            self.watcher.note("request", faults + self.message("request", self.takes, payload))

    def answered(self, status, headers):
        self.status, self.coded = status, headers.get("content-encoding", "")

    def received(self, data):
        if not self.streams or self.status != 200:
            if len(self.whole_down) < KEPT:
                self.whole_down += data
            return
        for flags, payload in self.down.feed(data):
            payload = gzip.decompress(payload) if flags & rpc.COMPRESSED else payload
            faults = [f"{self.path}: a frame after the end"] if self.ended else []
            if flags & rpc.END:
                self.ended = True
                code = json.loads(payload).get("error", {}).get("code", "unknown")
                faults += [] if code in rpc.STATUS else [f"{self.path}: the end has the code {code}"]
            else:
                faults += self.message("answer", self.gives, payload)
            self.watcher.note("answer", faults)

    def over(self, whole):
        faults = [f"{self.path}: content type {self.headers.get('content-type')}"] if self.kind is None else []
        if self.headers.get("connect-protocol-version") != "1":
            faults.append(f"{self.path}: Connect-Protocol-Version is {self.headers.get('connect-protocol-version')}")
        if self.streams:
            faults += [f"{self.path}: a request of {self.messages} frames"] if self.messages != 1 and "Stream" not in self.path else []
        elif self.kind:
            data = bytes(self.whole_up)
            data = gzip.decompress(data) if self.headers.get("content-encoding") == "gzip" else data
            faults += self.message("request", self.takes, data)
        self.watcher.note("request", faults)
        if whole and self.status == 200:
            if self.streams:
                self.watcher.note("answer", [] if self.ended and not self.down.left() else [f"{self.path}: no end frame"])
            elif self.kind:
                data = bytes(self.whole_down)
                self.watcher.note("answer", self.message("answer", self.gives, gzip.decompress(data) if self.coded else data))
