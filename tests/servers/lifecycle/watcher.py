# SPDX-License-Identifier: Apache-2.0
"""Holds what passes against OpenSandbox's contracts."""
import os

from base import openapi
from control.watcher import RestTap
from lifecycle.service import EXECD_PORT

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


class Watcher:
    """violations: {"side": "request" or "answer", "what": a sentence}, at most a thousand."""

    def __init__(self):
        folder = f"{HERE}/contracts/opensandbox"
        self.api = openapi.Contract(f"{folder}/sandbox-lifecycle.yml")
        self.rest = openapi.Contract(f"{folder}/execd-api.yaml")
        self.violations, self.looked = [], 0

    def note(self, side, faults):
        self.looked += 1
        self.violations += [{"side": side, "what": fault} for fault in faults]
        del self.violations[1000:]

    async def control(self, request, answer, target):
        body = await request.body()
        headers = {name.lower(): value for name, value in answer.headers.items()}
        if target == "/metrics/events":  # of the client's, and in no contract
            return
        if answer.status < 400:
            self.note("request", self.api.request(request.method, target, request.headers, body))
        self.note("answer", self.api.answer(request.method, target, answer.status, headers, answer.body))

    def tap(self, request, _sandbox, port):
        return RestTap(self, request) if port == EXECD_PORT else None
