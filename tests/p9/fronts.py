# SPDX-License-Identifier: Apache-2.0
"""The same operations through two front ends: Fuse (system calls on a mount) and the dialects of 9P. A path is
below the mount, or the attach root. What an operation gives can be compared; an error is an OSError."""
import errno
import fcntl
import os
import stat
import struct

import client

AT_REMOVEDIR = 0x200
DM = {"dir": 0x80000000, "symlink": 0x02000000, "fifo": 0x00200000, "socket": 0x00100000}


def shown(mode, nlink, uid, gid, size):
    """What stat gives that does not depend on the front end; sizes and links of directories are nobody's promise."""
    if stat.S_ISDIR(mode):
        return f"{stat.filemode(mode)} {uid} {gid}"
    return f"{stat.filemode(mode)} {nlink} {uid} {gid} {size}"


class Fuse:
    def __init__(self, mount):
        self.mount = mount

    def at(self, path):
        return f"{self.mount}/{path}"

    def ls(self, path):
        return sorted(os.listdir(self.at(path)))

    def kinds(self, path):
        with os.scandir(self.at(path)) as entries:
            return sorted((e.name, "l" if e.is_symlink() else "d" if e.is_dir() else "-") for e in entries)

    def cat(self, path):
        fd = os.open(self.at(path), os.O_RDONLY)
        try:
            return b"".join(iter(lambda: os.read(fd, 1 << 16), b""))
        finally:
            os.close(fd)

    def channel(self, path):
        fd = os.open(self.at(path), os.O_RDWR)
        try:
            return b"".join(iter(lambda: os.read(fd, 1 << 16), b""))
        finally:
            os.close(fd)

    def put(self, path, data, flags=os.O_TRUNC, offset=0):
        fd = os.open(self.at(path), os.O_WRONLY | flags)
        try:
            while data:
                done = os.pwrite(fd, data, offset)
                data, offset = data[done:], offset + done
        except OSError:
            try:
                os.close(fd)
            except OSError:
                pass
            raise
        os.close(fd)

    def part(self, path, offset, count):
        fd = os.open(self.at(path), os.O_RDONLY)
        try:
            return os.pread(fd, count, offset)
        finally:
            os.close(fd)

    def create(self, path, mode, flags=os.O_EXCL):
        os.close(os.open(self.at(path), os.O_CREAT | os.O_RDWR | flags, mode))

    def open(self, path, flags):
        os.close(os.open(self.at(path), flags))

    def mkdir(self, path, mode=0o755):
        os.mkdir(self.at(path), mode)

    def rmdir(self, path):
        os.rmdir(self.at(path))

    def unlink(self, path):
        os.unlink(self.at(path))

    def rename(self, path, new):
        os.rename(self.at(path), self.at(new))

    def symlink(self, target, path):
        os.symlink(target, self.at(path))

    def readlink(self, path):
        return os.fsencode(os.readlink(self.at(path)))

    def link(self, path, new):
        os.link(self.at(path), self.at(new), follow_symlinks=False)

    def mknod(self, path, mode):
        os.mknod(self.at(path), mode)

    def stat(self, path):
        st = os.lstat(self.at(path))
        return shown(st.st_mode, st.st_nlink, st.st_uid, st.st_gid, st.st_size)

    def mtime(self, path):
        return os.lstat(self.at(path)).st_mtime_ns

    def chmod(self, path, mode):
        os.chmod(self.at(path), mode)

    def chown(self, path, uid, gid):
        os.chown(self.at(path), uid, gid, follow_symlinks=False)

    def truncate(self, path, size):
        os.truncate(self.at(path), size)

    def utime(self, path, seconds, ns):
        when = seconds * 1000000000 + ns
        os.utime(self.at(path), ns=(when, when))

    def xattrs(self, path):
        return sorted(name for name in os.listxattr(self.at(path)) if name.startswith("user."))

    def getxattr(self, path, name):
        return os.getxattr(self.at(path), name)

    def setxattr(self, path, name, value, flags=0):
        os.setxattr(self.at(path), name, value, flags)

    def statfs(self, path):
        st = os.statvfs(self.at(path))
        return st.f_namemax, st.f_blocks > 0

    def locked(self, path):
        """Which lock one who wants to write finds, while another one has locked bytes 0 to 9 for writing."""
        with open(self.at(path), "r+b") as first, open(self.at(path), "r+b") as other:
            fcntl.fcntl(first, fcntl.F_OFD_SETLK, struct.pack("hhqqi4x", fcntl.F_WRLCK, 0, 0, 10, 0))
            found = fcntl.fcntl(other, fcntl.F_OFD_GETLK, struct.pack("hhqqi4x", fcntl.F_WRLCK, 0, 0, 0, 0))
            kind, _, start, length, _ = struct.unpack("hhqqi4x", found)
            try:
                fcntl.fcntl(other, fcntl.F_OFD_SETLK, struct.pack("hhqqi4x", fcntl.F_WRLCK, 0, 5, 1, 0))
                got = "locked"
            except BlockingIOError:
                got = "blocked"
            fcntl.fcntl(other, fcntl.F_OFD_SETLK, struct.pack("hhqqi4x", fcntl.F_WRLCK, 0, 10, 1, 0))
        return kind == fcntl.F_WRLCK, start, length, got


