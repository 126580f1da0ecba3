# SPDX-License-Identifier: Apache-2.0
"""HTTP/1.1 on asyncio streams, as much as the servers here need: requests in, answers out, connections kept.

Written here because the faults (faults.py) must be put on single bytes of an answer, which a framework hides.
A handler is `async def handler(request) -> Answer`. A body that is an asynchronous iterator of bytes is sent in
chunks as they come; it is closed (aclose) when the peer goes, also while it waits.
"""
import asyncio
import json
import socket
import urllib.parse

HEAD_MAX, AHEAD = 64 << 10, 1 << 20  # AHEAD: bytes that may wait in memory for who reads
REASONS = {200: "OK", 201: "Created", 202: "Accepted", 204: "No Content", 206: "Partial Content"}


class Bad(Exception):
    """What came in is no HTTP."""


class Gone(Exception):
    """The peer went, or is to be treated so."""


class Reader(asyncio.StreamReader):
    """One that knows at once that its peer has closed, also while bytes are left in it."""

    def __init__(self):
        super().__init__(limit=AHEAD)
        self.gone = asyncio.Event()

    def feed_eof(self):
        self.gone.set()
        super().feed_eof()

    def set_exception(self, exc):
        self.gone.set()
        super().set_exception(exc)


class Body:
    """What follows a head. Read at most once by chunks(); body() and json() keep what they read."""

    def __init__(self, headers, reader, writer=None):
        self.headers, self._reader, self.writer = headers, reader, writer
        self._left = int(headers.get("content-length", "0") or 0)
        self._chunked = "chunked" in headers.get("transfer-encoding", "").lower()
        self.done = not self._chunked and not self._left
        self._seen = None

    async def chunks(self):
        if self._seen is not None:
            yield self._seen
            return
        if self.headers.get("expect", "").lower() == "100-continue" and self.writer:
            self.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        while not self.done:
            data = await (self._chunk() if self._chunked else self._plain())
            if data:
                yield data

    async def _plain(self):
        data = await self._reader.read(min(self._left, AHEAD))
        if not data:
            raise Gone("the body ended early")
        self._left -= len(data)
        self.done = not self._left
        return data

    async def _chunk(self):
        line = await self._reader.readline()
        try:
            size = int(line.split(b";")[0].strip(), 16)
        except ValueError:
            raise Bad(f"a chunk begins with {line[:40]!r}") from None
        if size == 0:
            while (await self._reader.readline()).strip():
                pass
            self.done = True
            return b""
        data = await self._reader.readexactly(size)
        await self._reader.readexactly(2)
        return data

    async def body(self):
        if self._seen is None:
            self._seen = b"".join([piece async for piece in self.chunks()])
        return self._seen

    async def drained(self, most=256 << 10):
        """Whether the rest of the body is read and thrown away: not where it is long, or not sent before it is asked for."""
        if self.headers.get("expect", "").lower() != "100-continue":
            while not self.done and most > 0:
                most -= len(await (self._chunk() if self._chunked else self._plain()))
        return self.done

    async def json(self):
        """The body as JSON; {} where there is none. ValueError: it is something else."""
        data = await self.body()
        return json.loads(data) if data.strip() else {}


class Request(Body):
    def __init__(self, method, target, headers, reader, writer):
        super().__init__(headers, reader, writer)
        self.method, self.target, self.fault = method, target, None
        path, _, query = target.partition("?")
        self.raw_path, self.path = path, urllib.parse.unquote(path)
        self.pairs = urllib.parse.parse_qsl(query, keep_blank_values=True)
        self.query = dict(self.pairs)


class Answer:
    def __init__(self, status=200, body=b"", headers=None, content_type=None):
        self.status, self.body, self.headers = status, body, dict(headers or {})
        if content_type:
            self.headers["Content-Type"] = content_type


def json_answer(status, value, headers=None):
    return Answer(status, json.dumps(value).encode(), headers, "application/json")


async def read_head(reader):
    """The first line, and the headers by lower-case name; None: the peer closed in between."""
    try:
        data = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError as gone:
        if not gone.partial.strip():
            return None
        raise Gone("the head ended early") from None
    except asyncio.LimitOverrunError:
        raise Bad("the head is too large") from None
    if len(data) > HEAD_MAX:
        raise Bad("the head is too large")
    first, *lines = data.decode("latin-1").rstrip("\r\n").split("\r\n")
    headers = {}
    for line in lines:
        name, colon, value = line.partition(":")
        if not colon:
            raise Bad(f"a header without a colon: {line[:40]!r}")
        headers[name.strip().lower()] = value.strip()
    return first, headers


