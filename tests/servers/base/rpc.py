# SPDX-License-Identifier: Apache-2.0
"""The Connect protocol's server: unary calls and streams, JSON and binary messages, gzip, end-of-stream frames, deadlines.

Methods are `async def method(call, message)` returning a message (unary) or an asynchronous generator of messages
(server stream), in the JSON form of proto.py. A client-stream method is given an asynchronous iterator instead of a message.
"""
import asyncio
import gzip
import inspect
import json
import struct

from base import proto, wire

STATUS = {
    "canceled": 499, "unknown": 500, "invalid_argument": 400, "deadline_exceeded": 504, "not_found": 404, "already_exists": 409,
    "permission_denied": 403, "resource_exhausted": 429, "failed_precondition": 400, "aborted": 409, "out_of_range": 400,
    "unimplemented": 501, "internal": 500, "unavailable": 503, "data_loss": 500, "unauthenticated": 401,
}
UNARY = {"application/json": "json", "application/proto": "proto"}
STREAM = {"application/connect+json": "json", "application/connect+proto": "proto"}
COMPRESSED, END = 1, 2
FRAME_MAX = 64 << 20


class Error(Exception):
    def __init__(self, code, message):
        super().__init__(message)
        self.code, self.message = code, message

    def json(self):
        return {"code": self.code, "message": self.message}


class Call:
    """What a method may want to know besides its message."""

    def __init__(self, headers, timeout):
        self.headers, self.timeout = headers, timeout
        interval = self.headers.get("keepalive-ping-interval", "")
        self.idle = int(interval) if interval.isdigit() and int(interval) else 90
        self.deadline = asyncio.get_running_loop().time() + timeout if timeout else None

    async def next(self, get):
        """await get(), or None where the stream was idle for so long that it should show life. Ends with the deadline."""
        left = self.deadline - asyncio.get_running_loop().time() if self.deadline else self.idle
        try:
            return await asyncio.wait_for(get(), max(0, min(left, self.idle)))
        except asyncio.TimeoutError:
            if self.deadline and asyncio.get_running_loop().time() >= self.deadline:
                raise Error("deadline_exceeded", "context deadline exceeded") from None
            return None


def content_type(headers):
    return headers.get("content-type", "").split(";")[0].strip().lower()


def timeout_of(headers):
    """Seconds, None: no limit."""
    text = headers.get("connect-timeout-ms")
    if text is None:
        return None
    if not text.isdigit() or len(text) > 10:
        raise Error("invalid_argument", f"protocol error: invalid timeout: {text}")
    return int(text) / 1000 or None


def frame(data, flags=0):
    return struct.pack(">BI", flags, len(data)) + data


class Frames:
    """Takes bytes as they come, gives (flags, payload) of each whole frame."""

    def __init__(self):
        self._data = bytearray()

    def feed(self, data):
        self._data += data
        while len(self._data) >= 5:
            flags, size = struct.unpack_from(">BI", self._data)
            if size > FRAME_MAX:
                raise Error("resource_exhausted", f"message size {size} is larger than {FRAME_MAX}")
            if len(self._data) < 5 + size:
                return
            payload = bytes(self._data[5:5 + size])
            del self._data[:5 + size]
            yield flags, payload

    def left(self):
        return len(self._data)


class Service:
    """@schema has the methods' types, @methods the functions by "package.Service/Method"."""

    def __init__(self, schema, methods):
        self.schema, self.methods = schema, methods

    def has(self, path):
        return path.lstrip("/") in self.methods

    def unpack(self, kind, name, data):
        try:
            value = json.loads(data or b"{}") if kind == "json" else proto.decode(self.schema, name, data)
        except (ValueError, KeyError) as error:
            raise Error("invalid_argument", f"unmarshal message: {error}") from None
        faults = proto.check(self.schema, name, value)
        wrong = [fault for fault in faults if " has no field " not in fault]  # those are ignored, as proto3's JSON has it here
        if wrong:
            raise Error("invalid_argument", f"unmarshal message: {wrong[0]}")
        return value

    def pack(self, kind, name, value):
        return json.dumps(value).encode() if kind == "json" else proto.encode(self.schema, name, value)

    async def serve(self, request):
        path = request.path.lstrip("/")
        takes, gives, client_streams, server_streams = self.schema.methods[path]
        streams = client_streams or server_streams
        kind = (STREAM if streams else UNARY).get(content_type(request.headers))
        if request.method != "POST":
            return wire.Answer(405, headers={"Allow": "POST"})
        if kind is None:
            return wire.Answer(415, headers={"Accept-Post": ", ".join(STREAM if streams else UNARY)})
        if not streams:
            return await self.unary(request, path, kind, takes, gives)
        packed = "gzip" in request.headers.get("connect-accept-encoding", "")
        headers = {"Connect-Content-Encoding": "gzip"} if packed else {}
        body = self.stream(request, path, kind, (takes, gives, client_streams), packed)
        return wire.Answer(200, body, headers, content_type(request.headers))

    async def unary(self, request, path, kind, takes, gives):
        try:
            data = await request.body()
            if request.headers.get("content-encoding", "identity") == "gzip":
                data = gzip.decompress(data)
            message = self.unpack(kind, takes, data)
            timeout = timeout_of(request.headers)
            answer = await asyncio.wait_for(self.methods[path](Call(request.headers, timeout), message), timeout)
        except asyncio.TimeoutError:
            return error_answer(Error("deadline_exceeded", "context deadline exceeded"))
        except (Error, OSError) as error:
            return error_answer(error if isinstance(error, Error) else Error("internal", str(error)))
        data, headers = self.pack(kind, gives, answer), {"Vary": "Accept-Encoding"}
        if "gzip" in request.headers.get("accept-encoding", ""):
            data, headers["Content-Encoding"] = gzip.compress(data, 1), "gzip"
        return wire.Answer(200, data, headers, content_type(request.headers))

    async def stream(self, request, path, kind, types, packed):
        """Frames of an answer; the last one has the error, if there is one."""
        def framed(data, flags):
            return frame(gzip.compress(data, 1), flags | COMPRESSED) if packed and data else frame(data, flags)

        end = {}
        takes, gives, client_streams = types
        try:
            call = Call(request.headers, timeout_of(request.headers))
            messages = self.messages(request, kind, takes)
            if client_streams:
                yield framed(self.pack(kind, gives, await self.methods[path](call, messages)), 0)
            else:
                # No closing of the iterator: a body that is under way yet is the connection's matter.
                message = await anext(messages, None)
                if message is None:
                    raise Error("invalid_argument", "unary request has zero messages")
                results = self.methods[path](call, message)
                results = await results if inspect.isawaitable(results) else results
                try:
                    async for result in results:
                        yield framed(self.pack(kind, gives, result), 0)
                finally:
                    await results.aclose()
        except Error as error:
            end = {"error": error.json()}
        except OSError as error:
            end = {"error": Error("internal", str(error)).json()}
        yield framed(json.dumps(end).encode(), END)

    async def messages(self, request, kind, takes):
        frames = Frames()
        async for data in request.chunks():
            for flags, payload in frames.feed(data):
                if flags & COMPRESSED:
                    payload = gzip.decompress(payload)
                yield self.unpack(kind, takes, payload)
        if frames.left():
            raise Error("invalid_argument", "protocol error: incomplete envelope")


def error_answer(error):
    return wire.json_answer(STATUS[error.code], error.json())
