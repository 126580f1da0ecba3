# SPDX-License-Identifier: Apache-2.0
# Inside a sandbox, against whoever looks at it from outside: a directory and a link that change places, a file and a
# link, and a directory that is moved up and down below a link that leads up. race.py CANARY: the directory of the host
# that all the links mean. Runs until it is killed; counts in `swaps`.
import ctypes, os, sys

libc = ctypes.CDLL(None, use_errno=True)
canary = sys.argv[1]


def exchange(a, b):
    if libc.renameat2(-100, a.encode(), -100, b.encode(), 2) != 0:  # RENAME_EXCHANGE
        raise OSError(ctypes.get_errno(), a)


def plant(path, text='inside\n'):
    with open(path, 'w') as f:
        f.write(text)


os.umask(0)
os.makedirs('race/walk/dir/sub')
os.chdir('race')
plant('walk/dir/secret')
plant('walk/dir/sub/secret')
os.symlink(canary, 'link')
os.symlink('../' * 20 + canary[1:], 'up')
plant('walk/file')
os.symlink(canary + '/secret', 'filelink')
# the same depth as the canary has below the root, seen from deep and from high
os.makedirs('walk/a/b/c/d/e')
for n, place in enumerate(('walk/a', 'walk/a/b', 'walk/a/b/c', 'walk/a/b/c/d/e')):
    os.symlink('../' * (n + 3) + canary[1:], place + '/rise')
n = 0
swaps = os.open('swaps', os.O_WRONLY | os.O_CREAT)
while True:
    exchange('walk/dir', 'link')
    exchange('walk/file', 'filelink')
    exchange('link', 'walk/dir')
    exchange('up', 'walk/dir')
    os.rename('walk/a/b/c', 'walk/high')
    exchange('walk/dir', 'up')
    exchange('filelink', 'walk/file')
    os.rename('walk/high', 'walk/a/b/c')
    n += 1
    os.pwrite(swaps, b'%-12d' % n, 0)  # all of it at once
