# SPDX-License-Identifier: Apache-2.0
"""Peers that mean harm, or stop in the middle: hurt.py SOCKET PID STATE. In the tree is a running sandbox
`dev`, with 32 MiB in workspace/big. Whatever they do, others are served, the memory of the daemon PID (and of its
children), whose state is in the directory STATE, stays within a bound, and what they held is free when they are gone."""
import os
import random
import socket
import struct
import sys
import time

from client import NOTAG, TYPES, Closed, Refused, Session, pack, run_tests

SOCKET, PID, STATE = sys.argv[1], int(sys.argv[2]), sys.argv[3]
MIB = 1 << 20
# The sanitizers keep what was freed for a while, so that these are no figures of the daemon's need: it would be
# beyond them by far if what peers do not send or read were kept.
BOUND = 160 * MIB


def session(**kind):
    return Session(f"unix:{SOCKET}", **kind)


def pids(pid):
    found = [pid]
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as children:
        for child in children.read().split():
            with open(f"/proc/{child}/comm", encoding="ascii") as name:
                if name.read().startswith("cubefs"):
                    found += pids(int(child))
    return found


def memory():
    total = 0
    for pid in pids(PID):
        with open(f"/proc/{pid}/statm", encoding="ascii") as statm:
            total += int(statm.read().split()[1]) * os.sysconf("SC_PAGESIZE")
    return total


def is_own(link):
    """A file of the daemon's state: it opens some of them when it first needs them, peers or not."""
    try:
        return os.readlink(link).startswith(f"{STATE}/")
    except FileNotFoundError:
        return True


def descriptors():
    return sum(not is_own(link.path) for pid in pids(PID) for link in os.scandir(f"/proc/{pid}/fd"))


def served():
    with session() as s:
        assert s.run("dev", b"echo served\n") == (b"served\n", 0)


def within(before, what):
    grown = memory() - before
    assert grown < BOUND, f"{what}: the daemon has grown by {grown // MIB} MiB"


def settles(what, holds):
    for _ in range(500):
        if holds():
            return
        time.sleep(0.02)
    raise AssertionError(f"waited in vain: {what}")


def raw_peer():
    peer = socket.socket(socket.AF_UNIX)
    peer.connect(SOCKET)
    peer.settimeout(60)
    return peer


def test_half_sent():
    """A message of 1 MiB is announced, and not sent."""
    before, peers = memory(), []
    for sent in [b"", b"\0", b"\x13\0\0\0d\xff\xff"] * 20 + [None] * 60:
        if sent is None:
            s = session(msize=MIB)
            s.raw(struct.pack("<IBH", s.msize, TYPES["write"], 5) + pack("484", 1, 0, s.msize - 24) + b"x" * 1000)
            peers.append(s)
        else:
            peer = raw_peer()
            peer.sendall(sent)
            peers.append(peer)
    served()
    within(before, "half-sent messages")
    for peer in peers:
        peer.close()
    served()


def test_never_read():
    """Each asks for all of a file, again and again, and takes nothing of the answers."""
    before, peers = memory(), []
    for _ in range(16):
        s = session(msize=MIB)
        fid = s.open_path("dev/files/workspace/big")
        s.peer.setblocking(False)
        request = b"".join(s.message(TYPES["read"], 1000 + i, pack("484", fid, i * s.msize, s.msize - 24))
                           for i in range(200))
        try:
            s.peer.send(request)
        except BlockingIOError:
            pass
        peers.append(s)
    for _ in range(20):
        served()
        within(before, "answers that nobody takes")
    for s in peers:
        s.close()
    served()


def test_collected_text_has_a_limit():
    with session(msize=MIB) as s:
        fid = s.open_path("dev/exec", os.O_WRONLY | os.O_TRUNC)
        try:
            for i in range(8):
                s.write(fid, i * 1000000, b" " * 1000000)
        except Refused as error:
            assert error.name == "EFBIG", error.name
        else:
            raise AssertionError("8 MB of text are taken")


def test_collected_attributes_have_a_limit():
    """Each is as large as an attribute may be; none of them is clunked."""
    with session() as s:
        count = 0
        try:
            while count < 1000:
                fid = s.walk_to("dev/files/workspace/big")
                s.xattrcreate(fid, "user.many", 65536)
                s.write(fid, 0, b"x" * 65536)
                count += 1
        except Refused as error:
            assert error.name == "ENOSPC", error.name
        assert 64 < count < 1000, f"{count} attributes are collected"
        served()


def test_fids_have_a_limit():
    before = memory()
    with session() as s:
        count = 0
        try:
            while count < 1000000:
                s.walk(s.root, 1000 + count)
                count += 1
        except Refused as error:
            assert error.name in ("EMFILE", "ENFILE"), error.name
        assert 1000 < count < 1000000, count
        within(before, f"{count} fids")
        s.clunk(1000)
        s.walk(s.root, 1000)
        served()
    served()


def test_connections_have_a_limit():
    peers, refused = [], False
    for _ in range(3000):
        try:
            peers.append(session())
        except (Closed, ConnectionError):
            refused = True
            break
    assert refused and len(peers) > 60, f"{len(peers)} connections at once"
    assert "README" in peers[0].ls("")
    peers.pop().close()
    settles("a place for a connection", lambda: taken(peers))
    for s in peers:
        s.close()
    settles("places for connections", lambda: taken([]))
    served()


def taken(peers):
    try:
        peers.append(session())
    except (Closed, ConnectionError):
        return False
    return True


def test_flush_beyond_the_limit_of_tags():
    """However many reads wait, a flush gets in, and each can be ended."""
    with session() as s:
        fid = s.open_path("events", os.O_RDWR)
        while True:
            tag = s.send("read", "484", fid, 0, 8000)
            s.wait(s.send("getattr", "48", s.root, 0x3FFF))
            if tag not in s.answers:
                break
            s.wait(tag)
        more = [s.send("read", "484", fid, 0, 8000) for _ in range(600)]
        for tag in [tag] + more:
            if tag not in s.answers:
                s.wait(s.send("flush", "2", tag), "")
        s.getattr(s.root)


def test_waiting_peers_go():
    """Reads that wait end with their connection: nothing is left of it."""
    served()
    before = descriptors()
    peers = [session() for _ in range(30)]
    for i, s in enumerate(peers):
        fid = s.open_path("events", os.O_RDWR)
        for _ in range(50 if i % 2 else 600):
            s.send("read", "484", fid, 0, 8000)
    for s in peers:
        s.close()
    settles("their descriptors", lambda: descriptors() <= before)


def test_noise():
    """Bytes without sense, and messages with all fields of chance."""
    chance = random.Random(9)
    for _ in range(150):
        peer = raw_peer()
        try:
            peer.sendall(chance.randbytes(chance.randrange(1, 300)))
        except ConnectionError:
            pass
        peer.close()
    for _ in range(100):
        with session(msize=8192) as s:
            try:
                for tag in range(20):
                    kind = chance.choice(list(TYPES.values()))
                    s.raw(s.message(kind, tag, chance.randbytes(chance.choice((0, 4, 8, 12, 16, 20, 60)))))
                s.raw(s.message(TYPES["version"], NOTAG, pack("4s", 8192, "9P2000.L")))
            except ConnectionError:
                pass
    served()


if __name__ == "__main__":
    sys.exit(run_tests(globals(), sys.argv[4:]))
