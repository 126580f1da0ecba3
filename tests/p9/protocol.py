# SPDX-License-Identifier: Apache-2.0
"""What the protocol asks of a 9P2000.L server: protocol.py ADDRESS. In the tree is a running sandbox `dev`. Each
function is one test, with a connection of its own; the names of those that fail are printed, with why."""
import errno
import os
import stat
import sys
import time

from client import NOFID, NOTAG, TYPES, Broken, Closed, Refused, Session, pack, run_tests

ADDRESS = sys.argv[1]
WORK = "dev/files/workspace"


def session(**kind):
    return Session(ADDRESS, **kind)


def refused(name, call, *arguments, **named):
    try:
        call(*arguments, **named)
    except Refused as error:
        assert error.name == name, f"{error.name}, expected {name}"
        return
    raise AssertionError(f"succeeded, expected {name}")


def closed(s):
    """The server hangs up, whatever it says before."""
    try:
        while True:
            s.receive()
    except (Closed, ConnectionError):
        pass


def fresh(s, name, data=b""):
    """A new file in the workspace, open for both, and its fid."""
    fid = s.walk_to(WORK)
    s.lcreate(fid, name, os.O_RDWR | os.O_TRUNC, 0o644)
    s.write_all(fid, data)
    return fid


# ---- version, attach ----

def test_version_names():
    with session(version=None) as s:
        for asked, given in (("9P2000.L", "9P2000.L"), ("9P2000.u", "9P2000.u"), ("9P2000", "9P2000"),
                             ("9P1999", "unknown"), ("", "unknown"), ("x" * 300, "unknown")):
            got = s.version(8192, asked)
            assert got[1] == given, f"{asked[:20]}: {got}"
        assert s.version(8192, "9P2000.L")[0] == 8192
        s.attach(1)


def test_version_sizes():
    with session(version=None) as s:
        assert s.version(4096, "9P2000.L") == (4096, "9P2000.L")
        size, _ = s.version(1 << 31, "9P2000.L")
        assert 65536 <= size <= 1 << 20, size
    with session(version=None) as s:
        try:
            s.version(4095, "9P2000.L")
            raise AssertionError("an msize of 4095 is taken")
        except (Refused, Broken):
            pass


def test_version_first():
    with session(version=None) as s:
        s.version_name = "9P2000.L"
        refused_or_closed(s, "attach", "44ss4", 1, NOFID, "u", "", 0)


def refused_or_closed(s, name, form="", *values, more=b""):
    try:
        s.rpc(name, form, *values, gives=None, more=more)
    except (Refused, Closed, ConnectionError):
        return
    raise AssertionError(f"T{name} succeeded")


def test_version_resets():
    with session() as s:
        fid = s.open_path("README")
        s.version(8192, "9P2000.L")
        refused("EBADF", s.read, fid, 0, 10)
        s.attach(s.root)
        assert "README" in s.ls("")


def test_attach_anames():
    with session(attach=False) as s:
        s.root = s.new_fid()
        s.attach(s.root, "/dev")
        assert "exec" in s.ls("")
        refused("ENOENT", s.attach, s.new_fid(), "/nothing")
        refused("ENOENT", s.walk, s.root, s.new_fid(), "README")
        s.root = s.new_fid()
        s.attach(s.root, "")
        assert "README" in s.ls("")


def test_attach_fids():
    with session() as s:
        refuse_any(s.attach, s.root)
        refuse_any(s.attach, 77, "", "u", 5)
        refuse_any(s.rpc, "auth", "4ss4", 9, "u", "", 0, gives="q")


def refuse_any(call, *arguments, **named):
    try:
        call(*arguments, **named)
    except Refused:
        return
    raise AssertionError("succeeded")


def test_attach_root_in_any_way():
    with session(aname="/dev") as s:
        inside = s.ls("")
        for names in (("..",), ("jobs", "..", ".."), ("files", "..", "..", ".."), ("..",) * 16):
            fid = s.new_fid()
            s.walk(s.root, fid, *names)
            s.lopen(fid, os.O_RDONLY)
            assert sorted(n for n in s.list_fid(fid) if n not in (".", "..")) == inside, names
            s.clunk(fid)


# ---- walks, fids ----

