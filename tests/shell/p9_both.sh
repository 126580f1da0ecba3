#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# One tree, two front ends: what one changes the other sees at once, and the numbers of files are the same.
. "$(dirname "$0")/lib.sh"
require python3
P9=$(cd "$(dirname "$0")/../p9" && pwd)
start_cubefs --9p unix:"$WORK/9p"
wait_for 60 test -S "$WORK/9p"
check python3 -B - "$P9" "$WORK/9p" "$MNT" <<'END'
import os, sys
sys.path.insert(0, sys.argv[1])
from client import Refused, Session
s, mnt = Session("unix:" + sys.argv[2]), sys.argv[3]
root = s.walk_to("/")

def here(path):
    return os.path.join(mnt, path)

def content(path):
    with open(here(path), "rb") as f:
        return f.read()

# sandboxes and jobs come, go and are renamed
s.mkdir(root, "dev")
assert os.path.isdir(here("dev"))
s.put("/dev/exec", "echo inside > /workspace/f\n")
assert content("dev/files/workspace/f") == b"inside\n"
s.renameat(root, "dev", root, "two")
assert not os.path.exists(here("dev")) and os.path.isdir(here("two"))
jobs = s.walk_to("/two/jobs")
s.mkdir(jobs, "build")
assert os.path.isdir(here("two/jobs/build"))
s.unlinkat(jobs, "build", 0x200)
assert not os.path.exists(here("two/jobs/build"))
os.mkdir(here("three"))
assert "three" in s.ls("/")
os.rename(here("three"), here("four"))
assert "four" in s.ls("/") and "three" not in s.ls("/")
os.rmdir(here("four"))
assert "four" not in s.ls("/")

# real files, there and back
dir = s.walk_to("/two/files/workspace")
for i in range(20):
    path = "two/files/workspace/%s%d"
    fid = s.walk_to("/two/files/workspace")
    s.lcreate(fid, "a%d" % i, os.O_RDWR, 0o644)
    s.write(fid, 0, b"over 9P")
    assert content(path % ("a", i)) == b"over 9P"
    s.write(fid, 0, b"changed")
    assert content(path % ("a", i)) == b"changed"
    with open(here(path % ("a", i)), "wb") as f:
        f.write(b"mounted")
    assert s.read(fid, 0, 100) == b"mounted"
    assert os.stat(here(path % ("a", i))).st_ino == s.getattr(fid).qid.path
    os.truncate(here(path % ("a", i)), 3)
    assert s.getattr(fid).size == 3
    s.clunk(fid)
    s.renameat(dir, "a%d" % i, dir, "b%d" % i)
    assert not os.path.exists(here(path % ("a", i))) and os.path.exists(here(path % ("b", i)))
    os.rename(here(path % ("b", i)), here(path % ("c", i)))
    s.unlinkat(dir, "c%d" % i)
    assert not os.path.exists(here(path % ("c", i)))

# a lock of one holds against the other
import fcntl
with open(here("two/files/workspace/f"), "r+b") as f:
    fid = s.open_path("/two/files/workspace/f", os.O_RDWR)
    fcntl.lockf(f, fcntl.LOCK_EX | fcntl.LOCK_NB)
    assert s.lock(fid, 1) == 1, "not locked out"
    fcntl.lockf(f, fcntl.LOCK_UN)
    assert s.lock(fid, 1) == 0
    try:
        fcntl.lockf(f, fcntl.LOCK_EX | fcntl.LOCK_NB)
        raise AssertionError("not locked out")
    except OSError:
        pass
    s.clunk(fid)
    fcntl.lockf(f, fcntl.LOCK_EX | fcntl.LOCK_NB)

s.unlinkat(root, "two", 0x200)
assert not os.path.exists(here("two"))
END
