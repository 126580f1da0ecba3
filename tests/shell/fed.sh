#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The daemon is killed while input is under way, again and again: the command gets each byte once.
. "$(dirname "$0")/lib.sh"
start_cubefs
sandbox dev
J=$MNT/dev/jobs
head -c 12000000 /dev/urandom >"$WORK/in"

total() { # JOB: bytes of its input that were taken so far
	field "$J/$1/status" input
}

# From where the last one was cut off, until this one is.
feed() { # JOB
	tail -c "+$(($(total "$1") + 1))" "$WORK/in" | dd of="$J/$1/stdin" bs=30000 conv=notrunc status=none 2>/dev/null || true
}

grown() { # JOB BYTES
	[ "$(total "$1")" -gt "$2" ]
}

# a reader that is slow for a while, so that bytes wait at every place; killed while a writer is at work
mkdir "$J/stream"
put "$J/stream/ctl" 'stdin stream'
put "$J/stream/cmd" 'for i in $(seq 40); do head -c 100000; sleep 0.1; done; cat'
all=$(stat -c %s "$WORK/in")
for n in $(seq 6); do
	before=$(total stream)
	[ "$before" -lt "$all" ] || break
	feed stream & writer=$!
	wait_for 60 grown stream "$before"
	sleep "0.$((n * 3 % 10))"
	kill_cubefs
	wait "$writer" || true
	start_cubefs
	wait_for 60 eval '[ "$(field "$J/stream/status" state)" = running ]'
	check [ "$(total stream)" -ge "$before" ]
done
feed stream
check_eq "$(total stream)" "$all" 'what was taken in all'
put "$J/stream/ctl" eof
cat <>"$J/stream/stdout" >"$WORK/out"
check cmp "$WORK/in" "$WORK/out"
check_eq "$(cat "$J/stream/exit")" 0

# all of it was promised before the kill, to a command that had read nothing of it
mkdir "$J/pipe"
put "$J/pipe/ctl" 'stdin pipe'
put "$J/pipe/cmd" 'until [ -e go ]; do sleep 0.05; done; cat'
head -c 1000000 "$WORK/in" >"$J/pipe/stdin"
kill_cubefs
start_cubefs
kill_cubefs
start_cubefs
touch "$MNT/dev/workspace/go"
check cmp <(head -c 1000000 "$WORK/in") <(cat <>"$J/pipe/stdout")

# written before the start, of which the first part was under way
mkdir "$J/before"
cp "$WORK/in" "$J/before/stdin"
put "$J/before/cmd" 'for i in $(seq 20); do head -c 100000; sleep 0.05; done; cat'
for n in 1 2 3; do
	kill_cubefs
	start_cubefs
done
cat <>"$J/before/stdout" >"$WORK/out"
check cmp "$WORK/in" "$WORK/out"

# nothing of it stays behind
check_eq "$(find "$STATE/cubes" -name 'in.*')" ''