def test_walks():
    with session() as s:
        fid = s.new_fid()
        assert len(s.walk(s.root, fid)) == 0
        refuse_any(s.walk, s.root, fid)
        assert len(s.walk(fid, fid, "dev", "jobs")) == 2
        new = s.new_fid()
        got = s.walk(s.root, new, "dev", "nothing", "below")
        assert len(got) == 1, got
        refused("EBADF", s.clunk, new)
        refused("ENOENT", s.walk, s.root, new, "nothing")
        refused("ENOTDIR", s.walk, s.walk_to("README"), new, "x")
        refused("EBADF", s.walk, 4242, new, "dev")
        for bad in ("", "a/b", "nul\0nul"):
            refuse_any(s.walk, s.root, new, bad)
        refuse_any(s.walk, s.root, new, "n" * 256)
        refuse_any(s.walk, s.root, new, "n" * 60000)
        refuse_any(s.walk, s.root, NOFID)
        refused_or_closed(s, "walk", "442", s.root, new, 17, more=pack("s", "..") * 17)


def test_open_fids():
    with session() as s:
        fid = s.open_path("README")
        refused("EINVAL", s.lopen, fid, os.O_RDONLY)
        new = s.new_fid()
        s.walk(fid, new)
        s.lopen(new, os.O_RDONLY)
        assert s.read_all(new) == s.read_all(fid) != b""
        refuse_any(s.walk, fid, fid)
        refused("EBADF", s.write, fid, 0, b"x")
        refused("EBADF", s.read, s.walk_to("README"), 0, 1)
        refuse_any(s.readdir, fid, 0, 1000)
        refused("EISDIR", s.read, s.open_path("dev"), 0, 1)
        refuse_any(s.lcreate, fid, "x", os.O_RDWR, 0o644)


def test_clunks():
    with session() as s:
        fid = s.walk_to("dev")
        s.clunk(fid)
        refused("EBADF", s.clunk, fid)
        refused("EBADF", s.getattr, fid)
        refused("EBADF", s.remove, fid)
        refused("EBADF", s.clunk, NOFID)
        fid = fresh(s, "gone")
        s.remove(fid)
        refused("EBADF", s.clunk, fid)
        fid = s.walk_to("README")
        refuse_any(s.remove, fid)
        refused("EBADF", s.clunk, fid)
        assert "gone" not in s.ls(WORK)


def test_fids_hold_the_object():
    with session() as s:
        fid = fresh(s, "old", b"content")
        s.renameat(s.walk_to(WORK), "old", s.walk_to(WORK), "new")
        assert s.read(fid, 0, 100) == b"content"
        s.unlinkat(s.walk_to(WORK), "new")
        assert s.read(fid, 0, 100) == b"content"
        assert s.getattr(fid).size == 7
        s.write(fid, 7, b" more")
        assert s.read(fid, 0, 100) == b"content more"
        s.clunk(fid)


# ---- data ----

def test_counts():
    with session(msize=8192) as s:
        fid = fresh(s, "data", b"x" * 20000)
        assert 0 < len(s.read(fid, 0, 0xFFFFFFFF)) <= 8192 - 11
        assert s.read(fid, 0, 0) == b""
        assert s.read(fid, 20000, 10) == b""
        assert s.read(fid, 1 << 62, 10) == b""
        refuse_any(s.read, fid, (1 << 64) - 1, 10)
        refuse_any(s.write, fid, (1 << 64) - 1, b"x")
        s.remove(fid)


def test_write_counts():
    for count in (0, 4, 6, 0xFFFFFFFF):
        with session() as s:
            fid = fresh(s, "data", b"12345")
            refused_or_closed(s, "write", "484", fid, 0, count, more=b"abcde")
        with session() as s:
            assert s.cat(f"{WORK}/data") == b"12345", count


def test_sizes():
    for msize in (4096, 5000, 65536, 1 << 20):
        with session(msize=msize) as s:
            block = os.urandom(300000)
            fid = fresh(s, "block", block)
            assert s.read_all(fid) == block
            s.remove(fid)


def test_readdir():
    names = {f"entry-{i}" for i in range(300)}
    with session() as s:
        where = s.walk_to(WORK)
        s.mkdir(where, "many")
        for name in names:
            fid = s.walk_to(f"{WORK}/many")
            s.lcreate(fid, name, os.O_RDWR, 0o644)
            s.clunk(fid)
        fid = s.open_path(f"{WORK}/many")
        refused("EINVAL", s.readdir, fid, 0, 20)
        for count in (60, 500, 100000):
            got = s.list_fid(fid, count)
            assert got[:2] == [".", ".."] and sorted(got[2:]) == sorted(names) and len(got) == 302, count
        first = s.readdir(fid, 0, 2000)
        again = s.readdir(fid, first[3].offset, 2000)
        assert [e.name for e in again[:5]] == [e.name for e in first[4:9]]
        for entry in first[2:]:
            s.unlinkat(s.walk_to(f"{WORK}/many"), entry.name)
        left = [e.decode() for e in rest(s, fid, first[-1].offset)]
        assert sorted(left) == sorted(names - {e.name.decode() for e in first}), "entries after others were removed"
        for name in left:
            s.unlinkat(s.walk_to(f"{WORK}/many"), name)
        s.unlinkat(where, "many", 0x200)