async def read_request(reader, writer):
    head = await read_head(reader)
    if head is None:
        return None
    words = head[0].split(" ")
    if len(words) != 3 or not words[2].startswith("HTTP/1."):
        raise Bad(f"no request: {head[0][:80]!r}")
    return Request(words[0], words[1], head[1], reader, writer)


class Plain:
    """How the bytes of an answer leave; faults.py has others with the same three functions."""

    def __init__(self, writer):
        self.writer = writer

    async def head(self, data):
        self.writer.write(data)

    async def body(self, data):
        """Body bytes as they stand on the wire (with chunk sizes where there are any)."""
        self.writer.write(data)
        await self.writer.drain()

    async def end(self):
        await self.writer.drain()


def head_of(answer, streamed, keep):
    lines = [f"HTTP/1.1 {answer.status} {REASONS.get(answer.status, 'Status')}"]
    lines += [f"{name}: {value}" for name, value in answer.headers.items()]
    if streamed:
        lines.append("Transfer-Encoding: chunked")
    elif answer.status not in (204, 304) and "Content-Length" not in answer.headers and isinstance(answer.body, bytes):
        lines.append(f"Content-Length: {len(answer.body)}")
    if not keep:
        lines.append("Connection: close")
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


async def send(out, request, answer, keep):
    streamed, bare = hasattr(answer.body, "__aiter__"), answer.status in (204, 304) or request.method == "HEAD"
    raw = bare or "Content-Length" in answer.headers
    await out.head(head_of(answer, streamed and not raw, keep))
    if streamed:
        async for data in answer.body:
            if data and not bare:
                await out.body(data if raw else b"%x\r\n%s\r\n" % (len(data), data))
        if not raw:
            await out.body(b"0\r\n\r\n")
    elif answer.body and not bare:
        await out.body(answer.body)
    await out.end()


async def until_gone(reader, coroutine):
    """Runs a handler and the sending of its answer; ends them when the peer closes meanwhile."""
    work, watch = asyncio.ensure_future(coroutine), asyncio.ensure_future(reader.gone.wait())
    try:
        await asyncio.wait({work, watch}, return_when=asyncio.FIRST_COMPLETED)
        if not work.done():
            raise Gone("the peer closed")
        return await work
    finally:
        for task in (work, watch):
            task.cancel()
        await asyncio.gather(work, watch, return_exceptions=True)


async def close(writer):
    try:
        writer.close()
        await writer.wait_closed()
    except (OSError, asyncio.CancelledError):
        pass


async def linger(request, reader, writer):
    """An end that does not overtake the answer: one with bytes unread would be a reset, and those can be many."""
    if request.done or not writer.can_write_eof():
        return
    writer.write_eof()
    try:
        async with asyncio.timeout(1):
            while await reader.read(AHEAD):
                pass
    except (TimeoutError, OSError):
        pass


async def serve_connection(handler, reader, writer, outlet=None):
    """Requests of one connection, one after the other. @outlet(request, writer) chooses how answers leave."""
    try:
        while (request := await read_request(reader, writer)) is not None:
            keep = request.headers.get("connection", "").lower() != "close"
            if not await serve_one(handler, request, reader, outlet(request, writer) if outlet else Plain(writer), keep):
                return await linger(request, reader, writer)
    except (Bad, Gone, OSError, asyncio.IncompleteReadError):
        pass
    finally:
        await close(writer)


async def serve_one(handler, request, reader, out, keep):
    async def whole():
        answer = await handler(request)
        try:
            # A body that nobody wanted is read, so that the connection can be kept.
            drained = hasattr(answer.body, "__aiter__") or await request.drained()
            await send(out, request, answer, keep and drained)
        finally:
            if hasattr(answer.body, "aclose"):
                await answer.body.aclose()

    await until_gone(reader, whole())
    return keep and request.done


async def listen(handler, sock, tls=None, outlet=None):
    """Serves at a listening socket until it is closed."""
    def factory():
        async def connected(reader, writer):
            await serve_connection(handler, reader, writer, outlet)

        return asyncio.StreamReaderProtocol(Reader(), connected)

    loop = asyncio.get_running_loop()
    loop.set_exception_handler(on_error)
    make = loop.create_unix_server if sock.family == socket.AF_UNIX else loop.create_server
    return await make(factory, sock=sock, ssl=tls, backlog=512)


def on_error(loop, context):
    """A peer that goes is no news."""
    if not isinstance(context.get("exception"), (ConnectionError, Gone)):
        loop.default_exception_handler(context)
