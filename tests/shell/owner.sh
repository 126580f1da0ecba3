#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Sandboxes that nobody knows any more: backends/*/sandboxes, sweep, adopt.
. "$(dirname "$0")/lib.sh"
start_cubefs
on_exit bash -c "! grep -qF ' $MNT ' /proc/self/mounts || echo 'sweep older=0' >'$MNT/ctl'"
L=$MNT/backends/local

answer() { # LINE: what the root's ctl answers
	exec 7<>"$MNT/ctl"
	printf '%s\n' "$1" >&7 2>/dev/null || true
	cat <&7
	exec 7>&-
}
there() { # ID: its line in backends/local/sandboxes
	put "$L/ctl" refresh
	grep "^$1 " "$L/sandboxes" || true
}

sandbox kept label.team=blue
sandbox lost label.team=red "label.note='two words'"
sandbox other
run lost 'echo inside >/workspace/file; (setsid sleep 1000 </dev/null >/dev/null 2>&1 &)'
kept=$(field "$MNT/kept/status" uid) lost=$(field "$MNT/lost/status" uid) other=$(field "$MNT/other/status" uid)
check_eq "$(there "$lost")" "$lost running lost label.note=two\x20words label.team=red"
check_eq "$(answer sweep)" 'ok orphans=0 expired=0'

# ---- the state of two of them is lost ----
stop_cubefs
rm -r "$STATE/cubes/$lost" "$STATE/cubes/$other"
start_cubefs
check_eq "$(ls -d "$MNT"/[a-z]* | grep -c -e '/kept$' -e '/lost$' -e '/other$')" 1
check_match "$(there "$lost")" "^$lost running -( label.note=two.x20words| label.team=red){2} mark=$lost was=lost$"
check_eq "$(there "$kept")" "$kept running kept label.team=blue"

# without arguments it only says what it would
check_match "$(answer sweep)" "^ok orphans=2 expired=0( local/($lost|$other)=orphan){2}$"
put "$MNT/ctl" sweep
check grep -q "\"event\":\"verb\",\"detail\":\"sweep: would destroy local/$lost, orphaned, was 'lost'\"" "$MNT/events"
check_match "$(there "$lost")" '^.* running - '
# arguments choose
check_eq "$(answer 'sweep older=86400')" 'ok orphans=0 expired=0'
check_eq "$(answer 'sweep label.team=blue')" 'ok orphans=0 expired=0'
check_eq "$(answer 'sweep label.team=red older=86400')" 'ok orphans=0 expired=0'
expect_errno ENOENT put "$MNT/ctl" 'sweep backend=nowhere'
expect_errno EINVAL put "$MNT/ctl" 'sweep older=soon'
expect_errno EINVAL put "$MNT/ctl" 'sweep everything'
expect_errno EINVAL put "$MNT/ctl" 'sweep older=1 older=2'

# ---- adopt ----
expect_error EINVAL "$MNT/error" 'adopt=' put "$MNT/ctl" 'create a adopt=../x'
expect_error ENOENT "$MNT/error" 'no sandbox' put "$MNT/ctl" 'create a adopt=0123456789abcdef'
expect_error EBUSY "$MNT/error" "sandbox 'kept' has it" put "$MNT/ctl" "create a adopt=$kept"
expect_error EINVAL "$MNT/error" 'template' put "$MNT/ctl" "create a adopt=$lost template=host"
expect_error EINVAL "$MNT/error" 'limit' put "$MNT/ctl" "create a adopt=$lost pids=99"
check_not test -e "$MNT/a"
put "$MNT/ctl" "create found adopt=$lost label.mine=yes env.GREETING=hello"
check_eq "$(field "$MNT/found/status" adopted)" "$lost"
check_eq "$(field "$MNT/found/status" template)" "$(field "$MNT/kept/status" template)"
check_eq "$(run found 'cat /workspace/file; echo $GREETING; pwd; pgrep -xc sleep')" $'inside\nhello\n/workspace\n1'
check_eq "$(cat "$MNT/found/files/workspace/file")" inside
check_eq "$(there "$lost")" "$lost running found label.mine=yes"
expect_errno EBUSY put "$MNT/ctl" "create twice adopt=$lost"
# it is not swept, also after a restart
check_match "$(answer 'sweep older=0 label.team=red')" '^ok orphans=0 expired=0$'
kill_cubefs
start_cubefs
put "$MNT/found/ctl" 'wait running 60'
check_eq "$(run found 'cat /workspace/file')" inside
# let go, not destroyed
rmdir "$MNT/found"
wait_for 30 eval 'put "$MNT/ctl" "create again adopt=$lost" 2>/dev/null'
check_eq "$(run again 'cat /workspace/file; pgrep -xc sleep')" $'inside\n1'
put "$MNT/again/ctl" 'stop 0'
put "$MNT/ctl" 'destroy again'
check_match "$(there "$lost")" "^$lost stopped - "
# one that stands still is started
put "$MNT/ctl" "create again adopt=$lost"
check_eq "$(run again 'cat /workspace/file')" inside
put "$MNT/ctl" 'destroy again'

# ---- the sweep ----
check_match "$(answer 'sweep label.team=red')" "^ok orphans=1 expired=0 local/$lost=orphan$"
check_eq "$(there "$lost")" ''
check_not test -e "$STATE/backends/local/cubes/$lost"
check_match "$(answer 'sweep backend=local')" "^ok orphans=1 expired=0 local/$other=orphan$"
check grep -q "\"event\":\"destroyed\",\"detail\":\"sweep: local/$other, orphaned" "$MNT/events"
check_eq "$(answer sweep)" 'ok orphans=0 expired=0'
check_eq "$(run kept 'echo untouched')" untouched

# ---- those whose life is over ----
put "$MNT/ctl" 'create old lifetime=1 at_end=stop'
wait_for 30 state_is old stopped
check_eq "$(answer sweep)" 'ok orphans=0 expired=1 old=expired'
check test -d "$MNT/old"
check_eq "$(answer 'sweep backend=local')" 'ok orphans=0 expired=1 old=expired'
check_not test -e "$MNT/old"
echo "uid $lost
uid $other" | cut -d ' ' -f 2 >>"$WORK/uids"
