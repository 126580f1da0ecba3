#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# disk=SIZE: who writes past it gets EDQUOT and nobody else notices; more while it runs; kept over stop, kill of the
# daemon and reset; a full one can be cleaned, renamed, stopped and started. Without quotas it is refused with the
# reason.
. "$(dirname "$0")/lib.sh"
start_cubefs
can() { ! grep -q "^missing $1 " "$MNT/backends/local/status"; }

for bad in disk= disk=lots disk=1000 disk=-1M disk=0; do
	expect_error EINVAL "$MNT/error" 'disk' bash -c "echo 'create x $bad' >'$MNT/ctl'"
done
check_not test -e "$MNT/x"

if ! can disk; then
	check_match "$(grep '^missing disk ' "$MNT/backends/local/status")" '^missing disk .+'
	expect_error EOPNOTSUPP "$MNT/error" 'disk' bash -c "echo 'create x disk=64M' >'$MNT/ctl'"
	expect_error EOPNOTSUPP "$MNT/error" 'store|quota' bash -c "echo 'create x disk=64M' >'$MNT/ctl'"
	check_not test -e "$MNT/x"
	sandbox dev
	check_eq "$(field "$MNT/dev/status" limit.disk)" 'none not kept'
	expect_error EOPNOTSUPP "$MNT/dev/error" 'store|quota' bash -c "echo 'set disk=64M' >'$MNT/dev/ctl'"
	check_eq "$(field "$MNT/dev/status" limit.disk)" 'none not kept'
	rmdir "$MNT/dev"
	stop_cubefs
	exit 0
fi

fill() { # NAME FILE: MiB that there was room for
	run "$1" "for i in \$(seq 200); do dd if=/dev/zero bs=1M count=1 status=none >>$2 || break; done; sync -f ." \
		>"$WORK/said" 2>&1 || true
	echo $(($(stat -c %s "$MNT/$1/workspace/$2") / 1048576))
}
between() { # NUMBER LOW HIGH
	[ "$1" -ge "$2" ] && [ "$1" -le "$3" ] || fail "$1 is not within $2 and $3"
}

sandbox small disk=64M
sandbox good
S=$MNT/small
check_eq "$(field "$S/status" limit.disk)" '67108864 kept by a quota'
check_eq "$(field "$MNT/good/status" limit.disk)" none
between "$(fill small big)" 40 64
check grep -q 'Disk quota exceeded' "$WORK/said"
expect_errno EDQUOT dd if=/dev/zero of="$S/workspace/more" bs=1M count=30 conv=fsync status=none # from outside
check_eq "$(fill good big)" 200 'the neighbour'
check_eq "$(run good 'cat </workspace/big | wc -c')" $((200 * 1048576))

# full: another name, its end and its start, and room again by rm
mv "$S" "$MNT/tiny"
S=$MNT/tiny
put "$S/ctl" stop
put "$S/ctl" start
between "$(fill tiny big)" 40 64
rm -f "$S/workspace/big" "$S/workspace/more"
between "$(fill tiny again)" 40 64

# more, while it runs; less than it has is no error
put "$S/ctl" 'set disk=128M'
check_eq "$(field "$S/status" limit.disk)" '134217728 kept by a quota'
between "$(fill tiny again)" 90 128
expect_errno EINVAL bash -c "echo 'set disk=much' >'$S/ctl'"
put "$S/ctl" 'set disk=2M'
expect_errno EDQUOT dd if=/dev/zero of="$S/workspace/more" bs=1M count=8 conv=fsync status=none
put "$S/ctl" 'set disk=128M'

# over the daemon's end, and over a start by the next one
kill_cubefs
start_cubefs
check_eq "$(field "$S/status" limit.disk)" '134217728 kept by a quota'
between "$(fill tiny again)" 90 128
check grep -q 'Disk quota exceeded' "$WORK/said"
put "$S/ctl" stop
stop_cubefs
start_cubefs
check_eq "$(field "$S/status" limit.disk)" '134217728 kept by a quota'
between "$(stat -c %s "$S/workspace/again")" 94371840 134217728
rm "$S/workspace/again" # stopped
put "$S/ctl" start
between "$(fill tiny big)" 90 128

# what it uses is what it is charged with
uses() { # NAME LOW
	cat "$MNT/$1/status" >/dev/null
	local n
	n=$(field "$MNT/$1/status" disk)
	[ "$n" != - ] && [ "$n" -ge "$2" ]
}
wait_for 60 uses tiny $((90 * 1048576))

# reset of a full one
run tiny 'rm /workspace/big; for i in $(seq 200); do dd if=/dev/zero bs=1M count=1 status=none >>/root/big || break; done' \
	>/dev/null 2>&1 || true
put "$S/ctl" reset
check_not test -e "$S/files/root/big"
between "$(fill tiny big)" 90 128

# a template's default, and what is asked for wins
if command -v busybox >/dev/null; then
	mkdir -p "$WORK/root/bin"
	cp "$(command -v busybox)" "$WORK/root/bin/busybox"
	for name in sh cat dd; do ln -s busybox "$WORK/root/bin/$name"; done
	T=$MNT/backends/local/templates/t
	mkdir "$T"
	put "$T/ctl" "import $WORK/root disk=32M"
	check_match "$(cat "$T/info")" $'disk 33554432'
	sandbox plain template=t
	check_eq "$(field "$MNT/plain/status" limit.disk)" '33554432 kept by a quota'
	expect_errno EDQUOT dd if=/dev/zero of="$MNT/plain/workspace/big" bs=1M count=64 conv=fsync status=none
	sandbox own template=t disk=100M
	check_eq "$(field "$MNT/own/status" limit.disk)" '104857600 kept by a quota'
	dd if=/dev/zero of="$MNT/own/workspace/big" bs=1M count=64 conv=fsync status=none
	rmdir "$MNT/plain" "$MNT/own"
	gone() { rmdir "$T" 2>/dev/null; }
	wait_for 10 gone
fi
rmdir "$S" "$MNT/good"
stop_cubefs
