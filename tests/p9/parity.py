# SPDX-License-Identifier: Apache-2.0
"""Front-end parity: parity.py MOUNT ADDRESS DIALECT. Runs one script of operations in a sandbox through the mount,
and in another one through 9P, and compares what each operation gave, line by line. Both sandboxes are there and
new, called `fuse` and `nine`. What a dialect cannot say is left out on both sides; 9P2000 has no numbers of errors,
so that only the fact is compared. Prints the lines that differ; ends with how many were the same."""
import errno
import os
import sys

import fronts

KINDS = {"9P2000.L": fronts.Nine, "9P2000.u": fronts.Old, "9P2000": fronts.Plain}
LONG = "n" * 256
BLOCK = bytes(range(256)) * 1200


def steps(box):
    """Operation and arguments. In the order of the text: each may use what those before it made."""
    files, work = f"{box}/files", f"{box}/files/workspace"
    yield from root_steps(box)
    yield from fixed_steps(box)
    yield from command_steps(box)
    yield from job_steps(box)
    yield from data_steps(work)
    yield from name_steps(work, files)
    yield from attribute_steps(work)
    yield from checkpoint_steps(box)


def root_steps(box):
    yield "ls", ""
    yield "kinds", ""
    yield "cat", "README"
    yield "cat", "nothing"
    yield "cat", "README/below"
    yield "stat", "README"
    yield "stat", "ctl"
    yield "stat", ""
    yield "put", "README", b"x"
    yield "put", "ctl", b"frobnicate\n"
    yield "put", "ctl", b"create .bad\n"
    yield "mkdir", "bad name"
    yield "mkdir", LONG
    yield "mkdir", "ctl"
    yield "rmdir", "volumes"
    yield "unlink", "volumes"
    yield "rmdir", "ctl"
    yield "rename", "README", "README2"
    yield "chmod", "README", 0o777
    yield "symlink", "x", "link"
    yield "create", "file", 0o644
    yield "ls", "backends"
    yield "ls", "backends/local"
    yield "kinds", "backends/local"


def fixed_steps(box):
    yield "ls", box
    yield "kinds", box
    for name in ("ctl", "exec", "exit", "error", "jobs", "checkpoints", "files", "workspace", "env", "events"):
        yield "stat", f"{box}/{name}"
    yield "cat", f"{box}/exit"
    yield "cat", f"{box}/error"
    yield "put", f"{box}/ctl", b"frobnicate\n"
    yield "put", f"{box}/ctl", b"set nokey=1\n"
    yield "put", f"{box}/ctl", b"set pids=many\n"
    yield "put", f"{box}/status", b"x"
    yield "open", f"{box}/jobs", os.O_WRONLY
    yield "open", f"{box}/jobs", os.O_RDONLY | os.O_DIRECTORY
    yield "open", f"{box}/ctl", os.O_RDONLY | os.O_DIRECTORY
    yield "unlink", f"{box}/ctl"
    yield "rename", f"{box}/ctl", f"{box}/ctl2"
    yield "chmod", f"{box}/ctl", 0o600
    yield "create", f"{box}/other", 0o644
    yield "put", f"{box}/env", b"GREETING=hello\n"
    yield "cat", f"{box}/env"
    yield "put", f"{box}/env", b"not a line\n"


def command_steps(box):
    for text in (b"echo hello; echo low >&2; exit 3\n", b"echo $GREETING\n", b"pwd\n", b"head -c 300000 /dev/zero\n",
                 b"cd /tmp", b"pwd", b"kill -9 $$\n", b"nosuch 2>/dev/null\n"):
        yield "put", f"{box}/exec", text
        yield "cat", f"{box}/exec"
        yield "cat", f"{box}/exit"
    yield "put", f"{box}/exec", b"nul\0\n"
    yield "put", f"{box}/exec", b""
    yield "channel", f"{box}/exit"


