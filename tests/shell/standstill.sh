#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A checkpoint of what runs is of one moment, and what stood still for it goes on: where copying takes too long, and where
# the daemon is killed meanwhile.
. "$(dirname "$0")/lib.sh"

# ---- two files written in order are never seen in the other order ----
# a then b, again and again: b is what a is, or one behind; root and workspace are one moment.
start_cubefs
cd "$MNT"
sandbox w
mkdir w/jobs/writer
put w/jobs/writer/cmd 'i=0; while :; do i=$((i + 1)); echo $i >/srv/a.new; mv /srv/a.new /srv/a; echo $i >/workspace/b.new; mv /workspace/b.new /workspace/b; done'
wait_for 20 test -s w/files/workspace/b
for round in {1..50}; do
	mkdir "w/checkpoints/$round"
	a=$(cat "w/checkpoints/$round/files/srv/a")
	b=$(cat "w/checkpoints/$round/files/workspace/b")
	[ "$b" -le "$a" ] && [ $((a - b)) -le 1 ] || fail "round $round: a is $a, b is $b"
	rmdir "w/checkpoints/$round"
done
check_eq "$(field w/jobs/writer/status state)" running
put w/jobs/writer/ctl 'kill KILL'
rm -rf w
cd /
stop_cubefs

# ---- a copy that takes too long, and a daemon that is killed in it ----
# cp(1) of our own: slow, with half a copy, while there is a file that says so.
mkdir "$WORK/bin"
cat >"$WORK/bin/cp" <<END
#!/bin/sh
: >>'$WORK/began'
for to; do :; done
[ ! -e '$WORK/slow' ] || { mkdir "\$to"; exec sleep 1000; }
exec /bin/cp "\$@"
END
chmod +x "$WORK/bin/cp"
conf=$WORK/conf
printf '[backend local]\nkind = local\nstore = copies\nfreeze_limit = 1\n' >"$conf"
STATE=$WORK/copies
PATH=$WORK/bin:$PATH start_cubefs --config "$conf"
cd "$MNT"
sandbox dev
run dev 'echo one >/srv/f'
ticks() { run dev 'cat /proc/uptime' >/dev/null; }
: >"$WORK/slow"
expect_error ETIMEDOUT dev/error 'stand still for more than 1 s.*freeze_limit' put dev/ctl 'checkpoint a'
expect_errno ETIMEDOUT mkdir dev/checkpoints/a
expect_error ETIMEDOUT dev/error 'freeze_limit' put dev/ctl 'fork two'
check_eq "$(ls dev/checkpoints)" ''
check_not test -e two
ticks # it goes on
check_eq "$(run dev 'cat /srv/f')" one
left() { find "$STATE/backends/local/layers" -mindepth 1 -maxdepth 1 -name '.*'; }
check_eq "$(left)" ''
rm "$WORK/slow"
mkdir dev/checkpoints/a
check_eq "$(cat dev/checkpoints/a/files/srv/f)" one
cd /
stop_cubefs

printf '[backend local]\nkind = local\nfreeze_limit = 0\n' >"$conf"
PATH=$WORK/bin:$PATH start_cubefs --config "$conf"
cd "$MNT"
ticks
mkdir dev/jobs/count
put dev/jobs/count/cmd 'while :; do echo x; sleep 0.02; done'
wait_for 10 test -s dev/jobs/count/output
: >"$WORK/slow"
rm -f "$WORK/began"
(put dev/ctl 'checkpoint cut' 2>/dev/null || true) &
wait_for 20 test -e "$WORK/began" # it stands still
cd /
kill_cubefs
wait $!
rm "$WORK/slow"
PATH=$WORK/bin:$PATH start_cubefs --config "$conf"
cd "$MNT"
ticks
check_eq "$(field dev/jobs/count/status state)" running
# shellcheck disable=SC2034 # used by eval
size=$(stat -c %s dev/jobs/count/output)
wait_for 20 eval '[ "$(stat -c %s dev/jobs/count/output)" -gt "$size" ]'
check_eq "$(ls dev/checkpoints)" a
check_eq "$(left)" ''
mkdir dev/checkpoints/cut
put dev/ctl 'restore a'
check_eq "$(run dev 'cat /srv/f')" one
rm -rf dev
cd /
stop_cubefs

# ---- the key ----
for bad in -1 x 1.5 90000; do
	printf '[backend local]\nkind = local\nfreeze_limit = %s\n' "$bad" >"$conf"
	if cubefs --config "$conf" --state "$WORK/no" "$WORK/nomnt" 2>"$WORK/why"; then fail "freeze_limit = $bad was taken"; fi
	check_match "$(cat "$WORK/why")" "freeze_limit = $bad"
done
