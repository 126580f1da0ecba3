# SPDX-License-Identifier: Apache-2.0
"""Commands and files of the service's own in a box: what a build needs. It speaks to envd as any client does."""
import base64
import json
import urllib.parse

from base import rpc, wire


async def call(streams, method, target, body, headers):
    """One request on a fresh connection: status and body."""
    reader, writer = streams
    lines = [f"{method} {target} HTTP/1.1", f"Content-Length: {len(body)}", "Connection: close"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    writer.write(("\r\n".join(lines) + "\r\n\r\n").encode() + body)
    try:
        head = await wire.read_head(reader)
        if head is None:
            raise ConnectionResetError("no answer")
        return int(head[0].split(" ")[1]), await wire.Body(head[1], reader).body()
    finally:
        writer.close()


def as_user(token, user):
    headers = {"Authorization": "Basic " + base64.b64encode(f"{user}:".encode()).decode()}
    return headers | ({"X-Access-Token": token} if token else {})


async def run(streams, token, text, user="root", cwd="/", envs=None):
    """Text of a shell, to its end: exit code and lines of output. OSError, ValueError: it cannot be run."""
    message = {"process": {"cmd": "/bin/bash", "args": ["-l", "-c", text], "envs": envs or {}, "cwd": cwd}, "stdin": False}
    headers = as_user(token, user) | {"Content-Type": "application/connect+json", "Connect-Protocol-Version": "1"}
    _, data = await call(streams, "POST", "/process.Process/Start", rpc.frame(json.dumps(message).encode()), headers)
    output, code = b"", None
    for flags, payload in rpc.Frames().feed(data):
        value = json.loads(payload)
        if flags & rpc.END:
            if "error" in value:
                raise ValueError(value["error"].get("message", value["error"]["code"]))
            continue
        event = value["event"]
        output += b"".join(base64.b64decode(piece) for piece in event.get("data", {}).values())
        if "end" in event:
            code = event["end"].get("exitCode", 0)
    return code, output.decode(errors="replace").splitlines()


async def put(streams, token, path, data):
    """A file of root's."""
    headers = as_user(token, "root") | {"Content-Type": "application/octet-stream"}
    target = "/files?" + urllib.parse.urlencode({"path": path, "username": "root"})
    status, body = await call(streams, "POST", target, data, headers)
    if status != 200:
        raise ValueError(body.decode(errors="replace"))
