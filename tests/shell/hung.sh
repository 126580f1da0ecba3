#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A worker that hangs is replaced, what it was at is in a file, and nobody sees an error; `canary=0` keeps it.
. "$(dirname "$0")/lib.sh"
allow_log 'warning supervise the worker has not answered for [0-9]+ seconds and is ended: [^ ]*/hung.1 says'
allow_log 'warning supervise the worker ended \(signal 9\): another one takes over'
HELD=$CUBEFS_BUILD_DIR/tests/shell/cubefs-held
cubefs() {
	if [ "$1" = -f ]; then
		CUBEFS_AGENT=$CUBEFS_BUILD_DIR/cube-init exec "$HELD" "$@" # in the background: a shell of its own
	else
		command cubefs "$@"
	fi
}
mkdir "$WORK/config"
printf '[daemon]\ncanary = 2\n' >"$WORK/config/cubefs.conf"
start_cubefs --config "$WORK/config/cubefs.conf"
sandbox dev
D=$MNT/dev
F=$D/files/tmp
check_eq "$(field "$MNT/ctl" canary)" 2

# What is under way while it hangs: a waiting channel, an open file, a command, names that come.
begin() {
	wait_for 30 one_worker
	old=$WORKER
	exec 5>>"$F/appended"
	exec 6<>"$D/exec"
	echo 'i=0; while [ $i -lt 30 ]; do i=$((i + 1)); echo "line $i"; sleep 0.05; done' >&6
	cat <&6 >"$WORK/lines" &
	reader=$!
	put "$D/exec" 'sleep 0.5; echo ran >>/tmp/ran' &
	runner=$!
}
verify() { # HOW OFTEN
	wait_for 60 new_worker "$old"
	check wait "$reader"
	check wait "$runner"
	echo "$1" >&5
	exec 5>&- 6>&-
	check_eq "$(cat "$WORK/lines")" "$(for i in $(seq 30); do echo "line $i"; done)" 'lines of a channel'
	check_eq "$(cat "$F/ran")" "$(for _ in $(seq "$1"); do echo ran; done)" 'how often it ran'
	check_eq "$(cat "$F/appended")" "$(seq "$1")" 'the appended file'
	check_match "$(tail -n 1 "$MNT/error")" 'ETIMEDOUT: the worker did not answer for [2-9] seconds.*/hung.1 says'
	check_match "$(head -n 1 "$STATE/hung.1")" "process $old, has not answered for [2-9] s"
	check_eq "$(stat -c %a "$STATE/hung.1")" 600
	check grep -qE '^  comm: cubefs' "$STATE/hung.1"
}

# ---- all threads stand still ----

begin
kill -STOP "$old"
verify 1

# ---- the lock is held: threads serve, and get nowhere ----

begin
: >"$WORK/hold"
put "$MNT/ctl" "set hold=$WORK/hold"
verify 2
check test -e "$STATE/hung.2"
# Where the threads are was said by them: one is where the lock is held.
check grep -qE '\(pause\+0x' "$STATE/hung.1"

# ---- no more files than so many ----

for n in 3 4; do
	begin
	kill -STOP "$old"
	verify $n
done
check_eq "$(ls "$STATE" | grep '^hung' | tr '\n' ' ')" 'hung.1 hung.2 hung.3 '

# ---- off: whoever looks at it with a debugger is not in a hurry ----

expect_error EINVAL "$MNT/error" 'canary=.*0 to 86400' put "$MNT/ctl" 'set canary=86401'
put "$MNT/ctl" 'set canary=0'
wait_for 30 one_worker
old=$WORKER
# All of its threads: they stop one after the other, and have to go on whatever comes of this.
all_stopped() {
	local left
	left=$(grep -L '^State:.T' /proc/"$old"/task/*/status || true)
	[ -z "$left" ]
}
on_exit eval "kill -CONT $old 2>/dev/null || true"
kill -STOP "$old"
wait_for 30 all_stopped
timeout 6 stat "$MNT/list" >/dev/null && fail 'a stopped worker answers'
check kill -0 "$old"
kill -CONT "$old"
check_eq "$(run dev 'echo on')" on
check_eq "$(worker)" "$old" 'the worker'
