# SPDX-License-Identifier: Apache-2.0
"""Ports of a box, for the gate outside: a connection says a port in a line, is told `open` or `closed`, and is that port's then."""
import asyncio

PIECE = 64 << 10


async def pump(reader, writer):
    """Bytes one way, and their end."""
    try:
        while data := await reader.read(PIECE):
            writer.write(data)
            await writer.drain()
        writer.write_eof()
    except OSError:
        writer.close()


async def serve(reader, writer):
    try:
        port = int(await reader.readline())
        theirs = await asyncio.open_connection("127.0.0.1", port)
    except (OSError, ValueError, OverflowError):
        writer.write(b"closed\n")
        writer.close()
        return
    writer.write(b"open\n")
    try:
        await asyncio.gather(pump(reader, theirs[1]), pump(theirs[0], writer))
    finally:
        theirs[1].close()
        writer.close()