class Nine:
    """9P2000.L."""

    version = "9P2000.L"

    def __init__(self, address, **kind):
        self.session = client.Session(address, version=self.version, **kind)

    def parent(self, path):
        above, _, name = path.rpartition("/")
        return self.session.walk_to(above), name

    def on(self, path, what):
        """Calls what(fid), and clunks the fid whatever happens."""
        fid = self.session.walk_to(path)
        try:
            return what(fid)
        finally:
            self.session.clunk(fid)

    def in_parent(self, path, what):
        fid, name = self.parent(path)
        try:
            return what(fid, name)
        finally:
            self.session.clunk(fid)

    def opened(self, path, flags, what):
        fid = self.session.open_path(path, flags)
        try:
            return what(fid)
        finally:
            self.session.clunk(fid)

    def ls(self, path):
        return self.session.ls(path)

    def kinds(self, path):
        letters = {4: "d", 8: "-", 10: "l"}

        def entries(fid):
            found, offset = [], 0
            while part := self.session.readdir(fid, offset, 4096):
                found += part
                offset = part[-1].offset
            return sorted((os.fsdecode(e.name), letters.get(e.type, "-")) for e in found if e.name not in (b".", b".."))
        return self.opened(path, os.O_RDONLY, entries)

    def cat(self, path):
        return self.session.cat(path)

    def channel(self, path):
        return self.opened(path, os.O_RDWR, self.session.read_all)

    def put(self, path, data, flags=os.O_TRUNC, offset=0):
        fid = self.session.open_path(path, os.O_WRONLY | flags)
        try:
            self.session.write_all(fid, data, offset)
        except OSError:
            try:
                self.session.clunk(fid)
            except OSError:
                pass
            raise
        self.session.clunk(fid)

    def part(self, path, offset, count):
        return self.opened(path, os.O_RDONLY, lambda fid: self.session.read(fid, offset, count))

    def create(self, path, mode, flags=os.O_EXCL):
        self.in_parent(path, lambda fid, name: self.session.lcreate(fid, name, os.O_CREAT | os.O_RDWR | flags, mode,
                                                                   os.getgid()))

    def open(self, path, flags):
        self.opened(path, flags, lambda fid: None)

    def mkdir(self, path, mode=0o755):
        self.in_parent(path, lambda fid, name: self.session.mkdir(fid, name, mode, os.getgid()))

    def rmdir(self, path):
        self.in_parent(path, lambda fid, name: self.session.unlinkat(fid, name, AT_REMOVEDIR))

    def unlink(self, path):
        self.in_parent(path, lambda fid, name: self.session.unlinkat(fid, name))

    def rename(self, path, new):
        def move(fid, name):
            return self.in_parent(new, lambda into, called: self.session.renameat(fid, name, into, called))
        self.in_parent(path, move)

    def symlink(self, target, path):
        self.in_parent(path, lambda fid, name: self.session.symlink(fid, name, target, os.getgid()))

    def readlink(self, path):
        return self.on(path, self.session.readlink)

    def link(self, path, new):
        self.on(path, lambda file: self.in_parent(new, lambda fid, name: self.session.link(fid, file, name)))

    def mknod(self, path, mode):
        self.in_parent(path, lambda fid, name: self.session.mknod(fid, name, mode, gid=os.getgid()))

    def stat(self, path):
        st = self.on(path, self.session.getattr)
        return shown(st.mode, st.nlink, st.uid, st.gid, st.size)

    def mtime(self, path):
        st = self.on(path, self.session.getattr)
        return st.mtime * 1000000000 + st.mtime_ns

    def chmod(self, path, mode):
        self.on(path, lambda fid: self.session.setattr(fid, mode=mode))

    def chown(self, path, uid, gid):
        self.on(path, lambda fid: self.session.setattr(fid, uid=uid, gid=gid))

    def truncate(self, path, size):
        self.on(path, lambda fid: self.session.setattr(fid, size=size))

    def utime(self, path, seconds, ns):
        self.on(path, lambda fid: self.session.setattr(fid, atime=(seconds, ns), mtime=(seconds, ns)))

    def attribute(self, path, name):
        def read(fid):
            new = self.session.new_fid()
            size = self.session.xattrwalk(fid, new, name)
            try:
                value = self.session.read_all(new)
            finally:
                self.session.clunk(new)
            if len(value) != size:
                raise client.Broken(f"{name} has {len(value)} bytes, {size} were announced")
            return value
        return self.on(path, read)

    def xattrs(self, path):
        names = self.attribute(path, "").split(b"\0")
        return sorted(os.fsdecode(name) for name in names if name.startswith(b"user."))

    def getxattr(self, path, name):
        return self.attribute(path, name)

    def setxattr(self, path, name, value, flags=0):
        fid = self.session.walk_to(path)
        try:
            self.session.xattrcreate(fid, name, len(value), flags)
            self.session.write_all(fid, value)
        except OSError:
            try:
                self.session.clunk(fid)
            except OSError:
                pass
            raise
        self.session.clunk(fid)

    def statfs(self, path):
        st = self.on(path, self.session.statfs)
        return st.namelen, st.blocks > 0

    def locked(self, path):
        def other(fid, second):
            self.session.lock(fid, 1, 0, 10, proc=1, client="first")
            kind, start, length, _, _ = self.session.getlock(second, 1, proc=2, client="other")
            got = "blocked" if self.session.lock(second, 1, 5, 1, proc=2, client="other") == 1 else "locked"
            if self.session.lock(second, 1, 10, 1, proc=2, client="other") != 0:
                raise client.Refused(errno.EAGAIN, "")
            return kind == 1, start, length, got
        return self.opened(path, os.O_RDWR,
                           lambda fid: self.opened(path, os.O_RDWR, lambda second: other(fid, second)))


