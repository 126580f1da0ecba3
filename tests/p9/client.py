# SPDX-License-Identifier: Apache-2.0
"""A 9P client for tests, written from the protocol's text alone: 9P2000, 9P2000.u and 9P2000.L over unix:PATH,
tcp:HOST:PORT and tls:HOST:PORT.

A Session is one connection. rpc() sends a message and waits for its answer, raising Refused (errno, text); send()
and wait() do the halves, so that a test can have many tags in flight. raw() sends any bytes. What is called like a
message (lopen, getattr ...) is that message; walk_to() and the like are small steps over several."""
import collections
import errno
import os
import socket
import ssl
import stat
import struct
import traceback

NOTAG, NOFID, NONUNAME = 0xFFFF, 0xFFFFFFFF, 0xFFFFFFFF
VERSIONS = ("9P2000", "9P2000.u", "9P2000.L")
# Names of types; an answer's is one more.
TYPES = {
    "lerror": 6, "statfs": 8, "lopen": 12, "lcreate": 14, "symlink": 16, "mknod": 18, "rename": 20, "readlink": 22,
    "getattr": 24, "setattr": 26, "xattrwalk": 30, "xattrcreate": 32, "readdir": 40, "fsync": 50, "lock": 52,
    "getlock": 54, "link": 70, "mkdir": 72, "renameat": 74, "unlinkat": 76, "version": 100, "auth": 102,
    "attach": 104, "error": 106, "flush": 108, "walk": 110, "open": 112, "create": 114, "read": 116, "write": 118,
    "clunk": 120, "remove": 122, "stat": 124, "wstat": 126,
}
RLERROR, RERROR = 7, 107
ATTR = ("valid", "qid", "mode", "uid", "gid", "nlink", "rdev", "size", "blksize", "blocks", "atime", "atime_ns",
        "mtime", "mtime_ns", "ctime", "ctime_ns", "btime", "btime_ns", "gen", "data_version")
STATFS = ("type", "bsize", "blocks", "bfree", "bavail", "files", "ffree", "fsid", "namelen")
SET = {"mode": 1, "uid": 2, "gid": 4, "size": 8, "atime": 0x10, "mtime": 0x20, "ctime": 0x40,
       "atime_set": 0x80, "mtime_set": 0x100}
Qid = collections.namedtuple("Qid", "type version path")
Attr = collections.namedtuple("Attr", ATTR)
Statfs = collections.namedtuple("Statfs", STATFS)
Entry = collections.namedtuple("Entry", "qid offset type name")
Stat = collections.namedtuple(
    "Stat", "type dev qid mode atime mtime length name uid gid muid extension n_uid n_gid n_muid",
    defaults=(b"", NONUNAME, NONUNAME, NONUNAME))


def run_tests(tests, chosen):
    """Runs the functions test_* of @tests (those of @chosen, if any): the exit code."""
    names = chosen or [name for name in tests if name.startswith("test_")]
    failed = 0
    for name in names:
        try:
            tests[name]()
        except Exception:
            failed += 1
            print(f"FAIL {name}: {traceback.format_exc(limit=-3)}")
    print(f"{len(names) - failed} passed, {failed} failed")
    return 1 if failed else 0


class Refused(OSError):
    """The server answered with an error. errno is 0 where the dialect has none; text where it has one."""

    def __init__(self, number, text):
        super().__init__(number, text or os.strerror(number))
        self.text = text

    @property
    def name(self):
        return errno.errorcode.get(self.errno, str(self.errno))


class Broken(Exception):
    """What came is not 9P, or not what was asked for."""


class Closed(Broken):
    """The server has closed the connection."""


def raw_bytes(text):
    return text if isinstance(text, bytes) else text.encode("utf-8", "surrogateescape")


def pack(form, *values):
    """form: 1 2 4 8 numbers, s string, q qid."""
    out = b""
    for letter, value in zip(form, values, strict=True):
        if letter == "s":
            value = raw_bytes(value)
            out += struct.pack("<H", len(value)) + value
        elif letter == "q":
            out += struct.pack("<BIQ", *value)
        else:
            out += value.to_bytes(int(letter), "little")
    return out


