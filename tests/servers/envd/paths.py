# SPDX-License-Identifier: Apache-2.0
"""Users of a box and what paths mean for them."""
import os
import pwd

from base import rpc


def mapped(uid):
    """Whether the box has such an id: an ordinary user without a range has root alone."""
    with open("/proc/self/uid_map", encoding="ascii") as file:
        return any(int(first) <= uid < int(first) + int(count) for first, _, count in map(str.split, file))


def find_user(name):
    try:
        return pwd.getpwnam(name)
    except KeyError:
        raise rpc.Error("unauthenticated", f"invalid username: '{name}'") from None


def resolve(path, user, default=""):
    """An absolute path. @default: the box's default directory."""
    if not path:
        return default or user.pw_dir
    if path == "~" or path.startswith("~/"):
        return os.path.normpath(user.pw_dir + path[1:])
    if path.startswith("~"):
        raise rpc.Error("invalid_argument", f"cannot expand user-specific home dir: {path}")
    return path if path.startswith("/") else os.path.normpath(os.path.join(user.pw_dir, path))


def own(path, user):
    if mapped(user.pw_uid):
        os.chown(path, user.pw_uid, user.pw_gid)


def make_parents(path, user):
    """mkdir -p, of which the user owns what is made."""
    if os.path.isdir(path):
        return
    make_parents(os.path.dirname(path.rstrip("/")) or "/", user)
    os.mkdir(path, 0o755)
    own(path, user)
