#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A short disk: who fills it is paused, the neighbour stays well, and it goes on when there is room. A fork bomb, a
# memory hog and a disk hog at once.
. "$(dirname "$0")/lib.sh"

if [ "$TEST_UID" -eq 0 ] && command -v mkfs.ext4 >/dev/null; then
	# a disk of its own, which the test can fill
	truncate -s 700M "$WORK/disk"
	mkfs.ext4 -q -F "$WORK/disk"
	mkdir "$STATE"
	mount -o loop "$WORK/disk" "$STATE"
	on_exit umount -l "$STATE"
	small=yes
else
	small=
fi
printf '[daemon]\ndisk_percent=0\ndisk_reserve=0\n' >"$WORK/conf"
start_cubefs --config "$WORK/conf"
can() { grep -qE "^capabilities.* $1( |$)" "$MNT/backends/local/status"; }
can pause || skip 'nothing can be paused here'

expect_error EINVAL "$MNT/error" 'disk_percent=91' bash -c "echo 'set disk_percent=91' >'$MNT/ctl'"
expect_error EINVAL "$MNT/error" 'disk_reserve=much' bash -c "echo 'set disk_reserve=much' >'$MNT/ctl'"

sandbox good
sandbox hog
H=$MNT/hog
mkdir "$H/jobs/fill"
put "$H/jobs/fill/cmd" 'while :; do head -c 4000000 /dev/zero >>/workspace/big; sleep 0.1; done'
wait_for 30 test -s "$H/workspace/big"
if [ -n "$small" ]; then
	put "$MNT/ctl" 'set disk_reserve=300M'
else
	put "$MNT/ctl" 'set disk_reserve=1024T'
fi
put "$H/ctl" 'wait paused 120'
check_eq "$(field "$H/status" reason)" disk
check grep -q 'ENOSPC: paused: it wrote .* while the disk that holds the state has .* MiB free' "$H/error"
check_eq "$(run good 'echo note >note; cat note')" note
state_is good running
expect_error EHOSTDOWN "$H/error" 'the disk that holds the state is short' bash -c "echo true >'$H/exec'"

# its user looks after it: it is not paused again while it does not write
put "$H/ctl" resume
put "$H/jobs/fill/ctl" 'kill KILL'
check_eq "$(cat <>"$H/jobs/fill/exit")" 137
mkdir "$H/jobs/again"
put "$H/jobs/again/cmd" 'while :; do head -c 4000000 /dev/zero >>/workspace/big; sleep 0.1; done'
put "$H/ctl" 'wait paused 120'
check_eq "$(field "$H/status" reason)" disk

# room again: it goes on by itself
if [ -n "$small" ]; then
	: >"$H/workspace/big" # (a frozen process may have it open)
else
	put "$MNT/ctl" 'set disk_reserve=0'
fi
put "$H/ctl" 'wait running 120'
put "$H/jobs/again/ctl" 'kill KILL'
rm -f "$H/workspace/big"

# all at once
if [ -n "$small" ]; then
	put "$H/ctl" 'wait running 60'
	mkdir "$H/jobs/third"
	put "$H/jobs/third/cmd" 'while :; do head -c 4000000 /dev/zero >>/workspace/big; sleep 0.1; done'
	if can pids; then
		sandbox bomb pids=60
		mkdir "$MNT/bomb/jobs/bomb"
		put "$MNT/bomb/jobs/bomb/cmd" 'b() { b | b & b; }; b'
	fi
	if can memory; then
		sandbox eater memory=64M
		mkdir "$MNT/eater/jobs/eat"
		put "$MNT/eater/jobs/eat/cmd" 'while :; do head -c 200000000 /dev/zero | tail -c 150000000 >/dev/null; done'
	fi
	put "$H/ctl" 'wait paused 120'
	for n in 1 2 3 4 5; do
		check_eq "$(run good "echo $n >n; cat n")" "$n"
	done
	state_is good running
	for name in bomb eater; do
		[ ! -e "$MNT/$name" ] || timeout 60 rmdir "$MNT/$name" || fail "$name cannot be destroyed"
	done
fi
rmdir "$H" "$MNT/good"
stop_cubefs