class Reader:
    """Takes fields from a message, never beyond its end."""

    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, count):
        if self.at + count > len(self.data):
            raise Broken(f"a field of {count} bytes at {self.at} of {len(self.data)}")
        part = self.data[self.at:self.at + count]
        self.at += count
        return part

    def unpack(self, form):
        values = []
        for letter in form:
            if letter == "s":
                values.append(self.take(self.unpack("2")[0]))
            elif letter == "q":
                values.append(Qid(*struct.unpack("<BIQ", self.take(13))))
            else:
                values.append(int.from_bytes(self.take(int(letter)), "little"))
        return values

    def end(self):
        if self.at != len(self.data):
            raise Broken(f"{len(self.data) - self.at} bytes behind the last field")

    def left(self):
        return len(self.data) - self.at


def connect(address, ca=None, cert=None, key=None, timeout=60):
    kind, _, rest = address.partition(":")
    if kind == "unix":
        peer = socket.socket(socket.AF_UNIX)
        peer.connect(rest)
        peer.settimeout(timeout)
        return peer
    host, _, port = rest.rpartition(":")
    peer = socket.create_connection((host.strip("[]"), int(port)), timeout=timeout)
    if kind == "tls":
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_REQUIRED if ca else ssl.CERT_NONE
        if ca:
            context.load_verify_locations(ca)
        if cert:
            context.load_cert_chain(cert, key)
        peer = context.wrap_socket(peer, server_hostname=host.strip("[]"))
    return peer


