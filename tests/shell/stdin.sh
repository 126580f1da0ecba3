#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The input of jobs, and terminals.
. "$(dirname "$0")/lib.sh"
start_cubefs
sandbox dev
J=$MNT/dev/jobs

# nobody wrote: empty
mkdir "$J/empty"; put "$J/empty/cmd" 'wc -c'
check_eq "$(cat <>"$J/empty/output")" 0

# written before the start
mkdir "$J/before"
echo 'line one' >"$J/before/stdin"; echo 'line two' >>"$J/before/stdin"
put "$J/before/cmd" cat
check_eq "$(cat <>"$J/before/output")" $'line one\nline two'

# much of it, before and during
head -c 5000000 /dev/urandom >"$WORK/in"
mkdir "$J/much"; cp "$WORK/in" "$J/much/stdin"; put "$J/much/cmd" cat
cat <>"$J/much/stdout" >"$WORK/out"
check cmp "$WORK/in" "$WORK/out"
mkdir "$J/during"
exec 5>"$J/during/stdin"
put "$J/during/cmd" 'sleep 0.3; cat'
cat "$WORK/in" >&5
echo end >&5
exec 5>&-
cat <>"$J/during/stdout" >"$WORK/out"
check cmp <(cat "$WORK/in"; echo end) "$WORK/out"

# pipe: from whoever opens it, however late; the last close is its end
mkdir "$J/pipe"; put "$J/pipe/ctl" 'stdin pipe'; put "$J/pipe/cmd" 'cat; echo done'
sleep 0.3
check_eq "$(cat "$J/pipe/exit")" -
echo late >"$J/pipe/stdin"
check_eq "$(cat <>"$J/pipe/output")" $'late\ndone'

# stream: open until eof
mkdir "$J/stream"; put "$J/stream/ctl" 'stdin stream'; put "$J/stream/cmd" cat
echo one >"$J/stream/stdin"; echo two >"$J/stream/stdin"
wait_for 10 grep -q two "$J/stream/output"
check_eq "$(cat "$J/stream/exit")" -
put "$J/stream/ctl" eof
check_eq "$(cat <>"$J/stream/output")" $'one\ntwo'
check_eq "$(cat "$J/stream/exit")" 0
expect_errno EPIPE bash -c "echo more >'$J/stream/stdin'"

# a command that does not read: its writer does not hang when it ends
mkdir "$J/deaf"; put "$J/deaf/ctl" 'stdin stream'; put "$J/deaf/cmd" 'sleep 1'
( head -c 30000000 /dev/zero >"$J/deaf/stdin" ) 2>/dev/null || true
check_eq "$(cat <>"$J/deaf/exit")" 0

# a terminal: size, resize, Ctrl-C as a byte, exit code
mkdir "$J/tty"; put "$J/tty/ctl" 'tty 30 90'
put "$J/tty/cmd" 'stty size; trap "stty size" WINCH; trap "echo int" INT; tty >/dev/null && echo is a tty; while read -r l; do [ "$l" = quit ] && exit 5; echo "got $l"; done'
wait_for 10 grep -q 'is a tty' "$J/tty/output"
check_eq "$(head -n 1 "$J/tty/output" | tr -d '\r')" '30 90'
echo hello >"$J/tty/stdin"
wait_for 10 grep -q 'got hello' "$J/tty/output"
put "$J/tty/ctl" 'winsize 10 40'
wait_for 10 eval "echo >'$J/tty/stdin'; grep -q '10 40' '$J/tty/output'"
printf '\003' >"$J/tty/stdin"
wait_for 10 eval "echo >'$J/tty/stdin'; grep -q int '$J/tty/output'"
echo quit >"$J/tty/stdin"
check_eq "$(cat <>"$J/tty/exit")" 5
