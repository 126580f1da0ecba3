#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Auto-pause, what use is, life times and leases; over a daemon that is killed, too.
. "$(dirname "$0")/lib.sh"
start_cubefs
can() { grep -qE "^capabilities.* $1( |$)" "$MNT/backends/local/status"; }
column() { awk -v name="$1" -v n="$2" '$1 == name { print $n }' "$MNT/list"; } # NAME N
is_idle() { [ "$(field "$MNT/$1/status" idle_since)" != - ]; }
in_use() { ! is_idle "$1"; }
gone() { [ ! -e "$MNT/$1" ]; }
events_of() { grep -c "\"sandbox\":\"$1\",\"event\":\"$2\"" "$MNT/events" || true; } # NAME EVENT

# what is refused
sandbox dev
D=$MNT/dev
expect_error EINVAL "$MNT/error" 'idle=soon: seconds' bash -c "echo 'create x idle=soon' >'$MNT/ctl'"
expect_error EINVAL "$MNT/error" 'at_end=sleep: destroy, stop or pause' bash -c "echo 'create x at_end=sleep' >'$MNT/ctl'"
expect_error EINVAL "$D/error" 'lifetime=-1' bash -c "echo 'set lifetime=-1' >'$D/ctl'"
expect_error EINVAL "$D/error" 'yes or no' bash -c "echo 'set idle_background=2' >'$D/ctl'"
expect_error EINVAL "$D/error" 'renew: at least 1 second' bash -c "echo 'renew 0' >'$D/ctl'"
expect_error EINVAL "$D/error" 'usage: lease SECONDS' bash -c "echo lease >'$D/ctl'"
check_not test -e "$MNT/x"
check_eq "$(field "$D/status" ends)" -
check_eq "$(column dev 6)" -

# use: a job, an open stdin, a channel, an open file; looking is none
is_idle dev || fail 'nobody uses it'
mkdir "$D/jobs/j"
exec 3>"$D/jobs/j/stdin"
in_use dev || fail 'an open stdin is use'
put "$D/jobs/j/cmd" cat
exec 3>&-
check_eq "$(cat <>"$D/jobs/j/exit")" 0
wait_for 10 is_idle dev
exec 3<>"$D/exec"
in_use dev || fail 'a channel is use'
exec 3>&-
wait_for 10 is_idle dev
echo data >"$D/workspace/file"
exec 3<"$D/files/workspace/file"
in_use dev || fail 'an open file is use'
exec 3<&-
wait_for 10 is_idle dev
exec 3<"$MNT/events" 4<>"$D/logs" 5<"$D/status"
is_idle dev || fail 'looking is no use'
exec 3<&- 4<&- 5<&-
put "$D/ctl" 'lease 100'
in_use dev || fail 'a lease is use'
check_match "$(field "$D/status" lease)" '^20'
put "$D/ctl" 'lease 0'
check_eq "$(field "$D/status" lease)" -
is_idle dev || fail 'a lease that is given up is none'
rmdir "$D"

if can pause; then
	# paused when nobody uses it; resumed by use, not by a look
	sandbox nap idle=1
	N=$MNT/nap
	put "$N/ctl" 'wait paused 60'
	check_eq "$(field "$N/status" reason)" idle
	check_eq "$(events_of nap idle)" 1
	ls -l "$N" "$N/files" >/dev/null
	ls -lR "$N/jobs" "$N/sessions" >/dev/null
	cat "$N/status" "$N/info.json" "$N/logs" "$N/exec" >/dev/null
	echo here >"$N/workspace/note"
	check_eq "$(cat "$N/files/workspace/note")" here
	check_eq "$(field "$N/status" state)" paused
	check_eq "$(run nap 'cat note')" here
	put "$N/ctl" 'wait paused 60'
	mkdir "$N/sessions/s"
	check_eq "$(events_of nap resumed)" 2
	put "$N/ctl" 'wait paused 60'
	put "$N/ctl" 'set resume=no'
	expect_error EHOSTDOWN "$N/error" 'only .resume. resumes it' bash -c "echo true >'$N/exec'"
	put "$N/ctl" resume
	put "$N/ctl" 'set resume=yes'
	# what runs on keeps it up, unless it shall not
	put "$N/exec" 'sleep 1000 >/dev/null 2>&1 &'
	wait_for 20 in_use nap
	state_is nap running
	put "$N/ctl" 'set idle_background=yes'
	put "$N/ctl" 'wait paused 60'
	put "$N/ctl" 'set idle_background=no'
	put "$N/exec" 'true'
	wait_for 20 in_use nap
	put "$N/ctl" 'kill KILL'
	put "$N/ctl" 'wait paused 60'
	rmdir "$N"
