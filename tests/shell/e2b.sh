#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Sandboxes of an E2B service: a service that is not there, a wrong key; then commands, sessions, input, pause and stop,
# a daemon and connections that are killed, a sandbox that the service ends.
. "$(dirname "$0")/lib.sh"
require_root
require curl python3
CONF=$WORK/cubefs.conf
printf '%s\n' "$SERVICE_KEY" >"$WORK/key"
printf 'e2b_0\n' >"$WORK/wrong"

configure() { # URL KEYFILE LINE...
	printf '[backend e2b]\ndefault = yes\nurl = %s\nsandbox_url = %s\napi_key_file = %s\npoll = 1\n' "$1" "$1" "$2" >"$CONF"
	printf '%s\n' "${@:3}" >>"$CONF"
}

# ---- nobody there, nobody known ----

configure http://127.0.0.1:1 "$WORK/key"
start_cubefs --config "$CONF"
mkdir "$MNT/a"
wait_for 30 state_is a error
check_match "$(tail -n 1 "$MNT/a/error")" 'EHOSTUNREACH: .*127\.0\.0\.1'
rmdir "$MNT/a"
stop_cubefs
rm -rf "$STATE"/cubes/*.removed
start_service e2b.py
configure "$SERVICE_URL" "$WORK/wrong"
start_cubefs --config "$CONF"
expect_error EACCES "$MNT/error" "api_key_file = $WORK/wrong" put "$MNT/ctl" 'create a'
stop_cubefs
rm -rf "$STATE"/cubes/*.removed
check_match "$(cubefs doctor --config "$CONF" 2>&1 || true)" "does not take the key of api_key_file = $WORK/wrong"

# ---- commands ----

configure "$SERVICE_URL" "$WORK/key"
start_cubefs --config "$CONF"
wait_for 20 eval '[ "$(field "$MNT/backends/e2b/status" reachable)" = yes ]'
sandbox dev label.who=me env.COLOR=blue
check_eq "$(run dev 'id -u; pwd; echo $COLOR')" $'0\n/workspace\nblue'
check_eq "$(run dev 'cd /tmp; X=1')" ''
check_eq "$(run dev 'pwd; echo $X')" $'/tmp\n1'
put "$MNT/dev/exec" 'exit 7'
check_eq "$(cat "$MNT/dev/exit")" 7
check_eq "$(run dev 'head -c 3000000 /dev/zero | tr "\0" x | md5sum')" "$(head -c 3000000 /dev/zero | tr '\0' x | md5sum)"
put "$MNT/dev/exec" 'head -c 3000000 /dev/urandom | tee /tmp/bytes' # any bytes, all of them
check_eq "$(md5sum <"$MNT/dev/exec")" "$(run dev 'md5sum </tmp/bytes')"
curl_list=$(curl -sSf -H "X-API-Key: $SERVICE_KEY" "$SERVICE_URL/v2/sandboxes")
check_match "$curl_list" '"cubefs.label.who": *"me"'

# ---- pause and stop ----

put "$MNT/dev/exec" 'sleep 1000 & echo $! >/tmp/pid; echo kept >/workspace/f; export K=v'
put "$MNT/dev/ctl" pause
state_is dev paused
put "$MNT/dev/ctl" resume
check_eq "$(run dev 'kill -0 $(cat /tmp/pid) && echo alive; echo $K')" $'alive\nv'
put "$MNT/dev/ctl" stop
state_is dev stopped
put "$MNT/dev/ctl" start
check_eq "$(run dev 'cat /workspace/f; kill -0 $(cat /tmp/pid) 2>/dev/null || echo gone')" $'kept\ngone'

# ---- the daemon is killed, and so are connections ----

mkdir "$MNT/dev/jobs/long"
put "$MNT/dev/jobs/long/cmd" 'for i in 1 2 3 4 5 6; do echo line $i; sleep 0.5; done'
wait_for 10 grep -q 'line 1' "$MNT/dev/jobs/long/output"
kill_cubefs
start_cubefs --config "$CONF"
wait_for 20 grep -q 'line 6' "$MNT/dev/jobs/long/output"
wait_for 10 eval '[ "$(cat "$MNT/dev/jobs/long/exit")" = 0 ]'
check_eq "$(cat "$MNT/dev/jobs/long/output")" "$(seq -f 'line %g' 6)"

# ---- ended by the service ----

id=$(sed -n 's/.*"sandboxID": "\([^"]*\)".*/\1/p' <<<"$curl_list")
curl -sSf -X DELETE -H "X-API-Key: $SERVICE_KEY" "$SERVICE_URL/sandboxes/$id"
wait_for 20 eval '[ "$(field "$MNT/dev/status" state)" != running ]'
rmdir "$MNT/dev"
stop_cubefs
check_not grep -rq "$SERVICE_KEY" "$WORK/log" "$STATE"
check_eq "$(curl -sSf -H "X-API-Key: $SERVICE_KEY" "$SERVICE_URL/v2/sandboxes")" '[]'
