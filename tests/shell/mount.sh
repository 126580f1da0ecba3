#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Mounting and what can be wrong about it.
. "$(dirname "$0")/lib.sh"
require python3

refused() { # REGEX OPTION...: does not start, and says why
	local regex=$1 out
	shift
	if out=$(timeout 60 cubefs --state "$STATE" "$@" 2>&1); then fail "started: $*"; fi
	check_match "$out" "$regex" "message for $*"
	check_match "$out" '^cubefs: ' "message for $*"
	check_eq "$(wc -l <<<"$out")" 1 'lines of the message'
}

# the mount point: made if missing, a missing parent, a file, not empty, already mounted
refused "$WORK/no/such.*" "$WORK/no/such"
echo x >"$WORK/afile"
refused 'afile.*not a directory' "$WORK/afile"
mkdir "$WORK/full"; touch "$WORK/full/x"
refused 'full.*not empty' "$WORK/full"
refused 'unknown option|no such option' -o nonsense "$WORK/x"
refused 'unknown option|no such option|--nonsense' --nonsense "$WORK/x"
refused 'mount ?point' --state "$STATE"
echo '[nonsense' >"$WORK/bad.conf"
refused 'bad.conf.*1' --config "$WORK/bad.conf" "$WORK/x"
printf '[backend x]\nkind=nosuch\n' >"$WORK/bad.conf"
refused 'nosuch' --config "$WORK/bad.conf" "$WORK/x"
printf '[backend local]\nnonsense=1\n' >"$WORK/bad.conf"
refused 'nonsense' --config "$WORK/bad.conf" "$WORK/x"
refused 'nothere' --config "$WORK/nothere" "$WORK/x"

# what a later cubefs has written, and what has no number: left as it is
mkdir "$WORK/later"
for number in 4711 0 4x '' "$(seq -s '' 99)"; do
	put "$WORK/later/format" "$number"
	regex='later/format has no number.*write 1 into it'
	[ "$number" != 4711 ] || regex='later was written by a later cubefs \(format 4711; .*another directory with --state'
	refused "$regex" --state "$WORK/later" "$WORK/x"
	check_eq "$(cat "$WORK/later/format")" "$number" 'the number'
done
check_eq "$(ls "$WORK/later")" $'format\nlock' 'the state directory that was refused'

# to the background: usable when the command returns
cubefs --state "$STATE" "$MNT" >"$WORK/out" 2>&1
check_eq "$(cat "$WORK/out")" ''
check_match "$(head -n 1 "$MNT/README")" cubefs
check_eq "$(cat "$STATE/format")" 1 'the format of the state'
check_eq "$(findmnt -no FSTYPE "$MNT")" fuse.cubefs
refused "(mnt|$STATE).*(already|in use|another)" "$MNT"
STATE2=$STATE; STATE=$WORK/state2 refused 'mnt.*(already|mounted)' --state "$WORK/state2" "$MNT"
STATE=$STATE2
cubefs umount "$MNT"
check_not is_mounted "$MNT"
expect_out=$(cubefs umount "$MNT" 2>&1) && fail 'umount of nothing succeeded'
check_match "$expect_out" 'no cubefs is mounted'

# again at once: the state is free when umount returned; fusermount3 -u ends the daemon too
start_cubefs
fusermount3 -u "$MNT"
wait_for 20 daemon_ended "$CUBEFS_PID"
PID_OF[$MNT]=

# busy: said, and not forced
start_cubefs
( cd "$MNT" && exec sleep 100 ) & holder=$!
sleep 0.2
out=$(cubefs umount "$MNT" 2>&1) && fail 'umount of a busy mount succeeded'
check_match "$out" 'busy|in use'
kill $holder; wait $holder 2>/dev/null || true
stop_cubefs

# a mount that is dead from an earlier crash is replaced
start_cubefs
wait_for 60 grep -qs "^version" "$MNT/ctl" # all its processes are there
pid=$CUBEFS_PID
mapfile -t pids < <(daemon_pids "$pid")
kill -KILL "${pids[@]}"
wait "$pid" 2>/dev/null || true
PID_OF[$MNT]=
start_cubefs
# The dead one is listed as a mount too, and its README may still be in the cache: what is read is asked for.
wait_for 60 grep -qs "^version" "$MNT/ctl"
stop_cubefs

# no fuse device for us, no state directory for us
if [ "$TEST_UID" -ne 0 ]; then
	refused '/proc/nothere|state' --state /proc/nothere "$WORK/x"
fi
check_match "$(cubefs --version)" '^cubefs [0-9]+\.[0-9]+'
check_match "$(cubefs --help)" 'cubefs .*MOUNTPOINT'