class Old(Nine):
    """9P2000.u; what it cannot say is not an attribute of it."""

    version = "9P2000.u"
    locked = statfs = xattrs = getxattr = setxattr = link = None

    def kinds(self, path):
        def entries(fid):
            data, found = client.Reader(self.session.read_all(fid)), []
            while data.left():
                st = self.session.stat_record(data)
                letter = "d" if st.mode & DM["dir"] else "l" if st.mode & DM["symlink"] else "-"
                found.append((os.fsdecode(st.name), letter))
            return sorted(found)
        return self.opened(path, os.O_RDONLY, entries)

    # What a client of these dialects has to look at itself, since Tremove and Topen take anything.

    def expect(self, path, directory, error):
        if bool(self.on(path, self.session.stat).mode & DM["dir"]) != directory:
            raise OSError(error, os.strerror(error))

    def open(self, path, flags):
        if flags & os.O_DIRECTORY:
            self.expect(path, True, errno.ENOTDIR)
        super().open(path, flags)

    def cat(self, path):
        self.expect(path, False, errno.EISDIR)
        return super().cat(path)

    def create(self, path, mode, flags=os.O_EXCL):
        self.in_parent(path, lambda fid, name: self.session.create(fid, name, mode, 2))

    def mkdir(self, path, mode=0o755):
        self.in_parent(path, lambda fid, name: self.session.create(fid, name, mode | DM["dir"], 0))

    def unlink(self, path):
        self.expect(path, False, errno.EISDIR)
        self.session.remove(self.session.walk_to(path))

    def rmdir(self, path):
        self.expect(path, True, errno.ENOTDIR)
        self.session.remove(self.session.walk_to(path))

    def rename(self, path, new):
        """Within its directory: Twstat knows names alone."""
        self.on(path, lambda fid: self.session.wstat(fid, name=new.rpartition("/")[2]))

    def symlink(self, target, path):
        self.in_parent(path, lambda fid, name: self.session.create(fid, name, DM["symlink"] | 0o777, 0, target))

    def readlink(self, path):
        st = self.on(path, self.session.stat)
        if not st.mode & DM["symlink"]:
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
        return st.extension

    def mknod(self, path, mode):
        self.in_parent(path, lambda fid, name: self.session.create(fid, name, DM["fifo"] | mode & 0o777, 0))

    def stat(self, path):
        st = self.on(path, self.session.stat)
        kind = "d" if st.mode & DM["dir"] else "l" if st.mode & DM["symlink"] else "p" if st.mode & DM["fifo"] else "-"
        return kind, oct(st.mode & 0o777), None if kind == "d" else st.length

    def mtime(self, path):
        return self.on(path, self.session.stat).mtime * 1000000000

    def chmod(self, path, mode):
        self.on(path, lambda fid: self.session.wstat(fid, mode=mode | self.session.stat(fid).mode & DM["dir"]))

    def chown(self, path, uid, gid):
        self.on(path, lambda fid: self.session.wstat(fid, n_uid=uid, n_gid=gid))

    def truncate(self, path, size):
        self.expect(path, False, errno.EISDIR)
        self.on(path, lambda fid: self.session.wstat(fid, length=size))

    def utime(self, path, seconds, ns):
        self.on(path, lambda fid: self.session.wstat(fid, mtime=seconds))


class Plain(Old):
    """9P2000: no numbers of errors, no links, no owners by number."""

    version = "9P2000"
    symlink = readlink = mknod = chown = kinds = None
