#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Jobs: named, numbered, with their streams, ends and files.
. "$(dirname "$0")/lib.sh"
start_cubefs
sandbox dev
J=$MNT/dev/jobs
D=$MNT/dev

job() { # NAME TEXT: made, run to the end
	mkdir "$J/$1"
	put "$J/$1/cmd" "$2"
	cat <>"$J/$1/exit" >/dev/null
}

job a 'echo out; echo err >&2; echo out2; exit 7'
check_eq "$(cat "$J/a/stdout")" $'out\nout2'
check_eq "$(cat "$J/a/stderr")" err
check_eq "$(sort "$J/a/output" | tr '\n' ' ')" 'err out out2 '
check_eq "$(cat "$J/a/exit")" 7
check_eq "$(field "$J/a/status" ended)" exit
check_eq "$(field "$J/a/status" state)" ended
check_eq "$(cat "$J/a/cmd")" 'echo out; echo err >&2; echo out2; exit 7'
check_eq "$(readlink "$J/last")" a
check_eq "$(ls "$J/a" | sort | tr '\n' ' ')" 'argv cmd ctl cwd env exit output status stderr stdin stdout user '

# reading the command that exec ran; numbers grow
run dev 'echo x' >/dev/null
n=$(readlink "$J/last")
check_match "$n" '^[0-9]+$'
check_eq "$(cat "$J/$n/output")" x
check_eq "$(cat "$J/$n/cmd")" 'echo x'
check_eq "$(field "$J/$n/status" session)" main
run dev true; check_eq "$(readlink "$J/last")" $((n + 1))

# a job is fresh: /workspace, the environment, no session state
put "$D/env" 'E=env'
run dev 'cd /usr; Z=1; export Y=2'
job fresh 'pwd; echo "$E-$Z-$Y-"'
check_eq "$(cat "$J/fresh/output")" $'/workspace\nenv---'

# argv without a shell
mkdir "$J/argv"
printf '%s\0' printf '%s|' 'a b' '$HOME' '*' >"$J/argv/argv"
check_eq "$(cat <>"$J/argv/output")" 'a b|$HOME|*|'
mkdir "$J/nothere"
printf 'nosuchprogram' >"$J/nothere/argv"
check_eq "$(cat <>"$J/nothere/exit")" 127
mkdir "$J/noexec"
printf '/etc/passwd' >"$J/noexec/argv"
check_eq "$(cat <>"$J/noexec/exit")" 126

# once only
expect_error EBUSY "$D/error" 'job .a. has a command' bash -c "echo again >'$J/a/cmd'"
expect_errno EBUSY bash -c "printf again >'$J/a/argv'"

# before the start: cwd, env, user, merge, tty, timeout
mkdir "$J/set"
put "$J/set/cwd" /tmp; echo 'MORE=1' >>"$J/set/env"; put "$J/set/user" nobody
put "$J/set/cmd" 'pwd; echo $MORE$E; id -un'
check_eq "$(cat <>"$J/set/output")" $'/tmp\n1env\nnobody'
expect_errno EBUSY bash -c "echo /usr >'$J/set/cwd'"
mkdir "$J/merged"; put "$J/merged/ctl" merge
put "$J/merged/cmd" 'for i in 1 2 3 4 5 6; do echo o$i; echo e$i >&2; done'
check_eq "$(cat <>"$J/merged/stdout" | tr '\n' ' ')" 'o1 e1 o2 e2 o3 e3 o4 e4 o5 e5 o6 e6 '
check_eq "$(cat "$J/merged/stderr")" ''
mkdir "$J/slow"; put "$J/slow/ctl" 'timeout 1'
put "$J/slow/cmd" 'setsid sleep 60 & sleep 60'
check_eq "$(cat <>"$J/slow/exit")" 124
check_eq "$(field "$J/slow/status" ended)" timeout

# signals: everything that it started
mkdir "$J/tree"
put "$J/tree/cmd" '(setsid sleep 100 &) ; sleep 100 & sleep 100'
wait_for 10 eval '[ "$(field "$J/tree/status" state)" = running ]'
wait_for 10 eval '[ "$(run dev "pgrep -xc sleep || true")" = 3 ]'
put "$J/tree/ctl" kill
check_eq "$(cat <>"$J/tree/exit")" 143
check_eq "$(field "$J/tree/status" ended)" killed
wait_for 10 eval '[ "$(run dev "pgrep -xc sleep || true")" = 0 ]'
job signal 'kill -USR1 $$'
check_eq "$(cat "$J/signal/exit")" 138
check_eq "$(field "$J/signal/status" ended)" signal
expect_error EINVAL "$D/error" 'NONSENSE' bash -c "echo 'kill NONSENSE' >'$J/signal/ctl'"

# wait
mkdir "$J/wait"
put "$J/wait/cmd" 'sleep 1'
expect_errno ETIMEDOUT bash -c "echo 'wait 0' >'$J/wait/ctl'"
put "$J/wait/ctl" 'wait 30'
check_eq "$(cat "$J/wait/exit")" 0

# in a session, as its next command
mkdir "$D/sessions/s"
put "$D/sessions/s/exec" 'cd /tmp; IN=session'
mkdir "$J/ins"
put "$J/ins/ctl" 'session s'
put "$J/ins/cmd" 'pwd; echo $IN; cd /usr'
check_eq "$(cat <>"$J/ins/output")" $'/tmp\nsession'
put "$D/sessions/s/exec" pwd
check_eq "$(cat "$D/sessions/s/exec")" /usr

# streams are there at any offset, for late readers, with true sizes
job big 'seq 1 200000'
check_eq "$(stat -c %s "$J/big/stdout")" "$(seq 1 200000 | wc -c)"
check cmp "$J/big/stdout" <(seq 1 200000)
check_eq "$(tail -n 1 "$J/big/output")" 200000
check_eq "$(tail -c +1000001 "$J/big/stdout" | head -c 7)" "$(seq 1 200000 | tail -c +1000001 | head -c 7)"
cp "$J/big/output" "$WORK/copy"
check cmp "$WORK/copy" <(seq 1 200000)

# rmdir ends it and forgets it
mkdir "$J/gone"
put "$J/gone/cmd" 'sleep 100'
wait_for 10 eval '[ "$(field "$J/gone/status" state)" = running ]'
rmdir "$J/gone"
check_not test -e "$J/gone"
wait_for 10 eval '[ "$(run dev "pgrep -xc sleep || true")" = 0 ]'

# rules of the directory
expect_errno EEXIST mkdir "$J/a"
expect_errno EINVAL mkdir "$J/7"
expect_errno EEXIST mkdir "$J/last"
expect_errno EPERM mv "$J/a" "$J/b"
mkdir "$J/with blank ü"
put "$J/with blank ü/cmd" 'echo ok'
check_eq "$(cat <>"$J/with blank ü/output")" ok

# of the numbered ones the last jobs_kept that ended stay, named ones too
put "$MNT/ctl" 'set jobs_kept=5'
for _ in 1 2 3 4 5 6 7 8; do run dev true; done
[ "$(ls "$J" | grep -cE '^[0-9]+$')" -le 6 ] || fail "jobs_kept=5, but there are: $(ls "$J" | tr '\n' ' ')"
check test -d "$J/a"