class Session:
    def __init__(self, address=None, version="9P2000.L", msize=131072, aname="", attach=True, peer=None, **kind):
        self.peer = peer or connect(address, **kind)
        self.answers, self.unread, self.tags, self.fids = {}, b"", 0, 0
        self.waiting = {}
        self.version_name, self.msize = None, msize
        if version:
            self.version(msize, version)
        if version and attach:
            self.root = self.new_fid()
            self.attach(self.root, aname)

    def __enter__(self):
        return self

    def __exit__(self, *ignored):
        self.close()

    def close(self):
        self.peer.close()

    # ---- messages ----

    def new_fid(self):
        self.fids += 1
        return self.fids

    def raw(self, data):
        self.peer.sendall(data)

    @staticmethod
    def message(number, tag, body):
        return struct.pack("<IBH", 7 + len(body), number, tag) + body

    def send(self, name, form="", *values, tag=None, more=b""):
        if tag is None:
            self.tags = (self.tags + 1) % NOTAG
            tag = self.tags
        self.waiting[tag] = TYPES[name] + 1
        self.raw(self.message(TYPES[name], tag, pack(form, *values) + more))
        return tag

    def receive(self):
        """One message: type, tag, body."""
        while len(self.unread) < 4 or len(self.unread) < int.from_bytes(self.unread[:4], "little"):
            part = self.peer.recv(1 << 20)
            if not part:
                raise Closed("the server closed the connection")
            self.unread += part
        size, number, tag = struct.unpack("<IBH", self.unread[:7])
        if size < 7 or (self.version_name and size > self.msize):
            raise Broken(f"a message of {size} bytes, msize is {self.msize}")
        body, self.unread = self.unread[7:size], self.unread[size:]
        return number, tag, body

    def answer(self, number, tag, body):
        """What the request's answer has, or the exception that it is."""
        expected = self.waiting.pop(tag, None)
        if expected is None:
            return Broken(f"an answer to tag {tag}, which nobody waits for")
        reader = Reader(body)
        if number == RLERROR and self.version_name == "9P2000.L":
            return Refused(reader.unpack("4")[0], "")
        if number == RERROR and self.version_name != "9P2000.L":
            text = reader.unpack("s")[0].decode("utf-8", "replace")
            return Refused(reader.unpack("4")[0] if self.version_name == "9P2000.u" else 0, text)
        if number != expected:
            return Broken(f"type {number} answers {expected - 1}")
        return reader

    def next_answer(self):
        number, tag, body = self.receive()
        self.answers[tag] = self.answer(number, tag, body)
        return tag

    def wait(self, tag, form=None):
        while tag not in self.answers:
            self.next_answer()
        got = self.answers.pop(tag)
        if isinstance(got, Exception):
            raise got
        if form is None:
            return got
        values = got.unpack(form)
        got.end()
        return values

    def rpc(self, name, form="", *values, gives="", more=b""):
        return self.wait(self.send(name, form, *values, more=more), gives)

    # ---- all dialects ----

    def version(self, msize, name):
        self.version_name = None
        size, got = self.wait(self.send("version", "4s", msize, name, tag=NOTAG), "4s")
        self.version_name, self.msize = got.decode(), size
        return size, self.version_name

    def attach(self, fid, aname="", uname="test", afid=NOFID, n_uname=None):
        if self.version_name == "9P2000":
            return self.rpc("attach", "44ss", fid, afid, uname, aname, gives="q")[0]
        number = os.getuid() if n_uname is None else n_uname
        return self.rpc("attach", "44ss4", fid, afid, uname, aname, number, gives="q")[0]

    def walk(self, fid, new, *names):
        got = self.rpc("walk", "442", fid, new, len(names), gives=None,
                       more=b"".join(pack("s", name) for name in names))
        qids = [got.unpack("q")[0] for _ in range(got.unpack("2")[0])]
        got.end()
        return qids

    def read(self, fid, offset, count):
        got = self.rpc("read", "484", fid, offset, count, gives=None)
        data = got.take(got.unpack("4")[0])
        got.end()
        return data

    def write(self, fid, offset, data):
        return self.rpc("write", "484", fid, offset, len(data), more=data, gives="4")[0]

    def clunk(self, fid):
        self.rpc("clunk", "4", fid)

    def remove(self, fid):
        self.rpc("remove", "4", fid)

    def flush(self, tag):
        self.rpc("flush", "2", tag)

    # ---- 9P2000.L ----

    def lopen(self, fid, flags):
        return self.rpc("lopen", "44", fid, flags, gives="q4")

    def lcreate(self, fid, name, flags, mode, gid=0):
        return self.rpc("lcreate", "4s444", fid, name, flags, mode, gid, gives="q4")

    def symlink(self, fid, name, target, gid=0):
        return self.rpc("symlink", "4ss4", fid, name, target, gid, gives="q")[0]

    def mknod(self, fid, name, mode, major=0, minor=0, gid=0):
        return self.rpc("mknod", "4s4444", fid, name, mode, major, minor, gid, gives="q")[0]

    def rename(self, fid, into, name):
        self.rpc("rename", "44s", fid, into, name)

    def readlink(self, fid):
        return self.rpc("readlink", "4", fid, gives="s")[0]

    def getattr(self, fid, mask=0x3FFF):
        return Attr(*self.rpc("getattr", "48", fid, mask, gives="8q444888888888888888"))

    def setattr(self, fid, **what):
        """mode, uid, gid, size; atime, mtime as (s, ns), or None for now."""
        valid, numbers, times = 0, dict.fromkeys(("mode", "uid", "gid", "size"), 0), {"atime": (0, 0), "mtime": (0, 0)}
        for key, value in what.items():
            valid |= SET[key]
            if key in times and value is not None:
                valid |= SET[key + "_set"]
                times[key] = value
            elif key in numbers:
                numbers[key] = value
        self.rpc("setattr", "4444488888", fid, valid, *numbers.values(), *times["atime"], *times["mtime"])

    def readdir(self, fid, offset, count):
        got = self.rpc("readdir", "484", fid, offset, count, gives=None)
        data = Reader(got.take(got.unpack("4")[0]))
        got.end()
        entries = []
        while data.left():
            entries.append(Entry(*data.unpack("q81s")))
        return entries

    def statfs(self, fid):
        return Statfs(*self.rpc("statfs", "4", fid, gives="448888884"))

    def fsync(self, fid):
        self.rpc("fsync", "44", fid, 0)

    def lock(self, fid, kind, start=0, length=0, proc=1, client="test", flags=0):
        return self.rpc("lock", "414884s", fid, kind, flags, start, length, proc, client, gives="1")[0]

    def getlock(self, fid, kind, start=0, length=0, proc=1, client="test"):
        return self.rpc("getlock", "41884s", fid, kind, start, length, proc, client, gives="1884s")

    def link(self, into, fid, name):
        self.rpc("link", "44s", into, fid, name)

    def mkdir(self, fid, name, mode=0o777, gid=0):
        return self.rpc("mkdir", "4s44", fid, name, mode, gid, gives="q")[0]

    def renameat(self, fid, name, into, new):
        self.rpc("renameat", "4s4s", fid, name, into, new)

    def unlinkat(self, fid, name, flags=0):
        self.rpc("unlinkat", "4s4", fid, name, flags)

    def xattrwalk(self, fid, new, name):
        return self.rpc("xattrwalk", "44s", fid, new, name, gives="8")[0]

    def xattrcreate(self, fid, name, size, flags=0):
        self.rpc("xattrcreate", "4s84", fid, name, size, flags)

    # ---- the older dialects ----

    def open(self, fid, mode):
        return self.rpc("open", "41", fid, mode, gives="q4")

    def create(self, fid, name, perm, mode, extension=""):
        if self.version_name == "9P2000":
            return self.rpc("create", "4s41", fid, name, perm, mode, gives="q4")
        return self.rpc("create", "4s41s", fid, name, perm, mode, extension, gives="q4")

    def stat_record(self, reader):
        form = "24q4448ssss" + ("s444" if self.version_name == "9P2000.u" else "")
        record = Reader(reader.take(reader.unpack("2")[0]))
        values = record.unpack(form)
        record.end()
        return Stat(*values)

    def stat(self, fid):
        got = self.rpc("stat", "4", fid, gives=None)
        record = Reader(got.take(got.unpack("2")[0]))
        got.end()
        value = self.stat_record(record)
        record.end()
        return value

    def wstat(self, fid, **what):
        """All that is not named is left as it is."""
        ones = {"type": 0xFFFF, "dev": 0xFFFFFFFF, "qid": (0xFF, 0xFFFFFFFF, (1 << 64) - 1), "mode": 0xFFFFFFFF,
                "atime": 0xFFFFFFFF, "mtime": 0xFFFFFFFF, "length": (1 << 64) - 1, "name": "", "uid": "", "gid": "",
                "muid": ""}
        form = "24q4448ssss"
        if self.version_name == "9P2000.u":
            ones |= {"extension": "", "n_uid": NONUNAME, "n_gid": NONUNAME, "n_muid": NONUNAME}
            form += "s444"
        record = pack("s", pack(form, *(ones | what).values()))
        self.rpc("wstat", "4s", fid, record)

    # ---- steps over several messages ----

    def names(self, path):
        return [name for name in path.split("/") if name]

    def walk_to(self, path, start=None):
        """A new fid at a path below the attach root, sixteen names at a time."""
        fid = self.new_fid()
        names = self.names(path)
        first = self.root if start is None else start
        while True:
            step, names = names[:16], names[16:]
            try:
                went = len(self.walk(first, fid, *step))
                if went != len(step):
                    self.why_not(first, fid, step[:went + 1])
            except Refused:
                if first == fid:
                    self.clunk(fid)
                raise
            if not names:
                return fid
            first = fid

    def why_not(self, first, fid, names):
        """A walk that ends before its end does not say why: the step that fails alone does."""
        self.walk(first, fid, *names[:-1])
        try:
            self.walk(fid, fid, names[-1])
        finally:
            self.clunk(fid)
        raise Broken(f"{names} can be walked one by one, not at once")

    def open_path(self, path, flags=os.O_RDONLY):
        fid = self.walk_to(path)
        try:
            if self.version_name == "9P2000.L":
                self.lopen(fid, flags)
            else:
                self.open(fid, (flags & 3) | (0x10 if flags & os.O_TRUNC else 0))
        except Refused:
            self.clunk(fid)
            raise
        return fid

    def read_all(self, fid, offset=0):
        parts = []
        while part := self.read(fid, offset, self.msize - 24):
            parts.append(part)
            offset += len(part)
        return b"".join(parts)

    def cat(self, path):
        fid = self.open_path(path)
        try:
            return self.read_all(fid)
        finally:
            self.clunk(fid)

    def write_all(self, fid, data, offset=0):
        done = 0
        while done < len(data):
            done += self.write(fid, offset + done, data[done:done + self.msize - 24])

    def put(self, path, data):
        """What `echo > FILE` does: the clunk's error counts."""
        fid = self.open_path(path, os.O_WRONLY | os.O_TRUNC)
        try:
            self.write_all(fid, raw_bytes(data))
        except Refused:
            try:
                self.clunk(fid)
            except Refused:
                pass
            raise
        self.clunk(fid)

    def ls(self, path, count=None):
        fid = self.open_path(path)
        try:
            return sorted(name for name in self.list_fid(fid, count) if name not in (".", ".."))
        finally:
            self.clunk(fid)

    def list_fid(self, fid, count=None):
        names, offset = [], 0
        if self.version_name == "9P2000.L":
            while entries := self.readdir(fid, offset, count or self.msize - 24):
                names += [os.fsdecode(entry.name) for entry in entries]
                offset = entries[-1].offset
            return names
        data = Reader(self.read_all(fid))
        while data.left():
            names.append(os.fsdecode(self.stat_record(data).name))
        return names

    def lstat(self, path):
        fid = self.walk_to(path)
        try:
            return self.getattr(fid)
        finally:
            self.clunk(fid)

    def run(self, name, text):
        """A command in the main session of a sandbox: its output and exit code."""
        self.put(f"{name}/exec", text)
        return self.cat(f"{name}/exec"), int(self.cat(f"{name}/exit"))


def kind_of(mode):
    return stat.filemode(mode)