def rest(s, fid, offset):
    names = []
    while part := s.readdir(fid, offset, 4000):
        names += [e.name for e in part]
        offset = part[-1].offset
    return names


def test_unlinkat_flags():
    with session() as s:
        where = s.walk_to(WORK)
        s.clunk(fresh(s, "file"))
        s.mkdir(where, "directory")
        refused("EINVAL", s.unlinkat, where, "file", 0x1000)
        refused("ENOTDIR", s.unlinkat, where, "file", 0x200)
        refused("EISDIR", s.unlinkat, where, "directory")
        for bad in ("..", "."):
            refuse_any(s.unlinkat, where, bad, 0x200)
        refuse_any(s.unlinkat, where, "", 0x200)
        s.unlinkat(where, "file")
        s.unlinkat(where, "directory", 0x200)


def test_names_of_new_things():
    with session() as s:
        where = s.walk_to(WORK)
        for bad in ("", ".", "..", "a/b", "../x", "nul\0x"):
            refuse_any(s.mkdir, where, bad)
            refuse_any(s.symlink, where, bad, "x")
            refuse_any(s.mknod, where, bad, stat.S_IFIFO | 0o644)
            refuse_any(s.renameat, where, "nothing", where, bad)
            clone = s.new_fid()
            s.walk(where, clone)
            refuse_any(s.lcreate, clone, bad, os.O_RDWR, 0o644)
            s.clunk(clone)
        refused("EPERM", s.mknod, where, "null", stat.S_IFCHR | 0o666, 1, 3)


def test_create_follows_no_link():
    with session() as s:
        where = s.walk_to(WORK)
        s.symlink(where, "link", "/etc/new-by-9p")
        fid = s.walk_to(WORK)
        refuse_any(s.lcreate, fid, "link", os.O_RDWR, 0o644)
        refuse_any(s.lopen, s.walk_to(f"{WORK}/link"), os.O_RDONLY)
        assert not os.path.exists("/etc/new-by-9p")
        refused("ENOTDIR", s.walk, s.walk_to(f"{WORK}/link"), s.new_fid(), "x")
        s.unlinkat(where, "link")


def test_setattr():
    with session() as s:
        fid = fresh(s, "attr", b"0123456789")
        s.setattr(fid, size=4, mode=0o600, mtime=(1000, 5), atime=(2000, 6))
        got = s.getattr(fid)
        assert (got.size, got.mode & 0o7777, got.mtime, got.mtime_ns, got.atime) == (4, 0o600, 1000, 5, 2000), got
        refused("EINVAL", s.rpc, "setattr", "4444488888", fid, 0x8000, *([0] * 8))
        before = int(time.time()) - 5
        s.setattr(fid, mtime=None)
        assert s.getattr(fid).mtime >= before
        s.remove(fid)


def test_xattrs():
    with session() as s:
        s.clunk(fresh(s, "x"))
        fid = s.walk_to(f"{WORK}/x")
        refused("ENODATA", s.xattrwalk, fid, s.new_fid(), "user.none")
        s.xattrcreate(fid, "user.a", 5)
        s.write(fid, 0, b"abc")
        refused("EINVAL", s.clunk, fid)
        refused("EBADF", s.clunk, fid)
        fid = s.walk_to(f"{WORK}/x")
        refused("ENODATA", s.xattrwalk, fid, s.new_fid(), "user.a")
        s.xattrcreate(fid, "user.a", 3)
        refuse_any(s.write, fid, 0, b"abcd")
        s.write(fid, 0, b"ab")
        s.write(fid, 2, b"c")
        refuse_any(s.lopen, fid, os.O_RDONLY)
        s.clunk(fid)
        fid, value = s.walk_to(f"{WORK}/x"), s.new_fid()
        assert s.xattrwalk(fid, value, "user.a") == 3
        assert (s.read(value, 0, 100), s.read(value, 1, 1), s.read(value, 3, 1)) == (b"abc", b"b", b"")
        refuse_any(s.write, value, 0, b"x")
        refuse_any(s.xattrcreate, s.walk_to(f"{WORK}/x"), "user.big", 65537)
        refuse_any(s.xattrcreate, s.walk_to(f"{WORK}/x"), "n" * 300, 1)
        s.remove(fid)


