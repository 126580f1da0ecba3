#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Mounts here what another mount namespace has: lend.py PID PATH TARGET

PATH as the process PID has it, of that one mount, at the directory TARGET of this namespace: the file system itself, and
not by a path through /proc, in which no program has a working directory."""
import ctypes
import os
import sys

OPEN_TREE, MOVE_MOUNT = 428, 429
AT_FDCWD, CLONE, EMPTY_PATH = -100, 1, 4

libc = ctypes.CDLL(None, use_errno=True)


def call(what, *args):
    r = libc.syscall(*args)
    if r < 0:
        sys.exit(f'lend.py: {what}: {os.strerror(ctypes.get_errno())}')
    return r


def setns(fd):
    if libc.setns(fd, 0) < 0:
        sys.exit(f'lend.py: setns: {os.strerror(ctypes.get_errno())}')


pid, path, target = sys.argv[1:]
own = os.open('/proc/self/ns/mnt', os.O_RDONLY)
setns(os.open(f'/proc/{pid}/ns/mnt', os.O_RDONLY))
tree = call(path, OPEN_TREE, AT_FDCWD, path.encode(), CLONE)
setns(own)
call(target, MOVE_MOUNT, tree, b'', AT_FDCWD, target.encode(), EMPTY_PATH)
