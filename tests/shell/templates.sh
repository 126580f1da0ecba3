#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Templates: import of a directory and of archives, good and damaged.
. "$(dirname "$0")/lib.sh"
require busybox tar python3
start_cubefs
T=$MNT/backends/local/templates

wait_for 20 test -d "$T/host"
check_match "$(cat "$T/host/status")" 'state ready'
expect_errno EEXIST mkdir "$T/host"
expect_errno EINVAL mkdir "$T/a b"

mkdir -p "$WORK/root/bin" "$WORK/root/etc"
cp "$(command -v busybox)" "$WORK/root/bin/busybox"
for name in sh cat ls echo id pwd sleep; do ln -s busybox "$WORK/root/bin/$name"; done
echo tiny >"$WORK/root/etc/name"
echo 'root:x:0:0::/root:/bin/sh' >"$WORK/root/etc/passwd"

import() { # NAME SOURCE
	mkdir "$T/$1"
	put "$T/$1/ctl" "import $2"
	check_eq "$(field "$T/$1/status" state)" ready "state of $1"
}

use() { # NAME
	sandbox "s-$1" "template=$1"
	check_eq "$(run "s-$1" 'cat /etc/name; id -u; pwd')" $'tiny\n0\n/workspace'
	rmdir "$MNT/s-$1"
}

import dir "$WORK/root"; use dir
tar -C "$WORK/root" -cf "$WORK/t.tar" .; import tar "$WORK/t.tar"; use tar
gzip -k "$WORK/t.tar"; import gz "$WORK/t.tar.gz"; use gz
check_match "$(cat "$T/gz/info")" 'fingerprint sha256:[0-9a-f]{64}'
check_match "$(cat "$T/gz/info")" "source $WORK/t.tar.gz"
[ -s "$T/gz/log" ] || fail 'no log of the import'
# again with the same content is nothing
put "$T/gz/ctl" "import $WORK/t.tar.gz"
check_eq "$(field "$T/gz/status" state)" ready

# a sandbox outlives nothing: a template in use is not removed
sandbox user template=dir
expect_errno EBUSY rmdir "$T/dir"
rmdir "$MNT/user"
wait_for 10 rmdir "$T/dir"
check_not test -e "$T/dir"
expect_error ENOENT "$MNT/error" dir bash -c "echo 'create x template=dir' >'$MNT/ctl'"

# damaged, hostile: refused with a sentence, nothing left
python3 - "$WORK" <<'E2'
import io, sys, tarfile
def make(name, *members):
    with tarfile.open(f'{sys.argv[1]}/{name}.tar', 'w') as t:
        for m, data in members:
            if data is not None: m.size = len(data)
            t.addfile(m, io.BytesIO(data) if data is not None else None)
def entry(name, type=tarfile.REGTYPE, link=''):
    m = tarfile.TarInfo(name); m.type = type; m.linkname = link; m.mode = 0o755
    return m
ok = (entry('bin/sh'), b'x')
make('dotdot', ok, (entry('../../outside'), b'bad'))
make('inner', ok, (entry('a/../../outside'), b'bad'))
make('absolute', ok, (entry(f'{sys.argv[1]}/outside'), b'bad'))
make('through', ok, (entry('l', tarfile.SYMTYPE, sys.argv[1]), None), (entry('l/outside'), b'bad'))
make('hard', ok, (entry('h', tarfile.LNKTYPE, '../../../../../../etc/passwd'), None))
make('device', ok, (entry('d', tarfile.CHRTYPE), None))
data = open(f'{sys.argv[1]}/t.tar', 'rb').read()
open(f'{sys.argv[1]}/cut.tar', 'wb').write(data[:len(data) // 2])
open(f'{sys.argv[1]}/noise.tar', 'wb').write(bytes(range(256)) * 40)
open(f'{sys.argv[1]}/cut.tar.gz', 'wb').write(open(f'{sys.argv[1]}/t.tar.gz', 'rb').read()[:3000])
E2
for bad in dotdot.tar inner.tar absolute.tar through.tar hard.tar cut.tar noise.tar cut.tar.gz; do
	name=bad-${bad%%.*}-${#bad}
	mkdir "$T/$name"
	if echo "import $WORK/$bad" >"$T/$name/ctl" 2>/dev/null; then fail "imported $bad"; fi
	check_match "$(field "$T/$name/status" state)" '^(error|none)$'
	check_match "$(tail -n 1 "$MNT/error")" ': E[A-Z]+: .+'
	rmdir "$T/$name"
done
check_not test -e "$WORK/outside"
# a device is no part of a template: it is left out or refused, never made
mkdir "$T/device"
echo "import $WORK/device.tar" >"$T/device/ctl" 2>/dev/null || true
rmdir "$T/device"

# wrong sources
mkdir "$T/w"
expect_error ENOENT "$MNT/error" nothere bash -c "echo 'import $WORK/nothere' >'$T/w/ctl'"
expect_errno EINVAL bash -c "echo 'import relative/path' >'$T/w/ctl'"
expect_errno EINVAL bash -c "echo 'import' >'$T/w/ctl'"
expect_error EINVAL "$MNT/error" nonsense bash -c "echo 'nonsense' >'$T/w/ctl'"
# what failed says so to the next daemon too, and until it is made after all
expect_errno ENOENT put "$T/w/ctl" "import $WORK/nothere"
stop_cubefs
start_cubefs
wait_for 20 grep -q '^reachable yes' "$MNT/backends/local/status"
check_eq "$(field "$T/w/status" state)" error
check_match "$(cat "$T/w/status")" nothere
put "$T/w/ctl" "import $WORK/root"
stop_cubefs
start_cubefs
wait_for 20 eval '[ "$(field "$T/w/status" state)" = ready ]'
check_not grep -q nothere "$T/w/status"
rmdir "$T/w"

# a template without a shell says so
mkdir -p "$WORK/noshell/etc"; mkdir "$T/noshell"
put "$T/noshell/ctl" "import $WORK/noshell"
check_match "$(cat "$T/noshell/info")" 'runs no .*sh'
rmdir "$T/noshell"
