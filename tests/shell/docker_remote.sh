#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# An engine that does not see this machine's files: commands go over a stream that is attached to the container, and
# nothing of their output is lost or repeated when cubefs is killed, or the stream is cut.
. "$(dirname "$0")/lib.sh"
require_root
require curl socat
start_engine docker

# Plain TCP on the loopback device, by DOCKER_HOST alone: what is between can be cut.
PORT=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
between() {
	socat "TCP-LISTEN:$PORT,bind=127.0.0.1,fork,reuseaddr" "UNIX-CONNECT:$D/sock" &
	BETWEEN=$!
	wait_for 20 curl -sf "http://127.0.0.1:$PORT/_ping" >"$WORK/out"
}
cut_between() { # all connections with it
	pkill -TERM -P "$BETWEEN" || true
	kill "$BETWEEN"
	wait "$BETWEEN" 2>/dev/null || true
}
between
on_exit eval 'kill "$BETWEEN"'
printf '[backend docker]\ntemplate = cubefs-test\n' >"$CONF"
export DOCKER_HOST=tcp://127.0.0.1:$PORT
start_cubefs --config "$CONF"
sandbox dev
id=cubefs-$(field "$MNT/dev/status" id)
check_match "$(field "$MNT/backends/docker/status" agent)" "^copied to the engine, .*tcp://127.0.0.1:$PORT may be another"
check_match "$(field "$MNT/dev/status" agent)" 'attached stream'
check_match "$(cat "$MNT/dev/status")" 'absent files .*may be another machine'
check_not grep -q "$STATE" < <(api GET "/containers/$id/json")

check_eq "$(run dev 'cat /etc/name; id -u; pwd; hostname')" $'test\n0\n/workspace\ndev'
check_eq "$(run dev 'cd /tmp; x=1')" ''
check_eq "$(run dev 'pwd; echo $x')" $'/tmp\n1'
put "$MNT/dev/exec" 'kill -9 $$'
check_eq "$(cat "$MNT/dev/exit")" 137
check_eq "$(run dev 'head -c 3000000 /dev/zero | tr "\0" x' | sha256sum)" "$(head -c 3000000 /dev/zero | tr '\0' x | sha256sum)"
put "$MNT/dev/exec" 'seq 200000'
check_eq "$(sha256sum <"$MNT/dev/exec")" "$(seq 200000 | sha256sum)"
mkdir "$MNT/dev/jobs/bomb"
put "$MNT/dev/jobs/bomb/ctl" 'timeout 1'
put "$MNT/dev/jobs/bomb/cmd" 'setsid sleep 1000 & setsid sleep 1000'
check_eq "$(cat <>"$MNT/dev/jobs/bomb/exit")" 124
check_not grep -q 'sleep 1000' < <(api GET "/containers/$id/top")

# ---- who comes back goes on where it was ----

job() { # NAME: both streams, for a while
	mkdir "$MNT/dev/jobs/$1"
	put "$MNT/dev/jobs/$1/cmd" 'i=0; while [ $i -lt 60 ]; do i=$((i + 1)); echo $i; echo e$i >&2; sleep 0.05; done; exit 3'
	wait_for 20 test -s "$MNT/dev/jobs/$1/stderr"
}
whole() { # NAME
	check_eq "$(cat <>"$MNT/dev/jobs/$1/exit")" 3
	check_eq "$(cat "$MNT/dev/jobs/$1/stdout")" "$(seq 60)"
	check_eq "$(cat "$MNT/dev/jobs/$1/stderr")" "$(seq 60 | sed s/^/e/)"
}
job cut
cut_between
between
whole cut
run dev '(sleep 3; echo late) & echo first' >"$WORK/out"
job killed
kill_cubefs
start_cubefs --config "$CONF"
whole killed
wait_for 20 eval '[ "$(cat "$MNT/dev/jobs/last/output" "$MNT"/dev/jobs/*/output | grep -c "^late$")" -ge 1 ]'
check_eq "$(run dev 'pwd')" /tmp

# ---- the rest of its life ----

put "$MNT/dev/ctl" pause
check_eq "$(run dev 'echo here > /workspace/f; cat /workspace/f')" here
mkdir "$MNT/dev/checkpoints/one"
run dev 'rm /workspace/f' >"$WORK/out"
put "$MNT/dev/ctl" 'restore one'
check_eq "$(run dev 'cat /workspace/f')" here
put "$MNT/dev/ctl" 'fork two from=one'
check_eq "$(run two 'cat /workspace/f; hostname')" $'here\ntwo'
put "$MNT/dev/ctl" reset
check_eq "$(run dev 'cat /workspace/f')" here
put "$MNT/dev/ctl" 'stop 5'
expect_errno EHOSTDOWN put "$MNT/dev/exec" true
put "$MNT/dev/ctl" start
check_eq "$(run dev 'cat /workspace/f')" here
rmdir "$MNT/dev" "$MNT/two"
wait_for 60 eval '[ "$(boxes)" = 0 ]'
check_eq "$(api GET /volumes | grep -o '"Name":"cubefs-[a-z]*' | sort | uniq -c | tr -s ' ')" ' 1 "Name":"cubefs-agent'

# ---- a forwarded socket is told from one of this machine's ----

stop_cubefs
unset DOCKER_HOST
printf '[backend docker]\nurl = unix://%s/sock\ntemplate = cubefs-test\nlocal = no\n' "$D" >"$CONF"
start_cubefs --config "$CONF"
sandbox dev
check_eq "$(run dev 'cat /etc/name')" test
check_match "$(field "$MNT/dev/status" agent)" 'attached stream'
rmdir "$MNT/dev"
wait_for 60 eval '[ "$(boxes)" = 0 ]'
