#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Who writes to exec is interrupted, killed, disturbed, or exits with the file open.
. "$(dirname "$0")/lib.sh"
require python3
start_cubefs
sandbox dev
D=$MNT/dev

# runs `echo TEXT > exec` in a process of its own that dies of signals; its id in WRITER
write_behind() { # TEXT
	python3 - "$D/exec" "$1" <<'E2' &
import os, signal, sys
signal.signal(signal.SIGINT, signal.SIG_DFL) # a shell starts what is behind with INT ignored
fd = os.open(sys.argv[1], os.O_WRONLY)
os.write(fd, sys.argv[2].encode())
os.close(fd)
E2
	WRITER=$!
}

running() { [ "$(cat "$D/exit")" = - ] && [ -e "$D/files/tmp/started" ]; }
not_running() { [ "$(cat "$D/exit")" != - ]; }
ended_of_last() { field "$D/jobs/last/status" ended; }

# a fatal signal interrupts the command: INT, then TERM, then KILL; the session survives
run dev 'cd /usr; export LIVES=yes'
for signal in INT TERM HUP KILL; do
	run dev 'rm -f /tmp/started'
	write_behind 'echo > /tmp/started; sleep 60'
	wait_for 10 running
	kill -$signal $WRITER
	wait $WRITER 2>/dev/null || true
	wait_for 10 not_running
	check_eq "$(ended_of_last)" killed "end after $signal"
	check_eq "$(run dev 'pwd; echo $LIVES')" $'/usr\nyes' "session after $signal"
done

# what ignores INT and TERM gets KILL, and all that it started is gone
run dev 'rm -f /tmp/started'
write_behind 'sh -c "trap \"\" INT TERM; echo > /tmp/started; while :; do sleep 1; done"'
wait_for 10 running
kill -INT $WRITER
wait $WRITER 2>/dev/null || true
wait_for 15 not_running
check_eq "$(cat "$D/exit")" 137

# other signals, a resized window, an ending background child, change nothing
run dev 'rm -f /tmp/started'
cat >"$WORK/disturbed.sh" <<'E2'
trap : CHLD WINCH CONT URG
sleep 0.3 &
echo 'echo > /tmp/started; sleep 1.2; echo whole' > "$1/exec"
E2
bash "$WORK/disturbed.sh" "$D" & WRITER=$!
wait_for 10 running
for signal in WINCH CHLD CONT URG WINCH; do kill -$signal $WRITER; sleep 0.05; done
wait $WRITER || fail 'a disturbed writer failed'
check_eq "$(cat "$D/exec")" whole
check_eq "$(cat "$D/exit")" 0

# a signal that comes after a harmless one is still seen
run dev 'rm -f /tmp/started'
bash -c "trap : WINCH; echo 'echo > /tmp/started; sleep 60' > '$D/exec'" & WRITER=$!
wait_for 10 running
kill -WINCH $WRITER; sleep 0.2; kill -TERM $WRITER
wait $WRITER 2>/dev/null || true
wait_for 10 not_running

# killed before it closed: runs nothing, and error says so
rm -f "$D/files/tmp/half"
python3 - "$D/exec" <<'E2' &
import os, sys, time
fd = os.open(sys.argv[1], os.O_WRONLY)
os.write(fd, b'echo > /tmp/half\n')
time.sleep(60)
E2
WRITER=$!
sleep 0.5
kill -KILL $WRITER
wait $WRITER 2>/dev/null || true
wait_for 5 grep -q 'killed before' "$D/error"
check_eq "$(run dev 'ls /tmp/half 2>/dev/null | wc -l')" 0

# exits with the file open: it waits too
printf '#!/bin/sh\necho "sleep 0.5"\necho "echo generated"\n' >"$WORK/gen.sh"
chmod +x "$WORK/gen.sh"
"$WORK/gen.sh" >"$D/exec"
check_eq "$(cat "$D/exec")" generated
( echo 'echo from'; echo 'echo a subshell' ) >"$D/exec"
check_eq "$(cat "$D/exec")" $'from\na subshell'
python3 -c 'print("echo from python")' >"$D/exec"
check_eq "$(cat "$D/exec")" 'from python'
"$WORK/gen.sh" | cat >"$D/exec"
check_eq "$(cat "$D/exec")" generated

# and is released by `kill`
python3 -c 'print("sleep 60")' >"$D/exec" & WRITER=$!
wait_for 10 eval '[ "$(field "$D/jobs/last/status" state)" = running ]'
put "$D/jobs/last/ctl" kill
wait $WRITER || true
check_eq "$(ended_of_last)" killed

# close-on-exec descriptors of a language's runtime: nothing hangs, nothing is cut in two
python3 - "$D/exec" <<'E2'
import subprocess, sys
for i in range(20):
    with open(sys.argv[1], 'w') as f:
        f.write('echo one\n'); f.flush()
        subprocess.run(['true'])
        f.write('echo two\n')
    assert open(sys.argv[1]).read() == 'one\ntwo\n'
subprocess.run(['sh', '-c', 'echo echo by a child'], stdout=open(sys.argv[1], 'w'))
E2
wait_for 5 eval '[ "$(cat "$D/exec")" = "by a child" ]'

# two writers of one session: one after the other
( echo 'sleep 0.7; echo first' >"$D/exec" ) & sleep 0.2
( echo 'echo second' >"$D/exec" ) & WRITER=$!
sleep 0.2
check_eq "$(cat "$D/exit")" -
wait $WRITER
check_eq "$(cat "$D/exec")" second
# one that waits for its turn and is interrupted never runs
( echo 'sleep 1' >"$D/exec" ) & first=$!
sleep 0.2
write_behind 'echo > /tmp/never'
sleep 0.2
kill -INT $WRITER
wait $WRITER 2>/dev/null || true
wait $first
check_eq "$(run dev 'ls /tmp/never 2>/dev/null | wc -l')" 0
