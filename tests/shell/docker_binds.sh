#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# bind and unbind, as of any backend (binds.sh), where sandboxes are containers; and in one that somebody else made.
. "$(dirname "$0")/lib.sh"
require_root
require curl
start_engine docker
mkdir -p "$HOME/.config/cubefs" "$WORK/own"
{ cat "$CONF"; echo 'default = yes'; } >"$HOME/.config/cubefs/cubefs.conf"
start_cubefs

# ---- adopted: its mounts are as before when it is let go; what others start again has its binds ----

box=$(curl -sSf --unix-socket "$D/sock" -H 'Content-Type: application/json' -d '{"Image": "cubefs-test",
	"Cmd": ["sleep", "1000"], "HostConfig": {"NetworkMode": "none"}}' \
	'http://engine/v1.41/containers/create?name=other' | cut -d '"' -f 4)
api POST "/containers/$box/start" >"$WORK/out"
put "$MNT/ctl" "create mine adopt=$box"
echo here >"$WORK/own/f"
mounts() {
	wc -l <"/proc/$(api GET "/containers/$box/json" | grep -o '"Pid":[0-9]*' | cut -d : -f 2)/mountinfo"
}
before=$(mounts)
put "$MNT/mine/ctl" "bind $WORK/own /mnt"
check_eq "$(run mine 'cat /mnt/f')" here
api POST "/containers/$box/restart?t=0" >"$WORK/out"
wait_for 20 eval '[ "$(run mine "cat /mnt/f" 2>/dev/null)" = here ]'
rmdir "$MNT/mine"
wait_for 20 eval '[ ! -e "$STATE/backends/docker/cubes/$box" ]'
check_eq "$(mounts)" "$before"
check_eq "$(cat "$WORK/own/f")" here
api DELETE "/containers/$box?force=1" >"$WORK/out"
stop_cubefs

export BACKEND=docker
. "$(dirname "$0")/binds.sh"
