# SPDX-License-Identifier: Apache-2.0
"""multipart/form-data as it comes in: parts whose data need not fit into memory."""
import re


class Bad(Exception):
    """No such form."""


class Source:
    """Bytes of an asynchronous iterator, with looking ahead."""

    def __init__(self, chunks):
        self._chunks, self.data = chunks, b""

    async def more(self):
        async for piece in self._chunks:
            if piece:
                self.data += piece
                return
        raise Bad("unexpected end")

    async def until(self, mark):
        """What comes before @mark, piece by piece; both are taken."""
        while (at := self.data.find(mark)) < 0:
            keep = len(mark) - 1
            if len(self.data) > keep:
                piece, self.data = self.data[:-keep], self.data[-keep:]
                yield piece
            await self.more()
        piece, self.data = self.data[:at], self.data[at + len(mark):]
        if piece:
            yield piece

    async def take(self, size):
        while len(self.data) < size:
            await self.more()
        piece, self.data = self.data[:size], self.data[size:]
        return piece


async def parts(chunks, content_type):
    """(headers, data) of each part, in order; data, an asynchronous iterator, must be read before the next part."""
    found = re.search(r'boundary="?([^";]+)"?', content_type)
    if not found:
        raise Bad("no boundary")
    source, mark = Source(chunks), b"\r\n--" + found[1].encode()
    source.data = b"\r\n"
    async for _ in source.until(mark):
        pass
    while await source.take(2) == b"\r\n":
        head = b"".join([piece async for piece in source.until(b"\r\n\r\n")])
        headers = {}
        for line in head.decode("utf-8", "surrogateescape").split("\r\n"):
            name, _, value = line.partition(":")
            headers[name.strip().lower()] = value.strip()
        yield headers, source.until(mark)


def names(headers):
    """name and filename of a part ("" where it has none)."""
    text = headers.get("content-disposition", "")
    found = {}
    for key, quoted, bare in re.findall(r'(\w+)=(?:"((?:[^"\\]|\\.)*)"|([^;]*))', text):
        found[key] = re.sub(r"\\(.)", r"\1", quoted).replace("%22", '"') if quoted else bare
    return found.get("name", ""), found.get("filename", "")
