# SPDX-License-Identifier: Apache-2.0
"""coherence.sh: P9DIR ADDRESS MOUNT ROUNDS"""
import ctypes, itertools, mmap, os, random, sys
sys.path.insert(0, sys.argv[1])
from client import Session

MNT, ROUNDS = sys.argv[3], int(sys.argv[4])
SEED = int(os.environ.get("CUBEFS_TEST_SEED", random.randrange(1 << 30)))
print("seed", SEED)
rng = random.Random(SEED)
LIBC = ctypes.CDLL(None)
LIBC.mmap.restype = ctypes.c_void_p
LIBC.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + [ctypes.c_int] * 3 + [ctypes.c_long]
DEV = os.path.join(MNT, "dev")
W = os.path.join(DEV, "files/workspace")
p9 = Session("unix:" + sys.argv[2])


def text(path):
    with open(path, "rb") as f:
        return f.read().decode()


# ---- ways to have something done inside: each returns when it is said to be done ----

def by_exec(line):
    with open(os.path.join(DEV, "exec"), "w") as f:
        f.write(line)
    assert text(os.path.join(DEV, "exit")) == "0\n", (line, text(os.path.join(DEV, "exec")))


def by_channel(line):
    fd = os.open(os.path.join(DEV, "exec"), os.O_RDWR)
    os.write(fd, line.encode())
    while os.read(fd, 4096):
        pass
    os.close(fd)


numbers = itertools.count()


def by_job(line):
    job = os.path.join(DEV, "jobs", "j%d" % next(numbers))
    os.mkdir(job)
    with open(os.path.join(job, "cmd"), "w") as f:
        f.write(line)
    fd = os.open(os.path.join(job, "exit"), os.O_RDWR)
    assert os.read(fd, 20) == b"0\n", line
    os.close(fd)
    os.rmdir(job)


def by_9p(line):
    p9.put("/dev/exec", line + "\n")


WAYS = [by_exec, by_channel, by_job, by_9p]

# ---- what is looked at: before a change, so that the kernel has it, and after it ----


def look(path):
    try:
        st = os.lstat(path)
    except FileNotFoundError:
        return None
    return st


def warm(*names):
    for _ in range(3):
        for n in names:
            look(os.path.join(W, n))


def gone(name):
    assert look(os.path.join(W, name)) is None, name
    assert name not in os.listdir(W)


def there(name, size=None):
    st = look(os.path.join(W, name))
    assert st is not None, name
    assert size is None or st.st_size == size, (name, st.st_size, size)
    assert name in os.listdir(W)
    return st


def change_create(do, n):
    warm(n)
    do("echo 12345 > /workspace/%s" % n)
    there(n, 6)


def change_grow(do, n):
    do("printf 1 > /workspace/%s" % n)
    warm(n)
    for size in (3, 9, 4):
        do("head -c %d /dev/zero > /workspace/%s" % (size, n))
        there(n, size)
    do("printf 12345 >> /workspace/%s" % n)
    there(n, 9)
    do("truncate -s 100 /workspace/%s" % n)
    there(n, 100)
    assert text(os.path.join(W, n)).count("\0") == 95


def change_remove(do, n):
    do("echo x > /workspace/%s" % n)
    warm(n)
    do("rm /workspace/%s" % n)
    gone(n)
    do("echo again > /workspace/%s" % n)
    there(n, 6)
    do("rm /workspace/%s; mkdir /workspace/%s" % (n, n))
    assert os.path.isdir(os.path.join(W, n))
    do("rmdir /workspace/%s" % n)
    gone(n)


def change_rename(do, n):
    do("cd /workspace; echo long text > %s; echo b > %s.b" % (n, n))
    warm(n, n + ".b", n + ".c")
    ino = there(n).st_ino
    do("cd /workspace; mv %s %s.b" % (n, n))
    gone(n)
    assert there(n + ".b", 10).st_ino == ino
    do("cd /workspace; mv %s.b %s.c" % (n, n))
    gone(n + ".b")
    there(n + ".c", 10)


def change_mode(do, n):
    do("echo x > /workspace/%s" % n)
    for mode in (0o600, 0o751, 0o644):
        warm(n)
        do("chmod %o /workspace/%s" % (mode, n))
        assert there(n).st_mode & 0o777 == mode
    do("touch -d @1000000 /workspace/%s" % n)
    assert there(n).st_mtime == 1000000


def change_links(do, n):
    do("cd /workspace; echo x > %s; mkdir -p far other" % n)
    warm(n, "far/" + n)
    do("ln /workspace/%s /workspace/other/%s" % (n, n))  # where nobody looks
    assert there(n).st_nlink == 2
    warm(n)
    do("echo much more >> /workspace/other/%s" % n)
    there(n, 12)
    warm(n)
    do("rm /workspace/other/%s" % n)
    assert there(n).st_nlink == 1
    warm(n)
    do("ln /workspace/%s /workspace/far/%s" % (n, n))
    assert look(os.path.join(W, "far", n)).st_nlink == 2 == there(n).st_nlink


