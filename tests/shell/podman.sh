#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Podman's service as the engine: what it answers otherwise than Docker does.
. "$(dirname "$0")/lib.sh"
require_root
require curl
start_engine podman
start_cubefs --config "$CONF"
check_match "$(cat "$MNT/backends/docker/status")" '^kind docker'
sandbox dev label.who=me memory=256M pids=200
id=cubefs-$(field "$MNT/dev/status" id)
put "$MNT/backends/docker/ctl" refresh
check_match "$(field "$MNT/backends/docker/status" version)" '^Podman 4'
check_match "$(cat "$MNT/backends/docker/sandboxes")" '^[0-9a-f]{16} running dev'
check_eq "$(run dev 'cat /etc/name; id -u; pwd; hostname')" $'test\n0\n/workspace\ndev'
put "$MNT/dev/ctl" 'set pids=300'
check_eq "$(run dev 'echo kept > f; cat f')" kept
check_eq "$(cat "$MNT/dev/workspace/f")" kept

mkdir "$MNT/dev/ports/8000" "$MNT/dev/jobs/serve"
put "$MNT/dev/jobs/serve/cmd" 'exec httpd -f -p 127.0.0.1:8000 -h /etc'
cat <>"$MNT/dev/ports/8000/url" >"$WORK/url"
check_eq "$(curl -sS "$(sed 's,/?,/name?,' "$WORK/url")")" test

P=$MNT/backends/docker/pools/p
mkdir "$P"
put "$P/template" 'user=worker:1234'
put "$P/size" 1
wait_for 30 eval '[ "$(cat "$P/ready")" = 1 ]'
put "$MNT/ctl" 'create other pool=p'
check_eq "$(run other 'hostname; id -u; head -c 16 /etc/machine-id')" "other"$'\n'"1234"$'\n'"$(field "$MNT/other/status" id)"
put "$MNT/other/ctl" restart
check_eq "$(run other 'hostname; cat /etc/hostname')" $'other\nother'
rmdir "$P"
mkdir "$WORK/bound" && echo here >"$WORK/bound/f"
put "$MNT/other/ctl" "bind $WORK/bound /mnt"
put "$MNT/other/ctl" restart
check_eq "$(run other 'cat /mnt/f')" here
rmdir "$MNT/other"
wait_for 20 eval '[ "$(boxes)" = 1 ]'

# ---- templates: the registry that it puts before a name is not seen ----

T=$MNT/backends/docker/templates
check_match "$(field "$T/cubefs-test/status" state)" ready
mkdir "$WORK/root" && cp -a "$D/image/." "$WORK/root" && echo other >"$WORK/root/etc/name"
mkdir "$T/Own_1:a"
put "$T/Own_1:a/ctl" "import $WORK/root"
put "$MNT/ctl" 'create own template=Own_1:a'
check_eq "$(run own 'cat /etc/name')" other
expect_errno EBUSY rmdir "$T/Own_1:a"
rmdir "$MNT/own"
wait_for 20 eval '[ "$(boxes)" = 1 ]'
put "$MNT/backends/docker/ctl" refresh
check_match "$(cat "$T/Own_1:a/info")" "source $WORK/root"
rmdir "$T/Own_1:a"

# ---- its events, its states ----

api POST "/containers/$id/pause" >"$WORK/out"
wait_for 20 state_is dev paused
api POST "/containers/$id/unpause" >"$WORK/out"
wait_for 20 state_is dev running
put "$MNT/dev/ctl" pause
check_eq "$(run dev 'cat f')" kept
put "$MNT/dev/ctl" pause
put "$MNT/dev/ctl" 'stop 5'
check_eq "$(cat "$MNT/dev/workspace/f")" kept
api POST "/containers/$id/start" >"$WORK/out"
wait_for 20 state_is dev running
check_eq "$(run dev 'cat f')" kept
api POST "/containers/$id/kill" >"$WORK/out"
wait_for 20 state_is dev stopped

# ---- a container that somebody else made ----

box=$(curl -sSf --unix-socket "$D/sock" -H 'Content-Type: application/json' -d '{"Image": "cubefs-test",
	"Cmd": ["sleep", "1000"], "HostConfig": {"NetworkMode": "none"}}' \
	'http://engine/v1.41/containers/create?name=other' | cut -d '"' -f 4)
api POST "/containers/$box/start" >"$WORK/out"
put "$MNT/ctl" "create mine adopt=$box"
check_eq "$(run mine 'cat /etc/name')" test
rmdir "$MNT/mine"
wait_for 20 eval '[ ! -e "$STATE/backends/docker/cubes/$box" ]'
check_match "$(api GET "/containers/$box/json")" '"Running":true'
api DELETE "/containers/$box?force=1" >"$WORK/out"

# ---- it is killed; its containers are not, and neither is what runs in them ----

put "$MNT/dev/ctl" start
mkdir "$MNT/dev/jobs/long"
put "$MNT/dev/jobs/long/cmd" 'i=0; while [ $i -lt 30 ]; do i=$((i + 1)); echo $i; sleep 0.1; done; exit 3'
kill -KILL "$(cat "$D/pid")"
wait_for 20 daemon_ended "$(cat "$D/pid")"
expect_error EHOSTUNREACH "$MNT/error" 'nobody listens' put "$MNT/ctl" 'create three'
"$ENGINE" again podman "$D" >"$WORK/engine.out" 2>&1 || fail "no engine: $(cat "$WORK/engine.out")"
check_eq "$(cat <>"$MNT/dev/jobs/long/exit")" 3
check_eq "$(cat "$MNT/dev/jobs/long/stdout")" "$(seq 30)"
rmdir "$MNT/dev"
wait_for 20 eval '[ "$(boxes)" = 0 ]'
stop_cubefs
check_eq "$(ls -A "$STATE/backends/docker/cubes")" ''

# ---- where it does not see this machine's files there are no commands, and that is said ----

printf 'local = no\n' >>"$CONF"
start_cubefs --config "$CONF"
put "$MNT/ctl" 'create far'
check_match "$(cat "$MNT/far/status")" "absent exec .*Podman ends a container's input"
check_not test -e "$MNT/far/exec"
rmdir "$MNT/far"
wait_for 20 eval '[ "$(boxes)" = 0 ]'
stop_cubefs
