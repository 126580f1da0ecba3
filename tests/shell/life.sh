#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The life of a sandbox: states, verbs, what they refuse.
. "$(dirname "$0")/lib.sh"
start_cubefs
D=$MNT/dev

# mkdir returns at once; what needs it running waits, the rest answers
mkdir "$D"
check_match "$(field "$D/status" state)" '^(creating|running)$'
echo 'echo first' >"$D/exec"
check_eq "$(cat "$D/exec")" first
check_eq "$(field "$D/status" state)" running
check_eq "$(field "$D/status" backend)" local

run dev 'echo kept > /workspace/file; echo kept > /root/file; sleep 100 & echo $! > /tmp/pid'
mkdir "$D/jobs/j"; put "$D/jobs/j/cmd" 'sleep 100'
wait_for 10 eval '[ "$(field "$D/jobs/j/status" state)" = running ]'

# stop: jobs end as killed, files stay and can be read, commands are refused with the reason
put "$D/ctl" 'stop 10'
check_eq "$(field "$D/status" state)" stopped
check_eq "$(field "$D/status" reason)" stopped
check_eq "$(field "$D/jobs/j/status" ended)" killed
expect_error EHOSTDOWN "$D/error" 'dev.*stopped.*start' bash -c "echo true >'$D/exec'"
expect_errno EHOSTDOWN bash -c "mkdir '$D/jobs/k' && echo true >'$D/jobs/k/cmd'"
check_eq "$(cat "$D/files/workspace/file")" kept
check_eq "$(cat "$D/jobs/j/exit")" 143
check_eq "$(cat "$D/exec")" ''
expect_errno EHOSTDOWN bash -c "echo 'wait running 5' >'$D/ctl'"
expect_errno ETIMEDOUT bash -c "echo 'wait paused 0' >'$D/ctl'"

# who takes a while to tidy up has the time that was given; who does not listen is killed then; a terminal hangs up
put "$D/ctl" start
check_eq "$(field "$D/status" state)" running
mkdir "$D/jobs/tidy" "$D/jobs/term"
put "$D/jobs/tidy/cmd" "trap 'sleep 3; echo tidied; exit 0' TERM; echo up; while :; do sleep 0.1; done"
put "$D/jobs/term/ctl" 'tty 24 80'
put "$D/jobs/term/cmd" 'exec bash --norc -i'
wait_for 10 test -s "$D/jobs/tidy/output"
wait_for 10 test -s "$D/jobs/term/output"
put "$D/ctl" 'stop 60'
check_eq "$(cat "$D/jobs/tidy/stdout")" $'up\ntidied'
check_eq "$(cat "$D/jobs/tidy/exit" "$D/jobs/term/exit")" $'0\n129'
put "$D/ctl" start
mkdir "$D/jobs/deaf"
put "$D/jobs/deaf/cmd" "trap '' TERM; echo up; while :; do sleep 0.1; done"
wait_for 10 test -s "$D/jobs/deaf/output"
put "$D/ctl" 'stop 1'
check_eq "$(cat "$D/jobs/deaf/exit")" 137
check_eq "$(field "$D/jobs/deaf/status" ended)" killed

put "$D/ctl" start
check_eq "$(field "$D/status" state)" running
check_eq "$(run dev 'cat /workspace/file /root/file; ls /tmp/pid 2>/dev/null; pgrep -xc sleep || true')" $'kept\nkept\n/tmp/pid\n0'

# restart: sessions begin anew
run dev 'cd /usr; V=1'
put "$D/ctl" restart
check_eq "$(run dev 'pwd; echo "-$V"; cat /workspace/file')" $'/workspace\n-\nkept'

# pause stops what runs; resume goes on; a command resumes it
if grep -q '^pause' <(sed '1,/^$/d' "$D/ctl"); then
	mkdir "$D/jobs/tick"
	put "$D/jobs/tick/cmd" 'while :; do echo t; sleep 0.05; done'
	wait_for 10 grep -q t "$D/jobs/tick/output"
	put "$D/ctl" pause
	check_eq "$(field "$D/status" state)" paused
	size=$(stat -c %s "$D/jobs/tick/output")
	sleep 0.5
	check_eq "$(stat -c %s "$D/jobs/tick/output")" "$size" 'output while paused'
	check_eq "$(cat "$D/files/workspace/file")" kept
	put "$D/ctl" resume
	check_eq "$(field "$D/status" state)" running
	wait_for 10 eval '[ "$(stat -c %s "$D/jobs/tick/output")" -gt "$size" ]'
	put "$D/ctl" pause
	check_eq "$(run dev 'echo woken')" woken
	check_eq "$(field "$D/status" state)" running
	put "$D/ctl" 'set resume=no'
	put "$D/ctl" pause
	expect_errno EHOSTDOWN bash -c "echo true >'$D/exec'"
	put "$D/ctl" resume
	put "$D/ctl" 'set resume=yes'
	put "$D/jobs/tick/ctl" kill
	# a time-out does not count what was paused
	mkdir "$D/jobs/late"
	put "$D/jobs/late/ctl" 'timeout 2'
	put "$D/jobs/late/cmd" 'sleep 1; echo in time'
	wait_for 10 eval '[ "$(field "$D/jobs/late/status" state)" = running ]'
	put "$D/ctl" pause
	sleep 2.5
	put "$D/ctl" resume
	check_eq "$(cat <>"$D/jobs/late/output")" 'in time'
	# paused can be destroyed, and stopped
	sandbox other
	put "$MNT/other/ctl" pause
	rmdir "$MNT/other"
else
	check grep -q '^missing pause ' "$MNT/backends/local/status"
	expect_error EOPNOTSUPP "$D/error" pause bash -c "echo pause >'$D/ctl'"
fi

# kill: every process but the first
run dev 'sleep 100 & sleep 100 & true'
put "$D/ctl" 'kill KILL'
wait_for 10 eval '[ "$(run dev "pgrep -xc sleep || true")" = 0 ]'

# verbs that make no sense now, or at all
expect_error EINVAL "$D/error" nonsense bash -c "echo nonsense >'$D/ctl'"
expect_error EINVAL "$D/error" 'stop' bash -c "echo 'stop 1 2 3' >'$D/ctl'"
expect_error EINVAL "$D/error" 'set' bash -c "echo 'set nonsense=1' >'$D/ctl'"
expect_error EINVAL "$D/error" 'quote' bash -c "echo \"set 'a\" >'$D/ctl'"
expect_error EINVAL "$D/error" 'seconds' bash -c "echo 'stop soon' >'$D/ctl'"

# a process inside cannot end the sandbox by ending its own kind
check_eq "$(run dev 'kill -9 1 2>/dev/null; kill -TERM 1 2>/dev/null; sleep 0.2; echo still here')" 'still here'

# rmdir: at once, and the name is free
mkdir "$D/jobs/last-one"; put "$D/jobs/last-one/cmd" 'sleep 100'
rmdir "$D"
mkdir "$D"
check_eq "$(run dev 'ls /workspace')" ''
