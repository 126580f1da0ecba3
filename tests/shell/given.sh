#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A mount that is given up, since worker after worker ended, ends for all who use it, even where something goes on to have
# the kernel's end of it.
. "$(dirname "$0")/lib.sh"
[ "$TEST_UID" -eq 0 ] || [ -n "$(ls -A /sys/fs/fuse/connections 2>/dev/null)" ] || skip 'fusectl is not mounted'
allow_log 'warning supervise the worker ended \((signal 9|signal 6)\): another one takes over'
allow_log 'error supervise (8 workers in a row ended at once|the (worker|supervisor) ended)'
allow_log 'warning keeper .* was in use and is detached'
cubefs() {
	if [ "$1" = -f ]; then
		CUBEFS_AGENT=$CUBEFS_BUILD_DIR/cube-init exec "$CUBEFS_BUILD_DIR/tests/shell/cubefs-given" "$@"
	else
		command cubefs "$@"
	fi
}
release() { [ ! -s "$STATE/give-up" ] || kill -KILL "$(cat "$STATE/give-up")"; }
on_exit release
start_cubefs
check_eq "$(ls "$MNT/backends")" local
: >"$STATE/give-up"
exec 5<"$MNT/list"
wait_for 30 one_worker
kill -KILL "$WORKER"
wait_for 30 test -s "$STATE/give-up"

# somebody waits for an answer that never comes
(LC_ALL=C exec cat <&5) >"$WORK/out" 2>&1 &
reader=$!
wait_for 60 daemon_ended "$CUBEFS_PID"
code=0
wait "$CUBEFS_PID" || code=$?
check_not [ "$code" -eq 0 ]
PID_OF[$MNT]=
check_not is_mounted "$MNT"
check kill -0 "$(cat "$STATE/give-up")" # it has the kernel's end still
wait_for 20 daemon_ended "$reader"
wait "$reader" && fail "a read gave: $(cat "$WORK/out")"
check_match "$(cat "$WORK/out")" 'Software caused connection abort|not connected'
if read -r -u 5 2>"$WORK/out"; then fail 'what was open can be read'; fi
exec 5<&-
check grep -q "8 workers in a row ended at once: the mount is given up" "$STATE/cubefs.log"
release
rm "$STATE/give-up"