else
	expect_error EOPNOTSUPP "$MNT/error" 'idle=1' bash -c "echo 'create nap idle=1' >'$MNT/ctl'"
fi

# the end of a life
sandbox short lifetime=1
wait_for 60 gone short
check_eq "$(events_of short lifetime)" 1
sandbox kept lifetime=1000
put "$MNT/kept/ctl" 'set at_end=stop'
left=$(column kept 6)
[ "$left" -gt 900 ] && [ "$left" -le 1000 ] || fail "seconds of life left: $left"
put "$MNT/kept/ctl" 'renew 1'
put "$MNT/kept/ctl" 'wait stopped 60'
check_eq "$(field "$MNT/kept/status" reason)" lifetime
check_eq "$(field "$MNT/kept/status" ends)" -
put "$MNT/kept/ctl" start
check_match "$(field "$MNT/kept/status" ends)" '^20'
rmdir "$MNT/kept"

# Without a daemon the agent ends what runs, and the next daemon does the rest.
sandbox a lifetime=1000
sandbox b lifetime=1000 at_end=stop
sandbox c lifetime=1000
sandbox t command_timeout=2
for name in a b; do
	mkdir "$MNT/$name/jobs/clock"
	put "$MNT/$name/jobs/clock/cmd" "date >/workspace/clock; exec sleep 4242$$"
	wait_for 20 test -s "$MNT/$name/workspace/clock"
done
runs() { pgrep -f "sleep 4242$$" >/dev/null; }
ended() { ! runs; }
mkdir "$MNT/t/jobs/long"
put "$MNT/t/jobs/long/cmd" 'echo begun; sleep 1000'
wait_for 20 grep -q begun "$MNT/t/jobs/long/output"
wait_for 20 runs
put "$MNT/a/ctl" 'renew 4'
put "$MNT/b/ctl" 'renew 4'
kill_cubefs
wait_for 60 ended # nobody but the agents was there to do it
start_cubefs
wait_for 60 gone a
put "$MNT/b/ctl" 'wait stopped 60'
check_eq "$(field "$MNT/b/status" reason)" lifetime
check_eq "$(cat <>"$MNT/b/jobs/clock/exit")" lost
check_eq "$(cat <>"$MNT/t/jobs/long/exit")" 124
check_eq "$(field "$MNT/t/jobs/long/status" ended)" timeout
put "$MNT/b/ctl" start
check_eq "$(run b 'wc -l <clock')" 1
check_eq "$(run c 'echo lives')" lives
rmdir "$MNT/b" "$MNT/c" "$MNT/t"

if can pause; then
	sandbox p lifetime=1000 at_end=pause
	mkdir "$MNT/p/jobs/clock"
	put "$MNT/p/jobs/clock/cmd" 'while :; do date >>/workspace/clock; sleep 0.1; done'
	wait_for 20 test -s "$MNT/p/workspace/clock"
	put "$MNT/p/ctl" 'renew 1'
	kill_cubefs
	sleep 1.5
	start_cubefs
	put "$MNT/p/ctl" 'wait paused 60'
	check_eq "$(field "$MNT/p/status" reason)" lifetime
	size=$(stat -c %s "$MNT/p/files/workspace/clock")
	put "$MNT/p/ctl" resume
	grows() { [ "$(stat -c %s "$MNT/p/files/workspace/clock")" -gt "$size" ]; }
	wait_for 60 grows
	rmdir "$MNT/p"
fi
