# SPDX-License-Identifier: Apache-2.0
"""A request handed on to a server at a Unix socket, and its answer handed back as it comes."""
import asyncio

from base import wire

HOPS = {"connection", "keep-alive", "transfer-encoding", "expect", "upgrade", "te", "trailer", "proxy-connection",
        "x-inside"}


class Silent:
    """A tap that looks at nothing; others see what passes."""

    def sent(self, data):
        pass

    def answered(self, status, headers):
        pass

    def received(self, data):
        pass

    def over(self, whole):
        pass


async def forward(request, streams, tap=None):
    """@streams: (reader, writer) to the server, closed here. ConnectionError: it did not answer."""
    reader, writer = streams
    tap = tap or Silent()
    upload = asyncio.ensure_future(send(request, writer, tap))
    try:
        head = await wire.read_head(reader)
        if head is None:
            raise ConnectionResetError("no answer")
    except BaseException:
        upload.cancel()
        writer.close()
        raise
    status, headers = int(head[0].split(" ")[1]), head[1]
    tap.answered(status, headers)
    kept = {name.title(): value for name, value in headers.items() if name not in HOPS}
    return wire.Answer(status, receive(wire.Body(headers, reader), writer, upload, tap), kept)


async def send(request, writer, tap):
    lines = [f"{request.method} {request.target} HTTP/1.1", "Connection: close"]
    lines += [f"{name}: {value}" for name, value in request.headers.items() if name not in HOPS]
    chunked = not request.done and "content-length" not in request.headers
    if chunked:
        lines.append("Transfer-Encoding: chunked")
    writer.write(("\r\n".join(lines) + "\r\n\r\n").encode("latin-1"))
    async for data in request.chunks():
        tap.sent(data)
        writer.write(b"%x\r\n%s\r\n" % (len(data), data) if chunked else data)
        await writer.drain()
    if chunked:
        writer.write(b"0\r\n\r\n")
    await writer.drain()


async def receive(body, writer, upload, tap):
    whole = False
    try:
        async for data in body.chunks():
            tap.received(data)
            yield data
        whole = True
    finally:
        tap.over(whole)
        upload.cancel()
        await asyncio.gather(upload, return_exceptions=True)
        writer.close()
