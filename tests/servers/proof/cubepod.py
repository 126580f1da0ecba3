# SPDX-License-Identifier: Apache-2.0
"""What tests/servers/cubepod.py has besides E2B's face does what it says. cubepod.py URL KEY"""
import json
import sys
import time
import urllib.error
import urllib.request

URL, KEY = sys.argv[1:3]


def ask(method, path, body=None, **headers):
    """Status and body; JSON where it is some."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode() if body is not None else None
    kind = "application/octet-stream" if isinstance(body, bytes) else "application/json"
    named = {"Authorization": f"Bearer {KEY}", "Content-Type": kind} | {key.replace("_", "-"): value for key, value in headers.items()}
    request = urllib.request.Request(URL + path, data, named, method=method)
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            status, text = answer.status, answer.read()
    except urllib.error.HTTPError as error:
        status, text = error.code, error.read()
    return status, json.loads(text) if text[:1] in (b"{", b"[") else text


class Box:
    def __init__(self, **more):
        status, self.info = ask("POST", "/sandboxes", {"templateID": "base", "timeout": 300} | more)
        assert status == 201, self.info
        self.id = self.info["sandboxID"]

    def file(self, path, data=None):
        where = {"E2b_Sandbox_Id": self.id, "E2b_Sandbox_Port": "49983"}
        return ask("GET" if data is None else "POST", f"/files?path={path}", data, **where)


def of(info):
    box = Box.__new__(Box)
    box.id, box.info = info["sandboxID"], info
    return box


def until(what):
    deadline = time.monotonic() + 30
    while not what():
        assert time.monotonic() < deadline
        time.sleep(0.05)


box = Box(extension={"volumeKey": "shared"}, metadata={"a": "1"})
assert (box.info["state"], box.info["rootfsGeneration"], box.info["envdPort"]) == ("running", 1, 49983)
assert box.file("/workspace/kept", b"work")[0] == 200 and box.file("/home/user/lost", b"root")[0] == 200
status, reset = ask("POST", f"/sandboxes/{box.id}/reset-rootfs")
assert (status, reset["rootfsGeneration"]) == (200, 2), reset
assert box.file("/workspace/kept") == (200, b"work") and box.file("/home/user/lost")[0] == 404

assert box.file("/home/user/more", b"both")[0] == 200
status, child = ask("POST", f"/sandboxes/{box.id}/fork", {"volumeKey": "child", "metadata": {"a": "2"}})
assert (status, child["metadata"]) == (201, {"a": "2"}), child
assert of(child).file("/workspace/kept") == (200, b"work") and of(child).file("/home/user/more") == (200, b"both")
assert of(child).file("/workspace/kept", b"other")[0] == 200 and box.file("/workspace/kept") == (200, b"work")
assert ask("POST", f"/sandboxes/{box.id}/fork", {"volumeKey": "shared"})[0] == 409

assert ask("DELETE", f"/sandboxes/{box.id}")[0] == 204
again = Box(extension={"volumeKey": "shared"}, timeout=1)  # the key's volume outlives the sandbox
until(lambda: ask("GET", f"/sandboxes/{again.id}")[1]["state"] == "paused")  # idle: paused, not killed
assert again.file("/workspace/kept") == (200, b"work")  # and back with its use
assert ask("POST", f"/sandboxes/{again.id}/lease", {"leaseSeconds": 600})[0] == 204
assert ask("POST", f"/sandboxes/{again.id}/lease", {"leaseSeconds": 0})[0] == 400
assert ask("GET", "/v2/sandboxes", Authorization="Bearer wrong")[0] == 401
assert ask("GET", "/v2/sandboxes", Authorization="", X_API_Key=KEY)[0] == 200
print("passed")