def test_locks_end_with_the_connection():
    with session() as s:
        fid = fresh(s, "locked", b"x")
        assert s.lock(fid, 1) == 0
        with session() as other:
            theirs = other.open_path(f"{WORK}/locked", os.O_RDWR)
            assert other.lock(theirs, 1) == 1
            assert other.lock(theirs, 0) == 1
            s.close()
            for _ in range(500):
                if other.lock(theirs, 1) == 0:
                    break
                time.sleep(0.02)
            else:
                raise AssertionError("the lock outlives its connection")
            other.remove(theirs)


# ---- commands, waiting, flush ----

def test_exec_runs_at_clunk():
    with session() as s:
        fid = s.open_path("dev/exec", os.O_WRONLY | os.O_TRUNC)
        s.write(fid, 0, b"echo one; ")
        s.write(fid, 10, b"echo two\n")
        s.clunk(fid)
        assert s.cat("dev/exec") == b"one\ntwo\n"
        assert s.cat("dev/exit") == b"0\n"


def test_channel_ignores_offsets():
    with session() as s:
        fid = s.open_path("dev/exec", os.O_RDWR)
        s.write(fid, 12345, b"echo channel\n")
        assert s.read(fid, 99, 100) == b"channel\n"


def test_flush_of_a_command():
    with session() as s:
        fid = s.open_path("dev/exec", os.O_WRONLY | os.O_TRUNC)
        s.write(fid, 0, b"echo begun; sleep 1000\n")
        tag = s.send("clunk", "4", fid)
        with session() as other:
            for _ in range(500):
                if other.cat("dev/exec") == b"begun\n":
                    break
                time.sleep(0.02)
        s.flush(tag)
        for _ in range(500):
            if s.cat("dev/exit") != b"-\n":
                break
            time.sleep(0.02)
        assert s.cat("dev/exit") == b"130\n", s.cat("dev/exit")
        try:
            s.clunk(fid)
        except Refused as error:
            assert error.errno == errno.EBADF, error.name


def test_hang_up_ends_a_command():
    with session() as s:
        fid = s.open_path("dev/exec", os.O_WRONLY | os.O_TRUNC)
        s.write(fid, 0, b"echo hung; sleep 1000\n")
        s.send("clunk", "4", fid)
        with session() as other:
            for _ in range(500):
                if other.cat("dev/exec") == b"hung\n":
                    break
                time.sleep(0.02)
    with session() as s:
        for _ in range(500):
            if s.cat("dev/exit") != b"-\n":
                break
            time.sleep(0.02)
        assert s.cat("dev/exit") == b"130\n", s.cat("dev/exit")


def test_collected_text_is_dropped_by_hang_up():
    with session() as s:
        s.put("dev/exec", b"echo before\n")
        fid = s.open_path("dev/exec", os.O_WRONLY | os.O_TRUNC)
        s.write(fid, 0, b"touch /tmp/never\n")
    with session() as s:
        assert s.run("dev", b"sleep 0.2; ls /tmp/never 2>/dev/null || echo none\n")[0] == b"none\n"


def test_flush_of_a_waiting_read():
    with session() as s:
        fid = s.open_path("events", os.O_RDWR)
        while True:
            tag = s.send("read", "484", fid, 0, 8000)
            s.flush(12345)
            mark = s.send("getattr", "48", s.root, 0x3FFF)
            s.wait(mark)
            if tag not in s.answers:
                break
            s.wait(tag)
        started = s.send("flush", "2", tag)
        s.wait(started, "")
        assert tag not in s.answers, "a flushed read was answered"
        del s.waiting[tag]
        s.getattr(s.root)


def test_flush_in_order():
    """All that was asked before a flush of it is answered before the flush, or never."""
    with session() as s:
        for _ in range(200):
            tag = s.send("getattr", "48", s.root, 0x3FFF)
            flush = s.send("flush", "2", tag)
            s.wait(flush, "")
            s.waiting.pop(tag, None)
            s.answers.pop(tag, None)
            mark = s.send("getattr", "48", s.root, 0x3FFF, tag=tag)
            s.wait(mark)


def test_waiting_reads_hold_nobody():
    with session() as s:
        fids = [s.open_path("events", os.O_RDWR) for _ in range(40)]
        for fid in fids:
            for _ in range(3):
                s.send("read", "484", fid, 0, 4000)
        for _ in range(50):
            s.wait(s.send("getattr", "48", s.root, 0x3FFF))
        with session() as other:
            assert other.run("dev", b"echo free\n") == (b"free\n", 0)


def test_many_in_flight():
    with session() as s:
        fid = fresh(s, "flight", bytes(range(256)) * 256)
        tags = [(i, s.send("read", "484", fid, i * 256, 256)) for i in range(200)]
        for _, tag in reversed(tags):
            got = s.wait(tag)
            assert got.take(got.unpack("4")[0]) == bytes(range(256))
        s.remove(fid)


