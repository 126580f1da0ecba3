# SPDX-License-Identifier: Apache-2.0
"""What no client of the service's shows of tests/servers/e2b.py: binary messages, compressed ones, routing by host, faults,
and that what differs from the contracts is noticed. wire.py URL KEY"""
import gzip
import http.client
import json
import os
import socket
import struct
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from base import proto, rpc  # noqa: E402
from envd import daemon  # noqa: E402

URL, KEY = sys.argv[1:3]
HOST = URL.split("//")[1]
PROCESS, FILESYSTEM = daemon.SCHEMAS


class Reply:
    def __init__(self, response):
        self.status, self.headers = response.status, response.headers
        self.body = response.read()

    def json(self):
        return json.loads(self.body)


def ask(method, path, body=None, **headers):
    """One request on a connection of its own. Names of headers have _ for -."""
    connection = http.client.HTTPConnection(HOST, timeout=30)
    data = json.dumps(body) if isinstance(body, (dict, list)) else body
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    if isinstance(body, (dict, list)):
        named.setdefault("Content-Type", "application/json")
    try:
        connection.request(method, path, data, named)
        return Reply(connection.getresponse())
    finally:
        connection.close()


def control(method, path, body=None):
    return ask(method, path, body, X_API_Key=KEY)


class Box:
    def __init__(self):
        made = control("POST", "/v2/sandboxes", {"templateID": "base"})
        assert made.status == 201, made.body
        self.id, self.token = made.json()["sandboxID"], made.json()["envdAccessToken"]
        self.headers = {"E2b_Sandbox_Id": self.id, "E2b_Sandbox_Port": "49983", "X_Access_Token": self.token,
                        "Connect_Protocol_Version": "1"}

    def ask(self, method, path, body=None, **headers):
        return ask(method, path, body, **(self.headers | headers))

    def run(self, text, kind="json", **headers):
        """The messages of a command's stream, and its end."""
        message = {"process": {"cmd": "/bin/sh", "args": ["-c", text]}, "stdin": False}
        data = json.dumps(message).encode() if kind == "json" else proto.encode(PROCESS, "process.StartRequest", message)
        reply = self.ask("POST", "/process.Process/Start", rpc.frame(data), Content_Type=f"application/connect+{kind}", **headers)
        assert reply.status == 200, (reply.status, reply.body)
        messages, end = [], None
        for flags, payload in rpc.Frames().feed(reply.body):
            payload = gzip.decompress(payload) if flags & rpc.COMPRESSED else payload
            if flags & rpc.END:
                end = json.loads(payload)
            else:
                messages.append(json.loads(payload) if kind == "json" else proto.decode(PROCESS, "process.StartResponse", payload))
        return messages, end


def stdout(messages):
    import base64
    return b"".join(base64.b64decode(one["event"].get("data", {}).get("stdout", "")) for one in messages)


def faults(*rules):
    reply = ask("PUT", "/_test/faults", list(rules))
    assert reply.status == 204, reply.body


def fails(function, *kinds):
    try:
        function()
    except kinds:
        return
    raise AssertionError(f"nothing was raised, expected {kinds}")


def test_codecs(box):
    for kind in ("json", "proto"):
        for headers in ({}, {"Connect_Accept_Encoding": "gzip"}):
            messages, end = box.run("echo hi; exit 3", kind, **headers)
            assert stdout(messages) == b"hi\n" and end == {}, messages
            assert messages[-1]["event"]["end"]["exitCode"] == 3
    data = proto.encode(FILESYSTEM, "filesystem.StatRequest", {"path": "/etc/passwd"})
    reply = box.ask("POST", "/filesystem.Filesystem/Stat", data, Content_Type="application/proto")
    entry = proto.decode(FILESYSTEM, "filesystem.StatResponse", reply.body)["entry"]
    assert (entry["name"], entry["type"], entry["owner"]) == ("passwd", "FILE_TYPE_FILE", "root"), entry
    packed = gzip.compress(b'{"path": "/etc/passwd"}')
    reply = box.ask("POST", "/filesystem.Filesystem/Stat", packed, Content_Type="application/json", Content_Encoding="gzip",
                    Accept_Encoding="gzip")
    assert json.loads(gzip.decompress(reply.body))["entry"]["size"] == str(entry["size"])


def test_refusals(box):
    assert box.ask("GET", "/process.Process/List").status == 405
    assert box.ask("POST", "/process.Process/List", b"{}", Content_Type="text/plain").status == 415
    reply = box.ask("POST", "/filesystem.Filesystem/Stat", {"path": "/none"})
    assert (reply.status, reply.json()["code"]) == (404, "not_found")
    reply = box.ask("POST", "/process.Process/List", {}, X_Access_Token="wrong")
    assert (reply.status, reply.json()["code"]) == (401, 401)
    # A refusal gets through, however much of the body is on its way.
    for size in (1, 200 << 10, 8 << 20):
        reply = box.ask("POST", "/files?path=/tmp/x", bytes(size), X_Access_Token="wrong", Content_Type="application/octet-stream")
        assert reply.status == 401, reply.body
    assert box.run("true", Connect_Timeout_Ms="soon")[1]["error"]["code"] == "invalid_argument"
    assert box.run("sleep 100", Connect_Timeout_Ms="100")[1]["error"]["code"] == "deadline_exceeded"
    assert ask("GET", "/v2/sandboxes").status == 401
    assert control("GET", "/sandboxes/i00000000000000000000").json()["code"] == 404
    assert control("GET", "/sandboxes/a-b-c").status == 400
    assert box.ask("POST", "/init", {}).status == 404
    assert box.ask("POST", "//./freeze").status == 404


