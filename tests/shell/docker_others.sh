#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Containers that others have their hands on: what they do to ours is seen, what they made is adopted and let go, the
# engine is killed and comes back.
. "$(dirname "$0")/lib.sh"
require_root
require curl
start_engine docker
start_cubefs --config "$CONF"
sandbox dev
id=cubefs-$(field "$MNT/dev/status" id)
run dev 'echo kept > /workspace/f' >"$WORK/out"

# ---- what others do is seen when they do it, and is an event ----

told() { # NAME EVENT TIMES
	[ "$(grep -c "\"sandbox\":\"$1\",\"event\":\"$2\"" "$MNT/events")" = "$3" ]
}
api POST "/containers/$id/pause" >"$WORK/out"
wait_for 20 state_is dev paused
api POST "/containers/$id/unpause" >"$WORK/out"
wait_for 20 state_is dev running
wait_for 20 told dev paused 1
wait_for 20 told dev resumed 1
check_eq "$(run dev 'cat /workspace/f')" kept
api POST "/containers/$id/pause" >"$WORK/out"
wait_for 20 state_is dev paused
check_eq "$(run dev 'cat /workspace/f')" kept
api POST "/containers/$id/kill" >"$WORK/out"
wait_for 20 state_is dev stopped
expect_errno EHOSTDOWN put "$MNT/dev/exec" true
api POST "/containers/$id/start" >"$WORK/out"
wait_for 20 state_is dev running
check_eq "$(run dev 'cat /workspace/f')" kept
api POST "/containers/$id/restart?t=0" >"$WORK/out"
wait_for 20 eval '[ "$(run dev "cat /workspace/f" 2>/dev/null)" = kept ]'
put "$MNT/dev/ctl" 'stop 0'
api DELETE "/containers/$id?force=1" >"$WORK/out"
wait_for 20 state_is dev error
check_match "$(cat "$MNT/dev/status")" 'reason lost|terminal yes'
wait_for 20 told dev lost 1
rmdir "$MNT/dev"
wait_for 20 eval '[ "$(boxes)" = 0 ]'

# ---- a container that somebody else made ----

box=$(curl -sSf --unix-socket "$D/sock" -H 'Content-Type: application/json' -d '{"Image": "cubefs-test",
	"Cmd": ["sh", "-c", "trap \"exit 0\" TERM; echo up; while :; do sleep 1; done"],
	"HostConfig": {"NetworkMode": "none"}}' 'http://engine/v1.41/containers/create?name=other' | cut -d '"' -f 4)
api POST "/containers/$box/start" >"$WORK/out"
put "$MNT/backends/docker/ctl" refresh
check_match "$(cat "$MNT/backends/docker/sandboxes")" "^$box running -"
expect_error ENOENT "$MNT/error" "adopt=$box" put "$MNT/ctl" 'create mine adopt=other'
expect_errno EINVAL put "$MNT/ctl" "create mine adopt=$box memory=1G"
put "$MNT/ctl" "create mine adopt=$box"
expect_errno EBUSY put "$MNT/ctl" "create again adopt=$box"
put "$MNT/backends/docker/ctl" refresh
check_match "$(cat "$MNT/backends/docker/sandboxes")" "^$box running mine"
before=$(ls -A "$MNT/mine/files")
check_eq "$(run mine 'cat /etc/name; echo in > /root/f; ls -A /')" "test"$'\n'"$before"
check_eq "$(cat "$MNT/mine/files/root/f")" in
mkdir "$MNT/mine/jobs/long"
put "$MNT/mine/jobs/long/cmd" 'i=0; while [ $i -lt 30 ]; do i=$((i + 1)); echo $i; sleep 0.1; done; exit 3'
kill_cubefs
start_cubefs --config "$CONF"
check_eq "$(cat <>"$MNT/mine/jobs/long/exit")" 3
check_eq "$(cat "$MNT/mine/jobs/long/stdout")" "$(seq 30)"
put "$MNT/mine/ctl" restart
check_eq "$(run mine 'cat /root/f')" in
api POST "/containers/$box/pause" >"$WORK/out"
wait_for 20 state_is mine paused
check_eq "$(run mine 'setsid sleep 1000 & cat /root/f')" in
rmdir "$MNT/mine"
wait_for 20 eval '[ ! -e "$STATE/backends/docker/cubes/$box" ]'
check_match "$(api GET "/containers/$box/json")" '"Running":true'
check_not grep -Eq 'cube|sleep 1000' < <(api GET "/containers/$box/top")
check_eq "$(api GET "/containers/$box/changes" | grep -c '/root/f\|cube')" 1
# one that was made by another state directory is adopted as well, and then is an orphan again
put "$MNT/ctl" "create mine adopt=$box"
api DELETE "/containers/$box?force=1" >"$WORK/out"
wait_for 20 state_is mine error
rmdir "$MNT/mine"
sandbox lost
id=$(field "$MNT/lost/status" id)
stop_cubefs
STATE=$WORK/second start_cubefs --config "$CONF"
put "$MNT/backends/docker/ctl" refresh
check_match "$(cat "$MNT/backends/docker/sandboxes")" "^$id running -"
put "$MNT/ctl" "create found adopt=$id"
check_eq "$(run found 'cat /etc/name')" test
rmdir "$MNT/found"
wait_for 20 eval '[ ! -e "$WORK/second/backends/docker/cubes/$id" ]'
swept() { # not while it is still being let go
	put "$MNT/ctl" 'sweep backend=docker older=0' && [ "$(boxes)" = 0 ]
}
wait_for 20 swept
stop_cubefs
start_cubefs --config "$CONF"
wait_for 20 state_is lost error
rmdir "$MNT/lost"

# ---- the engine is killed, and comes back ----

sandbox two
id=cubefs-$(field "$MNT/two/status" id)
kill -KILL "$(cat "$D/pid")"
wait_for 20 daemon_ended "$(cat "$D/pid")"
expect_error EHOSTUNREACH "$MNT/error" 'nobody listens' put "$MNT/ctl" 'create three'
"$ENGINE" again docker "$D" >"$WORK/engine.out" 2>&1 || fail "no engine: $(cat "$WORK/engine.out")"
sandbox three
check_eq "$(run three 'echo here')" here
wait_for 60 state_is two stopped
put "$MNT/two/ctl" start
check_eq "$(run two 'echo here')" here
api POST "/containers/$id/pause" >"$WORK/out" # it tells again
wait_for 20 state_is two paused
rmdir "$MNT/two" "$MNT/three"
wait_for 20 eval '[ "$(boxes)" = 0 ]'
stop_cubefs
check_eq "$(ls -A "$STATE/backends/docker/cubes")" ''