# ---- what no client sends ----

def test_broken_heads():
    for raw in (b"\0\0\0\0", b"\6\0\0\0\x6e\1\0", b"\xff\xff\xff\xff\x6e\1\0", b"\0\0\0\x80\x6e\1\0"):
        with session() as s:
            s.raw(raw)
            closed(s)
    with session() as s:
        assert "README" in s.ls("")


def test_answers_sent_by_a_client():
    for number in (7, 13, 101, 105, 107, 109, 111, 117, 119, 121):
        with session() as s:
            s.raw(s.message(number, 1, b"\0" * 20))
            s.waiting[1] = TYPES["lopen"] + 1
            try:
                s.wait(1)
                raise AssertionError(f"{number} was answered")
            except (Refused, Closed, ConnectionError):
                pass


def test_unknown_types():
    for number in (0, 1, 6, 10, 36, 98, 106, 112, 114, 124, 126, 128, 200, 255):
        with session() as s:
            s.raw(s.message(number, 1, b""))
            s.waiting[1] = 1
            try:
                s.wait(1)
                raise AssertionError(f"{number} was answered")
            except (Refused, Closed, ConnectionError):
                pass


def test_cut_and_long_bodies():
    """Every request, with a byte too few and one too many."""
    bodies = {
        "walk": pack("442s", 1, 9, 1, "dev"), "lopen": pack("44", 1, 0), "getattr": pack("48", 1, 0x3FFF),
        "read": pack("484", 1, 0, 10), "write": pack("4841", 1, 0, 1, 65), "clunk": pack("4", 8),
        "mkdir": pack("4s44", 1, "x", 0o755, 0), "symlink": pack("4ss4", 1, "x", "y", 0), "flush": pack("2", 3),
        "renameat": pack("4s4s", 1, "a", 1, "b"), "unlinkat": pack("4s4", 1, "a", 0), "readdir": pack("484", 1, 0, 99),
        "lcreate": pack("4s444", 1, "x", 2, 0o644, 0), "statfs": pack("4", 1), "readlink": pack("4", 1),
        "setattr": pack("4444488888", 1, *([0] * 9)), "xattrwalk": pack("44s", 1, 9, "user.x"),
        "xattrcreate": pack("4s84", 1, "user.x", 1, 0), "lock": pack("414884s", 1, 1, 0, 0, 0, 1, "c"),
        "getlock": pack("41884s", 1, 1, 0, 0, 1, "c"), "link": pack("44s", 1, 1, "x"), "rename": pack("44s", 1, 1, "x"),
        "mknod": pack("4s4444", 1, "x", 0o10644, 0, 0, 0), "attach": pack("44ss4", 9, NOFID, "u", "", 0),
        "remove": pack("4", 8), "fsync": pack("42", 1, 0),
    }
    with session() as s:
        before = s.ls("")
    for name, body in bodies.items():
        for wrong in (body[:-1], body + b"\0"):
            with session() as s:
                refused_or_closed(s, name, more=wrong)
    with session() as s:
        assert s.ls("") == before


def test_strings_beyond_the_end():
    for name, body in (("walk", pack("442", 1, 9, 1) + b"\xff\xff" + b"x" * 10), ("mkdir", pack("4", 1) + b"\xff\x00abc"),
                       ("attach", pack("44", 9, NOFID) + b"\xff\xff")):
        with session() as s:
            refused_or_closed(s, name, more=body)


def test_a_tag_twice():
    with session() as s:
        fid = s.open_path("events", os.O_RDWR)
        while True:
            tag = s.send("read", "484", fid, 0, 8000)
            s.wait(s.send("getattr", "48", s.root, 0x3FFF))
            if tag not in s.answers:
                break
            s.wait(tag)
        s.raw(s.message(TYPES["read"], tag, pack("484", fid, 0, 8000)))
        closed(s)


def test_stale_after_destroy():
    with session() as s:
        s.put("ctl", b"create shortlived\n")
        fid = s.open_path("shortlived/status")
        inside = s.walk_to("shortlived/workspace")
        s.unlinkat(s.root, "shortlived", 0x200)
        refuse_any(s.walk, inside, s.new_fid(), "x")
        try:
            s.read(fid, 0, 100)
        except Refused:
            pass
        s.clunk(fid)
        s.clunk(inside)
        refused("ENOENT", s.walk, s.root, s.new_fid(), "shortlived")


if __name__ == "__main__":
    sys.exit(run_tests(globals(), sys.argv[2:]))
