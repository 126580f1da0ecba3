# SPDX-License-Identifier: Apache-2.0
"""Faults of a service, on purpose. Rules are given as JSON (PUT /_test/faults); the first that fits a request is followed.

    {"do": ..., "method": REGEX, "path": REGEX, "skip": N, "times": N, ...}

method and path (of the whole text) default to any; the first @skip that fit are let through, and after @times the rule is spent.

    delay    seconds                       later
    hang                                   never, until the peer goes
    reset                                  the connection breaks, nothing was done
    refuse   status, headers, body         this instead, nothing was done; body: JSON or text
    lose                                   it is done, and the connection breaks instead of an answer
    cut      at, reset                     the body ends after @at bytes as they stand on the wire (reset: as a broken connection)
    garble   at, bytes                     from there on, these bytes (base64) stand in the body's place
    insert   at, bytes                     these bytes are in between
    trickle  size, seconds                 the answer comes in pieces of @size bytes, each @seconds after the last
"""
import asyncio
import base64
import json
import re

from base import wire

KEYS = {
    "delay": {"seconds"}, "hang": set(), "reset": set(), "refuse": {"status", "headers", "body"}, "lose": set(),
    "cut": {"at", "reset"}, "garble": {"at", "bytes"}, "insert": {"at", "bytes"}, "trickle": {"size", "seconds"},
}
COMMON = {"do", "method", "path", "skip", "times"}


def validate(rules):
    """ValueError says which rule is wrong."""
    for rule in rules:
        if rule.get("do") not in KEYS or not set(rule) <= KEYS[rule["do"]] | COMMON:
            raise ValueError(f"no such fault: {json.dumps(rule)}")
        re.compile(rule.get("path", ""))
        re.compile(rule.get("method", ""))
        base64.b64decode(rule.get("bytes", ""), validate=True)
    return rules


class Faults:
    def __init__(self):
        self.rules, self._seen = [], []

    def set(self, rules):
        self.rules, self._seen = validate(rules), [0] * len(rules)

    def find(self, request):
        for i, rule in enumerate(self.rules):
            if not re.fullmatch(rule.get("method", ".*"), request.method) or not re.search(rule.get("path", ""), request.path):
                continue
            count = self._seen[i] - rule.get("skip", 0)
            if count >= rule.get("times", 1 << 30):
                continue
            self._seen[i] += 1
            if count >= 0:
                return rule
        return None

    def outlet(self, request, writer):
        """For wire.listen()."""
        if not request.path.startswith("/_test/"):
            request.fault = self.find(request)
        kind = OUTLETS.get(request.fault and request.fault["do"], wire.Plain)
        return kind(writer, request.fault) if kind is not wire.Plain else kind(writer)


def broken(request):
    request.writer.transport.abort()
    return wire.Gone("a fault")


async def handle(handler, request):
    """handler(request), but for its fault."""
    fault = request.fault or {"do": None}
    if fault["do"] == "delay":
        await asyncio.sleep(fault["seconds"])
    elif fault["do"] == "hang":
        await asyncio.Event().wait()
    elif fault["do"] == "reset":
        raise broken(request)
    elif fault["do"] == "refuse":
        await request.body()
        body = fault.get("body", {"code": fault["status"], "message": "refused by the test"})
        body, kind = (body, "text/plain") if isinstance(body, str) else (json.dumps(body), "application/json")
        return wire.Answer(fault["status"], body.encode(), fault.get("headers"), kind)
    answer = await handler(request)
    if fault["do"] == "lose":
        if hasattr(answer.body, "__aiter__"):
            async for _ in answer.body:
                pass
        raise broken(request)
    return answer


class Cut(wire.Plain):
    def __init__(self, writer, rule):
        super().__init__(writer)
        self.rule, self.left = rule, rule["at"]

    async def body(self, data):
        if len(data) < self.left:
            self.left -= len(data)
            return await super().body(data)
        await super().body(data[:self.left])
        if self.rule.get("reset"):
            self.writer.transport.abort()
        raise wire.Gone("a fault")


class Garble(wire.Plain):
    def __init__(self, writer, rule):
        super().__init__(writer)
        self.left, self.bytes, self.stays = rule["at"], base64.b64decode(rule["bytes"]), rule["do"] == "insert"

    async def body(self, data):
        if self.left is not None and len(data) >= self.left:
            at, self.left = self.left, None
            rest = data[at:] if self.stays else data[at + len(self.bytes):]
            if not self.stays:
                self.bytes, data = self.bytes[:len(data) - at], data[:at] + self.bytes[:len(data) - at] + rest
            else:
                data = data[:at] + self.bytes + rest
        elif self.left is not None:
            self.left -= len(data)
        await super().body(data)


class Trickle(wire.Plain):
    def __init__(self, writer, rule):
        super().__init__(writer)
        self.size, self.seconds = rule["size"], rule["seconds"]

    async def head(self, data):
        await self.body(data)

    async def body(self, data):
        for i in range(0, len(data), self.size):
            await super().body(data[i:i + self.size])
            await asyncio.sleep(self.seconds)


OUTLETS = {"cut": Cut, "garble": Garble, "insert": Garble, "trickle": Trickle}