def job_steps(box):
    jobs = f"{box}/jobs"
    yield "mkdir", f"{jobs}/one"
    yield "mkdir", f"{jobs}/one"
    yield "mkdir", f"{jobs}/.hidden"
    yield "ls", f"{jobs}/one"
    yield "put", f"{jobs}/one/stdin", b"input\n"
    yield "put", f"{jobs}/one/cmd", b"cat; echo err >&2; exit 7\n"
    yield "channel", f"{jobs}/one/exit"
    yield "cat", f"{jobs}/one/stdout"
    yield "cat", f"{jobs}/one/stderr"
    yield "cat", f"{jobs}/one/exit"
    yield "put", f"{jobs}/one/cmd", b"again\n"
    yield "put", f"{jobs}/one/ctl", b"kill\n"
    yield "rmdir", f"{jobs}/one"
    yield "cat", f"{jobs}/one/exit"
    yield "mkdir", f"{box}/sessions/s"
    yield "put", f"{box}/sessions/s/exec", b"echo in s\n"
    yield "cat", f"{box}/sessions/s/exec"
    yield "rmdir", f"{box}/sessions/s"
    yield "ls", f"{box}/sessions"


def data_steps(work):
    yield "create", f"{work}/f", 0o640
    yield "create", f"{work}/f", 0o640
    yield "stat", f"{work}/f"
    yield "put", f"{work}/f", BLOCK
    yield "cat", f"{work}/f"
    yield "part", f"{work}/f", 255, 3
    yield "part", f"{work}/f", len(BLOCK) - 2, 10
    yield "part", f"{work}/f", len(BLOCK) + 5, 10
    yield "put", f"{work}/f", b"middle", 0, 1000
    yield "part", f"{work}/f", 998, 12
    yield "put", f"{work}/f", b"far", 0, 1 << 20
    yield "stat", f"{work}/f"
    yield "part", f"{work}/f", (1 << 20) - 2, 8
    yield "truncate", f"{work}/f", 5
    yield "cat", f"{work}/f"
    yield "truncate", f"{work}/f", 9
    yield "cat", f"{work}/f"
    yield "truncate", work, 0
    yield "cat", work
    yield "put", work, b"x"
    yield "put", f"{work}/f", b""
    yield "stat", f"{work}/f"
    yield "put", f"{work}/nothing", b"x"
    yield "locked", f"{work}/f"


def name_steps(work, files):
    yield "mkdir", f"{work}/d", 0o700
    yield "stat", f"{work}/d"
    yield "mkdir", f"{work}/d"
    yield "mkdir", f"{work}/no/d"
    yield "mkdir", f"{work}/f/d"
    yield "create", f"{work}/d/{LONG[:255]}", 0o644
    yield "create", f"{work}/d/{LONG}", 0o644
    yield "ls", f"{work}/d"
    yield "rmdir", f"{work}/d"
    yield "unlink", f"{work}/d/{LONG[:255]}"
    yield "rename", f"{work}/f", f"{work}/g"
    yield "rename", f"{work}/f", f"{work}/h"
    yield "symlink", "g", f"{work}/s"
    yield "readlink", f"{work}/s"
    yield "readlink", f"{work}/g"
    yield "stat", f"{work}/s"
    yield "symlink", "/etc/hostname", f"{work}/absolute"
    yield "readlink", f"{work}/absolute"
    yield "symlink", "../../../../../etc", f"{work}/out"
    yield "readlink", f"{work}/out"
    yield "symlink", "x", f"{work}/s"
    yield "link", f"{work}/g", f"{work}/hard"
    yield "stat", f"{work}/hard"
    yield "link", f"{work}/d", f"{work}/harddir"
    yield "mknod", f"{work}/pipe", 0o10644
    yield "stat", f"{work}/pipe"
    yield "kinds", work
    yield "unlink", f"{work}/pipe"
    yield "unlink", f"{work}/s"
    yield "unlink", f"{work}/s"
    yield "rmdir", f"{work}/g"
    yield "create", f"{work}/unicode-\u00e9-\u65e5 and blanks", 0o600
    yield "ls", work
    yield "ls", files
    yield "rename", f"{work}/g", f"{work}/d/g"
    yield "rename", f"{work}/d", f"{work}/d/below"
    yield "rename", f"{work}/d/g", "README"
    yield "ls", f"{work}/d"


