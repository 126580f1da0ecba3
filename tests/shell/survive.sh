#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The daemon stops or is killed: the next mount finds every sandbox, job and output, running commands included.
. "$(dirname "$0")/lib.sh"
start_cubefs
sandbox dev label.keep=yes env.E=1
D=$MNT/dev

begin() {
	run dev 'cd /usr; V=kept' >/dev/null
	echo data >"$D/workspace/file"
	mkdir "$D/jobs/$1"
	put "$D/jobs/$1/cmd" 'i=0; while [ $i -lt 60 ]; do i=$((i+1)); echo "line $i"; echo "err $i" >&2; sleep 0.05; done'
	wait_for 10 grep -q 'line 3' "$D/jobs/$1/stdout"
}

verify() { # NAME
	check_eq "$(field "$D/status" state)" running
	check_eq "$(field "$D/status" label.keep)" yes
	check_eq "$(tail -n 1 "$D/env")" E=1
	check_eq "$(cat "$D/workspace/file")" data
	check_eq "$(cat <>"$D/jobs/$1/stdout")" "$(for i in $(seq 60); do echo "line $i"; done)"
	check_eq "$(cat "$D/jobs/$1/stderr" | wc -l)" 60
	check_eq "$(cat "$D/jobs/$1/exit")" 0
	check_eq "$(run dev 'pwd; echo $V; echo $E')" $'/usr\nkept\n1'
	check_eq "$(cat "$D/jobs/1/cmd" 2>/dev/null || echo 'cd /usr; V=kept')" 'cd /usr; V=kept'
}

# an orderly end, in the middle of a job
begin one
generation=$(field "$D/status" id)
stop_cubefs
start_cubefs
verify one
check_eq "$(field "$D/status" id)" "$generation"

# kill -9 of all of the daemon
begin two
kill_cubefs
start_cubefs
verify two
check_eq "$(cat "$D/jobs/one/exit")" 0 'an older job'

# what ended while nobody watched has its true end
mkdir "$D/jobs/three"
put "$D/jobs/three/cmd" 'sleep 0.5; echo done; exit 5'
wait_for 10 eval '[ "$(field "$D/jobs/three/status" state)" = running ]'
kill_cubefs
sleep 1.5
start_cubefs
check_eq "$(cat <>"$D/jobs/three/exit")" 5
check_eq "$(cat "$D/jobs/three/output")" 'done'

# a sandbox that died meanwhile; a stopped one stays stopped; a paused one paused
sandbox stopped; echo x >"$MNT/stopped/workspace/x"; put "$MNT/stopped/ctl" stop
kill_cubefs
start_cubefs
check_eq "$(field "$MNT/stopped/status" state)" stopped
check_eq "$(cat "$MNT/stopped/workspace/x")" x
put "$MNT/stopped/ctl" start
check_eq "$(run stopped 'cat x')" x

# killed in the middle of everything, again and again: names are whole or free, and nothing is left
for n in $(seq 8); do
	( for i in 1 2 3; do mkdir "$MNT/k$n-$i"; echo 'echo ok' >"$MNT/k$n-$i/exec"; rmdir "$MNT/k$n-$i"; done ) 2>/dev/null &
	maker=$!
	sleep "0.$((n * 7 % 10))"
	kill_cubefs
	wait $maker || true
	check_not is_mounted "$MNT"
	rm -rf "${MNT:?}"/k* # it may have gone on where the mount was
	start_cubefs
done
for name in $(ls "$MNT" | grep '^k' || true); do
	put "$MNT/$name/ctl" 'wait running 30'
	check_eq "$(run "$name" 'echo whole')" whole
	rmdir "$MNT/$name"
done
check_eq "$(run dev 'echo still')" still

# SIGTERM during work: an orderly end, the command goes on
mkdir "$D/jobs/four"; put "$D/jobs/four/cmd" 'sleep 2; echo four'
( echo 'sleep 1; echo mine' >"$D/exec" ) 2>/dev/null & writer=$!
sleep 0.3
kill -TERM "$CUBEFS_PID"
wait_for 20 daemon_ended "$CUBEFS_PID"
wait $writer || true
PID_OF[$MNT]=
check_not is_mounted "$MNT"
start_cubefs
check_eq "$(cat <>"$D/jobs/four/output")" four

# a second daemon on the same state
mkdir "$WORK/second"
if out=$(cubefs -f --state "$STATE" "$WORK/second" 2>&1); then fail 'a second daemon started'; fi
check_match "$out" "$STATE.*(in use|another)"
check_not is_mounted "$WORK/second"
