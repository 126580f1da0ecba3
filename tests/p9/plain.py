# SPDX-License-Identifier: Apache-2.0
"""Plain 9P2000 by another project's client (py9p of the package python-9p, whose codec is plan9port's):
plain.py SOCKET MOUNT. In the tree is a running sandbox `dev`."""
import os
import sys

import py9p

SOCKET, MOUNT = sys.argv[1:]


class Walker:
    """Fids of one connection, a path at a time."""

    def __init__(self, client):
        self.client, self.fids = client, 0

    def at(self, path):
        self.fids += 1
        self.client.walk(fid=0, newfid=self.fids, path=path)
        return self.fids

    def read_all(self, fid):
        data = b""
        while part := self.client.read(fid=fid, offset=len(data), count=4096):
            data += part
        return data

    def cat(self, path):
        fid = self.at(path)
        self.client.open(fid=fid, mode=int(py9p.OREAD))
        data = self.read_all(fid)
        self.client.clunk(fid=fid)
        return data

    def put(self, path, data):
        fid = self.at(path)
        self.client.open(fid=fid, mode=1 | 0x10)
        assert self.client.write(fid=fid, offset=0, data=data) == len(data)
        self.client.clunk(fid=fid)


def refused(part, call, *arguments):
    try:
        call(*arguments)
    except py9p.ProtocolError as error:
        assert part in str(error), f"said '{error}', expected '{part}'"
        return
    raise AssertionError(f"succeeded, expected '{part}'")


def names_of(data):
    names = []
    while data:
        size = 2 + int.from_bytes(data[:2], "little")
        names.append(py9p.Dir.from_bytes(data[:size]).name)
        data = data[size:]
    return sorted(names)


def main():
    with py9p.Client.connect_unix(SOCKET) as client:
        client.negotiate()
        client.attach(fid=0, uname="test")
        w = Walker(client)
        for path in ("", "dev", "dev/jobs", "dev/files"):
            got = names_of(w.cat(path))
            assert got == sorted(os.listdir(f"{MOUNT}/{path}")), f"{path}: {got}"
        with open(f"{MOUNT}/README", "rb") as readme:
            assert w.cat("README") == readme.read()
        w.put("dev/exec", b"echo plain; exit 5\n")
        assert w.cat("dev/exec") == b"plain\n"
        assert w.cat("dev/exit") == b"5\n"
        refused("no verb", w.put, "dev/ctl", b"frobnicate\n")
        refused("", w.cat, "nothing")
        work = w.at("dev/files/workspace")
        client.create(fid=work, name="made", perm=0o644, mode=2)
        for offset in range(0, 40000, 4000):
            assert client.write(fid=work, offset=offset, data=b"0123456789" * 400) == 4000
        client.clunk(fid=work)
        assert w.cat("dev/files/workspace/made") == b"0123456789" * 4000
        made = w.at("dev/files/workspace/made")
        entry = client.stat(fid=made)
        assert entry.name == "made" and entry.mode & 0o777 == 0o644, entry
        client.remove(fid=made)
        assert not os.path.exists(f"{MOUNT}/dev/files/workspace/made")
    print("plain 9P2000 is as expected")


main()
