#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Other states of a sandbox's files: reset, and what differs.
. "$(dirname "$0")/lib.sh"
start_cubefs
cd "$MNT"
sandbox dev

# ---- changes ----
check_eq "$(cat dev/changes)" ''
mkdir dev/files/srv/d
echo x >dev/files/srv/d/x
echo n >dev/files/srv/$'new\nline'
echo b >'dev/files/srv/back\slash'
echo w >dev/workspace/w
check_eq "$(LC_ALL=C sort dev/changes)" 'A /srv/back\\slash
A /srv/d
A /srv/d/x
A /srv/new\nline
A /workspace/w'
check_eq "$(stat -c %s dev/changes)" "$(wc -c <dev/changes)" size
check_eq "$(stat -c %A dev/changes)" -r--r--r--
expect_errno EACCES eval 'echo x >dev/changes'
# a whole of many pieces, from two places at once
run dev 'mkdir /srv/many; cd /srv/many; for i in $(seq 3000); do : >a-name-that-is-long-enough-to-fill-several-pieces-$i; done'
cat dev/changes >"$WORK/one" &
cat dev/changes >"$WORK/two"
wait $!
check cmp "$WORK/one" "$WORK/two"
check_eq "$(grep -c '^A /srv/many/a-name' "$WORK/one")" 3000
check_eq "$(stat -c %s dev/changes)" "$(wc -c <"$WORK/one")"

# ---- reset ----
mkdir dev/jobs/long
put dev/jobs/long/cmd 'echo up; sleep 1000'
wait_for 10 grep -q up dev/jobs/long/output
run dev 'cd /srv; X=1; echo mine >/srv/mine'
exec 3<dev/files/srv/mine
cd dev/files/srv
expect_errno EINVAL eval "echo 'reset now' >'$MNT/dev/ctl'"
put "$MNT/dev/ctl" reset
cd "$MNT"
if cat <&3 >"$WORK/read" 2>"$WORK/why"; then fail 'a file of before the reset can be read'; fi
check_match "$(cat "$WORK/why")" 'Stale file handle'
exec 3<&-
check_not test -e dev/files/srv/mine
check_not test -e dev/files/srv/many
check_eq "$(cat dev/workspace/w)" w
check_eq "$(field dev/status generation)" 1
check_eq "$(field dev/status state)" running
check_eq "$(field dev/jobs/long/status ended)" killed
check_eq "$(cat dev/jobs/long/output)" up
check_eq "$(run dev 'pwd; echo "<$X>"; ls /srv')" $'/workspace\n<>'
check_eq "$(tail -n 20 events | grep -c '"restored"')" 1
check_eq "$(cat dev/changes)" 'A /workspace/w'
# what is stopped stays so
put dev/ctl stop
echo again >dev/files/srv/again
put dev/ctl reset
check_eq "$(field dev/status state)" stopped
check_eq "$(field dev/status generation)" 2
check_not test -e dev/files/srv/again
put dev/ctl start
# paused: it runs again
echo again >dev/files/srv/again
put dev/ctl pause
put dev/ctl 'reset &'
wait_for 60 grep -q '^done reset ok' dev/status
check_eq "$(run dev 'ls /srv')" ''
# a daemon that was killed knows
cd /
kill_cubefs
start_cubefs
cd "$MNT"
check_eq "$(field dev/status generation)" 3
echo more >dev/files/srv/more
check_eq "$(cat dev/changes)" $'A /srv/more\nA /workspace/w'
put dev/ctl reset
check_eq "$(run dev 'ls /srv')" ''
rmdir dev
cd /
