# SPDX-License-Identifier: Apache-2.0
"""EntryInfo of a path."""
import datetime
import grp
import os
import pwd
import stat

PREFIX = "user.e2b."
LETTERS = ((stat.S_ISDIR, "d"), (stat.S_ISLNK, "L"), (stat.S_ISBLK, "D"), (stat.S_ISCHR, "Dc"), (stat.S_ISFIFO, "p"),
           (stat.S_ISSOCK, "S"))
BITS = ((stat.S_ISUID, "u"), (stat.S_ISGID, "g"), (stat.S_ISVTX, "t"))


def permissions(mode):
    text = "".join(letter for test, letter in LETTERS if test(mode)) + "".join(letter for bit, letter in BITS if mode & bit)
    return (text or "-") + "".join(letter if mode >> (8 - i) & 1 else "-" for i, letter in enumerate("rwxrwxrwx"))


def name_of(look_up, number):
    try:
        return look_up(number)[0]
    except KeyError:
        return str(number)


def rfc3339(ns):
    whole, rest = divmod(ns, 10**9)
    text = datetime.datetime.fromtimestamp(whole, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S")
    for digits in (9, 6, 3):
        if rest % 10 ** (12 - digits) or digits == 3:
            break
    return text + (f".{rest:09d}"[:digits + 1] if rest else "") + "Z"


def kind_of(mode):
    if stat.S_ISREG(mode):
        return "FILE_TYPE_FILE"
    return "FILE_TYPE_DIRECTORY" if stat.S_ISDIR(mode) else None


def metadata(path):
    try:
        names = [name for name in os.listxattr(path, follow_symlinks=False) if name.startswith(PREFIX)]
        return {name[len(PREFIX):]: os.getxattr(path, name, follow_symlinks=False).decode() for name in names}
    except OSError:
        return {}


def info(path):
    """The message; OSError. Zero values are left out, as proto3's JSON has it."""
    own = target = os.lstat(path)
    link = None
    if stat.S_ISLNK(own.st_mode):
        try:
            target, link = os.stat(path), os.path.realpath(path)
        except OSError:
            target, link = None, path
    message = {
        "name": os.path.basename(path.rstrip("/")) or "/", "type": kind_of(target.st_mode) if target else None, "path": path,
        "size": str(own.st_size) if own.st_size else None, "mode": target.st_mode & 0o777 if target else 0,
        "permissions": permissions(own.st_mode), "owner": name_of(pwd.getpwuid, own.st_uid),
        "group": name_of(grp.getgrgid, own.st_gid), "modifiedTime": rfc3339(own.st_mtime_ns), "symlinkTarget": link,
        "metadata": metadata(path),
    }
    return {key: value for key, value in message.items() if value}