def change_tree(do, n):
    do("mkdir -p /workspace/%s/a/b; echo 1 > /workspace/%s/a/b/f" % (n, n))
    warm(n, n + "/a", n + "/a/b", n + "/a/b/f", n + "/c/b/f", n + "/a/b/g")
    do("cd /workspace/%s; mv a c; echo 22 > c/b/g" % n)
    assert look(os.path.join(W, n, "a")) is None and look(os.path.join(W, n, "a/b/f")) is None
    assert look(os.path.join(W, n, "c/b/f")).st_size == 2 and look(os.path.join(W, n, "c/b/g")).st_size == 3
    warm(n + "/c/b/f", n + "/c/b/g")
    do("cd /workspace/%s; rm -r c; mkdir -p c/b; echo 333 > c/b/f" % n)
    assert look(os.path.join(W, n, "c/b/f")).st_size == 4 and look(os.path.join(W, n, "c/b/g")) is None


def change_from_outside(do, n):
    path = os.path.join(W, n)
    warm(n)
    with open(path, "w") as f:
        f.write("outside")
    there(n, 7)
    do("cd /workspace; test \"$(cat %s)\" = outside; printf more >> %s" % (n, n))
    there(n, 11)
    os.truncate(path, 2)
    there(n, 2)
    os.rename(path, path + ".r")
    gone(n)
    do("cd /workspace; test ! -e %s; test -e %s.r; mv %s.r %s" % (n, n, n, n))
    there(n, 2)
    gone(n + ".r")
    os.unlink(path)
    do("test ! -e /workspace/%s; mkdir /workspace/%s" % (n, n))
    os.rmdir(path)
    os.mkdir(path)
    os.chdir(path)
    do("touch /workspace/%s/in" % n)
    assert os.listdir(".") == ["in"] and os.path.exists("in")
    assert os.getcwd().endswith(n)
    os.chdir("/")


def change_mapped(do, n):
    """Pages are written, which is no event."""
    do("head -c 8192 /dev/zero > /workspace/%s; touch -d @5 /workspace/%s" % (n, n))
    warm(n)
    do("python3 -c \"import mmap, os; f = os.open('/workspace/%s', os.O_RDWR); m = mmap.mmap(f, 0); os.close(f); "
       "m[0:2] = b'hi'; m.flush()\"" % n)
    st = there(n, 8192)
    assert st.st_mtime > 1000, st
    assert text(os.path.join(W, n))[:2] == "hi"


def change_mapped_outside(do, n):
    if "files passthrough" not in text(os.path.join(DEV, "status")):
        return  # what is written there is in the file after msync, and is a write then
    path = os.path.join(W, n)
    do("head -c 8192 /dev/zero > /workspace/%s; touch -d @5 /workspace/%s" % (n, n))
    warm(n)
    fd = os.open(path, os.O_RDWR)
    m = mmap.mmap(fd, 0)
    warm(n)
    m[0:2] = b"ho"
    assert there(n, 8192).st_mtime > 1000
    do("test \"$(head -c 2 /workspace/%s)\" = ho" % n)
    m.close()
    os.close(fd)


def change_handed(do, n):
    """A shell has it open for both, and hands it to a command that maps it: nobody opens it."""
    do("head -c 8192 /dev/zero > /workspace/%s; touch -d @5 /workspace/%s" % (n, n))
    by_exec("exec 7<>/workspace/%s" % n)
    warm(n)
    by_exec("python3 -c \"import mmap; m = mmap.mmap(7, 0); m[0:2] = b'hi'; m.flush()\"")
    assert there(n, 8192).st_mtime > 1000
    by_exec("exec 7>&-")
    warm(n)
    do("touch -d @7 /workspace/%s" % n)
    assert there(n, 8192).st_mtime == 7


def change_mapped_closed(do, n):
    """A mapping made outside outlives its descriptor."""
    if "files passthrough" not in text(os.path.join(DEV, "status")):
        return
    path = os.path.join(W, n)
    do("head -c 8192 /dev/zero > /workspace/%s; touch -d @5 /workspace/%s" % (n, n))
    fd = os.open(path, os.O_RDWR)
    at = LIBC.mmap(None, 8192, mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_SHARED, fd, 0)
    os.close(fd)
    warm(n)
    ctypes.memmove(at, b"ho", 2)
    assert there(n, 8192).st_mtime > 1000
    assert LIBC.munmap(ctypes.c_void_p(at), 8192) == 0


CHANGES = [f for name, f in sorted(globals().items()) if name.startswith("change_")]


def over_9p(n):
    """Another front end: no command at all."""
    warm(n)
    fid = p9.walk_to("/dev/files/workspace")
    p9.lcreate(fid, n, os.O_RDWR, 0o644)
    there(n, 0)
    warm(n)
    p9.write(fid, 0, b"over 9P")
    there(n, 7)
    warm(n)
    p9.clunk(fid)
    dir = p9.walk_to("/dev/files/workspace")
    warm(n + ".n")
    p9.renameat(dir, n, dir, n + ".n")
    gone(n)
    there(n + ".n", 7)
    p9.unlinkat(dir, n + ".n", 0)
    gone(n + ".n")
    p9.mkdir(dir, n)
    assert os.path.isdir(os.path.join(W, n))
    p9.unlinkat(dir, n, 0x200)
    gone(n)
    p9.clunk(dir)


for i in range(ROUNDS):
    for change in CHANGES:
        change(rng.choice(WAYS), "n%d%s" % (i, change.__name__[7:]))
    over_9p("p%d" % i)
    if i % 10 == 9:
        by_exec("rm -rf /workspace/*")
        assert os.listdir(W) == []