def attribute_steps(work):
    yield "create", f"{work}/a", 0o600
    yield "chmod", f"{work}/a", 0o751
    yield "stat", f"{work}/a"
    yield "chmod", f"{work}/nothing", 0o600
    yield "utime", f"{work}/a", 1000000000, 0
    yield "mtime", f"{work}/a"
    yield "chown", f"{work}/a", 1, 1
    yield "stat", f"{work}/a"
    yield "setxattr", f"{work}/a", "user.note", b"value\0\xff"
    yield "getxattr", f"{work}/a", "user.note"
    yield "setxattr", f"{work}/a", "user.note", b"again", 1
    yield "setxattr", f"{work}/a", "user.other", b"x", 2
    yield "xattrs", f"{work}/a"
    yield "getxattr", f"{work}/a", "user.none"
    yield "statfs", work
    yield "statfs", ""


def checkpoint_steps(box):
    points = f"{box}/checkpoints"
    yield "create", f"{box}/files/workspace/kept", 0o644
    yield "put", f"{box}/files/workspace/kept", b"then\n"
    yield "mkdir", f"{points}/then"
    yield "mkdir", f"{points}/then"
    yield "ls", points
    yield "ls", f"{points}/then"
    yield "put", f"{box}/files/workspace/kept", b"now\n"
    yield "cat", f"{points}/then/files/workspace/kept"
    yield "put", f"{points}/then/files/workspace/kept", b"x"
    yield "create", f"{points}/then/files/workspace/new", 0o644
    yield "mkdir", f"{points}/then/files/workspace/new"
    yield "unlink", f"{points}/then/files/workspace/kept"
    yield "put", f"{box}/ctl", b"restore then\n"
    yield "cat", f"{box}/files/workspace/kept"
    yield "rename", f"{points}/then", f"{points}/later"
    yield "ls", points
    yield "rmdir", f"{points}/later"
    yield "ls", points


def plain(value):
    text = repr(value) if isinstance(value, bytes) else str(value)
    return text if len(text) < 400 else f"{len(text)} {hash(text)}"


def run(front, box, step, numbers):
    what, *arguments = step
    try:
        value = getattr(front, what)(*arguments)
    except OSError as error:
        return f"refused {errno.errorcode.get(error.errno, error.errno)}" if numbers else "refused"
    if isinstance(value, bytes):
        value = value.replace(box.encode(), b"BOX")
    return plain(value)


def old_can(kind, step):
    """An older dialect has the call, and what it gives is what system calls give."""
    what, *arguments = step
    if what == "rename" and os.path.dirname(arguments[0]) != os.path.dirname(arguments[1]):
        return False
    return getattr(kind, what) is not None and what != "stat"


def main():
    mount, address, dialect = sys.argv[1:]
    kind = KINDS[dialect]
    fuse, nine = fronts.Fuse(mount), kind(address)
    numbers, full = dialect != "9P2000", dialect == "9P2000.L"
    same = different = 0
    for step, twin in zip(steps("fuse"), steps("nine"), strict=True):
        if not full and not old_can(kind, step):
            continue
        got, expected = run(nine, "nine", twin, numbers), run(fuse, "fuse", step, numbers)
        if got == expected:
            same += 1
            continue
        different += 1
        print(f"{' '.join(str(part)[:80] for part in twin)}: 9P {got}, FUSE {expected}")
    print(f"{same} the same, {different} different")
    return 1 if different or same < 80 else 0


if __name__ == "__main__":
    sys.exit(main())
