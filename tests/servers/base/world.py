# SPDX-License-Identifier: Apache-2.0
"""What a box has for a file system, and the system calls that give it to a process.

A box's root is a plain directory that outlives its processes: what is written in it is the box's own. The host's /usr is
seen in it, read-only; /etc is a small one of its own. make_root() fills an empty directory, enter() moves the calling
process (uid 0 of fresh user, mount, PID, network, UTS and IPC namespaces) into it.
"""
import ctypes
import fcntl
import os
import shutil
import socket
import struct

LIBC = ctypes.CDLL(None, use_errno=True)
NEWNS, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET = 0x20000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000
MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_BIND, MS_REC, MS_PRIVATE = 2, 4, 8, 4096, 16384, 1 << 18
MOUNT_ATTR_RDONLY, AT_FDCWD, AT_RECURSIVE, MNT_DETACH = 1, -100, 0x8000, 2
PR_SET_PDEATHSIG, SIOCGIFFLAGS, SIOCSIFFLAGS = 1, 0x8913, 0x8914

PASSWD = "root:x:0:0:root:/root:/bin/bash\nuser:x:1000:1000:user:/home/user:/bin/bash\nnobody:x:65534:65534::/:/bin/false\n"
GROUP = "root:x:0:\nuser:x:1000:\nnogroup:x:65534:\n"
ETC = {
    "passwd": PASSWD, "group": GROUP, "hostname": "e2b.local\n",
    "hosts": "127.0.0.1 localhost e2b.local\n::1 localhost\n", "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
    "profile": "PS1='\\u@\\h:\\w\\$ '\n", "os-release": 'ID=debian\nNAME="Debian GNU/Linux"\nVERSION_ID="12"\n',
    "shells": "/bin/sh\n/bin/bash\n",
}
DEVICES = ("null", "zero", "full", "random", "urandom", "tty")
LINKS = {"fd": "/proc/self/fd", "stdin": "/proc/self/fd/0", "stdout": "/proc/self/fd/1", "stderr": "/proc/self/fd/2",
         "ptmx": "pts/ptmx"}


def call(name, *args):
    if getattr(LIBC, name)(*args) == -1:
        code = ctypes.get_errno()
        raise OSError(code, f"{name}{args}: {os.strerror(code)}")


def mount(source, target, kind=None, flags=0, data=None):
    def text(value):
        return value.encode() if value is not None else None

    call("mount", text(source), text(target), text(kind), ctypes.c_ulong(flags), text(data))


def die_with_parent():
    call("prctl", PR_SET_PDEATHSIG, 9, 0, 0, 0)


# ---- the directory ----

def make_root(root, own):
    """Fills an empty directory, as uid 0 of the box. @own(path): gives it to the box's user, 1000."""
    for name, mode in (("etc", 0o755), ("home", 0o755), ("home/user", 0o755), ("root", 0o700), ("tmp", 0o1777),
                       ("var", 0o755), ("var/tmp", 0o1777), ("opt", 0o755), ("srv", 0o755), ("mnt", 0o755), ("run", 0o755),
                       ("usr", 0o755), ("dev", 0o755), ("proc", 0o555), ("code", 0o777), ("workspace", 0o777)):
        os.mkdir(f"{root}/{name}")
        os.chmod(f"{root}/{name}", mode)
    own(f"{root}/home/user")
    own(f"{root}/workspace")
    for name, text in ETC.items():
        with open(f"{root}/etc/{name}", "w", encoding="ascii") as file:
            file.write(text)
    if os.path.exists("/etc/ld.so.cache"):
        shutil.copyfile("/etc/ld.so.cache", f"{root}/etc/ld.so.cache")
    os.mkdir(f"{root}/etc/alternatives")
    for name in ("bin", "sbin", "lib", "lib64"):
        if os.path.islink(f"/{name}"):
            os.symlink(os.readlink(f"/{name}"), f"{root}/{name}")


# ---- entering it ----

def enter(root, mounts):
    """The caller's root is @root from now on, with /usr, /proc and /dev in it, and a network of its own. @mounts: other
    directories, and where they are inside."""
    mount(None, "/", flags=MS_REC | MS_PRIVATE)
    mount(root, root, flags=MS_BIND)
    for name in ("usr", "etc/alternatives", "bin", "sbin", "lib", "lib64"):
        if os.path.isdir(f"/{name}") and not os.path.islink(f"/{name}"):
            os.makedirs(f"{root}/{name}", exist_ok=True)
            mount(f"/{name}", f"{root}/{name}", flags=MS_BIND | MS_REC)
            read_only(f"{root}/{name}")
    for source, path in mounts:
        make_mount_point(root, path)
        mount(source, f"{root}{path}", flags=MS_BIND)
    mount("proc", f"{root}/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC)
    make_dev(f"{root}/dev")
    os.chdir(root)
    call("pivot_root", b".", b".")
    call("umount2", b".", MNT_DETACH)
    os.chdir("/")
    call("sethostname", b"e2b.local", 9)
    raise_loopback()


def make_mount_point(root, path):
    """A directory of the box. What is inside of it may lead elsewhere by links, which are not followed."""
    at = root
    for name in path.strip("/").split("/"):
        at = f"{at}/{name}"
        if os.path.islink(at):
            raise OSError(f"{path}: {name} is a link")
        if not os.path.isdir(at):
            os.mkdir(at)


def read_only(path):
    attr = struct.pack("QQQQ", MOUNT_ATTR_RDONLY, 0, 0, 0)
    call("mount_setattr", AT_FDCWD, path.encode(), AT_RECURSIVE, attr, len(attr))


def make_dev(dev):
    mount("tmpfs", dev, "tmpfs", MS_NOSUID, "mode=755")
    for name in DEVICES:
        with open(f"{dev}/{name}", "w", encoding="ascii"):
            pass
        mount(f"/dev/{name}", f"{dev}/{name}", flags=MS_BIND)
    for name, target in LINKS.items():
        os.symlink(target, f"{dev}/{name}")
    os.mkdir(f"{dev}/pts")
    mount("devpts", f"{dev}/pts", "devpts", MS_NOSUID | MS_NOEXEC, "newinstance,ptmxmode=0666,mode=620")
    os.mkdir(f"{dev}/shm")
    mount("tmpfs", f"{dev}/shm", "tmpfs", MS_NOSUID | MS_NODEV, "mode=1777")


def raise_loopback():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        request = struct.pack("16sH14x", b"lo", 0)
        flags = struct.unpack("16sH14x", fcntl.ioctl(sock, SIOCGIFFLAGS, request))[1]
        fcntl.ioctl(sock, SIOCSIFFLAGS, struct.pack("16sH14x", b"lo", flags | 1))