def test_routing(box):
    plain = {"X_Access_Token": box.token}
    for host, status in ((f"49983-{box.id}.e2b.test", 204), (f"49983-{box.id}-old.e2b.test", 204), (f"9-{box.id}.e2b.test", 502)):
        assert ask("GET", "/health", Host=host, **plain).status == status, host
    assert ask("GET", "/health", Host="sandbox.e2b.test", E2b_Sandbox_Id=box.id).status == 400
    assert ask("GET", "/health", E2b_Sandbox_Id=box.id, E2b_Sandbox_Port="0").status == 400
    gone = ask("GET", "/health", E2b_Sandbox_Id="inone", E2b_Sandbox_Port="49983")
    assert (gone.status, gone.json()["sandboxId"]) == (502, "inone")


def test_faults(box):
    faults({"do": "refuse", "path": "^/v2/sandboxes$", "status": 429, "headers": {"Retry-After": "1"}, "times": 1})
    reply = control("GET", "/v2/sandboxes")
    assert (reply.status, reply.headers["Retry-After"]) == (429, "1")
    assert control("GET", "/v2/sandboxes").status == 200
    faults({"do": "reset", "skip": 1})
    assert control("GET", "/v2/sandboxes").status == 200
    fails(lambda: control("GET", "/v2/sandboxes"), ConnectionError, http.client.BadStatusLine)
    faults({"do": "lose", "method": "POST", "path": "Start"})
    fails(lambda: box.run("echo once >> /tmp/lost"), ConnectionError, http.client.BadStatusLine)
    faults({"do": "cut", "path": "Start", "at": 20, "reset": True})
    fails(lambda: box.run("echo hi"), ConnectionError, http.client.IncompleteRead)
    faults({"do": "cut", "path": "Start", "at": 30})
    fails(lambda: box.run("echo hi"), http.client.IncompleteRead)
    faults({"do": "garble", "path": "/files", "at": 2, "bytes": "WFg="})
    assert box.ask("GET", "/files?path=/etc/hostname").body == b"e2XXlocal\n"
    faults({"do": "insert", "path": "/files", "at": 3, "bytes": "WFg="})
    fails(lambda: check_equal(box.ask("GET", "/files?path=/etc/hostname").body, b"e2b.local\n"), AssertionError)
    faults({"do": "trickle", "path": "Stat", "size": 100, "seconds": 0.01})
    assert box.ask("POST", "/filesystem.Filesystem/Stat", {"path": "/tmp/lost"}).json()["entry"]["size"] == "5"
    faults({"do": "delay", "path": "Stat", "seconds": 0.2})
    began = time.monotonic()
    assert box.ask("POST", "/filesystem.Filesystem/Stat", {"path": "/tmp/lost"}).status == 200
    assert time.monotonic() - began >= 0.2
    assert ask("PUT", "/_test/faults", [{"do": "nonsense"}]).status == 400
    faults()


def check_equal(one, other):
    assert one == other


def test_malformed(_box):
    for text in (b"nonsense\r\n\r\n", b"GET /health HTTP/1.1\r\nno colon\r\n\r\n", b"\x16\x03\x01\x00\x01", struct.pack(">I", 1) * 9000):
        with socket.create_connection(HOST.split(":"), timeout=20) as sock:
            sock.sendall(text)
            sock.shutdown(socket.SHUT_WR)
            try:
                assert not sock.recv(100)
            except ConnectionError:
                pass
    assert ask("GET", "/health").status == 200


def test_contracts(box):
    """Each of these is let pass, and noticed."""
    wrong = [
        (lambda: control("GET", "/v2/sandboxes?colour=red"), "has no parameter colour"),
        (lambda: control("POST", f"/sandboxes/{box.id}/timeout", {"timeout": 300, "why": 1}), "has why"),
        (lambda: box.ask("POST", "/filesystem.Filesystem/Stat", {"path": "/", "deep": True}), "has no field deep"),
        (lambda: box.ask("POST", "/process.Process/List", b"", Content_Type="application/json"), "no JSON"),
        (lambda: box.ask("POST", "/process.Process/List", {}, Connect_Protocol_Version="2"), "Connect-Protocol-Version is 2"),
        (lambda: box.ask("GET", "/files?path=/etc/hostname&depth=1"), "has no parameter depth"),
    ]
    assert ask("GET", "/_test/violations").json()["violations"] == [], ask("GET", "/_test/violations").body
    for function, sentence in wrong:
        function()
        found = ask("GET", "/_test/violations").json()["violations"]
        assert len(found) == 1 and sentence in found[0]["what"] and found[0]["side"] == "request", (sentence, found)
        ask("DELETE", "/_test/violations")
    reply = ask("GET", "/_test/requests")
    assert KEY.encode() not in reply.body and box.token.encode() not in reply.body


def main():
    box = Box()
    for test in (test_codecs, test_refusals, test_routing, test_faults, test_malformed):
        test(box)
    ask("DELETE", "/_test/violations")
    test_contracts(box)
    ask("PUT", "/_test/skew", {"seconds": 3600})
    gone = f"/sandboxes/{box.id}"
    deadline = time.monotonic() + 20
    while control("GET", gone).status != 404:  # by the service's clock its time is over
        assert time.monotonic() < deadline
        time.sleep(0.02)
    print("passed")


main()
